"""What the lessons on training let a reader choose: the parameter to follow, its row, the optimizer, and the start."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from engine.bounds import LARGEST_SEED
from engine.optimizers import KINDS
from ui import naming, stepping, target_choice, word_choice
from ui.board import view
from ui.state import State, current
from ui.view import vocabulary_rows

# a longer axis is offered by a field for its number
MOST_OFFERED = 128
FIRST_SEED = 1


def step_panel(state: State) -> None:
    """Of the lesson on one step: the token that should follow, the parameter, and its row."""
    target_choice.panel(state)
    with _box("step_choice"):
        _parameter(state)
        _row(state)


def run_panel(state: State) -> None:
    """Of the lesson on a run: the same, and the optimizer and the weights that it starts from."""
    target_choice.panel(state)
    with _box("run_choice"):
        _optimizer(state)
        _start(state)
    with _box("step_choice"):
        _parameter(state)
        _row(state)


def _box(key: str) -> st.delta_generator.DeltaGenerator:
    outer = st.container(key=key, border=True)
    return outer.container(horizontal=True, vertical_alignment="bottom")


def _parameter(state: State) -> None:
    key = f"parameter_{state.choices.language}_{state.choices.preset}"
    names = list(state.model.config.parameter_shapes())
    st.session_state[key] = stepping.parameter(state)
    st.selectbox(
        state.say("choose_parameter"), names, key=key, width=320, format_func=naming.long_name,
        on_change=lambda: _set_parameter(st.session_state[key]),
    )


def _set_parameter(name: str) -> None:
    """Another parameter has other rows."""
    state = current()
    state.set_control("parameter", name)
    state.set_control("row", stepping.OWN)


def _row(state: State) -> None:
    """The row as a list; a vector has none."""
    tensor = state.baseline[stepping.parameter(state)]
    if len(tensor.shape) == 1:
        return
    key, axis = f"row_{state.choices.language}_{state.choices.preset}", naming.axes(tensor)[0]
    now, size = stepping.row(state), tensor.shape[0]
    if axis == "vocabulary" and size > MOST_OFFERED:
        is_embedding = str(tensor.name) == "embedding.weight"
        rows = sorted({*vocabulary_rows(view(state), is_embedding), *state.ids, now})
    else:
        rows = list(range(size))
    st.session_state[key] = now
    st.selectbox(
        state.say("choose_row"), rows, key=key, width=220,
        format_func=lambda row: _row_label(state, axis, row),
        on_change=lambda: current().set_control("row", st.session_state[key]),
    )


def _row_label(state: State, axis: str, row: int) -> str:
    label = naming.cell_label(state.model, state.ids, axis, row)
    return naming.with_id(label, row) if axis == "vocabulary" else label


def _optimizer(state: State) -> None:
    word_choice.buttons(state, "optimizer", "choose_optimizer", KINDS, lambda kind: state.say(f"optimizer_{kind}"))


def _start(state: State) -> None:
    """The model's own weights, or random ones with the seed that draws them."""
    start = int(state.control("start"))
    word_choice.buttons(
        state, "start", "choose_start", ("own", "random"), lambda kind: state.say(f"start_{kind}"),
        "random" if start else "own",
        lambda kind: current().set_control("start", FIRST_SEED if kind == "random" else 0),
    )
    if start:
        field = f"start_seed_{state.choices.language}"
        st.session_state[field] = start
        st.number_input(
            state.say("choose_start_seed"), FIRST_SEED, LARGEST_SEED, key=field, width=140,
            on_change=lambda: _set_seed(st.session_state[field]),
        )


def _set_seed(seed: int) -> None:
    with suppress(ValueError):
        current().set_control("start", seed)
