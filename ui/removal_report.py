"""What leaving parts out changes: the prediction, and every tensor behind them."""

from __future__ import annotations

import streamlit as st

from engine import Trace
from engine.removal import removal, removed
from ui import comparison, outcome_tables
from ui.state import State


def without(state: State) -> Trace:
    """The trace with the reader's other edits, and every part in place."""
    config = state.model.config
    out = {edit.key for part, value in removed(state.edits, config).items() for edit in removal(part, config, value)}
    return state.run(tuple(edit for edit in state.edits if edit.key not in out), state.baseline)


def report(state: State) -> None:
    """The prediction with and without what is left out, and the tensors that differ, in order of computation."""
    if not removed(state.edits, state.model.config):
        return
    before = without(state)
    with st.container(key="card_removed"):
        st.markdown(f"##### {state.say('removed_prediction')}")
        outcome_tables.prediction(state, comparison.outcomes(state, before), "removed_prediction",
                                  ("removed_before", "removed_after"))
        changed = [each for each in comparison.differences(state, before) if each.where is not None]
        st.markdown(f"##### {state.say('removed_tensors')}")
        st.caption(state.say("removed_tensors_note"))
        outcome_tables.tensors(state, changed, "removed_tensors")
