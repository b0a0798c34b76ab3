"""The picture of the lesson on loss: surprise against probability, with the sentence's positions on the curve."""

from __future__ import annotations

import html
from typing import Any

from engine import Trace
from ui import naming
from ui.charts import BLUE, GREY, RED, Series, figure, plain
from ui.state import State

# above the highest point
HEADROOM = 1.1


def surprise(state: State) -> dict[str, Any]:
    """−ln p for every probability p, where each position's target lies on it, and where a uniform guess would."""
    now, before = state.trace, state.baseline
    points: list[Series] = [
        *([_positions(state, before, state.say("baseline"), GREY)] if now is not before else []),
        _positions(state, now, state.say("chart_loss_targets"), BLUE),
        _uniform(state),
    ]
    heights = [height for each in points for height in each["y"] if height is not None]
    return figure(
        [_curve(now, points), *points], state.say("chart_loss"),
        xaxis={"title": state.say("chart_loss_probability"), "range": [-0.02, 1.02]},
        yaxis={"title": state.say("chart_loss_surprise"), "range": [0, HEADROOM * max(heights)]},
    )


def _curve(trace: Trace, points: list[Series]) -> Series:
    """−ln p, up to the highest of the points where that lies beyond its end."""
    curve = list(zip(trace["loss.curve.surprise"].data.tolist(), trace["loss.curve.p"].data.tolist(), strict=True))
    shown = [
        (height, share) for each in points for height, share in zip(each["y"], each["x"], strict=True)
        if height is not None and share is not None
    ]
    heights, shares = zip(*sorted({*curve, max(shown)}), strict=True)
    return {"type": "scatter", "mode": "lines", "name": "−ln p", "x": list(shares), "y": list(heights),
            "line": {"color": GREY, "width": 2}, "hoverinfo": "skip"}


def _uniform(state: State) -> Series:
    """Where a guess lies that gives every token the same."""
    height = state.trace["loss.uniform"].number(())
    return {
        "type": "scatter", "mode": "markers", "name": state.say("chart_loss_uniform"),
        "x": [plain(1 / state.trace["loss.vocabulary_size"].number(()))], "y": [plain(height)],
        "marker": {"color": RED, "size": 10, "symbol": "x-thin", "line": {"color": RED, "width": 3}},
        "hovertemplate": "p = %{x:.4g}: %{y:.4f}<extra>%{fullData.name}</extra>",
    }


def _positions(state: State, trace: Trace, name: str, colour: str) -> Series:
    """One point for each position, named after the token that it reads and the one that should come."""
    ids, targets = trace.ids[0].tolist(), trace["targets"].data[0].tolist()
    labels = [
        f"{place}: {naming.token_label(state.model, token)} → {naming.token_label(state.model, target)}"
        for place, (token, target) in enumerate(zip(ids, targets, strict=True))
    ]
    return {
        "type": "scatter", "mode": "markers", "name": name, "marker": {"color": colour, "size": 9},
        "x": [plain(share) for share in trace["loss.target_probability"].data[0]],
        "y": [plain(height) for height in trace["loss.per_position"].data[0]],
        "customdata": [html.escape(label) for label in labels],
        "hovertemplate": "%{customdata}<br>p = %{x:.4g}: %{y:.4f}<extra></extra>",
    }
