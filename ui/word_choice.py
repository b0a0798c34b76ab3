"""A row of buttons for a control of a lesson that is one of a few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from ui.state import State, current


def buttons(state: State, control: str, label: str, words: Sequence[str], name: Callable[[str], str] = str,
            now: str | None = None, choose: Callable[[str], None] | None = None) -> None:
    """Let the reader set `control` to one of the words, each by its `name`.

    `now` is the word that it shows, and `choose` sets the control, where it holds something else than the word.
    """
    # each language has widgets of its own: Streamlit keeps a choice by its label
    key = f"{control}_{state.choices.language}"
    st.session_state[key] = state.control(control) if now is None else now
    st.segmented_control(
        state.say(label), list(words), format_func=name, key=key, required=True, width="content", wrap=True,
        on_change=lambda: (choose or partial(current().set_control, control))(st.session_state[key]),
    )
