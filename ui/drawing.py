"""Lays out one board: resolves each item of a lesson against a model and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from string import Formatter
from typing import Any

import numpy as np

from engine import Tensor
from engine.edits import is_mask
from engine.plan import GRADIENT
from engine.programs.choosing import LEADING
from ui import gathering, glosses, naming, pictures, prose, terms, text, wording
from ui.layout import (
    Comparison,
    Dial,
    Flow,
    Glossary,
    Grid,
    Heads,
    Item,
    Lines,
    Operator,
    Optional,
    Pair,
    Ranking,
    Removed,
    Rows,
    Slider,
    Stages,
    Switch,
    Verdict,
    places,
)
from ui.view import Part, ResolvedGrid, View, cell_addresses, encode, placed, vocabulary_rows

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
        """The tensor that a spec means for the chosen layer, by the first of its names."""
        found = self._found(template)
        return str(self.trace[found].name) if found in self.trace else found

    def _found(self, template: str) -> str:
        names = self._candidates(template)
        return next((name for name in names if name in self.trace), names[0])

    def _candidates(self, template: str) -> list[str]:
        config, layer = self.trace.model.config, self.view.layer
        words = {**places(config, layer), **self.view.words, "layer": layer, "last": config.layers - 1}
        return [name.strip() for name in template.format(**words).split("|")]

    def exists(self, item: Item) -> bool:
        """Whether the model has the tensors of an item."""
        match item:
            case Grid(tensor) if "{each}" not in tensor:
                return self.tensor_name(tensor) in self.trace
            case Slider(grid) | Switch(grid):
                return self.exists(grid)
            case Pair(grid):
                return self.exists(grid) and self.exists(self.gradient_of(grid))
            case Rows(grids=grids):
                return all(self.exists(grid) for line in grids for grid in line)
            case Verdict(table):
                return self.exists(table)
            case Optional(items, choices):
                config = self.trace.model.config
                return all(map(self.exists, items)) and all(getattr(config, field) == value for field, value in choices)
        return True

    def items(self, items: tuple[Item, ...]) -> list[dict[str, Any]]:
        """The items of a section as the browser reads them."""
        return [drawn for item in items for drawn in self.item(item)]

    def item(self, item: Item) -> list[dict[str, Any]]:
        match item:
            case Optional(items):
                return self.items(items) if self.exists(item) else []
            case Operator(sign):
                return [{"type": "op", "text": self.sign(sign)}]
            case Grid():
                return [{"type": "grid", "grid": self.grid(spec), "starts_row": spec.starts_row}
                        for spec in self.each(item)]
            case Pair(grid):
                return [{"type": "pair", "grids": [self.grid(grid), self.grid(self.gradient_of(grid))]}]
            case Stages():
                return [{"type": "grid", "grid": gathering.rows(self, gathering.stages(self, item))}]
            case Rows():
                return [{"type": "grid", "grid": gathering.rows(self, item)}]
            case Lines():
                return [{"type": "grid", "grid": gathering.rows(self, gathering.lines(self, item))}]
            case Verdict(table, zero, other):
                shown = gathering.rows(self, table) if isinstance(table, Rows) else self.grid(table)
                return [{"type": "verdict", "grid": shown, "zero": wording.verdict(zero, self.view),
                         "other": wording.verdict(other, self.view)}]
            case Slider():
                return [gathering.slider(self, item)]
            case Dial(control, label):
                return [{"type": "dial", "control": control, "label": self.say(label)}]
            case Switch():
                return list(gathering.switches(self, item))
            case Heads():
                return [{"type": "heads", "C": item.width, "H": item.heads, "D": item.width // item.heads}]
            case Ranking():
                return [{"type": "ranking", "ways": self.ways(item.ways)}]
            case Removed():
                return [{"type": "removed"}]
            case Glossary():
                return [{"type": "glossary", "terms": terms.rows(self.view.language)}]
            case Flow():
                return [pictures.live(self, item.scope)]
            case Comparison():
                return pictures.compared(self, item.scope)

    def gradient_of(self, spec: Grid) -> Grid:
        """The same cells of a tensor's gradient."""
        return replace(spec, tensor=f"{GRADIENT}{self.tensor_name(spec.tensor)}")

    def each(self, spec: Grid) -> Iterator[Grid]:
        """One grid for every head or layer where the spec asks for each of them."""
        config = self.trace.model.config
        if "{each}" in spec.tensor:
            for layer in range(config.layers):
                tensor, suffix = spec.tensor.replace("{each}", str(layer)), self.say_with("layer_number", layer + 1)
                first, *heads = self.each(replace(spec, tensor=tensor, suffix=f" · {suffix}"))
                yield from (replace(first, starts_row=bool(heads) and layer > 0), *heads)
        elif ("head", "each") in spec.fixed:
            others = tuple(pair for pair in spec.fixed if pair[0] != "head")
            for head in range(config.heads):
                yield replace(spec, fixed=(*others, ("head", head)),
                              suffix=f"{spec.suffix} · {self.say_with('head_number', head)}")
        else:
            yield spec

    def sign(self, sign: str) -> str:
        """A word by its key, or a sign that is the same in every language."""
        return wording.sign(sign, self.view)

    def resolve(self, spec: Grid) -> tuple[str, Tensor, dict[str, int], list[int]]:
        """The tensor that a spec means, by name and itself; where its axes are fixed, and which are free."""
        name = self.tensor_name(spec.tensor)
        tensor = self.trace[name]
        fields = {word for _, word, _, _ in Formatter().parse(spec.tensor) if word}
        self.uses_layer |= not fields <= {"last", "each", *self.view.words}
        self.uses_head |= "head" in tensor.axes and "head" not in (*dict(spec.fixed), spec.rows, spec.columns)
        fixed = {"batch": 0, "head": self.view.head} | {
            axis: self._place(axis, place) for axis, place in spec.fixed
        }
        free = [axis for axis in range(len(tensor.axes)) if self._is_free(tensor.axes[axis], spec, fixed)]
        if "row" in fixed and len(free) == 2:  # both axes may have the same name
            fixed[tensor.axes[free.pop(0)]] = fixed["row"]
        return name, tensor, fixed, free

    def grid(self, spec: Grid) -> str:
        """Resolve a grid; the same grid asked for twice is one."""
        name, tensor, fixed, free = self.resolve(spec)
        axes = naming.axes(tensor)
        row, column = self._orient(axes, free, spec)
        row_index = None if row is None else self.choose(axes[row], tensor.shape[row], name)
        column_index = None if column is None else self.choose(axes[column], tensor.shape[column], name)
        base = [0 if axis in (row, column) else fixed[tensor.axes[axis]] for axis in range(len(tensor.axes))]
        # an axis that is absent has one place, and no index
        down: list[int | None] = [*row_index] if row_index else [None]
        across: list[int | None] = [*column_index] if column_index else [None]
        cells = [placed(base, ((row, r), (column, c))) for r in down for c in across]
        flat = [int(np.ravel_multi_index(cell, tensor.shape)) if cell else 0 for cell in cells]
        labels, asked = self.view.language, self._found(spec.tensor)
        # a tied head is the embedding's table
        suffix = spec.suffix if asked == name else f" = {asked}{spec.suffix}"
        reads_stream = "_input}" in spec.tensor and name == self.tensor_name("{input}")
        drawn: dict[str, Any] = {
            **self.caption(name, spec.title or ("stream_in" if reads_stream else None), suffix),
            "axes": naming.axes_text(labels, [axes[axis] for axis in (row, column) if axis is not None]),
            "row_axis": "" if row is None else naming.axis_name(labels, axes[row]),
            "column_axis": "" if column is None else naming.axis_name(labels, axes[column]),
            "rows": self.headers(axes, row, row_index, name), "columns": self.headers(axes, column, column_index, name),
            **cell_addresses(name, cells, base, (row, row_index), (column, column_index)),
            "dense": spec.small or len(cells) > DENSE_CELLS, "small": spec.small,
            "range": naming.limits(name),
        }
        if spec.ways:
            place = {"layer": int(name.split(".")[1]), "head": fixed["head"]}
            drawn["ways"] = [{**way, **place} for way in self.ways(spec.ways)]
        chosen = {row: row_index, column: column_index}
        condensed = any(
            tensor.axes[axis] == "vocabulary" and len(chosen[axis] or ()) < tensor.shape[axis] for axis in free
        )
        # one field is enough: the rows asked for appear in every table of the board
        if condensed and not any("more_rows" in known for known in self.grids.values()):
            drawn["more_rows"] = {"max": tensor.shape[tensor.axes.index("vocabulary")] - 1}
        if spec.muted and row is not None:
            drawn["muted_rows"] = list(range(self.view.reused))
        used = {"embedding.weight": self.view.ids, "position_embedding.weight": range(len(self.view.ids))}
        if row_index is not None and name in used:
            drawn["highlight_rows"] = [place for place, number in enumerate(row_index) if number in used[name]]
        return self.keep(drawn, ((name, np.array(flat)),))

    def ways(self, lessons: tuple[str, ...]) -> list[dict[str, Any]]:
        """Lessons with their titles, as links."""
        return [{"lesson": lesson, "title": prose.title(lesson, self.view.language)} for lesson in lessons]

    def headers(self, axes: tuple[str, ...], axis: int | None,
                index: list[int] | None, name: str) -> list[dict[str, Any]]:
        """Row or column headers; positions and vocabulary rows carry their number beside the word."""
        if axis is None or index is None:
            return [{"text": ""}]
        ids = naming.standing(self.view.ids, name)
        return [self.header(axes[axis], place, ids) for place in index]

    def header(self, axis: str, place: int, ids: tuple[int, ...]) -> dict[str, Any]:
        label = naming.cell_label(self.trace.model, ids, axis, place)
        numbered = axis in naming.SEQUENCE_AXES or (axis == "vocabulary" and not label.startswith("#"))
        gloss = glosses.under(self.view.preset, self.view.language, label)
        return {"text": label, "sub": str(place), **gloss} if numbered else {"text": label}

    def choose(self, axis: str, size: int, name: str) -> list[int]:
        """All indices of an axis; of a large vocabulary those that matter, of a position table those in use."""
        if axis == "table_position":
            return list(range(min(size, len(self.view.ids) + 1)))
        if axis == "rank":
            return list(range(min(size, LEADING)))
        if axis != "vocabulary" or size <= CONDENSED_ROWS:
            return list(range(size))
        return sorted(vocabulary_rows(self.view, "embedding" in name))

    def _place(self, axis: str, place: int | str) -> int:
        if place == "chosen" and self.view.position is not None:
            return self.view.position
        if place in ("last", "chosen"):
            return len(self.view.ids) - 1
        if place == "next":
            return self.view.steps
        if place == "followed":
            return self.view.row
        if place == "target":
            assert self.trace.circumstances.targets is not None
            return self.trace.circumstances.targets[0][-1]
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

    def caption(self, name: str, title: str | None, suffix: str = "") -> dict[str, Any]:
        tensor = self.trace[name]
        short = naming.short_name(name, naming.goal(tensor))
        kinds = {"parameter": "parameter", "constant": "leaf", "moment": "leaf", "step": "leaf"}
        return {
            "tensor": name, "title": (short if title is None else self.say(title)) + suffix,
            "shape": naming.shape_text(tensor), "kind": kinds.get(tensor.op, "computed"),
            "editable": tensor.op != "ids", "short": short,
            "minus_infinity": is_mask(name), "hue": naming.hue(name),
            **naming.look(name),
        }

    def keep(self, drawn: dict[str, Any], parts: tuple[Part, ...]) -> str:
        for key, known in self.grids.items():
            if {**known, "baseline": None} == {**drawn, "baseline": None}:
                return key
        resolved = ResolvedGrid(f"g{len(self.grids)}", parts)
        self.resolved.append(resolved)
        self.grids[resolved.key] = {**drawn, "baseline": encode(resolved.numbers(self.trace))}
        return resolved.key
