"""Which token should come behind the sentence: a control for the pages that compare predictions with targets."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from engine import presets
from ui import naming, runs, token_choice
from ui.state import State, current

PRESET_S_OWN = -1


def chosen(state: State) -> int:
    """The token behind the sentence: the reader's, or the preset's own."""
    choices = state.choices
    return runs.targets(choices.preset, choices.seed, state.ids, state.target)[-1]


def panel(state: State) -> None:
    """The choice of the token that should come next: from a list, and by its id where the list has not all of them."""
    with (
        st.container(key="target_choice", border=True),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        key = f"target_{state.choices.language}_{state.choices.preset}"
        entries = offered(state)
        st.session_state[key] = state.target if state.target in entries else PRESET_S_OWN
        st.selectbox(
            state.say("choose_target"), list(entries), format_func=entries.__getitem__, key=key, width=320,
            on_change=lambda: _set(st.session_state[key]),
        )
        if state.model.config.vocab_size > token_choice.MOST_OFFERED:
            _by_id(state)


def offered(state: State) -> dict[int, str]:
    """The tokens to choose from: the preset's own, then those that lead, its candidates, the sentence's, or all."""
    choices, size = state.choices, state.model.config.vocab_size
    own = presets.TARGETS[choices.preset]
    leaders = token_choice.leaders(choices.preset, choices.seed, choices.switches, state.ids, len(state.ids) - 1)
    near = [*presets.CANDIDATES[choices.preset], *leaders, *state.ids, chosen(state)]
    every = dict.fromkeys([*near, *(range(size) if size <= token_choice.MOST_OFFERED else ())])
    return {
        PRESET_S_OWN: state.say("choose_target_own", token=naming.token_label(state.model, own)),
        **{token: token_choice.label(state, token) for token in every if token != own},
    }


def _by_id(state: State) -> None:
    """A field for the id of a token that the list does not offer."""
    key = f"target_id_{state.choices.language}_{state.choices.preset}"
    st.session_state[key] = chosen(state)
    st.number_input(
        state.say("choose_target_id"), 0, state.model.config.vocab_size - 1, key=key, width=160,
        on_change=lambda: _set(st.session_state[key]),
    )


def _set(number: int) -> None:
    with suppress(ValueError):  # beyond any vocabulary
        current().set_control("target", number)
