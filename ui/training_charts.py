"""The picture of a training run: its loss at every step, and the probability of the token that should follow."""

from __future__ import annotations

import html
from math import log
from typing import Any

from ui import courses, naming, target_choice
from ui.charts import BLUE, GREY, RED, Series, figure, plain
from ui.state import State

# a run that has hardly begun is not stretched over the whole width
FEWEST_STEPS = 20
HEIGHT = 350


def curves(state: State) -> dict[str, Any]:
    """Loss on the left axis and probability on the right, up to the last step; the one that is looked at is marked."""
    course, (end, now) = courses.course(state), courses.picture(state)
    token = html.escape(naming.token_label(state.model, target_choice.chosen(state)))
    losses, chances = course.losses[:end + 1], course.chances[:end + 1]
    width, uniform = max(end, FEWEST_STEPS), log(state.model.config.vocab_size)
    probability = state.say("chart_training_probability", token=token)
    series: list[Series] = [
        {"type": "scatter", "mode": "lines", "name": state.say("chart_training_uniform"), "x": [0, width],
         "y": [uniform, uniform], "line": {"color": GREY, "width": 1.5, "dash": "dot"},
         "hovertemplate": "ln V = %{y:.4f}<extra></extra>"},
        _curve(losses, state.say("step_loss"), BLUE, "%{x}: %{y:.4f}"),
        {**_curve(chances, probability, RED, "%{x}: %{y:.4%}"), "yaxis": "y2"},
        _point(now, losses, BLUE), {**_point(now, chances, RED), "yaxis": "y2"},
    ]
    return figure(
        series, state.say("chart_training"), height=HEIGHT, margin={"l": 60, "r": 60, "t": 60, "b": 50},
        legend={"orientation": "h", "y": -0.32},
        xaxis={"title": state.say("chart_training_step"), "range": [0, width]},
        yaxis={"title": state.say("step_loss"), "rangemode": "tozero"},
        yaxis2={"title": probability, "overlaying": "y", "side": "right", "range": [0, 1.02], "tickformat": ".0%",
                "dtick": 0.25, "showgrid": False},
        shapes=[{"type": "line", "x0": now, "x1": now, "yref": "paper", "y0": 0, "y1": 1,
                 "line": {"color": GREY, "width": 1}}],
    )


def _curve(heights: list[float], name: str, colour: str, shown: str) -> Series:
    return {
        "type": "scatter", "mode": "lines+markers" if len(heights) == 1 else "lines", "name": name,
        "x": list(range(len(heights))), "y": [plain(height) for height in heights],
        "line": {"color": colour, "width": 2}, "hovertemplate": f"{shown}<extra>%{{fullData.name}}</extra>",
    }


def _point(now: int, heights: list[float], colour: str) -> Series:
    """Where the curve stands at the step that is looked at."""
    return {
        "type": "scatter", "mode": "markers", "x": [now], "y": [plain(heights[now])], "showlegend": False,
        "marker": {"color": colour, "size": 9}, "hoverinfo": "skip",
    }
