"""Charts where a picture shows more than a grid: plain Plotly dictionaries through one helper."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.operands import pair_members
from ui import naming
from ui.board import view
from ui.drawing import vocabulary_rows
from ui.state import State
from ui.text import number

BLUE, RED, GREY = "#3b78d8", "#d05a5a", "#98a1b3"
HEIGHT = 380

Series = dict[str, Any]


def figure(series: list[Series], title: str, x_title: str, y_title: str, **layout: Any) -> dict[str, Any]:
    """A figure with the look that all charts share; `layout` adds to it."""
    return {
        "data": series,
        "layout": {
            "title": {"text": title, "font": {"size": 15}}, "height": HEIGHT, "uirevision": "same",
            "margin": {"l": 70, "r": 20, "t": 60, "b": 50}, "legend": {"orientation": "h", "y": -0.2},
            "xaxis": {"title": {"text": x_title}, "zeroline": True},
            "yaxis": {"title": {"text": y_title}, "zeroline": True, "automargin": True},
            **layout,
        },
    }


def rope_plane(state: State) -> dict[str, Any]:
    """The first pair of the chosen head, q and k, before and after the turn, as arrows in the plane."""
    choices, trace = state.choices, state.trace
    first, second = pair_members(0, state.model.config.rope_pairing, state.model.config.head_size)
    series: list[Series] = []
    for letter, colour, width in (("q", BLUE, 6), ("k", RED, 2)):
        for stage, dash, opacity in (("heads", "dot", 0.5), ("rotated", "solid", 0.9)):
            name = f"layers.{choices.layer}.attention.{letter}_{stage}"
            points = trace[name].data[0, choices.head][:, [first, second]]
            series.append(_arrows(
                points, [naming.token_label(state.model, token) for token in state.ids],
                state.say(f"chart_{stage}", letter=letter), colour, width, dash, opacity,
            ))
    reach = max(1.0, *(float(np.nanmax(np.abs(one["reach"]))) for one in series)) * 1.15
    for one in series:
        del one["reach"]
    span = {"range": [-reach, reach], "zeroline": True, "constrain": "domain"}
    return figure(
        series, state.say("chart_plane", head=choices.head, first=first, second=second),
        f"d{first}", f"d{second}",
        xaxis={"title": {"text": f"d{first}"}, **span},
        yaxis={"title": {"text": f"d{second}"}, "scaleanchor": "x", **span}, height=460,
    )


def _arrows(points: Any, labels: list[str], name: str, colour: str, width: int, dash: str,
            opacity: float) -> Series:
    """Lines from the origin to every point, with the token at its tip."""
    x: list[float | None] = []
    y: list[float | None] = []
    text: list[str] = []
    for (across, up), label in zip(points.tolist(), labels, strict=True):
        x += [0.0, across, None]
        y += [0.0, up, None]
        text += ["", label if dash == "solid" else "", ""]
    return {
        "type": "scatter", "mode": "lines+markers+text", "x": x, "y": y, "text": text, "name": name,
        "textposition": "top center", "opacity": opacity,
        "line": {"color": colour, "dash": dash, "width": width}, "marker": {"size": 7, "color": colour},
        "hovertemplate": "%{x:.4f}, %{y:.4f}<extra>%{fullData.name}</extra>",
        "reach": points if np.isfinite(points).all() else np.ones(1),
    }


def next_token_bars(state: State) -> dict[str, Any]:
    """Logits of the rows on the board at the last position, before the edits and now."""
    rows = sorted(vocabulary_rows(view(state), embedding=False))
    last = len(state.ids) - 1
    series = [
        _bars(state, rows, trace["logits"].data[0, last], name, colour)
        for trace, name, colour in (
            (state.baseline, state.say("baseline"), GREY), (state.trace, state.say("now"), BLUE),
        )
    ]
    token = naming.token_label(state.model, state.ids[-1])
    return figure(
        series if state.edits else series[1:], state.say("chart_logits", token=token), "logit", "",
        yaxis={"autorange": "reversed", "type": "category", "automargin": True}, barmode="group",
    )


def scaled_probabilities(state: State) -> dict[str, Any]:
    """Probabilities of the candidates for the scaled stream, with the final norm and without."""
    rows = sorted(vocabulary_rows(view(state), embedding=False))
    series = [
        _bars(state, rows, state.trace[f"scaled.{path}.probabilities"].data[0],
              state.say(f"chart_{path}"), colour)
        for path, colour in (("with_norm", BLUE), ("without_norm", RED))
    ]
    return figure(
        series, state.say("chart_scaled"), state.say("probability"), "", barmode="group",
        xaxis={"title": {"text": state.say("probability")}, "range": [0, 1]},
        yaxis={"autorange": "reversed", "type": "category", "automargin": True},
    )


def _bars(state: State, rows: list[int], numbers: Any, name: str, colour: str) -> Series:
    return {
        "type": "bar", "orientation": "h", "name": name, "marker": {"color": colour},
        "y": [f"{naming.token_label(state.model, row)} · {row}" for row in rows],
        "x": [float(numbers[row]) if np.isfinite(numbers[row]) else None for row in rows],
        "text": [number(float(numbers[row])) for row in rows], "textposition": "auto",
        "hovertemplate": "%{x}<extra>%{y}</extra>",
    }
