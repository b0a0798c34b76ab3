"""Lessons as their pages describe them, readers in a given state, and the numbers on a board."""

from __future__ import annotations

import runpy
from base64 import b64decode
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import Trace, presets
from ui import board, events, frame, lesson, live, navigation
from ui.frame import Frame
from ui.layout import Section
from ui.lesson import Chart
from ui.state import Choices, State

ROOT = Path(__file__).parent.parent.parent
Numbers = NDArray[np.float64]
Cell = tuple[str, tuple[int, ...]]

SENTENCES = {
    "cats": ("on", "Cats sit on", "Cats sit on Cats sit on on", " ".join(["Cats sit on on"] * 8)),
    "scratch": ("fox", "red fox red", "red fox and red fox red red", " ".join(["red fox and red"] * 8)),
}


@dataclass(frozen=True)
class Lesson:
    """What a page hands to `ui.lesson.show`."""

    name: str
    sections: tuple[Section, ...]
    chart: Chart | None


@lru_cache(maxsize=1)
def lessons() -> dict[str, Lesson]:
    """Every lesson by name, in reading order, from the pages' own scripts."""
    found: dict[str, Lesson] = {}

    def record(name: str, *sections: Section, chart: Chart | None = None) -> None:
        found[name] = Lesson(name, sections, chart)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lesson, "show", record)
        for page in sorted((ROOT / "pages").glob("*.py")):
            runpy.run_path(str(page))
    return found


def reader(**choices: Any) -> State:
    """A reader who sees this; the preset's own sentence unless `text` says otherwise."""
    preset = choices.get("preset", "cats")
    return State(Choices(**{"text": presets.SENTENCES[preset], **choices}))


def send(state: State, kind: str, **event: Any) -> None:
    """What the board reports when the reader does something."""
    events.apply(state, {"type": kind, "seq": state.seq + 1, **event})


def edit(state: State, tensor: str, index: tuple[int, ...], value: Any, gesture: int | None = None) -> None:
    send(state, "edit", tensor=tensor, index=list(index), value=value, gesture=gesture)


def framed(name: str, state: State) -> Frame:
    """The frame of a lesson for this reader."""
    return frame.build(name, lessons()[name].sections, board.view(state))


def alive(name: str, state: State) -> dict[str, Any]:
    """The live part of a lesson's board for this reader."""
    return live.build(state, framed(name, state), navigation.neighbours(name, state.choices.language))


def is_chinese(words: str) -> bool:
    return any("\u4e00" <= letter <= "\u9fff" for letter in words)


def decoded(text: str) -> Numbers:
    """Numbers as the browser reads them: little-endian doubles in base64."""
    return np.frombuffer(b64decode(text, validate=True), dtype="<f8")


def addresses(grid: dict[str, Any]) -> list[Cell]:
    """Where the cells of a grid come from, row by row, as the contract with the browser has it."""
    if "cells" in grid:
        return [(name, tuple(index)) for name, index in grid["cells"]]
    rows = [[row] for row in grid["row_index"]] if grid["row_index"] is not None else [[]]
    columns = [[column] for column in grid["column_index"]] if grid["column_index"] is not None else [[]]
    return [(grid["tensor"], (*grid["base"], *row, *column)) for row in rows for column in columns]


def numbers_at(trace: Trace, cells: list[Cell]) -> Numbers:
    """The numbers of a trace at those places."""
    arrays = {name: trace[name].data for name, _ in cells}
    return np.array([arrays[name][index] for name, index in cells], dtype=np.float64)
