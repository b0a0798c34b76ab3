"""The picture of the lesson on linearity: what three layers make of a line of inputs."""

from __future__ import annotations

from typing import Any

from ui import charts
from ui.state import State

COLOURS = (charts.BLUE, charts.RED, charts.GREY)


def line(state: State) -> dict[str, Any]:
    """Each output while the first number of x moves: of the three layers, and of the one that they equal."""
    return charts.figure(
        [
            *_curves(state, "z3", "chart_linear_three_layers", {"width": 7}, opacity=0.4),
            *_curves(state, "merged", "chart_linear_one_layer", {"width": 2, "dash": "dash"}),
        ],
        state.say("chart_linear"), xaxis={"title": state.say("chart_linear_added")},
        yaxis={"title": state.say("chart_linear_output")}, legend={"orientation": "h", "y": -0.3},
    )


def _curves(state: State, tensor: str, name: str, style: dict[str, Any], opacity: float = 1.0) -> list[dict[str, Any]]:
    """One curve for each number of an output."""
    line = "linear.layers.line."
    outputs = state.trace[line + tensor].data
    return [
        {
            "type": "scatter", "mode": "lines", "x": state.trace[f"{line}added"].data.tolist(),
            "y": outputs[:, entry].tolist(), "name": state.say(name, entry=entry), "line": {"color": colour, **style},
            "opacity": opacity,
        }
        for entry, colour in enumerate(COLOURS)
    ]
