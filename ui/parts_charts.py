"""Charts of GPT-2's parts: three kinds of positions, two norms, four activations, one dropout."""

from __future__ import annotations

import html
from typing import Any

from engine import Tensor
from ui import charts, naming
from ui.charts import BLUE, GREY, RED, Series
from ui.state import State

GREEN = "#3f9b6c"
LINES = {"relu": GREY, "gelu_tanh": BLUE, "gelu_erf": GREEN, "relu_squared": RED}
CURVES_HEIGHT = 420


def last_scores(state: State) -> dict[str, Any]:
    """The scores of the last position's query in the chosen head, for every key, three ways."""
    head, last = state.choices.head, len(state.ids) - 1
    series = []
    for way, colour in (("none", GREY), ("learned", BLUE), ("rope", RED)):
        scores = state.trace.get(f"positions.{way}.scores", state.trace.get(f"positions.{way}.dot"))
        if scores is not None:
            series.append(_bars(state.say(f"chart_positions_{way}"), scores.data[0, head, last].tolist(), colour))
    labels = [f"{place}:{naming.token_label(state.model, token)}" for place, token in enumerate(state.ids)]
    return charts.figure(
        series, state.say("chart_positions", token=html.escape(labels[-1])), barmode="group",
        xaxis=_ticks(labels, state.say("axis_key")), yaxis={"title": state.say("chart_score")},
    )


def before_and_after(state: State) -> dict[str, Any]:
    """Every feature of the last position before a norm (across) and after it (up): for each norm a straight line."""
    here = f"layers.{state.choices.layer}.layernorm"
    before = state.trace[f"{here}.x"].data[0, -1].tolist()
    order = sorted(range(len(before)), key=before.__getitem__)
    series = []
    for norm, colour in (("layer_norm", BLUE), ("rms_norm", RED)):
        after = state.trace[f"{here}.{norm}.normalized"].data[0, -1].tolist()
        series.append({
            "type": "scatter", "mode": "lines+markers", "name": state.say(f"chart_{norm}"),
            "x": [charts.plain(before[place]) for place in order],
            "y": [charts.plain(after[place]) for place in order], "text": [f"c{place}" for place in order],
            "line": {"color": colour, "width": 1}, "marker": {"size": 9, "color": colour},
            "hovertemplate": "%{text}: %{x:.4f} → %{y:.4f}<extra>%{fullData.name}</extra>",
        })
    token = html.escape(naming.token_label(state.model, state.ids[-1]))
    return charts.figure(
        series, state.say("chart_norms", token=token), xaxis={"title": state.say("chart_before")},
        yaxis={"title": state.say("chart_after")},
    )


def curves(state: State) -> dict[str, Any]:
    """The activation functions (left) and their slopes (right), with the reader's own x on them."""
    series = []
    for ending, suffix in (("", ""), ("_slope", "2")):
        axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        for name, colour in LINES.items():
            dash = "dot" if name == "gelu_erf" else "solid"
            # the slope of ReLU jumps: nothing lies between 0 and 1
            shape = "vh" if name + ending == "relu_slope" else "linear"
            series += [
                {**_curve(state, "curve", name + ending), **axes, "mode": "lines", "showlegend": not suffix,
                 "name": state.say(f"line_{name}"), "legendgroup": name,
                 "line": {"color": colour, "width": 2, "dash": dash, "shape": shape}},
                {**_curve(state, "own", name + ending), **axes, "mode": "markers", "showlegend": False,
                 "name": state.say(f"line_{name}"), "legendgroup": name, "marker": {"color": colour, "size": 9}},
            ]
    return charts.figure(
        series, state.say("chart_curves"), height=CURVES_HEIGHT,
        xaxis={"title": state.say("chart_function"), "domain": [0, 0.46]}, yaxis={"range": [-1, 4]},
        xaxis2={"title": state.say("chart_slope"), "domain": [0.54, 1]}, yaxis2={"range": [-1, 4], "anchor": "x2"},
    )


def training_and_inference(state: State) -> dict[str, Any]:
    """The last position's output as it is, under this mask, and as the mean over many masks, feature by feature."""
    config = state.model.config
    output = state.trace[f"layers.{config.layers - 1}.mlp.output"].data[0, -1]
    dropped, mean = state.trace["dropout.dropped"].data[0, -1], state.trace["dropout.many.mean_dropped"].data[0]
    series = [
        _bars(state.say(f"chart_{name}"), numbers.tolist(), colour)
        for name, numbers, colour in (
            ("without_dropout", output, GREY), ("with_dropout", dropped, BLUE), ("many_masks", mean, RED),
        )
    ]
    token = html.escape(naming.token_label(state.model, state.ids[-1]))
    return charts.figure(
        series, state.say("chart_dropout", token=token), barmode="group",
        xaxis=_ticks([f"c{feature}" for feature in range(config.hidden_size)], state.say("axis_feature")),
    )


def _bars(name: str, numbers: list[float], colour: str) -> Series:
    return {
        "type": "bar", "name": name, "marker": {"color": colour}, "x": list(range(len(numbers))),
        "y": [charts.plain(number) for number in numbers],
        "hovertemplate": "%{y:.4f}<extra>%{fullData.name}</extra>",
    }


def _ticks(labels: list[str], title: str) -> dict[str, Any]:
    """An axis whose whole numbers carry words: repeated tokens would melt into one as categories."""
    return {
        "title": title, "zeroline": False, "tickvals": list(range(len(labels))),
        "ticktext": [html.escape(label) for label in labels],
    }


def _curve(state: State, scope: str, name: str) -> Series:
    x: Tensor = state.trace[f"gelu.{scope}.x"]
    return {
        "type": "scatter", "x": [charts.plain(number) for number in x.data.ravel().tolist()],
        "y": [charts.plain(number) for number in state.trace[f"gelu.{scope}.{name}"].data.ravel().tolist()],
        "hovertemplate": "x = %{x:.4f}: %{y:.4f}<extra>%{fullData.name}</extra>",
    }
