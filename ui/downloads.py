"""What can be taken away: one tensor as CSV, the whole trace as NumPy archive or JSON."""

from __future__ import annotations

import streamlit as st

from formats import traces
from ui import naming
from ui.state import State


def show(state: State) -> None:
    """A folded section with the downloads; files are made at the click, from the state of that moment.

    Streamlit makes them outside of the session, so the state has to be at hand.
    """
    with st.expander(state.say("downloads")):
        st.caption(state.say("downloads_note"))
        columns = st.columns([3, 2, 2, 2], vertical_alignment="bottom")
        name = columns[0].selectbox(
            state.say("tensor"), list(state.trace), index=list(state.trace).index("logits"),
            key="download_tensor",
        )
        columns[1].download_button(
            state.say("download_csv"), data=lambda: _csv(state, name), file_name=f"{name}.csv", mime="text/csv",
            key="download_csv", on_click="ignore", width="stretch",
        )
        columns[2].download_button(
            state.say("download_npz"), data=lambda: traces.to_npz(state.trace), key="download_npz",
            file_name="trace.npz", mime="application/octet-stream", on_click="ignore", width="stretch",
        )
        columns[3].download_button(
            state.say("download_json"), data=lambda: traces.to_json(state.trace), key="download_json",
            file_name="trace.json", mime="application/json", on_click="ignore", width="stretch",
        )


def _csv(state: State, name: str) -> str:
    tensor = state.trace[name]
    return traces.to_csv(tensor, naming.axis_labels(state.model, state.ids, tensor))
