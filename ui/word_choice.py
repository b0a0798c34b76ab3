"""A row of buttons for a control of a lesson that is one of a few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from ui.state import State, current


def buttons(state: State, control: str, label: str, words: Sequence[str], name: Callable[[str], str] = str,
            now: str | None = None, wrap: bool = False) -> None:
    """Let the reader set `control` to one of the words, each by its `name`; `now` where it shows another than it is."""
    # each language has widgets of its own: Streamlit keeps a choice by its label
    key = f"{control}_{state.choices.language}"
    st.session_state[key] = state.control(control) if now is None else now
    st.segmented_control(
        state.say(label), list(words), format_func=name, key=key, required=True, width="content", wrap=wrap,
        on_change=lambda: current().set_control(control, st.session_state[key]),
    )
