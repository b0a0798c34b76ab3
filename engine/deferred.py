"""Tensors over a large vocabulary, computed when somebody looks, for the position that they look at.

A deferred step works at every (batch, position) alone or not at all along these axes, so one
position of it needs one position of its inputs. The whole tensor is its positions put together:
a cell has the same bits whichever way it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from math import prod
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.edits import Carried, Mean
from engine.memory import BoundedCache
from engine.operations import OPERATIONS
from engine.plan import Kernel, Node
from engine.replacements import covered, replaced
from engine.types import Array, Index

if TYPE_CHECKING:
    from engine.recording import Recording

ROW_AXES = ("batch", "position")
# shared by all readers: 32 positions of logits, softmax and their gradients at V = 50257 take 130 MB
MOST_BYTES = 256_000_000
_PARTS: BoundedCache[Array] = BoundedCache(MOST_BYTES)


class _Look(local):
    """The parts that one look of this thread has made so far: none is made twice, whatever the cache lets go."""

    parts: dict[Hashable, Array] | None = None


_LOOK = _Look()


@contextmanager
def _looking() -> Iterator[dict[Hashable, Array]]:
    if _LOOK.parts is not None:
        yield _LOOK.parts
        return
    _LOOK.parts = {}
    try:
        yield _LOOK.parts
    finally:
        _LOOK.parts = None


def whole(recording: Recording, slot: int, computed: bool = False) -> Array:
    """All positions of a deferred tensor, put together; `computed` as it was before edits of its own."""
    node = recording.plan.nodes[slot]
    numbers = _row_axes(node)
    array = np.empty(node.shape, dtype=recording.dtype)
    with _looking():
        for place in product(*(range(node.shape[number]) for number in numbers)):
            array[_box(node, place)] = part(recording, slot, place, computed)
    return array


def take(recording: Recording, slot: int, flat: Array) -> Array:
    """The numbers of a deferred tensor at flat indices, row-major."""
    node = recording.plan.nodes[slot]
    if not node.shape:
        return np.full(len(flat), number(recording, slot, ()), dtype=recording.dtype)
    numbers = _row_axes(node)
    if not numbers and _is_cell_by_cell(node) and slot not in recording.changes:
        return _gathered(recording, node, flat)
    indices = np.unravel_index(flat, node.shape)
    found = np.empty(len(flat), dtype=recording.dtype)
    sizes = tuple(node.shape[number] for number in numbers)
    rows = tuple(indices[number] for number in numbers)
    places = np.ravel_multi_index(rows, sizes) if numbers else np.zeros_like(flat)
    with _looking():
        for place in np.unique(places):
            here = places == place
            inside = tuple(
                np.zeros(np.count_nonzero(here), dtype=np.int64) if number in numbers else index[here]
                for number, index in enumerate(indices)
            )
            found[here] = part(recording, slot, tuple(int(at) for at in np.unravel_index(place, sizes)))[inside]
    return found


def number(recording: Recording, slot: int, index: Index, computed: bool = False) -> float:
    """One cell of a deferred tensor."""
    numbers = _row_axes(recording.plan.nodes[slot])
    place = tuple(index[number] for number in numbers)
    inside = tuple(0 if number in numbers else entry for number, entry in enumerate(index))
    return float(part(recording, slot, place, computed)[inside])


def part(recording: Recording, slot: int, place: Index, computed: bool = False) -> Array:
    """A deferred tensor at one (batch, position), these axes kept with size 1; frozen."""
    node = recording.plan.nodes[slot]
    if node.operation == "kept":
        return _gate(recording, node, place)
    key = (recording, slot, place, computed)
    with _looking() as parts:
        if key not in parts:
            # a step without a name is looked at on the way to others only
            keep = _PARTS.get if node.name is not None else _made
            parts[key] = keep(key, lambda: _part(recording, slot, place, computed))
        return parts[key]


def _made(key: Hashable, make: Callable[[], Array]) -> Array:
    return make()


def _part(recording: Recording, slot: int, place: Index, computed: bool) -> Array:
    node = recording.plan.nodes[slot]
    edits = () if computed else recording.changes.get(slot, ())
    if edits:
        array, _ = replaced(
            recording.plan, node, part(recording, slot, place, computed=True), edits, recording.donors,
            partial(_given, recording, node, place), _box(node, place),
        )
    else:
        chosen = dict(zip(_row_axes(node), place, strict=True))
        inputs = [_input(recording, source, entries, chosen) for source, entries in
                  zip(node.inputs, node.maps, strict=True)]
        sources = tuple(recording.plan.nodes[source] for source in node.inputs)
        kernel = _small_kernel(node, sources, tuple(array.shape for array in inputs))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            array = _at_place(np.asarray(kernel(*inputs)), node, place)
    array.flags.writeable = False
    return array


def _given(recording: Recording, node: Node, place: Index, value: Mean | Carried) -> Array:
    """What a mean, or the run that cells are carried from, has at one place; that run has one sentence."""
    if isinstance(value, Mean):
        return _mean(recording, node, place)
    donor = recording.donors[value.ids]
    there = (0 if node.axes[number] == "batch" else at for number, at in zip(_row_axes(node), place, strict=True))
    return part(donor, donor.plan.names[str(node.name)], tuple(there))


def _mean(recording: Recording, node: Node, place: Index) -> Array:
    """The mean over all positions of one sentence, of the tensor before edits of its own."""
    positions = [node.axes[number] == "position" for number in _row_axes(node)]
    batch = tuple(None if is_position else at for is_position, at in zip(positions, place, strict=True))

    def make() -> Array:
        count = node.shape[node.axes.index("position")]
        rows = (
            part(recording, node.slot, tuple(position if at is None else at for at in batch), computed=True)
            for position in range(count)
        )
        mean = np.asarray(sum(rows) / count)
        mean.flags.writeable = False
        return mean
    return _PARTS.get((recording, node.slot, batch), make)


def _gate(recording: Recording, node: Node, place: Index) -> Array:
    """Where a tensor's gradient goes on upstream, at one place: 1, or 0 at the cells that an edit has set."""
    source, box = recording.plan.nodes[node.attributes["of"]], _box(node, place)
    edits = recording.changes.get(source.slot, ())
    if not edits:
        assert node.constant is not None
        return node.constant[box]
    gate = (~covered(recording.plan, source, edits, recording.donors, box)).astype(recording.dtype)
    gate.flags.writeable = False
    return gate


def _at_place(array: Array, node: Node, place: Index) -> Array:
    """What was computed, cut to one place along rows that the step's inputs do not have under this name."""
    if array.size == _size_of_part(node):
        return array
    box = (part if size > 1 else slice(None) for part, size in zip(_box(node, place), array.shape, strict=True))
    return np.array(array[tuple(box)])


def _size_of_part(node: Node) -> int:
    """How many cells a node has at one (batch, position)."""
    rows = _row_axes(node)
    return prod(size for number, size in enumerate(node.shape) if number not in rows)


def _is_cell_by_cell(node: Node) -> bool:
    """Whether each cell is made of one cell of each input."""
    return not node.attributes and all(entry[0] == "axis" for entries in node.maps for entry in entries)


def _gathered(recording: Recording, node: Node, flat: Array) -> Array:
    """Cells of a step that works cell by cell, from the cells that they are made of and no others."""
    indices = np.unravel_index(flat, node.shape)
    operands = []
    for source, entries in zip(node.inputs, node.maps, strict=True):
        inner, shape = tuple(indices[axis] for _, axis in entries), recording.plan.nodes[source].shape
        places = np.ravel_multi_index(inner, shape) if shape else np.zeros_like(flat)
        operands.append(recording.take(source, places))
    cells = tuple(
        replace(recording.plan.nodes[source], axes=("cell",), shape=flat.shape) for source in node.inputs
    )
    return np.asarray(_built(node, cells, {})(*operands))


def _input(recording: Recording, slot: int, entries: tuple[Any, ...], chosen: Mapping[int, int]) -> Any:
    """What a step at one place needs of an input: that place of it, or all of it."""
    node = recording.plan.nodes[slot]
    place: list[int] = []
    for number in _row_axes(node):
        kind, *details = entries[number]
        if kind == "axis" and details[0] in chosen:
            place.append(chosen[details[0]])
        elif kind == "fixed":
            place.append(details[0])
        else:
            return whole(recording, slot) if slot in recording.plan.deferred else recording.values[slot]
    if slot in recording.plan.deferred:
        return part(recording, slot, tuple(place))
    array = recording.values[slot]
    return np.asarray(array)[_box(node, tuple(place))] if place else array


@lru_cache(maxsize=256)
def _small_kernel(node: Node, inputs: tuple[Node, ...], shapes: tuple[tuple[int, ...], ...]) -> Kernel:
    """The step's kernel for inputs of these shapes."""
    resized = tuple(replace(source, shape=shape) for source, shape in zip(inputs, shapes, strict=True))
    attributes = dict(node.attributes)
    if node.operation == "take":
        axis = inputs[0].axes.index(attributes["axis"])
        if shapes[0][axis] < inputs[0].shape[axis]:
            attributes["index"] = 0  # the one place that is left
    return _built(node, resized, attributes)


def _built(node: Node, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Kernel:
    kernel = OPERATIONS[node.operation].build(node.operation, node.slot, inputs, attributes).kernel
    assert kernel is not None
    return kernel


def _row_axes(node: Node) -> tuple[int, ...]:
    return tuple(number for number, axis in enumerate(node.axes) if axis in ROW_AXES)


def _box(node: Node, place: Index) -> tuple[slice, ...]:
    """The slices of one place, sizes kept."""
    chosen = dict(zip(_row_axes(node), place, strict=True))
    return tuple(
        slice(chosen[number], chosen[number] + 1) if number in chosen else slice(None)
        for number in range(len(node.axes))
    )
