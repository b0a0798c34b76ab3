"""Lays out one board: resolves each item of a lesson against a model and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from engine import presets
from engine.edits import MASKS
from ui import flow, naming, text
from ui.layout import Block, Fixed, Flow, Grid, Heads, Item, Operator, Slider, Stages, Switch
from ui.view import Part, ResolvedGrid, View, encode

DENSE_CELLS = 700
CONDENSED_ROWS = 32


class Drawing:
    """Collects the grids of one board while its sections are laid out."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.trace = view.baseline
        self.grids: dict[str, dict[str, Any]] = {}
        self.resolved: list[ResolvedGrid] = []
        self.uses_layer = self.uses_head = False

    def say(self, key: str) -> str:
        return text.say(self.view.language, key)

    def say_with(self, key: str, number: int) -> str:
        return text.say(self.view.language, key, number=number)

    def tensor_name(self, template: str) -> str:
        """The tensor that a spec means for the chosen layer."""
        layer, layers = self.view.layer, self.trace.model.config.layers
        before = "embedding.output" if layer == 0 else f"layers.{layer - 1}.output"
        return template.format(layer=layer, input=before, last=layers - 1)

    def items(self, items: tuple[Item, ...]) -> list[dict[str, Any]]:
        """The items of a section as the browser reads them."""
        return [drawn for item in items for drawn in self.item(item)]

    def item(self, item: Item) -> list[dict[str, Any]]:
        match item:
            case Operator(sign):
                return [{"type": "op", "text": text.catalogue(self.view.language).get(sign, sign)}]
            case Grid():
                return [{"type": "grid", "grid": self.grid(spec)} for spec in self.each(item)]
            case Stages():
                return [{"type": "grid", "grid": self.stages(item)}]
            case Slider():
                return [{"type": "slider", "grid": self.grid(item.grid),
                         "label": self.say(item.label), "min": item.low, "max": item.high,
                         "step": item.step, "log": item.logarithmic}]
            case Switch():
                return [{"type": "switch", "grid": self.grid(item.grid),
                         "label": self.say(item.label), "off": item.off}]
            case Heads():
                return [{"type": "heads", "C": item.width, "H": item.heads, "D": item.width // item.heads}]
            case Flow():
                self.uses_layer |= item.scope == "layer"
                blocks = flow.blocks(item.scope, self.trace.model.config, self.view.layer)
                return [{"type": "flow", "blocks": [self.block(block) for block in blocks]}]

    def each(self, spec: Grid) -> Iterator[Grid]:
        """One grid for every head or layer where the spec asks for each of them."""
        config = self.trace.model.config
        if ("head", "each") in spec.fixed:
            others = tuple(pair for pair in spec.fixed if pair[0] != "head")
            for head in range(config.heads):
                yield replace(spec, fixed=(*others, ("head", head)),
                              suffix=f" · {self.say_with('head_number', head)}")
        elif "{each}" in spec.tensor:
            for layer in range(config.layers):
                yield replace(spec, tensor=spec.tensor.replace("{each}", str(layer)),
                              suffix=f" · {self.say_with('layer_number', layer + 1)}")
        else:
            yield spec

    def block(self, block: Block) -> dict[str, Any]:
        """One box of a data-flow picture, with the last position's numbers in it."""
        shown, shape = None, ""
        if block.tensor is not None:
            tensor = self.trace[self.tensor_name(block.tensor)]
            shape = naming.shape_text(tensor)
            place: Fixed = (("position", "last"),) if tensor.axes[-1] != "position" else ()
            shown = self.grid(Grid(block.tensor, columns=tensor.axes[-1], fixed=place))
        layer = int(block.group.removeprefix("layer ")) if block.group else 0
        return {
            "id": block.id, "label": self.say(block.label), "shape": shape, "lesson": block.lesson,
            "cells": shown, "group": self.say_with("layer_number", layer) if layer else None,
            "hue": naming.hue(self.tensor_name(block.tensor or "")), "from": block.branch, "operator": block.operator,
        }

    def grid(self, spec: Grid) -> str:
        """Resolve a grid; the same grid asked for twice is one."""
        name = self.tensor_name(spec.tensor)
        tensor = self.trace[name]
        self.uses_layer |= "{layer}" in spec.tensor or "{input}" in spec.tensor
        self.uses_head |= "head" in tensor.axes and "head" not in dict(spec.fixed)
        fixed = {"batch": 0, "head": self.view.head} | {
            axis: self._place(axis, place) for axis, place in spec.fixed
        }
        free = [axis for axis in range(len(tensor.axes)) if self._is_free(tensor.axes[axis], spec, fixed)]
        row, column = self._orient(tensor.axes, free, spec)
        row_index = None if row is None else self.choose(tensor.axes[row], tensor.shape[row], name)
        column_index = (
            None if column is None else self.choose(tensor.axes[column], tensor.shape[column], name)
        )
        base = [0 if axis in (row, column) else fixed[tensor.axes[axis]] for axis in range(len(tensor.axes))]
        # an axis that is absent has one place, and no index
        down: list[int | None] = [*row_index] if row_index else [None]
        across: list[int | None] = [*column_index] if column_index else [None]
        cells = [_placed(base, ((row, r), (column, c))) for r in down for c in across]
        flat = [int(np.ravel_multi_index(cell, tensor.shape)) if cell else 0 for cell in cells]
        labels = self.view.language
        drawn: dict[str, Any] = {
            **self._caption(name, spec.title, spec.suffix),
            "axes": naming.axes_text(
                labels, [tensor.axes[axis] for axis in (row, column) if axis is not None]
            ),
            "row_axis": "" if row is None else naming.axis_name(labels, tensor.axes[row]),
            "column_axis": "" if column is None else naming.axis_name(labels, tensor.axes[column]),
            "rows": self.headers(tensor.axes, row, row_index),
            "columns": self.headers(tensor.axes, column, column_index),
            **_cell_addresses(name, cells, base, (row, row_index), (column, column_index)),
            "dense": len(cells) > DENSE_CELLS,
            "range": naming.limits(name),
        }
        condensed = any(tensor.axes[axis] == "vocabulary" and tensor.shape[axis] > CONDENSED_ROWS for axis in free)
        # one field is enough: the rows asked for appear in every table of the board
        if condensed and not any("more_rows" in known for known in self.grids.values()):
            drawn["more_rows"] = {"max": tensor.shape[tensor.axes.index("vocabulary")] - 1}
        if row is not None and name == "embedding.weight":
            assert row_index is not None
            used = self.view.ids
            drawn["highlight_rows"] = [place for place, token in enumerate(row_index) if token in used]
        return self._keep(drawn, ((name, np.array(flat)),))

    def stages(self, spec: Stages) -> str:
        """The stream of the last position after the embedding and after every addition."""
        layers = range(self.trace.model.config.layers)
        stages = [("stage_embedding", 0, "embedding.output")] + [
            stage for layer in layers for stage in (
                ("stage_residual1", layer + 1, f"layers.{layer}.residual1"),
                ("stage_output", layer + 1, f"layers.{layer}.output"),
            )
        ]
        last, width = len(self.view.ids) - 1, self.trace.model.config.hidden_size
        indices = [(0, last, feature) for feature in range(width)]
        parts = tuple(
            (name, np.array([np.ravel_multi_index(index, self.trace[name].shape) for index in indices]))
            for _, _, name in stages
        )
        return self._keep({
            **self._caption("embedding.output", spec.title), "shape": "",
            "axes": naming.axes_text(self.view.language, ["feature"]), "row_axis": self.say("stage"),
            "column_axis": naming.axis_name(self.view.language, "feature"),
            "rows": [{"text": self.say_with(label, number)} for label, number, _ in stages],
            "columns": self.headers(("feature",), 0, list(range(width))),
            "cells": [[name, list(index)] for _, _, name in stages for index in indices],
            "dense": False, "range": naming.limits("embedding.output"),
        }, parts)

    def headers(self, axes: tuple[str, ...], axis: int | None,
                index: list[int] | None) -> list[dict[str, Any]]:
        """Row or column headers; positions and vocabulary rows carry their number beside the word."""
        if axis is None or index is None:
            return [{"text": ""}]
        return [self.header(axes[axis], place) for place in index]

    def header(self, axis: str, place: int) -> dict[str, Any]:
        label = naming.cell_label(self.trace.model, self.view.ids, axis, place)
        numbered = axis in naming.SEQUENCE_AXES or (axis == "vocabulary" and not label.startswith("#"))
        return {"text": label, "sub": str(place)} if numbered else {"text": label}

    def choose(self, axis: str, size: int, name: str) -> list[int]:
        """All indices of an axis; of a large vocabulary those in use, not zero, or asked for."""
        if axis != "vocabulary" or size <= CONDENSED_ROWS:
            return list(range(size))
        return sorted(vocabulary_rows(self.view, "embedding" in name))

    def _place(self, axis: str, place: int | str) -> int:
        if place == "last":
            return len(self.view.ids) - 1
        return int(place)

    @staticmethod
    def _is_free(axis: str, spec: Grid, fixed: dict[str, int]) -> bool:
        return axis in (spec.rows, spec.columns) or axis not in fixed

    @staticmethod
    def _orient(axes: tuple[str, ...], free: list[int], spec: Grid) -> tuple[int | None, int | None]:
        """Which axes are rows and columns: positions and vocabulary stand in rows, features in columns."""
        if len(free) == 2:
            if spec.rows is not None and axes[free[1]] == spec.rows:
                return free[1], free[0]
            return free[0], free[1]
        if len(free) == 1:
            upright = axes[free[0]] in naming.SEQUENCE_AXES | {"vocabulary"} and spec.columns is None
            return (free[0], None) if upright else (None, free[0])
        if free:
            raise ValueError(f"{spec.tensor}: fix all but two of {[axes[axis] for axis in free]}")
        return None, None

    def _caption(self, name: str, title: str | None, suffix: str = "") -> dict[str, Any]:
        tensor = self.trace[name]
        kinds = {"parameter": "parameter", "constant": "leaf"}
        return {
            "tensor": name, "title": (naming.short_name(name) if title is None else self.say(title)) + suffix,
            "shape": naming.shape_text(tensor), "kind": kinds.get(tensor.op, "computed"),
            "editable": tensor.op != "ids", "short": naming.short_name(name),
            "minus_infinity": name.endswith(MASKS), "hue": naming.hue(name), "integer": naming.is_whole(name),
            "scale": "share" if naming.is_share(name) else "diverging",
        }

    def _keep(self, drawn: dict[str, Any], parts: tuple[Part, ...]) -> str:
        for key, known in self.grids.items():
            if {**known, "baseline": None} == {**drawn, "baseline": None}:
                return key
        resolved = ResolvedGrid(f"g{len(self.grids)}", parts)
        self.resolved.append(resolved)
        self.grids[resolved.key] = {**drawn, "baseline": encode(resolved.numbers(self.trace))}
        return resolved.key


def vocabulary_rows(view: View, embedding: bool) -> Iterator[int]:
    """The rows of a large table that matter: not zero, in the sentence or a candidate, or asked for."""
    model = view.baseline.model
    table = model.parameters["embedding.weight" if embedding else "lm_head.weight"]
    used = view.ids if embedding else presets.CANDIDATES[view.preset]
    yield from {*map(int, np.flatnonzero(np.any(table != 0, axis=1))), *used, *view.rows}


def _placed(base: list[int], places: tuple[tuple[int | None, int | None], ...]) -> tuple[int, ...]:
    index = list(base)
    for axis, place in places:
        if axis is not None and place is not None:
            index[axis] = place
    return tuple(index)


def _cell_addresses(name: str, cells: list[tuple[int, ...]], base: list[int],
                    row: tuple[int | None, list[int] | None],
                    column: tuple[int | None, list[int] | None]) -> dict[str, Any]:
    """Where the cells are: a common base where rows and columns are the last axes, else one by one."""
    axes = [axis for axis, _ in (row, column) if axis is not None]
    if axes == list(range(len(base) - len(axes), len(base))):
        return {"base": base[:len(base) - len(axes)], "row_index": row[1], "column_index": column[1]}
    return {"cells": [[name, list(cell)] for cell in cells]}
