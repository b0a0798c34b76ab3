"""Where on the way back from the loss the reader looks: at one station, or everywhere in a small model."""

from __future__ import annotations

import streamlit as st

from ui import target_choice
from ui.layout import EVERYWHERE, STATIONS
from ui.state import State, current

LESSON = "backward"
# features of a model whose tensors and gradients a page can show all at once
MOST_FEATURES = 16


def chosen(state: State) -> str:
    """The station that is looked at; everywhere on pages without them."""
    if state.lesson != LESSON:
        return EVERYWHERE
    asked, offered = str(state.control("station")), choices(state)
    return asked if asked in offered else offered[0]


def choices(state: State) -> tuple[str, ...]:
    """What there is to choose from, the usual one first."""
    return STATIONS if state.model.config.hidden_size > MOST_FEATURES else (EVERYWHERE, *STATIONS)


def panel(state: State) -> None:
    """The choice of the token that should come, and of the station."""
    target_choice.panel(state)
    key, offered = f"station_{state.choices.language}", choices(state)
    # the model may have become a larger one
    st.session_state[key] = chosen(state)
    st.segmented_control(
        state.say("choose_station"), list(offered), format_func=lambda station: state.say(f"station_{station}"),
        key=key, required=True, width="content", wrap=True,
        on_change=lambda: current().set_control("station", st.session_state[key]),
    )
