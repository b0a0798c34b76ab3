"""The grid of layers and positions as a picture: what carrying each place over does, and which one is looked at."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ui import naming
from ui.charts import INK, figure, plain
from ui.patching import Place, Setting
from ui.state import State
from ui.text import LARGEST_DECIMAL, number

# negative, zero, positive: red, green and blue of the page's two themes
SCALES = {
    "light": ((224, 122, 36), (243, 244, 247), (47, 109, 205)),
    "dark": ((190, 96, 22), (36, 43, 57), (84, 144, 240)),
}
ROW_HEIGHT, MARGINS = 62, 130
# up to so many columns a cell has room for two numbers, for a short one on any screen, and for that on a wide one
ROOMY, FEW, MANY = 3, 5, 12
# where black and white are equally far from a colour, in relative luminance
MIDDLE = 0.179

Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Shades:
    """Numbers as colours: zero neutral, `reach` the deepest."""

    reach: float

    @property
    def scale(self) -> tuple[Colour, Colour, Colour]:
        """The colours of −reach, zero and reach."""
        return SCALES[_theme()]

    def of(self, size: float | None) -> Colour:
        """The colour of a number."""
        low, zero, high = self.scale
        part = 0.0 if size is None else max(-1.0, min(1.0, size / self.reach))
        end = high if part > 0 else low
        return tuple(a + abs(part) * (b - a) for a, b in zip(zero, end, strict=True))  # type: ignore[return-value]

    def ink(self, size: float | None) -> str:
        """Black or white, whichever can be read on it."""
        return "#000000" if luminance(self.of(size)) > MIDDLE else "#ffffff"


def _theme() -> str:
    return "dark" if st.context.theme.type == "dark" else "light"


def luminance(colour: Colour) -> float:
    """The relative luminance of an sRGB colour, 0 to 1. Source: WCAG 2."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in colour)
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def grid(state: State, now: Setting, effects: Mapping[Place, float], chosen: Place) -> dict[str, Any]:
    """Positions across, layers upwards; colour is the share, or the change itself where there is no share.

    Positions are coordinates and their tokens words at the ticks, so that a repeated token keeps a
    column of its own. The points on top can be clicked, which cells of a heatmap cannot.
    """
    here, _ = now.ends
    shares = {place: now.share(value) for place, value in effects.items()}
    sizes = {
        place: plain(effects[place] - here if share is None else share) for place, share in shares.items()
    }
    reach = max(abs(size or 0.0) for size in sizes.values())
    shades = Shades(max(reach, 1.0) if None not in shares.values() else reach or 1.0)
    columns, rows = range(len(now.ids)), now.layers
    series = [
        {
            "type": "heatmap", "x": list(columns), "y": list(rows), "xgap": 3, "ygap": 3, "hoverinfo": "skip",
            "z": [[sizes[layer, position] for position in columns] for layer in rows],
            "zmin": -shades.reach, "zmax": shades.reach, "showscale": False,
            "colorscale": [[at / 2, f"rgb{colour}"] for at, colour in enumerate(shades.scale)],
        },
        {
            "type": "scatter", "mode": "markers+text", "name": "",
            "x": [position for _, position in now.places], "y": [layer for layer, _ in now.places],
            "text": [
                "–" if now.ids == now.other else _written(len(columns), effects[place], sizes[place])
                for place in now.places
            ],
            "textfont": {"color": [shades.ink(sizes[place]) for place in now.places], "size": 12},
            "customdata": [_told(state, now, place, effects[place], shares[place]) for place in now.places],
            "hovertemplate": "%{customdata}<extra></extra>",
            "marker": {"symbol": "square", "size": 26, "opacity": 0},
            "selected": {"marker": {"opacity": 0}}, "unselected": {"marker": {"opacity": 0}},
            "cliponaxis": False, "showlegend": False,
        },
    ]
    return figure(
        series, state.say("chart_patch", what=state.say(f"carried_{now.kind}", head=now.head)),
        height=ROW_HEIGHT * len(rows) + MARGINS, hoverdistance=-1, shapes=[_frame(chosen)],
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        xaxis={
            "tickvals": list(columns), "ticktext": [_tick(state, now, position) for position in columns],
            "title": "", "zeroline": False, "showgrid": False, "fixedrange": True,
        },
        yaxis={
            "tickvals": list(rows), "ticktext": [layer_label(state, now.kind, layer) for layer in rows], "title": "",
            "zeroline": False, "showgrid": False, "fixedrange": True, "automargin": True,
        },
    )


def layer_label(state: State, kind: str, layer: int) -> str:
    """What a row is called."""
    if kind != "stream":
        return state.say("layer_number", number=layer)
    return state.say("patch_after", number=layer) if layer else state.say("patch_before")


def _tick(state: State, now: Setting, position: int) -> str:
    """A column's number and token; where the sentences differ, both tokens."""
    own, other = (html.escape(naming.token_label(state.model, ids[position])) for ids in (now.ids, now.other))
    return f"{position}<br>{own}" if own == other else f"{position}<br><b>{own}<br>← {other}</b>"


def _written(columns: int, effect: float, size: float | None) -> str:
    """What stands in a cell: its share, and below it the difference of logits, as far as there is room."""
    if size is None or columns > MANY:
        return ""
    if columns > ROOMY:
        return f"{round(size, 2) + 0.0:.2f}".replace("-", "−")
    return f"<b>{number(size)}</b><br>{_brief(effect)}"


def _brief(value: float) -> str:
    """A number that is no wider than −9.9999, which a third of a phone's picture has room for."""
    return f"{value:.2f}".replace("-", "−") if 10 <= abs(value) < LARGEST_DECIMAL else number(value)


def _told(state: State, now: Setting, place: Place, effect: float, share: float | None) -> str:
    """What a cell says when it is pointed at."""
    layer, position = place
    token = html.escape(naming.token_label(state.model, now.ids[position]))
    lines = [
        f"{layer_label(state, now.kind, layer)} · {position}: {token}",
        state.say("patch_hover_difference", difference=number(effect)),
        *([] if share is None else [state.say("patch_hover_share", share=number(share))]),
    ]
    return "<br>".join(lines)


def _frame(place: Place) -> dict[str, Any]:
    """A line round the cell that is looked at."""
    layer, position = place
    return {
        "type": "rect", "x0": position - 0.48, "x1": position + 0.48, "y0": layer - 0.48, "y1": layer + 0.48,
        "line": {"color": INK[_theme()], "width": 4},
    }
