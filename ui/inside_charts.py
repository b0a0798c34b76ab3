"""Pictures of the lessons that look inside: a prediction from stage to stage, and the parts of a logit."""

from __future__ import annotations

import html
from typing import Any

from engine import Trace
from engine.programs.wrote import RIVAL, TOKEN
from ui import inside_rows, naming, text
from ui.charts import BLUE, RED, Series, figure, plain, room_for_numbers
from ui.state import State

BAR_HEIGHT, BARS_MARGIN = 34, 150


def _tokens(state: State) -> tuple[tuple[int, str, str], ...]:
    """Id, name and colour of the token that is asked about, and of its rival."""
    question = state.question
    return tuple(
        (token, html.escape(naming.token_label(state.model, token)), colour)
        for token, colour in ((question.token, BLUE), (question.rival, RED))
    )


def by_stage(state: State) -> dict[str, Any]:
    """The probabilities of the token and its rival as the lens reads them at the chosen position, stage by stage."""
    stages = inside_rows.stages(state.model.config, state.say)
    runs = [(state.trace, "", "solid")]
    if state.trace is not state.baseline:
        runs.insert(0, (state.baseline, f" · {state.say('baseline')}", "dot"))
    series: list[Series] = [
        {
            "type": "scatter", "mode": "lines+markers", "x": stages, "y": _probabilities(state, trace, token),
            "name": name + suffix, "line": {"color": colour, "dash": dash, "width": 2},
            "marker": {"color": colour, "size": 7}, "hovertemplate": "%{x}: %{y:.4%}<extra>%{fullData.name}</extra>",
        }
        for trace, suffix, dash in runs for token, name, colour in _tokens(state)
    ]
    return figure(
        series, state.say("chart_lens", token=_here(state)), xaxis={"type": "category"},
        yaxis={"title": state.say("probability"), "rangemode": "tozero", "tickformat": ".1~%"},
    )


def _probabilities(state: State, trace: Trace, token: int) -> list[float | None]:
    """What the lens gives a token after each stage; after the last layer it is the model's own."""
    last = state.model.config.layers - 1
    names = ["lens.embedding.probabilities", *(f"layers.{layer}.lens.probabilities" for layer in range(last)),
             "probabilities"]
    return [plain(trace[name].number((0, state.position, token))) for name in names]


def _here(state: State) -> str:
    """The token at the chosen position."""
    return html.escape(naming.token_label(state.model, state.ids[state.position]))


def parts(state: State) -> dict[str, Any]:
    """Every part of the token's logit and of its rival's at the chosen position, in the order of the stream."""
    found = list(inside_rows.named_parts(state.model.config, state.say))
    labels = [label for label, _, _ in found]
    series: list[Series] = []
    for side, (_, name, colour) in zip((TOKEN, RIVAL), _tokens(state), strict=True):
        numbers = [
            state.trace[tensor.replace("SIDE", side)].number((0, state.position) if head is None else
                                                             (0, head, state.position))
            for _, tensor, head in found
        ]
        series.append({
            "type": "bar", "orientation": "h", "name": name, "y": labels, "x": [plain(size) for size in numbers],
            "text": [text.number(size) for size in numbers], "textposition": "outside", "cliponaxis": False,
            "marker": {"color": colour}, "hovertemplate": "%{y}: %{x}<extra>%{fullData.name}</extra>",
        })
    return figure(
        series, state.say("chart_wrote", token=_here(state)), height=BARS_MARGIN + BAR_HEIGHT * len(labels),
        xaxis={"title": state.say("chart_wrote_part")},
        **room_for_numbers(size for each in series for size in each["x"]),
    )
