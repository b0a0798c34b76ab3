"""One reader's state: what the address can say, the history of edits, and the current trace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from secrets import token_hex

import streamlit as st

from engine import Edit, EditError, Model, Trace, presets, programs, run
from engine.edits import among
from engine.programs.question import Question
from formats.edits import MOST_EDITS
from ui import controls, courses, generation, hiding, pairs, runs, stepping
from ui.controls import CONTROLS, PLACED, Controls
from ui.quests import Quest
from ui.switches import Switches, settled
from ui.text import say
from ui.tokenizer_desk import Desk

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
    switches: Switches = ()
    layer: int = 0
    head: int = 0
    mode: str = MODES[0]
    rows: tuple[int, ...] = ()
    controls: Controls = ()
    selected: CellAddress | None = None
    presenting: bool = False
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Situation:
    """What a preset, its choices and a sentence come to; shared where others see the same."""

    key: tuple[object, ...]
    model: Model
    ids: tuple[int, ...]
    baseline: Trace


def situation(preset: str, seed: int, switches: Switches, text: str, lesson: str,
              question: Question | None = None, target: int = -1, start: int = 0, *continued: int) -> Situation:
    """Look up what a sentence comes to, or what the model reads of it `continued`.

    Raises `InputError` for a sentence that the model cannot read.
    """
    model = runs.model(preset, seed, switches, start)
    ids = continued or runs.prompt(preset, seed, switches, text)
    baseline = runs.baseline(preset, seed, switches, ids, lesson, question, target, start)
    return Situation((preset, seed, switches, text, lesson, question, target, start, *continued), model, ids, baseline)


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
    # the page that the reader is on; it decides what is computed beside the model
    lesson: str = "overview"
    destination: str | None = None
    # the link that is being made for a class, while its panel is open
    handing: hiding.Handing | None = None
    needs_page: bool = False
    # while the loop plays by itself, when its next token is due
    due: float | None = None
    # the tokenizer that the reader has brought along; no address can hold it
    desk: Desk = field(default_factory=Desk)
    # the training run that the reader looks at
    walk: courses.Walk = field(default_factory=courses.Walk)
    # the search for a smallest edit that was asked for last
    sought: Quest | None = None
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
        question = self.question if programs.asks(self.lesson) else None
        place = (choices.preset, choices.seed, choices.switches, choices.text, self.lesson, question, self.target,
                 courses.start(self))
        continued = self._continued()
        if self._situation is None or self._situation.key != (*place, *continued):
            self._situation = situation(*place, *continued)
        return self._situation

    def _continued(self) -> tuple[int, ...]:
        """What the model reads of the text that the loop has made, on the page of the loop; else nothing."""
        if self.lesson != generation.LESSON or not self.steps:
            return ()
        return generation.window(self.continuation, self.steps)

    @property
    def question(self) -> Question:
        """The tokens that lessons look into: the reader's, or those that the unedited model puts first."""
        if self.lesson in programs.STEPPING:
            return stepping.question(self)
        choices = self.choices
        place = (choices.preset, choices.seed, choices.switches)
        token, rival = int(self.control("token")), int(self.control("rival"))
        own = runs.prompt(*place, choices.text)
        return runs.asked(*place, own, token, rival, self.position, pairs.beside(self))

    @property
    def target(self) -> int:
        """The token that should follow the sentence, where a lesson compares with it; −1 is the preset's own."""
        return int(self.control("target")) if self.lesson in programs.SUPERVISED else -1

    @property
    def position(self) -> int:
        """Where a lesson looks: at the last position, unless it lets the reader choose another."""
        choices = self.choices
        count = len(runs.prompt(choices.preset, choices.seed, choices.switches, choices.text))
        asked = int(self.control("position")) if self.lesson in PLACED else -1
        return asked if 0 <= asked < count else count - 1

    @property
    def continuation(self) -> generation.Setting:
        """What the loop's text depends on."""
        choices = self.choices
        place = (choices.preset, choices.seed, choices.switches)
        return generation.Setting(*place, runs.prompt(*place, choices.text), self.edits)

    @property
    def steps(self) -> int:
        """How many tokens the loop has appended."""
        return int(self.control("steps"))

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
        here = self.active(self.edits)
        if courses.step(self):
            return courses.trace(self)
        if not here:
            return self.baseline
        last, now = self._last, self.baseline
        fits = last is not None and last.model is self.model and tuple(last.ids[0]) == self.ids
        base = last if fits and last is not None and last.circumstances == now.circumstances else now
        self._last = base if base.edits == here else self.run(self.edits, base)
        return self._last

    def active(self, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        """The edits of tensors that this page computes; the others wait for their own page."""
        return among(edits, self.baseline)

    def run(self, edits: tuple[Edit, ...], base: Trace) -> Trace:
        """The trace of this sentence under other edits. Raises `EditError` for one that is not allowed."""
        here = self.active(edits)
        own = runs.model(self.choices.preset, self.choices.seed, ())
        for edit in set(edits).difference(self.edits):
            runs.check_carried(self.model, edit)
        for edit in set(edits).difference(here, self.edits):
            runs.check_elsewhere(self.model, own, len(self.ids), edit)
        around = self.baseline.circumstances
        return run(self.model, [list(self.ids)], edits=here, base=base, program=around.program, targets=around.targets)

    def say(self, key: str, **values: object) -> str:
        """The words for a key in the reader's language."""
        return say(self.choices.language, key, **values)

    def choose(self, **changes: object) -> None:
        """Change what the reader looks at."""
        self.choices = replace(self.choices, **changes)  # type: ignore[arg-type]

    def hides(self, name: str) -> bool:
        """Whether the reader's link leaves that out; see `ui.hiding.NAMES`."""
        return name in hiding.spread(self.choices.hidden)

    def control(self, name: str) -> controls.Value:
        """What a lesson's own control is set to."""
        return dict(self.choices.controls).get(name, CONTROLS[name].default)

    def set_control(self, name: str, value: controls.Value) -> None:
        """Set a lesson's own control. Raises `ValueError` for what it cannot be."""
        checked = CONTROLS[name].read(str(value))
        self.choose(controls=controls.settled({**dict(self.choices.controls), name: checked}))

    def commit(self, edits: tuple[Edit, ...], gesture: tuple[str, object] | None = None) -> None:
        """Put new edits in force if the model can run under them; one gesture is one step of undo.

        Raises `EditError` for an edit that is not allowed, or for more edits than an address holds.
        """
        if len(edits) > MOST_EDITS:
            raise EditError("too_many_edits", f"{len(edits)} edits; at most {MOST_EDITS}", most=MOST_EDITS)
        self._last = self.run(edits, self.trace)
        if edits == self.edits:
            return
        before = self.edits
        merge = gesture is not None and gesture == self.gesture and self.cursor > 0
        kept = self.history[: self.cursor if merge else self.cursor + 1]
        came_back = merge and edits == kept[-1]
        self.history = kept if came_back else [*kept, edits][-MOST_STEPS:]
        self.cursor = len(self.history) - 1
        self.gesture = None if came_back else gesture
        courses.follow(self, before)

    def cancel(self, gesture: object) -> None:
        """Take back a gesture that is still going on, as if it had not begun."""
        if self.gesture is not None and self.gesture[1] == gesture:
            self.history = self.history[: self.cursor]
            self.cursor, self.gesture = len(self.history) - 1, None

    def move(self, step: int) -> None:
        """Undo (−1) or redo (+1)."""
        self.cursor = min(max(self.cursor + step, 0), len(self.history) - 1)
        self.gesture = None

    def switch(self, **changes: object) -> None:
        """Change the architecture. Raises `ConfigError` for choices that do not go together."""
        choices = self.choices
        own = runs.model(choices.preset, choices.seed, ())
        wanted = {**dict(choices.switches), **changes}
        switches = settled(tuple(wanted.items()), own.config)  # type: ignore[arg-type]
        runs.model(choices.preset, choices.seed, switches)
        self.choose(switches=switches)

    def switch_preset(self, preset: str) -> None:
        """Go to another preset; the one left behind is kept as it is for the way back."""
        if preset == self.choices.preset:
            return
        left = self.choices
        self.shelf[left.preset] = Shelf(left, self.history, self.cursor, self.snapshots)
        found = self.shelf.pop(preset, None) or Shelf(Choices(preset=preset, text=presets.SENTENCES[preset]))
        kept = {name: getattr(left, name) for name in ("language", "mode", "presenting", "hidden")}
        self.choices = replace(found.choices, **kept)
        self.history, self.cursor, self.snapshots = found.history, found.cursor, found.snapshots
        self.trail = [] if found.choices.selected is None else [found.choices.selected]
        self.gesture, self.text_error, self.draft, self.due, self.walk = None, None, None, None, courses.Walk()


def current() -> State:
    """The state of this session, which `ui.address.start` has put there."""
    state: State = st.session_state["glassbox"]
    return state
