"""The page that the board is measured against: a slider, a full run, a Plotly heatmap per tensor.

Written as one would write it first. The tensors to show are named in the address (`?tensors=a,b`).
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine import Edit, presets, programs, run
from engine.types import Array

CELL = ("layers.0.attention.Wq", (0, 1))


def rectangle(data: Array) -> Array:
    """The last two axes, at the first place of the others."""
    while data.ndim > 2:
        data = data[0]
    return np.atleast_2d(data)


st.set_page_config(layout="wide")
st.title("Cats sit on")
value = st.slider("Wq[0, 1]", -2.0, 2.0, 0.0, 0.01)
trace = run(presets.load("cats"), presets.SENTENCES["cats"], edits=(Edit(*CELL, value),),
            program=programs.lessons)
for name in st.query_params.get("tensors", "logits").split(","):
    numbers = rectangle(trace[name].data)
    figure = go.Figure(go.Heatmap(z=np.where(np.isfinite(numbers), numbers, np.nan), texttemplate="%{z:.4f}",
                                  colorscale="RdBu", zmid=0))
    figure.update_layout(title=name, height=260, yaxis_autorange="reversed")
    st.plotly_chart(figure, key=name)
