"""Products summed over shared axes: matrix products and dot products, from an equation in words."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from engine.plan import AxisMap, Kernel, Node, Value
from engine.rows import Groups, Operation, broadcast_gradient, factor_gradient
from engine.types import Array, Index

Words = tuple[str, ...]


def parse(equation: str) -> tuple[Words, Words, Words]:
    """`"query feature, key feature -> query key"` → the axis words of left, right and result."""
    operands, result = equation.split("->")
    left, right = operands.split(",")
    return tuple(left.split()), tuple(right.split()), tuple(result.split())


def _contract(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    left, right, result = parse(attributes["equation"])
    axes = attributes.get("axes")
    if axes is None and (left, right) != (inputs[0].axes, inputs[1].axes):
        raise ValueError(f"{attributes['equation']} does not fit {inputs[0].axes}, {inputs[1].axes}")
    return _node(operation, slot, inputs, (left, right, result), result if axes is None else axes)


def _matmul(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build x @ W: the last axis of x meets the first of W."""
    x, weight = inputs
    if x.axes[-1] != weight.axes[0]:
        raise ValueError(f"{x.axes} cannot meet {weight.axes}: the last axis and the first differ")
    left, right = (*x.axes[:-1], "in"), ("in", "out")
    result = (*x.axes[:-1], "out")
    return _node(operation, slot, inputs, (left, right, result), (*x.axes[:-1], weight.axes[1]))


def _affine(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build x @ W + b: every cell of an output column gets the same bias."""
    x, weight, bias = inputs
    product = _matmul(operation, slot, (x, weight), attributes)
    multiply = product.kernel
    assert multiply is not None
    return replace(
        product, inputs=(x.slot, weight.slot, bias.slot), maps=(*product.maps, (("axis", len(x.axes) - 1),)),
        kernel=lambda a, b, c: multiply(a, b) + c,
    )


def _node(operation: str, slot: int, inputs: tuple[Node, ...], words: tuple[Words, Words, Words],
          axes: Words) -> Node:
    left, right, result = words
    sizes: dict[str, int] = {}
    for node, names in zip(inputs, (left, right), strict=True):
        for name, size in zip(names, node.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"axis {name} is {sizes[name]} and {size} in one product")
    summed = tuple(name for name in left if name in right and name not in result)
    if {*left, *right} != {*result, *summed}:
        raise ValueError("an axis of one input alone must stay in the result")

    def entries(names: Words) -> tuple[AxisMap, ...]:
        return tuple(
            ("axis", result.index(name)) if name in result else ("sum", summed.index(name))
            for name in names
        )
    return Node(
        slot, operation, (inputs[0].slot, inputs[1].slot), tuple(axes),
        tuple(sizes[name] for name in result), (entries(left), entries(right)),
        tuple(sizes[name] for name in summed), kernel=kernel(left, right, result, sizes),
    )


def kernel(left: Words, right: Words, result: Words, sizes: dict[str, int]) -> Kernel:
    """One `np.matmul`, with as few reshapes as the equation allows."""
    shared = [name for name in result if name in left and name in right]
    summed = [name for name in left if name in right and name not in result]
    rows = [name for name in left if name not in right]
    columns = [name for name in right if name not in left]
    left_order = [left.index(name) for name in (*shared, *rows, *summed)]
    right_order = [right.index(name) for name in (*shared, *summed, *columns)]
    natural = (*shared, *rows, *columns)

    in_place = left_order == sorted(left_order) and natural == result and len(summed) == 1
    simple = in_place and len(columns) == 1 and (not shared or len(rows) == 1)
    if simple and right_order == sorted(right_order):
        return lambda a, b: a @ b
    if simple and right_order == [*range(len(shared)), len(shared) + 1, len(shared)]:
        return lambda a, b: a @ b.swapaxes(-1, -2)

    batch = tuple(sizes[name] for name in shared)
    row_count, column_count, depth = (
        prod(sizes[name] for name in names) for names in (rows, columns, summed)
    )
    natural_shape = tuple(sizes[name] for name in natural)
    order = [natural.index(name) for name in result]

    def general(a: Array, b: Array) -> Array:
        # a large table with edits is no array, but makes one
        first = np.asarray(a).transpose(left_order).reshape(*batch, row_count, depth)
        second = np.asarray(b).transpose(right_order).reshape(*batch, depth, column_count)
        product: Array = np.matmul(first, second)
        return product.reshape(natural_shape).transpose(order)
    return general


def _affine_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    return broadcast_gradient(upstream, output, 2) if which == 2 else factor_gradient(upstream, output, inputs, which)


def _affine_cell(node: Node, index: Index, groups: Groups) -> float:
    left, right, (bias, *_) = groups
    return _dot(node, index, (left, right)) + bias


def _dot(node: Node, index: Index, groups: Groups) -> float:
    return float(sum(a * b for a, b in zip(*groups, strict=True)))


ROWS: dict[str, Operation] = {
    "contract": Operation(_contract, _dot, factor_gradient),
    "matmul": Operation(_matmul, _dot, factor_gradient),
    "affine": Operation(_affine, _affine_cell, _affine_gradient),
}
