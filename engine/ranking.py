"""Operations that choose a token: ranks, temperature, the filters top-k and top-p, running sums and draws.

The axis `rank` runs from the largest logit down, and always comes last. One rule for ties: of equal
logits the lower id ranks first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bounds import Bounds
from engine.elementwise import scaled
from engine.plan import AxisMap, Node, Value
from engine.rows import Groups, Operation, added, broadcast_gradient, copied, same_axes, stop
from engine.types import Array, Index


def _order(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the ids in order of falling number: [batch, vocabulary] → [batch, rank]."""
    (x,) = inputs
    size = x.shape[-1]
    return Node(
        slot, operation, (x.slot,), (*x.axes[:-1], "rank"), x.shape, ((*same_axes(x)[:-1], ("sum", 0)),), (size,),
        attributes={"bounds": Bounds(0, size - 1, whole=True)},
        kernel=lambda array: np.argsort(-array, axis=-1, kind="stable").astype(array.dtype),
    )


def _ordered(node: Node, index: Index, groups: Groups) -> float:
    return float(np.argsort(-np.array(groups[0]), kind="stable")[index[-1]])


def _gather(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the number of the id that stands at each rank."""
    x, order = inputs
    return Node(
        slot, operation, (x.slot, order.slot), order.axes, order.shape,
        ((*same_axes(x)[:-1], ("sum", 0)), same_axes(order)), (x.shape[-1],),
        kernel=lambda array, ids: np.take_along_axis(array, ids.astype(np.int64), axis=-1),
    )


def _gather_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    return upstream.builder.apply("ungather", upstream, inputs[1], axis=inputs[0].axes[-1]) if which == 0 else None


def _ungather(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build Σ over the ranks at which an id stands: what a `gather`'s gradient does."""
    values, order = inputs
    entries = (*same_axes(values)[:-1], ("sum", 0))

    def kernel(array: Array, ids: Array) -> Array:
        table = np.zeros(array.shape, dtype=array.dtype)
        for row in np.ndindex(*array.shape[:-1]):
            np.add.at(table[row], ids[row].astype(np.int64), array[row])
        return table
    return Node(
        slot, operation, (values.slot, order.slot), (*values.axes[:-1], attributes["axis"]), values.shape,
        (entries, entries), (values.shape[-1],), attributes=dict(attributes), kernel=kernel,
    )


def _ungathered(node: Node, index: Index, groups: Groups) -> float:
    return float(sum(value for value, token in zip(*groups, strict=True) if token == index[-1]))


def _ungather_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    return upstream.builder.apply("gather", upstream, inputs[1]) if which == 0 else None


def _temper(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build x / T; at T = 0 rank 1 keeps 0 and all others get −∞, which is argmax."""
    x, temperature = inputs

    def kernel(array: Array, number: Array) -> Array:
        if number != 0:
            return array / number
        lone = np.full_like(array, -np.inf)
        lone[..., 0] = 0.0
        return lone
    return Node(slot, operation, (x.slot, temperature.slot), x.axes, x.shape, (same_axes(x), ()), kernel=kernel)


def _tempered(node: Node, index: Index, groups: Groups) -> float:
    (x,), (temperature,) = groups
    if temperature == 0:
        return 0.0 if index[-1] == 0 else -np.inf
    return float(np.float64(x) / temperature)


def _temper_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂(x/T)/∂x = 1/T and ∂(x/T)/∂T = −x/T²; at T = 0 nothing moves."""
    x, temperature = inputs
    apply = upstream.builder.apply
    if which == 0:
        return apply("share", upstream, temperature)
    slope = apply("share", apply("share", scaled(x, -1.0), temperature), temperature)
    return broadcast_gradient(upstream * slope, output, which)


def _keep_top_k(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build x where rank ≤ k, elsewhere `fill`."""
    x, k = inputs
    fill, ranks = attributes["fill"], np.arange(1, x.shape[-1] + 1)
    return Node(
        slot, operation, (x.slot, k.slot), x.axes, x.shape, (same_axes(x), ()), attributes={"fill": fill},
        kernel=lambda array, most: np.where(ranks <= most, array, array.dtype.type(fill)),
    )


def _kept_by_rank(node: Node, index: Index, groups: Groups) -> float:
    return float(groups[0][0] if index[-1] + 1 <= groups[1][0] else node.attributes["fill"])


def _keep_k_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    return upstream.builder.apply("keep_top_k", upstream, inputs[1], fill=0.0) if which == 0 else None


def keeps(mass: float, p: float) -> bool:
    """Whether top-p keeps a token: the mass before it is below p; p = 1 keeps all, whatever rounding makes of it."""
    return bool(mass < p or p >= 1)


def _keep_top_p(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build x where the mass before is below p, elsewhere 0."""
    x, mass, p = inputs

    def kernel(array: Array, before: Array, most: Array) -> Array:
        return np.where((before < most) | (most >= 1), array, array.dtype.type(0))
    return Node(slot, operation, (x.slot, mass.slot, p.slot), x.axes, x.shape,
                (same_axes(x), same_axes(x), ()), kernel=kernel)


def _keep_p_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    return upstream.builder.apply("keep_top_p", upstream, *inputs[1:]) if which == 0 else None


def _running_sum(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build Σ of the numbers before each rank, or after it if `back`; with `own`, its own number too."""
    (x,) = inputs
    own, back = attributes["own"], attributes["back"]

    def kernel(array: Array) -> Array:
        turned = array[..., ::-1] if back else array
        sums = np.cumsum(turned, axis=-1)
        if not own:
            sums = np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], axis=-1)
        return sums[..., ::-1] if back else sums
    last = len(x.axes) - 1
    reach: AxisMap = ("after", last, own, x.shape[-1]) if back else ("before", last, own)
    return Node(slot, operation, (x.slot,), x.axes, x.shape, ((*same_axes(x)[:-1], reach),),
                attributes={"own": own, "back": back}, kernel=kernel)


def _running_sum_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """A number counts in the sums on its other side."""
    attributes = output.node.attributes
    return upstream.builder.apply("running_sum", upstream, own=attributes["own"], back=not attributes["back"])


def _sum_from(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build Σ over the ranks from index `first` on."""
    (x,) = inputs
    first = attributes["first"]
    return Node(
        slot, operation, (x.slot,), x.axes[:-1], x.shape[:-1], ((*same_axes(x)[:-1], ("sum_shift", 0, first)),),
        (x.shape[-1] - first,), attributes=dict(attributes),
        kernel=lambda array: np.add.reduce(array[..., first:], axis=-1),
    )


def _sum_from_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    (x,) = inputs
    first = output.node.attributes["first"]
    return upstream.builder.apply("spread_from", upstream, first=first, size=x.shape[-1], axis=x.axes[-1])


def _spread_from(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build its input at every rank from index `first` on and 0 before: what the gradient of `sum_from` does."""
    (x,) = inputs
    first, size = attributes["first"], attributes["size"]
    reached = np.arange(size) >= first
    return Node(
        slot, operation, (x.slot,), (*x.axes, attributes["axis"]), (*x.shape, size), (same_axes(x),),
        attributes=dict(attributes), kernel=lambda array: np.where(reached, array[..., None], array.dtype.type(0)),
    )


def _spread(node: Node, index: Index, groups: Groups) -> float:
    return copied(node, index, groups) if index[-1] >= node.attributes["first"] else 0.0


def _spread_from_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    return upstream.builder.apply("sum_from", upstream, first=output.node.attributes["first"])


def drawn_ranks(running: Array, numbers: Array) -> Array:
    """For each number the index of the first rank whose running sum [rank] exceeds it.

    Rounding may leave the last sum a hair below 1: a number beyond it draws the last rank that adds anything.
    """
    largest = np.maximum.accumulate(running)
    last = int(np.searchsorted(largest, largest[-1], side="left"))
    return np.minimum(np.searchsorted(largest, numbers, side="right"), last)


def _draw(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the ids that numbers u between 0 and 1 draw: [batch, rank], [draw] → [batch, draw]."""
    running, order, u = inputs
    shape = (*running.shape[:-1], u.shape[0])

    def kernel(sums: Array, ids: Array, numbers: Array) -> Array:
        drawn = np.empty((*sums.shape[:-1], len(numbers)), dtype=ids.dtype)
        for row in np.ndindex(*sums.shape[:-1]):
            drawn[row] = ids[row][drawn_ranks(sums[row], numbers)]
        return drawn
    every = (*same_axes(running)[:-1], ("sum", 0))
    return Node(
        slot, operation, (running.slot, order.slot, u.slot), (*running.axes[:-1], u.axes[0]), shape,
        (every, every, (("axis", len(shape) - 1),)), (running.shape[-1],),
        attributes={"bounds": Bounds(0, running.shape[-1] - 1, whole=True)}, kernel=kernel,
    )


def _drawn(node: Node, index: Index, groups: Groups) -> float:
    running, ids, numbers = groups
    return float(ids[drawn_ranks(np.array(running), np.array(numbers))[0]])


def _count(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build how many of the draws are the id that stands at each rank."""
    drawn, order = inputs

    def kernel(tokens: Array, ids: Array) -> Array:
        counts = np.empty_like(ids)
        for row in np.ndindex(*ids.shape[:-1]):
            found = np.bincount(tokens[row].astype(np.int64), minlength=ids.shape[-1])
            counts[row] = found[ids[row].astype(np.int64)]
        return counts
    return Node(
        slot, operation, (drawn.slot, order.slot), order.axes, order.shape,
        ((*same_axes(drawn)[:-1], ("sum", 0)), same_axes(order)), (drawn.shape[-1],), kernel=kernel,
    )


def _counted(node: Node, index: Index, groups: Groups) -> float:
    return float(sum(token == groups[1][0] for token in groups[0]))


ROWS: dict[str, Operation] = {
    "order": Operation(_order, _ordered, stop),
    "gather": Operation(_gather, lambda node, index, groups: groups[0][int(groups[1][0])], _gather_gradient),
    "ungather": Operation(_ungather, _ungathered, _ungather_gradient),
    "temper": Operation(_temper, _tempered, _temper_gradient),
    "keep_top_k": Operation(_keep_top_k, _kept_by_rank, _keep_k_gradient),
    "keep_top_p": Operation(
        _keep_top_p, lambda node, index, groups: groups[0][0] if keeps(groups[1][0], groups[2][0]) else 0.0,
        _keep_p_gradient,
    ),
    "running_sum": Operation(_running_sum, added, _running_sum_gradient),
    "sum_from": Operation(_sum_from, added, _sum_from_gradient),
    "spread_from": Operation(_spread_from, _spread, _spread_from_gradient),
    "draw": Operation(_draw, _drawn, stop),
    "count": Operation(_count, _counted, stop),
}
