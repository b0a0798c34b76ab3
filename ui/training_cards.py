"""Lesson 33's card: the buttons of a training run, how far it has come, and the curve of its loss."""

from __future__ import annotations

import streamlit as st

from ui import courses, target_choice, training_charts, word_choice
from ui.controls import MOST_TRAINED, STRIDES
from ui.markup import Markup, card_head, fill, tag
from ui.state import State, current
from ui.staves import token_chip
from ui.text import number, percent


def show(state: State) -> None:
    """Draw the card; it follows every portion of the run."""
    with st.container(key="card_training"):
        st.html(card_head(state.say("training_run"), state.say("training_run_note")))
        if not state.hides("controls"):
            _buttons(state)
        end = min(courses.trained(state), courses.course(state).reached)
        st.progress(end / MOST_TRAINED, state.say("training_progress", step=end, most=MOST_TRAINED))
        st.html(tag("div", *(tag("p", line, role="status") for line in _status(state)), css="card-content card-status"))
        if not state.hides("chart"):
            st.plotly_chart(training_charts.curves(state), key="chart", width="stretch",
                            config={"displayModeBar": False})


def _status(state: State) -> list[Markup]:
    """Where the run stands at the step that is looked at, and what has happened to it."""
    course, now = courses.course(state), courses.step(state)
    token = token_chip(state.model, target_choice.chosen(state))
    said = fill(
        state.say("training_status" if now else "training_status_start"), step=str(now), token=token,
        loss=number(course.losses[now]), first=number(course.losses[0]),
        chance=percent(state.choices.language, course.chances[now]),
        before=percent(state.choices.language, course.chances[0]),
    )
    ended = course.ended and courses.trained(state) >= course.reached
    return [
        said, *([fill(state.say("training_edits"))] if now else []),
        *([fill(state.say("training_ended"), step=str(course.reached))] if ended else []),
    ]


def _buttons(state: State) -> None:
    """To the start, some steps on, and the run on its own or standing still."""
    language, trained, runs = state.choices.language, courses.trained(state), state.walk.running
    stride = str(state.control("stride"))
    at_end = trained >= MOST_TRAINED or courses.course(state).ended
    with st.container(horizontal=True, key="training_steps", vertical_alignment="bottom"):
        st.button(state.say("training_first"), key=f"training_first_{language}", on_click=_take, args=(0,),
                  disabled=trained == 0)
        st.button(
            state.say("training_step", count=stride) if stride != STRIDES[0] else state.say("training_step_one"),
            key=f"training_step_{language}", on_click=_take, args=(trained + int(stride),), disabled=at_end,
            type="primary",
        )
        st.button(
            state.say("training_stop" if runs else "training_run_on"), key=f"training_run_{language}",
            on_click=_run, args=(not runs,), disabled=at_end and not runs,
        )
        word_choice.buttons(state, "stride", "training_stride", STRIDES)


def _take(steps: int) -> None:
    courses.take(current(), steps)


def _run(running: bool) -> None:
    courses.set_running(current(), running)
