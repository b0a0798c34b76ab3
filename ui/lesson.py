"""A lesson's page: prose in four parts, then the board, a chart where one helps, and downloads."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import Any

import streamlit as st

from ui import board, downloads, navigation, text
from ui.layout import Section
from ui.prose import Prose, read
from ui.state import State, current

Chart = Callable[[State], dict[str, Any]]


def show(lesson: str, *sections: Section, chart: Chart | None = None) -> None:
    """Draw a lesson."""
    if "glassbox" not in st.session_state:
        # The first visitor of a fresh server who asks for a lesson gets that page's script alone:
        # until `st.navigation` has run once, Streamlit takes the folder for its older kind of pages.
        runpy.run_path(str(text.ASSETS.parent / "app.py"))
        st.stop()
    language = current().choices.language
    prose = read(lesson, language)
    with st.container(key="prose"):
        st.title(prose.title, anchor=False)
        st.markdown(prose.lead)
        left, right = st.columns(2, gap="large")
        _part(left, "problem", prose, language)
        _part(right, "idea", prose, language)
        _part(st.container(), "structure", prose, language)
        left, right = st.columns(2, gap="large")
        _part(left, "example", prose, language)
        left.caption(text.say(language, "example_note"))
        tasks = right.container(key="try")
        _part(tasks, "try", prose, language)
        if current().choices.preset != "cats":
            tasks.caption(text.say(language, "try_note"))
    board.structure(lesson, sections)
    _live(lesson, sections, chart)
    downloads.show(current())


def _part(place: Any, name: str, prose: Prose, language: str) -> None:
    # one element for both: Streamlit renders every element of the page again at each answer
    place.markdown(f"##### {text.say(language, f'part_{name}')}\n\n{prose.parts[name]}")


@st.fragment
def _live(lesson: str, sections: tuple[Section, ...], chart: Chart | None) -> None:
    """What an edit redraws: the board and at most one chart."""
    state = current()
    if state.destination is not None:
        destination, state.destination = state.destination, None
        if destination in navigation.LESSONS:
            st.switch_page(navigation.page(destination))
    if state.needs_page:
        state.needs_page = False
        st.rerun(scope="app")
    board.show(lesson, sections, navigation.neighbours(lesson, state.choices.language))
    if chart is not None:
        st.plotly_chart(chart(state), key="chart", width="stretch", config={"displayModeBar": False})
