"""Draws the data-flow pictures: a model's with its numbers in it, and two models' side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from engine import Trace
from ui import flow, naming, runs, text
from ui.layout import Block, Fixed, Grid

if TYPE_CHECKING:
    from ui.drawing import Drawing

# preset → the example of the other article
_OTHERS: Mapping[str, str] = MappingProxyType({
    "cats": "today", "today": "cats", "copy_machine": "today", "little_world": "today", "scratch": "today",
})


def live(drawing: Drawing, scope: str) -> dict[str, Any]:
    """The picture of the reader's model, with the last position's numbers in every box."""
    drawing.uses_layer |= scope == "layer"
    layer = drawing.view.layer
    boxes = []
    for block in flow.blocks(scope, drawing.trace.model.config, layer):
        cells, shape, names = None, "", None
        if block.tensor is not None:
            tensor = drawing.trace[drawing.tensor_name(block.tensor)]
            # of the draws, a box shows one
            shape = "" if "step" in dict(block.fixed) else naming.shape_text(tensor)
            # the last position's vector, or all positions where there is a number for each
            own = tensor.axes[-1] if tensor.axes else None
            place: Fixed = (("position", "last"),) if own != "position" else ()
            along = None if own in dict(block.fixed) else own
            cells = drawing.grid(Grid(block.tensor, columns=along, fixed=(*place, *block.fixed)))
            if block.names is not None:
                names = drawing.grid(Grid(block.names, columns=along, fixed=(*place, *block.fixed)))
        hue = naming.hue(drawing.tensor_name(block.tensor or ""))
        boxes.append({**_box(drawing, block, shape), "cells": cells, "names": names, "hue": hue})
    sides = dict.fromkeys(box["side"] for box in boxes if box["side"] is not None)
    return {"type": "flow", "blocks": boxes, "sides": {side: drawing.say(side) for side in sides}}


def compared(drawing: Drawing, scope: str) -> list[dict[str, Any]]:
    """The reader's model and the other article's; boxes that only one of them has are marked."""
    view = drawing.view
    other = _OTHERS[view.preset]
    traces = {view.preset: drawing.trace, other: runs.article(other)}
    pictures = {name: flow.blocks(scope, trace.model.config, 0) for name, trace in traces.items()}
    labels = [{block.label for block in blocks} for blocks in pictures.values()]
    shared = frozenset.intersection(*map(frozenset, labels))
    return [
        {"type": "flow", "title": _title(drawing, name, name == view.preset and bool(view.switches)),
         "blocks": _outline(drawing, blocks, traces[name], shared)}
        for name, blocks in pictures.items()
    ]


def _title(drawing: Drawing, preset: str, switched: bool) -> str:
    name = drawing.say(f"preset_{preset}")
    return text.say(drawing.view.language, "picture_switched", preset=name) if switched else name


def _outline(drawing: Drawing, blocks: Sequence[Block], trace: Trace, shared: frozenset[str]) -> list[dict[str, Any]]:
    group = text.say(drawing.view.language, "flow_block", count=trace.model.config.layers)
    boxes = []
    for block in blocks:
        shape = "" if block.tensor is None else naming.shape_text(trace[block.tensor])
        boxes.append({
            **_box(drawing, block, shape), "cells": None, "hue": naming.hue(block.tensor or ""),
            "group": group if block.group else None, "differs": block.label not in shared,
        })
    return boxes


def _box(drawing: Drawing, block: Block, shape: str) -> dict[str, Any]:
    return {
        "id": block.id, "label": drawing.say(block.label), "shape": shape, "lesson": block.lesson,
        "group": None if block.group is None else _group(drawing, block.group), "side": block.side,
        "from": block.branch, "operator": block.operator,
    }


def _group(drawing: Drawing, group: str) -> str:
    layer = group.removeprefix("layer ")
    return drawing.say(group) if layer == group else drawing.say_with("layer_number", int(layer))
