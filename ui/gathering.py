"""Draws what is made of several tensors: tables of lines, the stages of the stream, switches over whole slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import ModelConfig
from ui import naming, runs, text
from ui.layout import STREAM, Grid, Lines, Rows, Slider, Stages, Switch
from ui.view import Part, placed

if TYPE_CHECKING:
    from ui.drawing import Drawing

Cells = list[tuple[str, tuple[int, ...]]]


def stages(drawing: Drawing, spec: Stages) -> Rows:
    """The stream of the last position at every point at which it has a new value."""
    return Rows(spec.title, tuple(
        (drawing.say_with(label, number), Grid(name, fixed=(("position", "last"),)))
        for label, number, name in _stations(drawing.trace.model.config)
    ), axis="stage")


def _stations(config: ModelConfig) -> Iterator[tuple[str, int, str]]:
    """Label's key, layer and tensor of each stage: after additions, and after norms that stand in the stream."""
    yield ("stage_embedding_sum" if config.positions == "learned" else "stage_embedding", 0, STREAM)
    attention, mlp = ("stage_residual1", "stage_output") if config.residual else ("stage_attention", "stage_mlp")
    for layer in range(config.layers):
        name = f"layers.{layer}"
        yield (attention, layer + 1, f"{name}.residual1")
        if config.norm_placement == "post" and config.norm != "none":
            yield ("stage_norm1", layer + 1, f"{name}.norm1.output")
            yield (mlp, layer + 1, f"{name}.residual2")
            yield ("stage_norm2", layer + 1, f"{name}.output")
        else:
            yield (mlp, layer + 1, f"{name}.output")


def lines(drawing: Drawing, spec: Lines) -> Rows:
    """The table that a spec comes to for this model."""
    say = partial(text.say, drawing.view.language)
    return Rows(spec.title, tuple(spec.make(drawing.trace.model.config, say)), spec.axis, spec.columns,
                spec.column_axis, spec.looks)


def rows(drawing: Drawing, spec: Rows) -> str:
    """A table whose lines are vectors of several tensors, or single numbers of several tensors side by side."""
    cells = [_cells(drawing, grid) for line in spec.grids for grid in line]
    name, tensor, _, free = drawing.resolve(spec.grids[0][0])
    axis = naming.axes(tensor)[free[0]] if free else spec.column_axis
    named = [axis] if axis else []
    places = drawing.choose(axis, tensor.shape[free[0]], name) if free else []
    kinds = {drawing.caption(found[0][0], None)["kind"] for found in cells}
    return drawing.keep({
        **drawing.caption(name, spec.title), "kind": kinds.pop() if len(kinds) == 1 else "computed", "shape": "",
        "axes": naming.axes_text(drawing.view.language, named), "row_axis": drawing.say(spec.axis) if spec.axis else "",
        "column_axis": naming.axes_text(drawing.view.language, named),
        "rows": [{"text": drawing.sign(label)} for label, _ in spec.lines],
        "columns": [{"text": drawing.sign(label)} for label in spec.columns]
        or drawing.headers((axis,), 0, places, name),
        "cells": [[name, list(index)] for found in cells for name, index in found],
        "dense": False, "range": naming.limits(name),
        **({"looks": [naming.look(name) for (name, _), *_ in cells[:len(spec.columns)]]} if spec.looks else {}),
    }, tuple(_part(drawing, found) for found in cells))


def _cells(drawing: Drawing, grid: Grid) -> Cells:
    """The cells of a grid with one free axis, or none."""
    name, tensor, fixed, free = drawing.resolve(grid)
    base = [0 if number in free else fixed[axis] for number, axis in enumerate(tensor.axes)]
    if not free:
        return [(name, tuple(base))]
    (number,) = free
    places = drawing.choose(tensor.axes[number], tensor.shape[number], name)
    return [(name, placed(base, ((number, place),))) for place in places]


def _part(drawing: Drawing, cells: Cells) -> Part:
    name = cells[0][0]
    shape = drawing.trace[name].shape
    return name, np.array([np.ravel_multi_index(index, shape) if shape else 0 for _, index in cells])


def slider(drawing: Drawing, item: Slider) -> dict[str, Any]:
    """The slider; its upper end may be a size of the model."""
    high = runs.sizes(drawing.trace)[item.high] if isinstance(item.high, str) else item.high
    return {"type": "slider", "grid": drawing.grid(item.grid), "label": drawing.say(item.label),
            "min": item.low, "max": high, "step": item.step, "log": item.logarithmic}


def switches(drawing: Drawing, item: Switch) -> Iterator[dict[str, Any]]:
    """The switch; where its tensors stand for those of each layer, one switch a layer."""
    if "{each}" not in item.grid.tensor:
        yield _switch(drawing, item, drawing.say(item.label))
        return
    for layer in range(drawing.trace.model.config.layers):
        grids = [
            replace(grid, tensor=grid.tensor.replace("{each}", str(layer))) for grid in (item.grid, *item.also)
        ]
        label = f"{drawing.say(item.label)} · {drawing.say_with('layer_number', layer + 1)}"
        yield _switch(drawing, replace(item, grid=grids[0], also=tuple(grids[1:])), label)


def _switch(drawing: Drawing, item: Switch, label: str) -> dict[str, Any]:
    return {
        "type": "switch", "label": label, "off": item.off, "on": item.on, "grid": drawing.grid(item.grid),
        "also": [drawing.grid(grid) for grid in item.also],
        "places": [_place(drawing, grid) for grid in (item.grid, *item.also)],
    }


def _place(drawing: Drawing, grid: Grid) -> list[Any]:
    """Tensor and index of all that a switch sets: None stands for a whole axis, and is left out at the end."""
    name, tensor, fixed, free = drawing.resolve(grid)
    index: list[int | None] = [
        None if number in free else fixed[axis] for number, axis in enumerate(tensor.axes)
    ]
    while index and index[-1] is None:
        index.pop()
    return [name, index]
