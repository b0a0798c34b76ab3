"""A lesson's page: prose in four parts, then the board, a chart where one helps, and downloads."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import streamlit as st

from engine import presets
from ui import applicability, board, downloads, hiding, navigation, runs, text
from ui.layout import Section
from ui.prose import Prose, read
from ui.state import State, current
from ui.view import View

Chart = Callable[[State], dict[str, Any]]
# what a page has above its board: drawn with the page, or again at each edit
Panel = Callable[[State], None]


def show(lesson: str, *sections: Section, chart: Chart | None = None, panel: Panel | None = None,
         report: Panel | None = None, summary: Panel | None = None) -> None:
    """Draw a lesson; `panel` holds controls of its own; above the board `report` follows each edit, below `summary`."""
    begin()
    state = current()
    prose = read(lesson, state.choices.language)
    with st.container(key="prose"):
        st.title(prose.title, anchor=False)
        if not state.hides("prose"):
            _words(prose, state)
    shown = applicability.applies(lesson, state.model.config)
    if not shown:
        _absent(lesson)
    if panel is not None and shown and not state.hides("controls"):
        panel(state)
    below(lesson, sections if shown else (), chart if shown else None, report if shown else None,
          summary if shown else None)
    if shown and not state.hides("downloads") and not state.choices.presenting:
        downloads.show(state)


def begin() -> None:
    """Start the app where a page's script was started alone."""
    if "glassbox" not in st.session_state:
        # The first visitor of a fresh server who asks for a lesson gets that page's script alone:
        # until `st.navigation` has run once, Streamlit takes the folder for its older kind of pages.
        runpy.run_path(str(text.ASSETS.parent / "app.py"))
        st.stop()


def below(lesson: str, sections: tuple[Section, ...], chart: Chart | None = None,
          report: Panel | None = None, summary: Panel | None = None) -> None:
    """The board of a page, with at most one chart."""
    state = current()
    shown = hiding.without_controls(sections) if state.hides("controls") else sections
    board.structure(lesson, shown)
    _live(lesson, shown, None if state.hides("chart") else chart, report, summary, board.view(state))


def _words(prose: Prose, state: State) -> None:
    """The lead and the four parts of a lesson's prose."""
    language = state.choices.language
    st.markdown(prose.lead)
    if not state.choices.presenting and not state.hides("lessons"):
        st.page_link(navigation.page(navigation.GLOSSARY), label=state.say("glossary"))
    left, right = st.columns(2, gap="large")
    _part(left, "problem", prose, language)
    _part(right, "idea", prose, language)
    _part(st.container(), "structure", prose, language)
    left, right = st.columns(2, gap="large")
    _part(left, "example", prose, language)
    example = _example(prose, language)
    left.caption(text.say(language, "example_note" if prose.preset else "example_note_own", example=example))
    tasks = right.container(key="try")
    _part(tasks, "try", prose, language)
    if prose.tasks_follow and prose.preset not in (None, state.choices.preset):
        tasks.caption(text.say(language, "try_note", example=example))
        if not state.hides("model"):
            tasks.button(text.say(language, "try_switch", example=example).strip(), key="try_switch",
                         on_click=lambda: _take(str(prose.preset)))


def _absent(lesson: str) -> None:
    """Say why the model has nothing of the lesson, and lead to one that has."""
    state = current()
    st.info(state.say(f"absent_{lesson}"))
    if state.hides("model"):
        return
    for preset in presets.NAMES:
        if applicability.applies(lesson, runs.model(preset, 1, ()).config):
            st.button(state.say("show_with", preset=state.say(f"preset_{preset}")), key=f"show_with_{preset}",
                      on_click=lambda preset=preset: _take(preset))
    if state.choices.switches:
        st.button(state.say("own_architecture"), key="own_architecture", on_click=lambda: current().choose(switches=()))


def _take(preset: str) -> None:
    current().switch_preset(preset)
    current().choose(switches=())


def _example(prose: Prose, language: str) -> str:
    """What the example is called whose numbers the prose quotes."""
    return text.say(language, f"example_{prose.preset or 'own'}")


def _part(place: Any, name: str, prose: Prose, language: str) -> None:
    # one element for both: Streamlit renders every element of the page again at each answer
    heading = text.say(language, f"part_{name}", example=_example(prose, language))
    place.markdown(f"##### {heading}\n\n{prose.parts[name]}")


@st.fragment
def _live(lesson: str, sections: tuple[Section, ...], chart: Chart | None, report: Panel | None,
          summary: Panel | None, drawn: View) -> None:
    """What an edit redraws: the board and at most one chart, below what the page reports of them."""
    state = current()
    if state.destination is not None:
        destination, state.destination = state.destination, None
        if destination in navigation.PAGES:
            st.switch_page(navigation.page(destination))
    # an edit may change the text that the loop makes, and with it the structure of the board
    if state.needs_page or drawn != board.view(state):
        state.needs_page = False
        st.rerun(scope="app")
    with unless_left(state, lesson):
        above = st.container() if report is not None else None
        board.show(lesson, sections, navigation.neighbours(lesson, state))
        # the board is on its way before the tables are made
        if report is not None and above is not None:
            with above:
                report(state)
        if summary is not None:
            summary(state)
        if chart is not None:
            st.plotly_chart(chart(state), key="chart", width="stretch", config={"displayModeBar": False})


@contextmanager
def unless_left(state: State, lesson: str) -> Iterator[None]:
    """Ends an answer whose page was left while it was in the making: half of it would be about the next page.

    Streamlit begins the next page in a thread of its own, and this one goes on until it draws something.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError):
        if state.lesson == lesson:
            raise
        st.stop()
