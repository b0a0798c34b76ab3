"""Operations that move cells: table rows by id, heads apart and together, pairs turned."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.elementwise import scaled
from engine.operands import pair_number
from engine.plan import AxisMap, Kernel, Node, Value
from engine.rows import Groups, Operation, added, copied
from engine.types import Array, Index


def _lookup(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    table, ids = inputs
    return Node(
        slot, operation, (table.slot, ids.slot), (*ids.axes, table.axes[1]),
        (*ids.shape, table.shape[1]), ((("ids",), ("axis", 2)), (("axis", 0), ("axis", 1))),
        attributes={"rows": table.shape[0]}, kernel=lambda rows, index: rows[index],
    )


def _scatter(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build Σ over the positions whose id is the row: what a lookup's gradient does."""
    values, ids = inputs
    rows, width = attributes["rows"], values.shape[-1]

    def kernel(gradient: Array, index: Array) -> Array:
        table = np.zeros((rows, width), dtype=gradient.dtype)
        np.add.at(table, index, gradient)
        return table
    return Node(
        slot, operation, (values.slot, ids.slot), ("vocabulary", values.axes[-1]),
        (rows, values.shape[-1]), ((("sum", 0), ("sum", 1), ("axis", 1)), (("sum", 0), ("sum", 1))),
        ids.shape, kernel=kernel,
    )


def _rows(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the rows first … first + count − 1 of a table."""
    (table,) = inputs
    first, count = attributes.get("first", 0), attributes["count"]
    return Node(
        slot, operation, (table.slot,), table.axes, (count, table.shape[1]), ((("shift", 0, first), ("axis", 1)),),
        attributes={"first": first, "rows": table.shape[0]}, kernel=lambda array: array[first:first + count],
    )


def _pad_rows(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build a table that holds its input from row `first` on and zeros elsewhere: the gradient of `rows`."""
    (x,) = inputs
    first, rows = attributes["first"], attributes["rows"]

    def kernel(array: Array) -> Array:
        table = np.zeros((rows, array.shape[1]), dtype=array.dtype)
        table[first:first + len(array)] = array
        return table
    return Node(
        slot, operation, (x.slot,), x.axes, (rows, x.shape[1]), ((("within", 0, first, x.shape[0]), ("axis", 1)),),
        attributes=dict(attributes), kernel=kernel,
    )


def _split_heads(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    (x,) = inputs
    batch, length, width = x.shape
    heads, size = attributes["heads"], width // attributes["heads"]
    return Node(
        slot, operation, (x.slot,), ("batch", "head", attributes["sequence_axis"], "head_feature"),
        (batch, heads, length, size), ((("axis", 0), ("axis", 2), ("split", 1, 3, size)),),
        kernel=lambda array: array.reshape(batch, length, heads, size).swapaxes(1, 2),
    )


def _merge_heads(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    (x,) = inputs
    batch, heads, length, size = x.shape
    return Node(
        slot, operation, (x.slot,), ("batch", "position", "feature"), (batch, length, heads * size),
        ((("axis", 0), ("head", 2, size), ("axis", 1), ("feature", 2, size)),),
        attributes={"heads": heads, "sequence_axis": x.axes[2]},
        kernel=lambda array: array.swapaxes(1, 2).reshape(batch, length, heads * size),
    )


def _members(pairing: str, size: int) -> tuple[slice, slice]:
    """The slices of a head's features that hold the first and the second members of its pairs."""
    if pairing == "interleaved":
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, size // 2), slice(size // 2, None)


def _rotate(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build a' = a·cos − b·sin, b' = a·sin + b·cos on [batch, head, sequence, head_feature]."""
    x, cosines, sines = inputs
    pairing, size = attributes["pairing"], x.shape[-1]
    first, second = _members(pairing, size)

    def kernel(array: Array, cos: Array, sin: Array) -> Array:
        a, b = array[..., first], array[..., second]
        turned = np.empty_like(array)
        turned[..., first] = a * cos - b * sin
        turned[..., second] = a * sin + b * cos
        return turned
    angle = (("axis", 2), ("frequency", 3, pairing, size))
    return Node(
        slot, operation, (x.slot, cosines.slot, sines.slot), x.axes, x.shape,
        ((("axis", 0), ("axis", 1), ("axis", 2), ("pair", 3, pairing, size)), angle, angle),
        attributes={"pairing": pairing}, kernel=kernel,
    )


def _fold_pairs(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the sum of the two members of every pair: [position, D] → [position, D/2]."""
    (x,) = inputs
    pairing, size = attributes["pairing"], x.shape[-1]
    first, second = _members(pairing, size)
    kernel: Kernel = lambda array: array[..., first] + array[..., second]  # noqa: E731 (a kernel like the others)
    return Node(
        slot, operation, (x.slot,), ("position", "pair"), (x.shape[0], size // 2),
        ((("axis", 0), ("members", 1, pairing, size)),), kernel=kernel,
    )


def _lookup_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    if which == 1:
        return None
    return upstream.builder.apply("scatter", upstream, inputs[1], rows=output.node.attributes["rows"])


def _scatter_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    return upstream.builder.apply("lookup", upstream, inputs[1]) if which == 0 else None


def _pad_rows_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    first, count = output.node.attributes["first"], inputs[0].shape[0]
    return upstream.builder.apply("rows", upstream, first=first, count=count)


def _rows_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    return upstream.builder.apply("pad_rows", upstream, **output.node.attributes)


def _concatenate(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the first input followed by the second along one axis."""
    first, second = inputs
    axis = first.axes.index(attributes["axis"])
    start, added = first.shape[axis], second.shape[axis]

    def entries(offset: int, size: int) -> tuple[AxisMap, ...]:
        return tuple(
            ("within", number, offset, size) if number == axis else ("axis", number)
            for number in range(len(first.axes))
        )
    shape = (*first.shape[:axis], start + added, *first.shape[axis + 1:])
    return Node(
        slot, operation, (first.slot, second.slot), first.axes, shape, (entries(0, start), entries(start, added)),
        kernel=lambda a, b: np.concatenate([a, b], axis=axis),
    )


def _concatenate_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """The part of the upstream gradient that stands where this input stands."""
    axis, x = output.node.attributes["axis"], inputs[which]
    size, first = x.size(axis), 0 if which == 0 else inputs[0].size(axis)
    chosen = upstream.builder.leaf(
        "constant", None, ("place", axis), (size, output.size(axis)), np.eye(size, output.size(axis), first)
    )
    here = " ".join("place" if name == axis else name for name in x.axes)
    equation = f"{' '.join(x.axes)}, place {axis} -> {here}"
    return upstream.builder.apply("contract", upstream, chosen, equation=equation, axes=x.axes)


def _fold_pairs_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """Both members of a pair get what their sum gets."""
    (x,) = inputs
    pairs, size = output.shape[-1], x.shape[-1]
    members = np.zeros((pairs, size))
    for part in _members(output.node.attributes["pairing"], size):
        members[:, part] += np.eye(pairs)
    axes = (upstream.axes[-1], x.axes[-1])
    return upstream @ upstream.builder.leaf("constant", None, axes, members.shape, members)


def _place_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    attributes = output.node.attributes
    return upstream.builder.apply("take", upstream, axis=attributes["axis"], index=attributes["index"])


def _split_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    return upstream.builder.apply("merge_heads", upstream)


def _merge_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    return upstream.builder.apply("split_heads", upstream, **output.node.attributes)


def _rotate_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """Turn back by the same angle for x; for cos and sin, the products that each multiplies."""
    x, cosines, sines = inputs
    builder, pairing = upstream.builder, output.node.attributes["pairing"]
    if which == 0:
        return builder.apply("rotate", upstream, cosines, scaled(sines, -1.0), pairing=pairing)
    zeros, ones = (
        builder.leaf("constant", None, sines.axes, sines.shape, np.full(sines.shape, fill))
        for fill in (0.0, 1.0)
    )
    factor = x if which == 1 else builder.apply("rotate", x, zeros, ones, pairing=pairing)
    products = builder.apply(
        "contract", upstream, factor, equation="b h t d, b h t d -> t d", axes=("position", "head_feature")
    )
    return builder.apply("fold_pairs", products, pairing=pairing)


def _take(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the cells of one index along an axis; the axis is gone."""
    (x,) = inputs
    axis, index = x.axes.index(attributes["axis"]), attributes["index"]
    entries: list[AxisMap] = [("axis", number - (number > axis)) for number in range(len(x.axes))]
    entries[axis] = ("fixed", index)
    return Node(
        slot, operation, (x.slot,), x.axes[:axis] + x.axes[axis + 1:], x.shape[:axis] + x.shape[axis + 1:],
        (tuple(entries),), attributes=dict(attributes), kernel=lambda array: array.take(index, axis),
    )


def _place(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build zeros with the input at one index of a new axis: what a `take`'s gradient does."""
    (x,) = inputs
    number, index, size = attributes["number"], attributes["index"], attributes["size"]
    shape = (*x.shape[:number], size, *x.shape[number:])

    def kernel(array: Array) -> Array:
        placed = np.zeros(shape, dtype=array.dtype)
        placed[(slice(None),) * number + (index,)] = array
        return placed
    entries = tuple(("axis", axis + (axis >= number)) for axis in range(len(x.axes)))
    return Node(
        slot, operation, (x.slot,), (*x.axes[:number], attributes["axis"], *x.axes[number:]), shape,
        (entries,), attributes=dict(attributes), kernel=kernel,
    )


def _take_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    (x,) = inputs
    axis, index = output.node.attributes["axis"], output.node.attributes["index"]
    return upstream.builder.apply(
        "place", upstream, axis=axis, number=x.axes.index(axis), index=index, size=x.size(axis)
    )


def _placed(node: Node, index: Index, groups: Groups) -> float:
    here = index[node.attributes["number"]] == node.attributes["index"]
    return float(groups[0][0]) if here else 0.0


def _scattered(node: Node, index: Index, groups: Groups) -> float:
    return float(sum(value for value, token_id in zip(*groups, strict=True) if token_id == index[0]))


def _turned(node: Node, index: Index, groups: Groups) -> float:
    (a, b), (cos,), (sin,) = groups
    return float(a * cos - b * sin if is_first_member(node, index) else a * sin + b * cos)


def is_first_member(node: Node, index: Index) -> bool:
    """Whether a cell of a `rotate` node holds the first member of its pair."""
    pairing, size = node.attributes["pairing"], node.shape[-1]
    first = 2 * pair_number(index[-1], pairing, size) if pairing == "interleaved" else index[-1] % (size // 2)
    return index[-1] == first


ROWS: dict[str, Operation] = {
    "lookup": Operation(_lookup, copied, _lookup_gradient),
    "scatter": Operation(_scatter, _scattered, _scatter_gradient),
    "rows": Operation(_rows, copied, _rows_gradient),
    "pad_rows": Operation(_pad_rows, added, _pad_rows_gradient),
    "concatenate": Operation(_concatenate, added, _concatenate_gradient),
    "split_heads": Operation(_split_heads, copied, _split_gradient),
    "merge_heads": Operation(_merge_heads, copied, _merge_gradient),
    "take": Operation(_take, copied, _take_gradient),
    "place": Operation(_place, _placed, _place_gradient),
    "rotate": Operation(_rotate, _turned, _rotate_gradient),
    "fold_pairs": Operation(_fold_pairs, added, _fold_pairs_gradient),
}
