"""What each lesson's board holds, and how much an edit makes it send: to find the heaviest one."""

from __future__ import annotations

import json
import logging
import runpy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unittest.mock import patch

from benchmarks.server import ROOT
from ui import board, events, frame, live, navigation
from ui.frame import Frame
from ui.layout import Section
from ui.state import Choices, State

CELL = ("layers.0.attention.Wq", (0, 1))
SELECT: dict[str, Any] = {"type": "select", "tensor": CELL[0], "index": list(CELL[1]), "trail": "start"}


def edit(number: int) -> dict[str, Any]:
    """The board's event that sets the cell to a value of the slider; no two in a row are the same."""
    value = (number % 150 + 1) / 100
    return {"type": "edit", "tensor": CELL[0], "index": list(CELL[1]), "value": value, "gesture": 1}


@dataclass(frozen=True)
class Weight:
    """The size of one lesson: its grids and cells, and the bytes of its structure and of an edit."""

    lesson: str
    has_chart: bool
    grids: int
    cells: int
    frame_bytes: int
    edit_bytes: int


@lru_cache(maxsize=1)
def layouts() -> dict[str, tuple[tuple[Section, ...], bool]]:
    """The sections of every lesson, and whether it has a chart, as its page's script gives them."""
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # it warns of running without a browser
    found = {}
    for number, lesson in enumerate(navigation.LESSONS, 1):
        with patch("ui.lesson.show") as show:
            runpy.run_path(str(ROOT / "pages" / f"{number:02}_{lesson}.py"))
        found[lesson] = (show.call_args.args[1:], show.call_args.kwargs.get("chart") is not None)
    return found


def edited(state: State) -> State:
    """The state after the cell was selected and edited once."""
    report(state, SELECT)
    report(state, edit(1))
    return state


def report(state: State, event: dict[str, Any]) -> None:
    """Carry out an event as the board would number it. An edit that changes nothing is no measurement."""
    before = state.edits
    events.apply(state, event | {"seq": state.seq + 1})
    if state.message is not None or (event["type"] == "edit" and state.edits == before):
        raise AssertionError(f"{event} was not carried out: {state.message}")


def board_of(lesson: str, state: State) -> Frame:
    state.lesson = lesson
    return frame.build(lesson, layouts()[lesson][0], board.view(state))


def tensors(lesson: str, state: State) -> tuple[str, ...]:
    """The names of the tensors that a lesson shows, in order of computation."""
    return tuple(name for name in state.trace if name in board_of(lesson, state).names)


def weigh(state: State) -> list[Weight]:
    """Every lesson of the walkthrough, the one whose edit sends most first."""
    weights = []
    for lesson in navigation.GROUPS["lessons_cats"]:
        has_chart = layouts()[lesson][1]
        built = board_of(lesson, state)
        sent: dict[str, Any] = live.build(state, built, {})
        cells = sum(len(flat) for grid in built.grids for _, flat in grid.parts)
        weights.append(Weight(lesson, has_chart, len(built.grids), cells, len(json.dumps(built.data)),
                              len(json.dumps(sent))))
    return sorted(weights, key=lambda weight: (-weight.edit_bytes, -weight.grids))


def heaviest() -> tuple[str, str]:
    """The heaviest lesson without a chart, and the heaviest with one."""
    weights = weigh(edited(State(Choices())))
    plain, charted = (
        next(weight.lesson for weight in weights if weight.has_chart is wanted) for wanted in (False, True)
    )
    return plain, charted
