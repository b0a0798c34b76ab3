"""Where on the way back from the loss the reader looks: at one station, or everywhere in a small model."""

from __future__ import annotations

from ui import target_choice, word_choice
from ui.layout import EVERYWHERE, STATIONS
from ui.state import State

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
    # the model may have become a larger one
    word_choice.buttons(state, "station", "choose_station", choices(state),
                        lambda station: state.say(f"station_{station}"), chosen(state))
