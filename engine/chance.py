"""Numbers that chance gives: the same for the same seed, so that a draw can be explained and repeated."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from engine.plan import Node
from engine.rows import Groups, Operation, stop
from engine.types import Array, Index


def whole_seed(number: float) -> int:
    """The seed that a number stands for: the whole part of its size, for a generator takes no other."""
    return int(abs(number)) if np.isfinite(number) else 0


def draw_number(node: Node, index: Index) -> int:
    """How many draws of the generator come before this cell's."""
    return int(node.attributes.get("first", 0) + np.ravel_multi_index(index, node.shape))


def _uniform(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build numbers between 0 and 1 that NumPy's generator draws from a seed, the first `first` left out."""
    (seed,) = inputs
    axes, shape, first = attributes["axes"], attributes["shape"], attributes["first"]

    def kernel(number: Array) -> Array:
        drawn = np.random.default_rng(whole_seed(float(number))).random(first + prod(shape))
        return np.asarray(drawn[first:].reshape(shape), dtype=number.dtype)
    return Node(slot, operation, (seed.slot,), axes, shape, ((),), attributes=dict(attributes), kernel=kernel)


def _drawn(node: Node, index: Index, groups: Groups) -> float:
    number = draw_number(node, index)
    return float(np.random.default_rng(whole_seed(groups[0][0])).random(number + 1)[number])


def _normal(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build standard normal numbers from a seed; equal seeds draw other numbers for another `stream`."""
    (seed,) = inputs
    axes, shape, stream = attributes["axes"], attributes["shape"], attributes["stream"]

    def kernel(number: Array) -> Array:
        generator = np.random.default_rng([whole_seed(float(number)), *stream])
        return np.asarray(generator.standard_normal(shape), dtype=number.dtype)
    return Node(slot, operation, (seed.slot,), axes, shape, ((),), attributes=dict(attributes), kernel=kernel)


def _drawn_normal(node: Node, index: Index, groups: Groups) -> float:
    """Draw again as far as the cell: the numbers come in row-major order."""
    generator = np.random.default_rng([whole_seed(groups[0][0]), *node.attributes["stream"]])
    return float(generator.standard_normal(draw_number(node, index) + 1)[-1])


ROWS: dict[str, Operation] = {
    "uniform": Operation(_uniform, _drawn, stop), "normal": Operation(_normal, _drawn_normal, stop),
}
