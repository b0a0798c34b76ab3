"""One reader's state: what the address can say, the history of edits, and the current trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, product
from secrets import token_hex

import streamlit as st

from engine import Edit, EditError, InputError, Model, Trace, presets, programs, run
from engine.config import PAIRINGS
from formats.edits import MOST_EDITS
from ui import runs
from ui.text import say

MODES = ("values", "delta", "both")
MOST_STEPS = 200
MOST_SNAPSHOTS = 20
MOST_ROWS = 12
LONGEST_TRAIL = 20
LONGEST_NAME = 40

Index = tuple[int, ...]
CellAddress = tuple[str, Index]


@dataclass(frozen=True)
class Choices:
    """What the reader looks at; everything here is part of the address."""

    language: str = "en"
    preset: str = "cats"
    text: str = presets.SENTENCES["cats"]
    seed: int = 1
    pairing: str = PAIRINGS[0]
    layer: int = 0
    head: int = 0
    mode: str = MODES[0]
    rows: tuple[int, ...] = ()
    selected: CellAddress | None = None


@dataclass(frozen=True, eq=False)
class Situation:
    """What a preset, its choices and a sentence come to; shared where others see the same."""

    key: tuple[str, int, str, str]
    model: Model
    ids: tuple[int, ...]
    baseline: Trace


def situation(preset: str, seed: int, pairing: str, text: str) -> Situation:
    """Look up what a sentence comes to. Raises `InputError` for one that the model cannot read."""
    model = runs.model(preset, seed, pairing)
    ids = read_sentence(model, text)
    return Situation((preset, seed, pairing, text), model, ids, runs.baseline(preset, seed, pairing, ids))


@dataclass
class Shelf:
    """What a reader did with one preset, kept while they look at another."""

    choices: Choices
    history: list[tuple[Edit, ...]] = field(default_factory=lambda: [()])
    cursor: int = 0
    snapshots: dict[str, tuple[Edit, ...]] = field(default_factory=dict)


@dataclass
class State:
    """A reader's session. `history[cursor]` is the tuple of edits that is in force."""

    choices: Choices
    history: list[tuple[Edit, ...]] = field(default_factory=lambda: [()])
    cursor: int = 0
    gesture: tuple[str, object] | None = None
    snapshots: dict[str, tuple[Edit, ...]] = field(default_factory=dict)
    shelf: dict[str, Shelf] = field(default_factory=dict)
    trail: list[CellAddress] = field(default_factory=list)
    message: tuple[str, str] | None = None
    dismissed: str | None = None
    text_error: str | None = None
    draft: str | None = None
    seq: int = 0
    # the page notices by it that a restarted server knows nothing of what it shows
    session: str = field(default_factory=lambda: token_hex(8))
    destination: str | None = None
    needs_page: bool = False
    _last: Trace | None = None
    _situation: Situation | None = None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits in force."""
        return self.history[self.cursor]

    @property
    def situation(self) -> Situation:
        """Model, ids and baseline of the present choices, looked up once for each change of them."""
        choices = self.choices
        key = (choices.preset, choices.seed, choices.pairing, choices.text)
        if self._situation is None or self._situation.key != key:
            self._situation = situation(*key)
        return self._situation

    @property
    def model(self) -> Model:
        """The model that the reader chose."""
        return self.situation.model

    @property
    def ids(self) -> tuple[int, ...]:
        """The token ids of the sentence."""
        return self.situation.ids

    @property
    def baseline(self) -> Trace:
        """The trace without edits."""
        return self.situation.baseline

    @property
    def trace(self) -> Trace:
        """The trace with the edits, computed from the last one where that is possible."""
        if not self.edits:
            return self.baseline
        last = self._last
        fits = last is not None and last.model is self.model and tuple(last.ids[0]) == self.ids
        base = last if fits and last is not None else self.baseline
        self._last = base if base.edits == self.edits else self.run(self.edits, base)
        return self._last

    def run(self, edits: tuple[Edit, ...], base: Trace) -> Trace:
        """The trace of this sentence under other edits."""
        return run(self.model, [list(self.ids)], edits=edits, base=base, program=programs.lessons)

    def say(self, key: str, **values: object) -> str:
        """The words for a key in the reader's language."""
        return say(self.choices.language, key, **values)

    def choose(self, **changes: object) -> None:
        """Change what the reader looks at."""
        self.choices = replace(self.choices, **changes)  # type: ignore[arg-type]

    def commit(self, edits: tuple[Edit, ...], gesture: tuple[str, object] | None = None) -> None:
        """Put new edits in force if the model can run under them; one gesture is one step of undo.

        Raises `EditError` for an edit that is not allowed, or for more edits than an address holds.
        """
        if len(edits) > MOST_EDITS:
            raise EditError("too_many_edits", f"{len(edits)} edits; at most {MOST_EDITS}", most=MOST_EDITS)
        self._last = self.run(edits, self.trace)
        if edits == self.edits:
            return
        merge = gesture is not None and gesture == self.gesture and self.cursor > 0
        kept = self.history[: self.cursor if merge else self.cursor + 1]
        came_back = merge and edits == kept[-1]
        self.history = kept if came_back else [*kept, edits][-MOST_STEPS:]
        self.cursor = len(self.history) - 1
        self.gesture = None if came_back else gesture

    def cancel(self, gesture: object) -> None:
        """Take back a gesture that is still going on, as if it had not begun."""
        if self.gesture is not None and self.gesture[1] == gesture:
            self.history = self.history[: self.cursor]
            self.cursor, self.gesture = len(self.history) - 1, None

    def move(self, step: int) -> None:
        """Undo (−1) or redo (+1)."""
        self.cursor = min(max(self.cursor + step, 0), len(self.history) - 1)
        self.gesture = None

    def switch_preset(self, preset: str) -> None:
        """Go to another preset; the one left behind is kept as it is for the way back."""
        if preset == self.choices.preset:
            return
        left = self.choices
        self.shelf[left.preset] = Shelf(left, self.history, self.cursor, self.snapshots)
        found = self.shelf.pop(preset, None) or Shelf(Choices(preset=preset, text=presets.SENTENCES[preset]))
        self.choices = replace(found.choices, language=left.language, mode=left.mode)
        self.history, self.cursor, self.snapshots = found.history, found.cursor, found.snapshots
        self.trail = [] if found.choices.selected is None else [found.choices.selected]
        self.gesture, self.text_error, self.draft = None, None, None


def read_sentence(model: Model, text: str) -> tuple[int, ...]:
    """The ids of a sentence of 1 to 32 tokens. Raises `InputError`, naming what is wrong."""
    assert model.tokenizer is not None
    ids = tuple(model.tokenizer.encode(text))
    if len(ids) > runs.MOST_TOKENS:
        raise InputError("too_long", f"{len(ids)} tokens; at most {runs.MOST_TOKENS} fit",
                         count=len(ids), most=runs.MOST_TOKENS)
    return ids


def indices_of(part: int | slice, size: int) -> list[int]:
    """The indices along an axis of that size that one part of an edit's index stands for."""
    indices = range(size)[part] if isinstance(part, slice) else [part + size if -size <= part < 0 else part]
    return [index for index in indices if 0 <= index < size]


def covers(edit: Edit, index: Index, shape: tuple[int, ...]) -> bool:
    """Whether the edit sets that cell of a tensor of that shape."""
    return all(
        place in indices_of(part, size)
        for part, place, size in zip(edit.index, index, shape, strict=False)
    )


def without(edit: Edit, index: Index, shape: tuple[int, ...]) -> Iterator[Edit]:
    """The edit with one cell left out: itself, nothing, or the cells of a wider edit one by one."""
    if not covers(edit, index, shape):
        yield edit
        return
    parts = (*edit.index, *[slice(None)] * (len(shape) - len(edit.index)))
    cells = product(*(indices_of(part, size) for part, size in zip(parts, shape, strict=True)))
    for cell in islice(cells, MOST_EDITS + 2):
        if cell != index:
            yield Edit(edit.name, cell, edit.value)


def current() -> State:
    """The state of this session, which `ui.address.start` has put there."""
    state: State = st.session_state["glassbox"]
    return state
