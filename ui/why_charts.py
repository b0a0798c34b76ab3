"""Pictures of the labs that ask why: gradients by layer, softmax by head size, the prediction without a part."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from engine import Edit, Trace, presets, run
from engine.programs.why_residuals import LAYERS, NORMED, PLAIN, RESIDUAL
from engine.programs.why_sqrt import BY_ROOT, BY_SIZE, SIZES, UNDIVIDED
from engine.sampling import leading
from ui import naming, runs
from ui.charts import BLUE, CATEGORIES, GREY, RED, Series, figure, plain
from ui.state import State
from ui.switches import Switches
from ui.text import percent

# path or division → how it is written, in any language
FORMS: Mapping[str, str] = MappingProxyType({PLAIN: "f(x)", RESIDUAL: "x + f(x)", NORMED: "x + f(norm(x))"})
SCORES: Mapping[str, str] = MappingProxyType({UNDIVIDED: "q·k", BY_ROOT: "q·k ÷ √D", BY_SIZE: "q·k ÷ D"})
COLOURS = (RED, BLUE, GREY)
MEASURES = ("spread", "entropy", "slope")
PANELS_HEIGHT = 720
PANEL_GAP = 0.07
TOKENS = 3
BAR_HEIGHT, BARS_MARGIN = 62, 150

# tensors of a layer that are set to 0 together
Removal = tuple[str, ...]


def gradient_sizes(state: State) -> dict[str, Any]:
    """|∂L/∂x| at every layer on each path, on a logarithmic axis; after an edit, what it was before, dotted."""
    traces = [(state.trace, "", "solid")]
    if state.trace is not state.baseline:
        traces.insert(0, (state.baseline, f" · {state.say('baseline')}", "dot"))
    series = [
        _curve(trace, LAYERS, [f"why_residuals.{path}.{layer}.gradient_size" for layer in LAYERS], form + suffix,
               colour, dash)
        for trace, suffix, dash in traces
        for (path, form), colour in zip(FORMS.items(), COLOURS, strict=True)
    ]
    return figure(
        series, state.say("chart_residuals"), xaxis={"title": state.say("chart_residuals_layer"), "dtick": 1},
        yaxis={"title": "|∂L/∂x|", "type": "log", "exponentformat": "power", "dtick": 1},
    )


def score_measures(state: State) -> dict[str, Any]:
    """Spread of the scores, entropy of the weights and slope of softmax against D, and the root of D."""
    height = (1 - PANEL_GAP * (len(MEASURES) - 1)) / len(MEASURES)
    series, axes = [_by_size(state, "sqrt_head_size", "√D", RED, "dot")], {}
    for number, measure in enumerate(MEASURES):
        suffix = "" if number == 0 else str(number + 1)
        top = 1 - number * (height + PANEL_GAP)
        axes[f"yaxis{suffix}"] = {
            "title": state.say(f"chart_sqrt_{measure}"), "domain": [max(top - height, 0.0), top],
            **({"type": "log", "dtick": 1} if measure == "spread" else {"rangemode": "tozero"}),
        }
        series += [
            {**_by_size(state, f"{division}.{measure}", form, colour, "solid"), "yaxis": f"y{suffix}",
             "showlegend": number == 0}
            for (division, form), colour in zip(SCORES.items(), COLOURS, strict=True)
        ]
    ticks = list(SIZES)
    return figure(
        series, state.say("chart_sqrt"), height=PANELS_HEIGHT, **axes, legend={"orientation": "h", "y": -0.1},
        xaxis={"title": "D", "type": "log", "tickvals": ticks, "ticktext": list(map(str, ticks)), "anchor": "y3"},
    )


def _by_size(state: State, name: str, label: str, colour: str, dash: str) -> Series:
    return _curve(state.trace, SIZES, [f"why_sqrt.D{size}.{name}" for size in SIZES], label, colour, dash)


def _curve(trace: Trace, across: Sequence[int], names: list[str], label: str, colour: str, dash: str) -> Series:
    """Single numbers of many tensors as one curve; a logarithmic axis leaves out the zeros among them."""
    return {
        "type": "scatter", "mode": "lines+markers", "x": list(across), "name": label,
        "y": [plain(trace[name].number(())) for name in names],
        "line": {"color": colour, "dash": dash, "width": 2}, "marker": {"color": colour, "size": 6},
        "hovertemplate": "%{x}: %{y:.4g}<extra>%{fullData.name}</extra>",
    }


def parts_left_out(state: State) -> dict[str, Any]:
    """Probabilities of the leading tokens as things stand, and with one part after another left out."""
    choices, last = state.choices, len(state.ids) - 1
    found = presets.CANDIDATES[choices.preset] or leading(state.baseline["probabilities"].row(0, last), TOKENS)
    tokens, removals = tuple(found), dict(_removals(state))
    shares = _shares(choices.preset, choices.seed, choices.switches, state.ids, state.active(state.edits),
                     tuple(removals.values()), tokens)
    lines = {
        **dict(zip(removals, shares, strict=True)),
        state.say("chart_layers_activation"): _odds(state.trace, "why_layers.probabilities", tokens),
    }
    series = [
        {
            "type": "bar", "orientation": "h", "name": html.escape(naming.token_label(state.model, token)),
            "y": list(lines), "x": [plain(line[number]) for line in lines.values()], "marker": {"color": colour},
            "text": [percent(choices.language, line[number]) for line in lines.values()],
            "textposition": "outside", "cliponaxis": False,
            "hovertemplate": "%{y}: %{x:.4%}<extra>%{fullData.name}</extra>",
        }
        for number, (token, colour) in enumerate(zip(tokens, (BLUE, RED, GREY), strict=True))
    ]
    return figure(
        series, state.say("chart_layers"), barmode="group", height=BARS_MARGIN + BAR_HEIGHT * len(lines),
        xaxis={"title": state.say("probability"), "rangemode": "tozero", "tickformat": ".1~%"}, yaxis=CATEGORIES,
    )


def _removals(state: State) -> Iterator[tuple[str, Removal]]:
    """What a bar is called → the tensors that are set to 0 for it."""
    yield state.say("chart_layers_as_it_stands"), ()
    for layer in range(state.model.config.layers):
        attention, mlp = f"layers.{layer}.attention.output", f"layers.{layer}.mlp.output"
        for part, removed in (("attention", (attention,)), ("mlp", (mlp,)), ("layer", (attention, mlp))):
            yield state.say(f"chart_layers_{part}", number=layer + 1), removed


@lru_cache(maxsize=128)
def _shares(preset: str, seed: int, switches: Switches, ids: tuple[int, ...], edits: tuple[Edit, ...],
            removals: tuple[Removal, ...], tokens: tuple[int, ...]) -> tuple[tuple[float, ...], ...]:
    """The tokens' probabilities under the reader's edits, with each removal on top of them."""
    base = runs.baseline(preset, seed, switches, ids, "why_layers")
    program = base.circumstances.program
    return tuple(
        _odds(run(base.model, [list(ids)], edits=(*edits, *(Edit(name, (), 0.0) for name in removal)), base=base,
                  program=program), "probabilities", tokens)
        for removal in removals
    )


def _odds(trace: Trace, name: str, tokens: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(trace[name].row(0, trace.ids.shape[1] - 1)[list(tokens)].tolist())
