"""Tables of what a change made of a model: of its prediction, and of its tensors."""

from __future__ import annotations

import streamlit as st

from ui import comparison, naming
from ui.state import State

TABLE_HEIGHT = 420


def prediction(state: State, outcomes: list[comparison.Outcome], title: str, sides: tuple[str, str]) -> None:
    """The probabilities of next tokens on two sides, and what lies between; title and sides by their keys."""
    st.dataframe(
        {
            "token": [naming.with_id(outcome.label, outcome.token) for outcome in outcomes],
            "before": [100 * outcome.before for outcome in outcomes],
            "after": [100 * outcome.after for outcome in outcomes],
            "delta": [f"{100 * (outcome.after - outcome.before):+.2f}".replace("-", "−") for outcome in outcomes],
        },
        column_config={
            "token": state.say("switched_token"),
            **{
                name: st.column_config.ProgressColumn(
                    state.say(side), format="%.2f%%", min_value=0.0, max_value=100.0,
                ) for name, side in zip(("before", "after"), sides, strict=True)
            },
            "delta": st.column_config.TextColumn(state.say("switched_points")),
        },
        key=title, alt=state.say(title),
    )


def tensors(state: State, differences: list[comparison.Difference], title: str, placed: bool = False) -> None:
    """Tensors with their largest |Δ| and its cell, as given; `placed` says which of two models has them."""
    st.dataframe(
        {
            "name": [each.name for each in differences],
            "shape": [each.shape for each in differences],
            **({"place": [state.say(f"switched_in_{each.place}") for each in differences]}
               if placed else {}),
            "largest": [each.largest for each in differences],
            "where": [each.where for each in differences],
        },
        column_config={
            "name": st.column_config.TextColumn(state.say("tensor"), width="medium"),
            "shape": state.say("switched_shape"), "place": state.say("switched_place"),
            "largest": st.column_config.NumberColumn(state.say("switched_largest"), format="%.4g"),
            "where": st.column_config.TextColumn(state.say("switched_where"), width="large"),
        },
        height=TABLE_HEIGHT, placeholder="", key=title, alt=state.say(title),
    )
