"""Operations that make one cell from many along an axis, and the one that spreads them out again."""

from __future__ import annotations

from math import log, prod, sqrt
from typing import Any

import numpy as np

from engine.elementwise import each, scaled, unary
from engine.plan import AxisMap, Kernel, Node, Value
from engine.rows import Build, Groups, Operation, added, broadcast_gradient, copied, stop
from engine.types import Array, Index


def _along(kernel_of: Any) -> Build:
    """Build a node that removes the axis named by the attribute `axis`."""
    def build(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
        (x,) = inputs
        number = x.axes.index(attributes["axis"])
        entries: list[AxisMap] = []
        for axis in range(len(x.axes)):
            entries.append(("sum", 0) if axis == number else ("axis", axis - (axis > number)))
        kernel: Kernel = kernel_of(number, x.shape[number])
        return Node(
            slot, operation, (x.slot,), x.axes[:number] + x.axes[number + 1:],
            x.shape[:number] + x.shape[number + 1:], (tuple(entries),), (x.shape[number],),
            attributes=dict(attributes), kernel=kernel,
        )
    return build


def _mean_square_kernel(axis: int, size: int) -> Kernel:
    # NumPy's stubs leave out vecdot's axis
    return lambda x: np.vecdot(x, x, axis=axis) / size  # type: ignore[call-overload]


def _mean_cube_kernel(axis: int, size: int) -> Kernel:
    return lambda x: np.add.reduce(x * x * x, axis=axis) / size


def _mean_kernel(axis: int, size: int) -> Kernel:
    return lambda x: np.add.reduce(x, axis=axis) / size


def _max_kernel(axis: int, size: int) -> Kernel:
    def kernel(x: Array) -> Array:
        largest = np.maximum.reduce(x, axis=axis)
        # a row with every key masked would give −∞ − (−∞); 0 leaves it at −∞, exp 0
        return largest if np.isfinite(largest).all() else np.where(np.isneginf(largest), 0, largest)
    return kernel


def _sum_kernel(axis: int, size: int) -> Kernel:
    return lambda x: np.add.reduce(x, axis=axis)


def _length_kernel(axis: int, size: int) -> Kernel:
    # NumPy's stubs leave out vecdot's axis
    return lambda x: np.sqrt(np.vecdot(x, x, axis=axis))  # type: ignore[call-overload]


def _entropy_kernel(axis: int, size: int) -> Kernel:
    def kernel(x: Array) -> Array:
        # p · ln p goes to 0 with p, which NumPy would call NaN
        return np.asarray(-np.add.reduce(x * np.log(np.where(x > 0, x, 1.0)), axis=axis))
    return kernel


def _entropy_slope(x: Array) -> Array:
    return np.where(x > 0, -1.0 - np.log(np.where(x > 0, x, 1.0)), 0.0)


def _deviation(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build √(mean of (x − mean of x)²) over all cells."""
    (x,) = inputs
    entries = tuple(("sum", number) for number in range(len(x.axes)))
    return Node(slot, operation, (x.slot,), (), (), (entries,), x.shape, kernel=lambda array: np.asarray(np.std(array)))


def _collapse(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build Σ over all axes but those numbered in `kept`."""
    (x,) = inputs
    kept = attributes["kept"]
    if list(kept) != sorted(kept):
        raise ValueError(f"{operation}: axes that stay keep their order: {kept}")
    dropped = tuple(axis for axis in range(len(x.axes)) if axis not in kept)
    entries = tuple(
        ("axis", kept.index(axis)) if axis in kept else ("sum", dropped.index(axis))
        for axis in range(len(x.axes))
    )
    return Node(
        slot, operation, (x.slot,), tuple(x.axes[axis] for axis in kept),
        tuple(x.shape[axis] for axis in kept), (entries,), tuple(x.shape[axis] for axis in dropped),
        kernel=lambda array: np.add.reduce(array, axis=dropped),
    )


def _expand(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build a node that repeats its input along a new axis at position `number`."""
    (x,) = inputs
    number, axis, size = attributes["number"], attributes["axis"], attributes["size"]
    shape = (*x.shape[:number], size, *x.shape[number:])
    entries = tuple(("axis", old + (old >= number)) for old in range(len(x.axes)))
    return Node(
        slot, operation, (x.slot,), (*x.axes[:number], axis, *x.axes[number:]), shape, (entries,),
        kernel=lambda array: np.broadcast_to(np.expand_dims(array, number), shape),
    )


def _expand_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    return broadcast_gradient(upstream, output, which)


def _sum_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    (x,) = inputs
    axis = output.node.attributes["axis"]
    number = x.axes.index(axis)
    return upstream.builder.apply("expand", upstream, number=number, axis=axis, size=x.size(axis))


def _largest_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂max(x)/∂xᵢ = 1 where xᵢ is the largest, the first of them where several are, else 0."""
    (x,) = inputs
    apply, last = upstream.builder.apply, len(x.axes) - 1
    if x.axes[last] != output.node.attributes["axis"]:
        raise ValueError("only along the last axis is it known which of equal numbers comes first")
    at_first = apply("place", upstream, axis="rank", number=last, index=0, size=x.shape[last])
    return apply("ungather", at_first, apply("order", x), axis=x.axes[last])


def _entropy_slope_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂(−1 − ln p)/∂p = −1/p, and 0 where p is 0."""
    (x,) = inputs
    apply = upstream.builder.apply
    return apply("share", upstream * apply("positive", x), scaled(x, -1.0))


def _collapse_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """Each number that was added up gets what its sum gets."""
    (x,) = inputs
    spread = upstream
    for number, (axis, size) in enumerate(zip(x.axes, x.shape, strict=True)):
        if number not in output.node.attributes["kept"]:
            spread = spread.builder.apply("expand", spread, number=number, axis=axis, size=size)
    return spread


def _mean_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂(Σx/C)/∂xᵢ = 1/C."""
    spread = _sum_gradient(upstream, output, inputs, which)
    return scaled(spread, 1.0 / inputs[0].size(output.node.attributes["axis"]))


def _mean_square_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂(Σx²/C)/∂xᵢ = 2xᵢ/C."""
    (x,) = inputs
    return scaled(x * upstream, 2.0 / x.size(output.node.attributes["axis"]))


def _mean_cube_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂(Σx³/C)/∂xᵢ = 3xᵢ²/C."""
    (x,) = inputs
    return scaled(x * x * upstream, 3.0 / x.size(output.node.attributes["axis"]))


def _length_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂√(Σx²)/∂xᵢ = xᵢ / √(Σx²), and 0 for a vector of zeros."""
    direction = upstream.builder.apply("share", inputs[0], output)
    return _sum_gradient(upstream, output, inputs, which) * direction


def _entropy_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂(−Σp·ln p)/∂pᵢ = −1 − ln pᵢ; 0 where p is 0, so that what softmax passes on stays finite."""
    return _sum_gradient(upstream, output, inputs, which) * upstream.builder.apply("entropy_slope", inputs[0])


def _deviation_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂σ/∂xᵢ = (xᵢ − mean) / (n · σ)."""
    (x,) = inputs
    count = prod(x.shape)
    mean = scaled(upstream.builder.apply("collapse", x, kept=()), 1.0 / count)
    return scaled(upstream.builder.apply("share", x - mean, output), 1.0 / count) * upstream


def _mean_square(node: Node, index: Index, groups: Groups) -> float:
    return float(sum(x * x for x in groups[0]) / len(groups[0]))


def _mean_cube(node: Node, index: Index, groups: Groups) -> float:
    return float(sum(x * x * x for x in groups[0]) / len(groups[0]))


def _mean(node: Node, index: Index, groups: Groups) -> float:
    return float(sum(groups[0]) / len(groups[0]))


def _length(node: Node, index: Index, groups: Groups) -> float:
    return sqrt(sum(x * x for x in groups[0]))


def _entropy(node: Node, index: Index, groups: Groups) -> float:
    return -sum(x * log(x) for x in groups[0] if x > 0)


def _spread(node: Node, index: Index, groups: Groups) -> float:
    mean = _mean(node, index, groups)
    return sqrt(sum((x - mean) * (x - mean) for x in groups[0]) / len(groups[0]))


def _largest(node: Node, index: Index, groups: Groups) -> float:
    largest = float(np.max(groups[0]))
    return 0.0 if largest == -np.inf else largest


ROWS: dict[str, Operation] = {
    "mean_square": Operation(_along(_mean_square_kernel), _mean_square, _mean_square_gradient),
    "mean_cube": Operation(_along(_mean_cube_kernel), _mean_cube, _mean_cube_gradient),
    "mean": Operation(_along(_mean_kernel), _mean, _mean_gradient),
    # the number that softmax subtracts: it cancels, and no gradient passes
    "max": Operation(_along(_max_kernel), _largest, stop),
    "largest": Operation(_along(_max_kernel), _largest, _largest_gradient),
    "sum": Operation(_along(_sum_kernel), added, _sum_gradient),
    "length": Operation(_along(_length_kernel), _length, _length_gradient),
    "entropy": Operation(_along(_entropy_kernel), _entropy, _entropy_gradient),
    "entropy_slope": Operation(unary(_entropy_slope), each(_entropy_slope), _entropy_slope_gradient),
    "deviation": Operation(_deviation, _spread, _deviation_gradient),
    "collapse": Operation(_collapse, added, _collapse_gradient),
    "expand": Operation(_expand, copied, _expand_gradient),
}
