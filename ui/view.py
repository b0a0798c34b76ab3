"""What a reader looks at, and where the cells of a grid are in a trace."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from engine import Trace, presets
from engine.programs.question import Question
from engine.sampling import leading
from engine.types import Array
from ui import runs
from ui.layout import EVERYWHERE
from ui.switches import Switches

# rows of a large table that are all shown; where more are filled, those of so many leading tokens
FEW_ROWS, LEADERS = 32, 8

Part = tuple[str, Array]


@dataclass(frozen=True)
class View:
    """What decides a frame, apart from the lesson: shared by every reader who sees the same."""

    language: str
    preset: str
    seed: int
    switches: Switches
    ids: tuple[int, ...]
    layer: int
    head: int
    rows: tuple[int, ...]
    lesson: str
    # tokens that the loop has appended, and positions that a cache would have from its earlier steps
    steps: int = 0
    reused: int = 0
    # of `hiding.INVITED`, what is not on the page
    hidden: frozenset[str] = frozenset()
    # what the lesson asks about, and the position that it looks at where its reader chooses one
    question: Question | None = None
    position: int | None = None
    # the token that should follow the sentence, on pages that compare with it; −1 is the preset's own
    target: int = -1
    # the seed of the random weights that a training run starts from, 0 for the model's own; and of the parameter
    # whose step is followed, the row
    start: int = 0
    row: int = 0
    # which of `layout.STATIONS` is looked at, on the page that has them
    station: str = EVERYWHERE

    def looks_at(self, station: str) -> bool:
        """Whether a section that belongs to that station, or to none, is drawn."""
        return station in ("", self.station) or self.station == EVERYWHERE

    @property
    def words(self) -> dict[str, str]:
        """What the names of a lesson's tensors leave open, where it follows one parameter's step."""
        asked = self.question
        if asked is None or not asked.parameter:
            return {}
        return {"parameter": asked.parameter, "optimizer": asked.optimizer}

    @property
    def baseline(self) -> Trace:
        """The unedited trace of the sentence."""
        return runs.baseline(self.preset, self.seed, self.switches, self.ids, self.lesson, self.question,
                             self.target, self.start)


@dataclass(frozen=True)
class ResolvedGrid:
    """A grid's cells: for each tensor that it shows, the flat indices in row-major order."""

    key: str
    parts: tuple[Part, ...]

    @cached_property
    def by_tensor(self) -> Mapping[str, tuple[Array, Array]]:
        """For each tensor, which cells of the grid it fills and with which of its own, so that it is read once."""
        names = np.repeat([name for name, _ in self.parts], [len(flat) for _, flat in self.parts])
        flats = np.concatenate([flat for _, flat in self.parts])
        return {
            name: (places := np.flatnonzero(names == name), flats[places])
            for name in dict.fromkeys(name for name, _ in self.parts)
        }

    def numbers(self, trace: Trace) -> Array:
        """The numbers of the grid in a trace, row-major."""
        found = np.empty(sum(len(flat) for _, flat in self.parts))
        for name, (places, flat) in self.by_tensor.items():
            found[places] = trace[name].take(flat)
        return found

    def covered(self, masks: Mapping[str, Array]) -> Array:
        """Which of the grid's cells the masks of its tensors cover, row-major."""
        return np.concatenate([
            np.take(masks[name], flat) if name in masks else np.zeros(len(flat), dtype=bool)
            for name, flat in self.parts
        ])

    def shares_arrays(self, trace: Trace, other: Trace) -> bool:
        """Whether both traces hold the very same arrays, so that nothing needs comparing."""
        return all(trace[name].shares(other[name]) for name in self.by_tensor)


def encode(numbers: Array) -> str:
    """Doubles as base64, exact and compact; −∞ included."""
    return b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode()


def decode(text: str) -> Array:
    """The numbers that `encode` wrote."""
    return np.frombuffer(b64decode(text), dtype="<f8")


def placed(base: list[int], places: tuple[tuple[int | None, int | None], ...]) -> tuple[int, ...]:
    """An index with some axes put at other places; an axis or a place that is absent changes nothing."""
    index = list(base)
    for axis, place in places:
        if axis is not None and place is not None:
            index[axis] = place
    return tuple(index)


def cell_addresses(name: str, cells: list[tuple[int, ...]], base: list[int],
                   row: tuple[int | None, list[int] | None],
                   column: tuple[int | None, list[int] | None]) -> dict[str, Any]:
    """Where the cells are: a common base where rows and columns are the last axes, else one by one."""
    axes = [axis for axis, _ in (row, column) if axis is not None]
    if axes == list(range(len(base) - len(axes), len(base))):
        return {"base": base[:len(base) - len(axes)], "row_index": row[1], "column_index": column[1]}
    return {"cells": [[name, list(cell)] for cell in cells]}


def vocabulary_rows(view: View, embedding: bool) -> Iterator[int]:
    """The rows of a large table that matter: of the sentence, candidates, or asked for; and those that are filled.

    Where many are filled, the words that lead in the unedited run stand for them.
    """
    model = view.baseline.model
    tied = model.config.tied_head
    filled = runs.filled_rows(model, "embedding.weight" if embedding else model.config.head_table)
    sentence = view.ids if embedding or tied else ()
    candidates = () if embedding and not tied else presets.CANDIDATES[view.preset]
    targets = () if embedding and not tied else _targets(view)
    asks = view.question is not None and not view.question.parameter and not embedding
    asked = (view.question.token, view.question.rival) if asks and view.question is not None else ()
    shown = filled if len(filled) <= FEW_ROWS else () if embedding else _leaders(view)
    yield from {*shown, *sentence, *candidates, *targets, *asked, *view.rows}


def _leaders(view: View) -> Iterator[int]:
    """The words that lead at the last position of the unedited run."""
    tokenizer, logits = view.baseline.model.tokenizer, view.baseline["logits"].row(0, -1)
    return (token for token in leading(logits, LEADERS) if tokenizer is not None and token in tokenizer.words)


def _targets(view: View) -> tuple[int, ...]:
    """The tokens that should come next, where the lesson has them."""
    targets = view.baseline.circumstances.targets
    return () if targets is None else targets[0]
