"""What stands in the cells that edits of a computed tensor set: a number, a mean of this run, another run's cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
# what a mean or another run gives for a tensor, or for a box of it
Given = Callable[[Mean | Carried], Array]


def replaced(plan: Plan, node: Node, computed: Array, edits: Sequence[Edit], donors: Donors,
             given: Given | None = None, box: tuple[slice, ...] = ()) -> tuple[Array, Array]:
    """Return a copy of `computed` with the edits laid over it in order, and the mask of the cells that they set.

    With a `box`, `computed` is that part of the tensor, axes kept, and `given` has the means and the other
    runs' cells for it. Raises `EditError` for a value that is finite but too large for the array's float32.
    """
    edited, mask = np.array(computed), np.zeros(computed.shape, dtype=bool)
    for edit in edits:
        cells = covered(plan, node, (edit,), donors, box)
        mask |= cells
        if isinstance(edit.value, float):
            edited[cells] = fitting(edit.name, edit.value, computed.dtype)
        elif cells.any():
            found = given(edit.value) if given else _of_whole(plan, node, computed, donors, edit.value)
            edited[cells] = _laid_out(found, computed)[cells]
    return edited, mask


def covered(plan: Plan, node: Node, edits: Sequence[Edit], donors: Donors, box: tuple[slice, ...] = ()) -> Array:
    """Which cells of a computed tensor, or of a `box` of it, edits set: those they name and have a value for."""
    parts = box or tuple(slice(size) for size in node.shape)
    mask = np.zeros([len(range(size)[part]) for size, part in zip(node.shape, parts, strict=True)], dtype=bool)
    for edit in edits:
        named = np.ones((), dtype=bool)
        for side, part in zip(_sides(node, edit, donors), parts, strict=True):
            named = named[..., None] & side[part]
        if isinstance(edit.value, Mean):
            named = named & np.broadcast_to(_read(node.axes, node.shape, _is_causal(plan)), node.shape)[parts]
        mask |= named
    return mask


def _sides(node: Node, edit: Edit, donors: Donors) -> list[Array]:
    """Which places along each axis an edit names; of another run's cells, those that this run has."""
    ends = reached(node, donors[edit.value.ids].plan) if isinstance(edit.value, Carried) else node.shape
    named = (*edit.index, *[slice(None)] * (len(node.axes) - len(edit.index)))
    sides = []
    for part, size, end in zip(named, node.shape, ends, strict=True):
        side = np.zeros(size, dtype=bool)
        side[part] = True
        side[end:] = False
        sides.append(side)
    return sides


def _of_whole(plan: Plan, node: Node, computed: Array, donors: Donors, value: Mean | Carried) -> Array:
    """What a mean or another run gives for all of a tensor."""
    if isinstance(value, Mean):
        return mean_over_positions(computed, node.axes, _is_causal(plan))
    donor = donors[value.ids]
    return donor.data(donor.plan.names[str(node.name)])


def _laid_out(given: Array, computed: Array) -> Array:
    """The given cells in the shape of `computed`: cut where they reach further, repeated along axes of size 1."""
    laid = np.array(computed)
    box = tuple(
        slice(size if there == 1 else min(size, there))
        for size, there in zip(computed.shape, given.shape, strict=True)
    )
    laid[box] = given[box]
    return laid


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
