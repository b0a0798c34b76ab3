"""Operations that work cell by cell: arithmetic on one or two values, broadcast by axis name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.plan import AxisMap, Kernel, Node, Value
from engine.rows import (
    Build,
    Derivative,
    Groups,
    Operation,
    added,
    broadcast_gradient,
    factor_gradient,
    reshaper,
    same_axes,
    stop,
)
from engine.types import Array, Index

# the order in which a few dozen products are added up moves a sum by far fewer steps of the last digit
ROUNDING_STEPS = 4096
# keeps the limit of a gradient's length from being divided by zero; PyTorch's number
CLIP_EPSILON = 1e-6


def unary(kernel: Kernel) -> Build:
    """Build a node whose cells are a function of the cell at the same place."""
    def build(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
        (x,) = inputs
        return Node(slot, operation, (x.slot,), x.axes, x.shape, (same_axes(x),), kernel=kernel)
    return build


def _scale(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    (x,) = inputs
    factor = float(attributes["factor"])
    return Node(slot, operation, (x.slot,), x.axes, x.shape, (same_axes(x),),
                attributes={"factor": factor}, kernel=lambda array: array * factor)


def _copy(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the same numbers; with the attribute `dtype` as numbers of that type."""
    (x,) = inputs
    dtype = attributes.get("dtype")
    return Node(slot, operation, (x.slot,), x.axes, x.shape, (same_axes(x),),
                kernel=lambda array: np.array(array, dtype=dtype, order="C"))


def union(left: Node, right: Node) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The axes and sizes of a broadcast result: the larger input's, or the one after the other's."""
    if left.axes == right.axes or set(right.axes) <= set(left.axes):
        return left.axes, left.shape
    if set(left.axes) <= set(right.axes):
        return right.axes, right.shape
    added = [number for number, axis in enumerate(right.axes) if axis not in left.axes]
    return (
        left.axes + tuple(right.axes[number] for number in added),
        left.shape + tuple(right.shape[number] for number in added),
    )


def _named_map(node: Node, axes: tuple[str, ...]) -> tuple[AxisMap, ...]:
    if node.axes == axes:
        return same_axes(node)
    return tuple(("axis", axes.index(axis)) for axis in node.axes)


def _binary(kernel: Kernel) -> Build:
    def build(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
        left, right = inputs
        axes, shape = union(left, right)
        maps = (_named_map(left, axes), _named_map(right, axes))
        for node, entries in zip(inputs, maps, strict=True):
            if node.shape != tuple(shape[axis] for _, axis in entries):
                raise ValueError(f"{operation}: {node.axes}={node.shape} does not fit {axes}={shape}")
        views = [reshaper(entries, shape) for entries in maps]
        return Node(slot, operation, (left.slot, right.slot), axes, shape, maps,
                    kernel=_viewed(kernel, *views))
    return build


View = Callable[[Array], Array] | None


def _viewed(kernel: Kernel, left: View, right: View) -> Kernel:
    if left is None and right is None:
        return kernel
    if left is None and right is not None:
        return lambda a, b: kernel(a, right(b))
    if left is not None and right is None:
        return lambda a, b: kernel(left(a), b)
    assert left is not None
    assert right is not None
    return lambda a, b: kernel(left(a), right(b))


def _share(part: Array, total: Array) -> Array:
    """part / total, and 0 where the total is 0: a row with nothing to read shares out nothing."""
    if total.all():
        return part / total
    empty = total == 0
    return np.where(empty, 0.0, part / np.where(empty, 1.0, total)).astype(part.dtype, copy=False)


def difference(left: Any, right: Any) -> Any:
    """left − right, and 0 where the two agree to rounding: within 4096 ε of the larger, or of 1."""
    gap = left - right
    size = np.maximum(np.maximum(np.abs(left), np.abs(right)), 1.0)
    return np.where(np.abs(gap) < ROUNDING_STEPS * np.finfo(np.asarray(gap).dtype).eps * size, 0.0, gap)


def _skewness(third: Array, variance: Array) -> Array:
    """third / variance^1.5, and 0 where nothing varies."""
    flat = variance == 0
    return np.where(flat, 0.0, third / np.where(flat, 1.0, variance) ** 1.5).astype(third.dtype, copy=False)


def _subtract_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    passed = broadcast_gradient(upstream, output, which)
    return passed if which == 0 else scaled(passed, -1.0)


def _add_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    return broadcast_gradient(upstream, output, which)


def _quotient_gradient(quotient: str) -> Derivative:
    """∂(a/b)/∂a = 1/b and ∂(a/b)/∂b = −(a/b)/b, summed where either was broadcast."""
    def derivative(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
        builder = upstream.builder
        if which == 0:
            return broadcast_gradient(builder.apply(quotient, upstream, inputs[1]), output, which)
        slope = builder.apply(quotient, scaled(output, -1.0), inputs[1])
        return broadcast_gradient(builder.apply("multiply", upstream, slope), output, which)
    return derivative


def scaled(value: Value, factor: float) -> Value:
    """factor · value."""
    return value.builder.apply("scale", value, factor=factor)


def times(slope: Callable[[Value, Value], Value]) -> Derivative:
    """upstream · f′(x), where `slope(x, f(x))` gives f′(x)."""
    def derivative(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
        return upstream * slope(inputs[0], output)
    return derivative


def _skewness_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂(t/v^1.5)/∂t = 1/v^1.5 and ∂/∂v = −1.5 · (t/v^1.5)/v."""
    builder = upstream.builder
    if which == 0:
        return builder.apply("skewness", upstream, inputs[1])
    return upstream * builder.apply("share", scaled(output, -1.5), inputs[1])


def _scale_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    return scaled(upstream, output.node.attributes["factor"])


def _root_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂√(m + ε) = 1 / (2√(m + ε)), for m and, summed, for ε."""
    return broadcast_gradient(scaled(upstream, 0.5) / output, output, which)


def _log_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂ln(x)/∂x = 1/x."""
    return upstream / inputs[0]


def _square_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂x²/∂x = 2x."""
    return scaled(upstream * inputs[0], 2.0)


def _square_root_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂√x/∂x = 1/(2√x)."""
    return scaled(upstream, 0.5) / output


def _pass_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    return upstream * inputs[1] if which == 0 else None


def _total(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the sum of several values of the same axes."""
    first = inputs[0]
    if any((node.axes, node.shape) != (first.axes, first.shape) for node in inputs):
        raise ValueError(f"{operation}: inputs of different axes: {[node.axes for node in inputs]}")

    def kernel(array: Array, *others: Array) -> Array:
        return sum(others, start=array)
    return Node(slot, operation, tuple(node.slot for node in inputs), first.axes, first.shape,
                tuple(same_axes(node) for node in inputs), kernel=kernel)


def _clip_share(limit: Array, length: Array) -> Array:
    """min(1, limit / (length + 10⁻⁶)): what a gradient of that length is multiplied by to keep to the limit."""
    return np.minimum(1.0, limit / (length + CLIP_EPSILON))


def _power_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    """∂xᵗ/∂x = t · xᵗ⁻¹; t is a count."""
    if which == 1:
        return None
    x, exponent = inputs
    apply = upstream.builder.apply
    lower = apply("power", x, scaled(apply("complement", exponent), -1.0))
    return broadcast_gradient(upstream * (exponent * lower), output, which)


def _clip_share_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """1/(length + 10⁻⁶) for the limit and −limit/(length + 10⁻⁶)² for the length; 0 where nothing is clipped."""
    limit, length = inputs
    builder = upstream.builder
    epsilon = builder.leaf("constant", None, length.axes, length.shape, np.full(length.shape, CLIP_EPSILON))
    size = length + epsilon
    passed = upstream * builder.apply("complement", builder.apply("at_least", limit, size))
    slope = passed / size if which == 0 else scaled(passed * output, -1.0) / size
    return broadcast_gradient(slope, output, which)


def each(function: Callable[..., Any]) -> Callable[[Node, Index, Groups], float]:
    """Arithmetic of one cell: the function of the single operand that each input gives."""
    # Python's own numbers raise where NumPy's run over
    return lambda node, index, groups: float(function(*(np.float64(group[0]) for group in groups)))


def _scale_shift(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build x · weight + bias, weight and bias along x's last axis."""
    x, weight, bias = inputs
    last = (("axis", len(x.axes) - 1),)
    return Node(slot, operation, (x.slot, weight.slot, bias.slot), x.axes, x.shape, (same_axes(x), last, last),
                kernel=lambda array, factor, shift: array * factor + shift)


def _scale_shift_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    if which == 2:
        return broadcast_gradient(upstream, output, which)
    return factor_gradient(upstream, output, inputs, which)


ROWS: dict[str, Operation] = {
    "copy": Operation(_copy, each(lambda x: x), lambda upstream, output, inputs, which: upstream),
    "scale_shift": Operation(
        _scale_shift, each(lambda x, factor, shift: x * factor + shift), _scale_shift_gradient
    ),
    "add": Operation(_binary(np.add), each(np.add), _add_gradient),
    "subtract": Operation(_binary(np.subtract), each(np.subtract), _subtract_gradient),
    "difference": Operation(_binary(difference), each(difference), _subtract_gradient),
    "multiply": Operation(_binary(np.multiply), each(np.multiply), factor_gradient),
    "divide": Operation(_binary(np.divide), each(np.divide), _quotient_gradient("divide")),
    "share": Operation(
        _binary(_share), each(lambda part, total: part / total if total else 0.0),
        _quotient_gradient("share"),
    ),
    "skewness": Operation(
        _binary(_skewness), each(_skewness), _skewness_gradient,
    ),
    "at_least": Operation(
        _binary(lambda x, least: (x >= least).astype(x.dtype)), each(lambda x, least: x >= least), stop
    ),
    "root": Operation(
        _binary(lambda square, epsilon: np.sqrt(square + epsilon)),
        each(lambda square, epsilon: np.sqrt(square + epsilon)), _root_gradient,
    ),
    "total": Operation(_total, added, lambda upstream, output, inputs, which: upstream),
    # a gradient on its way, or 0 where a value set by hand stops it
    "pass": Operation(_binary(np.multiply), each(np.multiply), _pass_gradient),
    "log": Operation(unary(np.log), each(np.log), _log_gradient),
    "square": Operation(unary(np.square), each(np.square), _square_gradient),
    "square_root": Operation(unary(np.sqrt), each(np.sqrt), _square_root_gradient),
    "complement": Operation(
        unary(lambda x: 1.0 - x), each(lambda x: 1.0 - x),
        lambda upstream, output, inputs, which: scaled(upstream, -1.0),
    ),
    "power": Operation(_binary(np.power), each(np.power), _power_gradient),
    "clip_share": Operation(_binary(_clip_share), each(_clip_share), _clip_share_gradient),
    "exp": Operation(unary(np.exp), each(np.exp), times(lambda x, y: y)),
    "relu": Operation(
        unary(lambda x: np.maximum(x, 0)), each(lambda x: np.maximum(x, 0)),
        times(lambda x, y: x.builder.apply("positive", x)),
    ),
    "positive": Operation(unary(lambda x: (x > 0).astype(x.dtype)), each(lambda x: x > 0), stop),
    "cosine": Operation(
        unary(np.cos), each(np.cos), times(lambda x, y: scaled(x.builder.apply("sine", x), -1.0))
    ),
    "sine": Operation(unary(np.sin), each(np.sin), times(lambda x, y: x.builder.apply("cosine", x))),
    "scale": Operation(
        _scale, lambda node, index, groups: node.attributes["factor"] * groups[0][0], _scale_gradient
    ),
}
