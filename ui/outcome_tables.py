"""Tables of what a change made of a model: of its prediction, and of its tensors."""

from __future__ import annotations

import streamlit as st

from ui import comparison
from ui.state import State

TABLE_HEIGHT = 420
# what made the difference; only switches leave tensors that one of the models alone has
SWITCHED, REMOVED = "switched", "removed"


def prediction(state: State, outcomes: list[comparison.Outcome], change: str) -> None:
    """The probabilities of next tokens before and after a `switched` or `removed` part, and what lies between."""
    st.dataframe(
        {
            "token": [_named(outcome) for outcome in outcomes],
            "before": [100 * outcome.before for outcome in outcomes],
            "after": [100 * outcome.after for outcome in outcomes],
            "delta": [f"{100 * (outcome.after - outcome.before):+.2f}".replace("-", "−") for outcome in outcomes],
        },
        column_config={
            "token": state.say("switched_token"),
            **{
                name: st.column_config.ProgressColumn(
                    state.say(f"{change}_{name}"), format="%.2f%%", min_value=0.0, max_value=100.0,
                ) for name in ("before", "after")
            },
            "delta": st.column_config.TextColumn(state.say("switched_points")),
        },
        key=f"{change}_prediction", alt=state.say(f"{change}_prediction"),
    )


def _named(outcome: comparison.Outcome) -> str:
    """The token with its id, which some have for a name."""
    own = f"#{outcome.token}"
    return own if outcome.label == own else f"{outcome.label} · {outcome.token}"


def tensors(state: State, differences: list[comparison.Difference], change: str) -> None:
    """Tensors with their largest |Δ| and its cell, in the order in which they are given."""
    st.dataframe(
        {
            "name": [each.name for each in differences],
            "shape": [each.shape for each in differences],
            **({"place": [state.say(f"switched_in_{each.place}") for each in differences]}
               if change == SWITCHED else {}),
            "largest": [each.largest for each in differences],
            "where": [each.where for each in differences],
        },
        column_config={
            "name": st.column_config.TextColumn(state.say("tensor"), width="medium"),
            "shape": state.say("switched_shape"), "place": state.say("switched_place"),
            "largest": st.column_config.NumberColumn(state.say("switched_largest"), format="%.4g"),
            "where": st.column_config.TextColumn(state.say("switched_where"), width="large"),
        },
        height=TABLE_HEIGHT, placeholder="", key=f"{change}_tensors", alt=state.say(f"{change}_tensors"),
    )
