"""The board: one component a page, patched in place, with the strip that stays on screen."""

from __future__ import annotations

from typing import Any

import streamlit as st

from engine import programs
from ui import courses, events, frame, generation, hiding, live, stations, stepping, text
from ui.controls import PLACED
from ui.layout import Section
from ui.state import State, current
from ui.view import View

BOARD = text.ASSETS / "board"
SCRIPTS = (
    "format", "rules", "looks", "grid", "editor", "dragging", "explanation", "flow", "words", "keys", "presenting",
    "handing_out", "glossary", "removal", "ranking", "dial", "more", "strip", "outbox", "board",
)


def _read(name: str) -> str:
    return (BOARD / name).read_text(encoding="utf-8")


# The scripts travel once, with the strip; the two elements that change carry a stub.
_strip = st.components.v2.component(
    "glassbox_strip", isolate_styles=False,
    js="\n".join(_read(f"{name}.js") for name in SCRIPTS),
)
_frame = st.components.v2.component("glassbox_frame", js=_read("stub_frame.js"), isolate_styles=False)
_board = st.components.v2.component("glassbox_board", js=_read("stub_board.js"), isolate_styles=False)


def strip(state: State) -> None:
    """The place of the strip, and the code of the board."""
    with st.container(key="glassbox_strip_place"):
        _strip(key="strip", data={"labels": text.board_labels(state.choices.language)})


def view(state: State) -> View:
    """What decides the structure of any board for this reader."""
    choices = state.choices
    steps = state.steps if state.lesson == generation.LESSON else 0
    return View(choices.language, choices.preset, choices.seed, choices.switches, state.ids, choices.layer,
                choices.head, choices.rows, state.lesson, steps, generation.reused(state.continuation, steps),
                frozenset(filter(state.hides, hiding.INVITED)),
                state.question if programs.asks(state.lesson) else None,
                state.position if state.lesson in PLACED else None, state.target, courses.start(state),
                stepping.row(state), stations.chosen(state))


def structure(lesson: str, sections: tuple[Section, ...]) -> None:
    """The unchanging part of a lesson's board; outside the fragment, so that no edit sends it again."""
    _frame(key="frame", data=frame.build(lesson, sections, view(current())).data)


def show(lesson: str, sections: tuple[Section, ...], neighbours: dict[str, Any]) -> None:
    """The live part of a lesson's board."""
    state = current()
    built = frame.build(lesson, sections, view(state))
    _board(key="board", data=live.build(state, built, neighbours), on_event_change=_receive)


def _receive() -> None:
    # an event may be on its way while its page is left; the board sends it again
    event = st.session_state["board"].get("event") if "board" in st.session_state else None
    if event:
        events.apply(current(), event)
