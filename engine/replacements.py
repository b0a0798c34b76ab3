"""What stands in the cells that edits of a computed tensor set: a number, a mean of this run, another run's cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from engine.edits import Carried, Edit, Mean, position_axis, reached
from engine.overlays import fitting
from engine.plan import Node, Plan
from engine.types import Array

if TYPE_CHECKING:
    from engine.recording import Recording

# the unedited runs that cells are carried from, by their ids
Donors = Mapping[tuple[int, ...], "Recording"]


def replaced(plan: Plan, node: Node, computed: Array, edits: Sequence[Edit], donors: Donors) -> Array:
    """Return a copy of `computed` with the edits laid over it in order.

    Raises `EditError` for a value that is finite but too large for the array's float32.
    """
    edited = np.array(computed)
    for edit in edits:
        if isinstance(edit.value, float):
            edited[edit.index] = fitting(edit.name, edit.value, computed.dtype)
            continue
        cells = covered(plan, node, (edit,), donors)
        given = np.broadcast_to(
            mean_over_positions(computed, node.axes, _is_causal(plan)) if isinstance(edit.value, Mean)
            else _carried(node, computed, donors[edit.value.ids]), computed.shape,
        )
        edited[cells] = given[cells]
    return edited


def covered(plan: Plan, node: Node, edits: Sequence[Edit], donors: Donors) -> Array:
    """Which cells of a computed tensor the edits set: those that they name and have a value for."""
    mask = np.zeros(node.shape, dtype=bool)
    for edit in edits:
        if isinstance(edit.value, float):
            mask[edit.index] = True
            continue
        named = np.zeros(node.shape, dtype=bool)
        named[edit.index] = True
        mask |= named & _given(plan, node, edit, donors)
    return mask


def _given(plan: Plan, node: Node, edit: Edit, donors: Donors) -> Array:
    """For which cells a mean or another run has a value."""
    if isinstance(edit.value, Carried):
        there = np.zeros(node.shape, dtype=bool)
        there[tuple(map(slice, reached(node, donors[edit.value.ids].plan)))] = True
        return there
    return _read(node.axes, node.shape, _is_causal(plan))


def _is_causal(plan: Plan) -> bool:
    return "layers.0.attention.masked_scores" in plan.names


def mean_over_positions(array: Array, axes: Sequence[str], causal: bool) -> Array:
    """mean over positions of every other coordinate, that axis kept with size 1.

    In a table of queries and keys it is each query's mean over itself and the positions before it (over
    all, if not `causal`), without those that are masked with −∞; −∞ where there are no others.
    """
    # rounding depends on the order in memory, and an edited array may have another
    numbers = np.ascontiguousarray(array)
    axis = position_axis(axes)
    if "query" not in axes or "key" not in axes:
        return np.asarray(numbers.mean(axis=axis, keepdims=True))
    counted = _read(axes, array.shape, causal) & ~np.isneginf(numbers)
    total = np.where(counted, numbers, 0).sum(axis=axis, keepdims=True)
    count = counted.sum(axis=axis, keepdims=True)
    return np.where(count, total / np.maximum(count, 1), -inf).astype(array.dtype)


def _read(axes: Sequence[str], shape: Sequence[int], causal: bool) -> Array:
    """The cells that a mean over positions is of: all but, in a table of queries and keys, the future."""
    if not causal or "query" not in axes or "key" not in axes:
        return np.ones((), dtype=bool)
    query, key = axes.index("query"), axes.index("key")
    queries, keys = shape[query], shape[key]
    # queries are the last of the positions: a cache has keys from before them
    read = np.tri(queries, keys, keys - queries, dtype=bool)
    others = tuple(number for number in range(len(axes)) if number not in (query, key))
    return np.expand_dims(read if query < key else read.T, others)


def _carried(node: Node, computed: Array, donor: Recording) -> Array:
    """The donor's cells where both runs have them; its one sentence serves every sentence of a batch."""
    box = tuple(map(slice, reached(node, donor.plan)))
    given = np.array(computed)
    given[box] = donor.data(donor.plan.names[str(node.name)])[box]
    return given
