"""The board's structure and baseline numbers: what stays the same from edit to edit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from engine import Model, Trace
from engine.plan import Node
from ui import glosses, naming, text, wording
from ui.drawing import Drawing
from ui.layout import Section
from ui.view import ResolvedGrid, View


@dataclass(frozen=True, eq=False)
class Frame:
    """What the browser gets once, and what Python needs to fill it."""

    data: dict[str, Any]
    grids: tuple[ResolvedGrid, ...]
    names: frozenset[str]
    # whether the board has anything that the chosen layer, or the chosen head, decides
    uses_layer: bool
    uses_head: bool

    @property
    def version(self) -> str:
        """What tells this structure from any other."""
        return str(self.data["version"])


@lru_cache(maxsize=64)
def build(lesson: str, sections: tuple[Section, ...], view: View) -> Frame:
    """The frame of a lesson's board for one view."""
    drawing = Drawing(view)
    drawn = [(part, drawing.items(part.items)) for part in sections if view.looks_at(part.station)]
    layout = [
        {
            "title": None if part.title is None else wording.title(part.title, view),
            "note": None if part.note is None else wording.note(part.note, view),
            "items": items,
        }
        # a part of which the model has nothing is left out
        for part, items in drawn if items or not part.items
    ]
    trace = view.baseline
    _tell_layers_apart(drawing.grids, trace)
    names = frozenset(name for grid in drawing.resolved for name, _ in grid.parts)
    data: dict[str, Any] = {
        "labels": text.board_labels(view.language),
        "tokens": tokens(trace.model, view.ids, view.preset, view.language), "layout": layout, "grids": drawing.grids,
        "targets": [] if trace.circumstances.targets is None else list(trace.circumstances.targets[0]),
        "rules": rules(trace, names), "input": drawing.tensor_name("{input}"),
    }
    digest = hashlib.blake2b(json.dumps([lesson, data], sort_keys=True).encode(), digest_size=8)
    data["version"] = digest.hexdigest()
    return Frame(data, tuple(drawing.resolved), names, drawing.uses_layer, drawing.uses_head)


def _tell_layers_apart(grids: dict[str, dict[str, Any]], trace: Trace) -> None:
    """Put the layer into titles that tensors of several layers would share."""
    bearers: dict[str, set[str]] = {}
    for grid in grids.values():
        bearers.setdefault(grid["title"], set()).add(grid["tensor"])
    for grid in grids.values():
        if len(bearers[grid["title"]]) > 1 and grid["title"] == grid["short"]:
            grid["title"] = naming.long_name(grid["tensor"], naming.goal(trace[grid["tensor"]]))


def tokens(model: Model, ids: tuple[int, ...], preset: str, language: str) -> list[dict[str, Any]]:
    """The sentence, token by token."""
    named = [(token_id, naming.token_label(model, token_id)) for token_id in ids]
    return [
        {"position": position, "id": token_id, "text": label, **glosses.under(preset, language, label)}
        for position, (token_id, label) in enumerate(named)
    ]


def rules(trace: Trace, shown: frozenset[str]) -> dict[str, Any]:
    """How cells of the shown tensors, and of those between them, are made of other cells."""
    plan = trace.recording.plan
    reaches: dict[int, bool] = {}
    for node in plan.nodes:
        above = [slot for slot in node.inputs if plan.nodes[slot].name in shown or reaches[slot]]
        reaches[node.slot] = bool(above)
    wanted = {plan.names[name] for name in shown}
    for node in reversed(plan.nodes):
        if node.slot in wanted:
            wanted.update(slot for slot in node.inputs if reaches[slot] or plan.nodes[slot].name in shown)
    return {
        _key(plan.nodes[slot]): {
            "shape": list(plan.nodes[slot].shape),
            "inputs": [
                {"tensor": _key(plan.nodes[source]), "map": [_rule(entry) for entry in entries]}
                for source, entries in zip(plan.nodes[slot].inputs, plan.nodes[slot].maps, strict=True)
                if source in wanted
            ],
        }
        for slot in sorted(wanted)
    }


def _key(node: Node) -> str:
    """The name of a tensor; a step without one gets a word that no tensor has."""
    return node.name or f"step {node.slot}"


def _rule(entry: tuple[Any, ...]) -> list[Any]:
    match entry:
        case ("sum", _):
            return ["all"]
        case ("sum_shift", _, first):
            return ["from", first]
    return list(entry)
