"""Charts of tokens that are drawn: how often each came up beside how likely it was."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from engine.programs.choosing import DRAWS, LEADING
from ui import naming
from ui.charts import BLUE, CATEGORIES, GREY, Series, figure, plain
from ui.state import State
from ui.text import number

HEIGHT = 520
TICKS = [0, 0.25, 0.5, 0.75, 1]


def draws(state: State) -> dict[str, Any]:
    """Twenty draws as a histogram against the probabilities, with the first draw marked."""
    ranks = np.arange(LEADING)
    order, probabilities, counts = (
        state.trace[f"choosing.{name}"].take(ranks).tolist() for name in ("order", "probabilities", "counts")
    )
    labels = [f"{html.escape(naming.token_label(state.model, int(token)))} · {int(token)}" for token in order]
    if "choosing.others.counts" in state.trace:
        labels.append(state.say("row_others"))
        probabilities.append(state.trace["choosing.others.probabilities"].number((0,)))
        counts.append(state.trace["choosing.others.counts"].number((0,)))
    shares = [count / DRAWS for count in counts]
    drawn = [f"{count:g} / {DRAWS}" for count in counts]
    likely = [number(value) for value in probabilities]
    first = state.trace["choosing.drawn"].number((0, 0))
    likely[order.index(first) if first in order else -1] += f" ◆ {state.say('chart_first_draw')}"
    series = [
        _bars(labels, probabilities, state.say("chart_probability"), GREY, likely),
        _bars(labels, shares, state.say("chart_drawn"), BLUE, drawn),
    ]
    return figure(
        series, state.say("chart_draws", seed=f"{state.trace['choosing.seed'].number(()):g}"), barmode="group",
        height=HEIGHT, xaxis={"title": state.say("chart_share"), "range": [0, 1.2], "tickvals": TICKS},
        yaxis=CATEGORIES,
    )


def _bars(labels: list[str], shares: list[float], name: str, colour: str, text: list[str]) -> Series:
    return {
        "type": "bar", "orientation": "h", "name": name, "y": labels, "x": [plain(share) for share in shares],
        "text": text, "textposition": "outside", "constraintext": "none", "cliponaxis": False,
        "marker": {"color": colour}, "hovertemplate": "%{y}: %{text}<extra>%{fullData.name}</extra>",
    }
