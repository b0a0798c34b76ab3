"""Charts where a picture shows more than a grid: plain Plotly dictionaries through one helper."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine import Tensor
from engine.operands import pair_members
from engine.sampling import leading
from engine.types import Index
from ui import naming, runs
from ui.board import view
from ui.state import State
from ui.text import number
from ui.view import vocabulary_rows

BLUE, RED, GREY = "#3b78d8", "#d05a5a", "#98a1b3"
# text of charts: at least 4.5:1 on the page's background
INK = {"light": "#4a5266", "dark": "#b6bfd2"}
HEIGHT = 380
PLANE_HEIGHT = 440
MOST_PAIRS = 4
MOST_BARS = 16
MARGIN = {"l": 70, "r": 20, "t": 60, "b": 50}
# a minus and four decimals
NUMBER_WIDTH = 44
CATEGORIES = {"autorange": "reversed", "type": "category", "automargin": True}

Series = dict[str, Any]


def figure(series: list[Series], title: str, **layout: Any) -> dict[str, Any]:
    """A figure with the look that all charts share; `layout` adds to it."""
    ink = INK["dark" if st.context.theme.type == "dark" else "light"]
    return {
        "data": series,
        "layout": {
            "title": {"text": title, "font": {"size": 15}}, "height": HEIGHT, "uirevision": "same",
            "margin": MARGIN, "legend": {"orientation": "h", "y": -0.2},
            "font": {"color": ink}, **{key: _inked(value, ink) if "axis" in key else value
                                       for key, value in layout.items()},
        },
    }


def _inked(axis: dict[str, Any], ink: str) -> dict[str, Any]:
    title = {"text": axis.get("title", ""), "font": {"color": ink}}
    return {"zeroline": True, **axis, "title": title, "tickfont": {"color": ink}}


def room_for_numbers(sizes: Iterable[float | None]) -> dict[str, Any]:
    """The layout of bars that lie, with words on the left: numbers at either end of the bars have room in pixels."""
    is_negative = any(size is not None and size < 0 for size in sizes)
    return {
        "barmode": "group", "yaxis": {**CATEGORIES, "ticklabelstandoff": NUMBER_WIDTH if is_negative else 0},
        "margin": {**MARGIN, "r": NUMBER_WIDTH},
    }


def rope_plane(state: State) -> dict[str, Any]:
    """Every pair of the chosen head, q and k, before and after the turn, as arrows in its plane."""
    choices, config = state.choices, state.model.config
    count = min(config.head_size // 2, MOST_PAIRS)
    attention = f"layers.{choices.layer}.attention"
    labels = [naming.token_label(state.model, token) for token in state.ids]
    series, axes = [], {}
    for pair in range(count):
        members = pair_members(pair, config.rope_pairing, config.head_size)
        suffix = "" if pair == 0 else str(pair + 1)
        points = {
            (letter, stage): state.trace[f"{attention}.{letter}_{stage}"].data[0, choices.head][:, list(members)]
            for letter in "qk" for stage in ("heads", "rotated")
        }
        series += [
            _arrows(drawn, state.say(f"chart_{stage}", letter=letter), letter, stage, suffix)
            for (letter, stage), drawn in points.items()
        ]
        series.append(_names(points["q", "rotated"], labels, suffix))
        span = {"range": _span(points.values()), "constrain": "domain"}
        axes[f"xaxis{suffix}"] = {**span, "title": f"d{members[0]}", "domain": _share(pair, count)}
        beside = {"scaleanchor": f"x{suffix}", "anchor": f"x{suffix}"}
        axes[f"yaxis{suffix}"] = {**span, **beside, "title": f"d{members[1]}"}
    return figure(series, state.say("chart_plane", head=choices.head), height=PLANE_HEIGHT, **axes)


def _share(place: int, count: int) -> list[float]:
    """The part of the width that the plane of one pair takes."""
    gap = 0.12 if count > 1 else 0.0
    width = (1 - gap * (count - 1)) / count
    start = place * (width + gap)
    return [start, min(start + width, 1.0)]


def _span(points: Iterable[Any]) -> list[float]:
    """A range round zero that holds every finite point."""
    sizes = [abs(number) for drawn in points for number in drawn.ravel().tolist() if np.isfinite(number)]
    reach = 1.2 * max(1.0, *sizes)
    return [-reach, reach]


def plain(number: Any) -> float | None:
    """A number for Plotly, which draws nothing for None."""
    return float(number) if np.isfinite(number) else None


def _names(points: Any, labels: list[str], suffix: str) -> Series:
    """The tokens at the tips of the turned queries; a key of the same token has the same place or its own."""
    return {
        "type": "scatter", "mode": "text", "x": [plain(across) for across in points[:, 0]],
        "y": [plain(up) for up in points[:, 1]],
        "text": [html.escape(label) for label in labels], "textposition": "top center", "cliponaxis": False,
        "xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "showlegend": False, "hoverinfo": "skip",
    }


def _arrows(points: Any, name: str, letter: str, stage: str, suffix: str) -> Series:
    """Lines from the origin to every point."""
    x, y = [], []
    for across, up in points:
        x += [0.0, plain(across), None]
        y += [0.0, plain(up), None]
    turned = stage == "rotated"
    colour = BLUE if letter == "q" else RED
    return {
        "type": "scatter", "mode": "lines+markers", "x": x, "y": y, "name": name,
        "xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "legendgroup": name, "showlegend": suffix == "",
        "line": {"color": colour, "dash": "solid" if turned else "dot", "width": 6 if letter == "q" else 2},
        "marker": {"size": 8, "color": colour, "opacity": 0.9 if turned else 0.5},
        "hovertemplate": "%{x:.4f}, %{y:.4f}<extra>%{fullData.name}</extra>",
    }


def next_token_bars(state: State) -> dict[str, Any]:
    """Logits of the rows on the board at the last position, before the edits and now."""
    rows = _candidates(state)
    places = [(0, len(state.ids) - 1, row) for row in rows]
    series = [
        _bars(state, rows, _numbers(trace["logits"], places), name, colour)
        for trace, name, colour in (
            (state.baseline, state.say("baseline"), GREY), (state.trace, state.say("now"), BLUE),
        )
    ]
    token = html.escape(naming.token_label(state.model, state.ids[-1]))
    return figure(
        series if state.edits else series[1:], state.say("chart_logits", token=token), xaxis={"title": "logit"},
        **room_for_numbers(size for each in series for size in each["x"]),
    )


def scaled_probabilities(state: State) -> dict[str, Any]:
    """Probabilities of the candidates for the scaled stream, with the final norm and without."""
    rows = _candidates(state)
    series = [
        _bars(state, rows, _numbers(state.trace[f"scaled.{path}.probabilities"], [(0, row) for row in rows]),
              state.say(f"chart_{path}"), colour)
        for path, colour in (("with_norm", BLUE), ("without_norm", RED))
    ]
    return figure(
        series, state.say("chart_scaled"), barmode="group",
        xaxis={"title": state.say("probability"), "range": [0, 1]}, yaxis=CATEGORIES,
    )


def _candidates(state: State) -> list[int]:
    """The rows on the board; of a vocabulary that is there with all its words, those with the largest logits now."""
    if len(runs.filled_rows(state.model, state.model.config.head_table)) > MOST_BARS:
        return leading(state.trace["logits"].row(0, len(state.ids) - 1), MOST_BARS)
    return sorted(vocabulary_rows(view(state), embedding=False))


def _numbers(tensor: Tensor, places: Sequence[Index]) -> list[float]:
    """The cells at those places; of a large tensor nothing else is made."""
    flat = [np.ravel_multi_index(place, tensor.shape) for place in places]
    numbers: list[float] = tensor.take(np.array(flat)).tolist()
    return numbers


def _bars(state: State, rows: list[int], numbers: list[float], name: str, colour: str) -> Series:
    return {
        "type": "bar", "orientation": "h", "name": name, "marker": {"color": colour},
        "y": [f"{html.escape(naming.token_label(state.model, row))} · {row}" for row in rows],
        "x": [plain(size) for size in numbers],
        "text": [number(size) for size in numbers], "textposition": "outside", "cliponaxis": False,
        "hovertemplate": "%{x}<extra>%{y}</extra>",
    }
