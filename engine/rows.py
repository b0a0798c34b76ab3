"""What a row of the operations table is, and the pieces that rows share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.plan import AxisMap, Node, Value
from engine.types import Array, Index

Groups = Sequence[Sequence[float]]
Build = Callable[[str, int, tuple[Node, ...], dict[str, Any]], Node]
Arithmetic = Callable[[Node, Index, Groups], float]
# (upstream gradient, the node's own value, its inputs, which input) → that input's gradient
Derivative = Callable[[Value, Value, tuple[Value, ...], int], Value | None]


def stop(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    """No gradient passes."""
    return None


@dataclass(frozen=True)
class Operation:
    """One row: how to build it, recompute one cell of it, and differentiate it."""

    build: Build
    arithmetic: Arithmetic
    # `stop` where nothing that is made of the inputs moves with them
    derivative: Derivative


def same_axes(node: Node) -> tuple[AxisMap, ...]:
    """The map of an input whose axes are the output's."""
    return tuple(("axis", number) for number in range(len(node.axes)))


def labels(entries: tuple[AxisMap, ...]) -> tuple[str, ...]:
    """A word per axis of an input: the same word where two inputs, or the output, share an index."""
    return tuple(f"{kind}{number}" for kind, number in entries)


def output_labels(node: Node) -> tuple[str, ...]:
    """The words of the output's own axes, matching `labels`."""
    return labels(same_axes(node))


def product_gradient(upstream: Value, output: Value, other: Value, which: int, other_which: int) -> Value:
    """Σ upstream · other over every index that the input does not have: the product rule."""
    maps = output.node.maps
    left, right, result = output_labels(output.node), labels(maps[other_which]), labels(maps[which])
    equation = f"{' '.join(left)}, {' '.join(right)} -> {' '.join(result)}"
    axes = upstream.builder.nodes[output.node.inputs[which]].axes
    return upstream.builder.apply("contract", upstream, other, equation=equation, axes=axes)


def broadcast_gradient(upstream: Value, output: Value, which: int) -> Value:
    """Σ upstream over every index that the input does not have: the sum rule."""
    kept = tuple(entry[1] for entry in output.node.maps[which])
    if kept == tuple(range(len(output.axes))):
        return upstream
    return upstream.builder.apply("collapse", upstream, kept=kept)


def factor_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """The gradient of either of the first two inputs, where the output is their product or sums of it."""
    return product_gradient(upstream, output, inputs[1 - which], which, 1 - which)


def copied(node: Node, index: Index, groups: Groups) -> float:
    """The cell is its only operand."""
    return float(groups[0][0])


def added(node: Node, index: Index, groups: Groups) -> float:
    """The cell is the sum of all its operands, 0 where it has none."""
    return float(sum(value for group in groups for value in group))


def reshaper(entries: tuple[AxisMap, ...], out_shape: tuple[int, ...]) -> Callable[[Array], Array] | None:
    """How to view an input so that NumPy broadcasts it by axis name; None where it already does."""
    positions = [entry[1] for entry in entries]
    if positions != sorted(positions):
        raise ValueError("axes of a broadcast input must keep the output's order")
    if positions == list(range(len(out_shape) - len(positions), len(out_shape))):
        return None
    shape = tuple(size if axis in positions else 1 for axis, size in enumerate(out_shape))
    return lambda array: array.reshape(shape)
