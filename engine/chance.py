"""Numbers that chance gives: the same for the same seed, so that a draw can be explained and repeated."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from engine.plan import Node
from engine.rows import Groups, Operation
from engine.types import Array, Index


def whole_seed(number: float) -> int:
    """The seed that a number stands for: the whole part of its size, for a generator takes no other."""
    return int(abs(number)) if np.isfinite(number) else 0


def draw_number(node: Node, index: Index) -> int:
    """How many draws of the generator come before this cell's."""
    return int(node.attributes["first"] + np.ravel_multi_index(index, node.shape))


def _uniform(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build numbers between 0 and 1 that NumPy's generator draws from a seed, the first `first` left out."""
    (seed,) = inputs
    axes, shape, first = attributes["axes"], attributes["shape"], attributes["first"]

    def kernel(number: Array) -> Array:
        drawn = np.random.default_rng(whole_seed(float(number))).random(first + prod(shape))
        return drawn[first:].reshape(shape).astype(number.dtype, copy=False)
    return Node(slot, operation, (seed.slot,), axes, shape, ((),), attributes=dict(attributes), kernel=kernel)


def _drawn(node: Node, index: Index, groups: Groups) -> float:
    number = draw_number(node, index)
    return float(np.random.default_rng(whole_seed(groups[0][0])).random(number + 1)[number])


ROWS: dict[str, Operation] = {"uniform": Operation(_uniform, _drawn)}
