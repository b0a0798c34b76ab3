"""Numbers drawn from a seed: the same seed gives the same numbers, so a draw explains itself, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.plan import Node
from engine.rows import Groups, Operation
from engine.types import Array, Index


def generator(seed: float, stream: tuple[int, ...]) -> np.random.Generator:
    """The generator of a seed; equal seeds of different streams draw different numbers.

    Seeds are whole and not negative: a fraction and a sign are left out.
    """
    return np.random.default_rng([int(abs(seed)), *stream])


def _normal(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build standard normal numbers of the attributes' axes and shape, from the seed that is the input."""
    (seed,) = inputs
    shape, stream = tuple(attributes["shape"]), tuple(attributes["stream"])

    def kernel(number: Array) -> Array:
        return generator(float(number), stream).standard_normal(shape).astype(number.dtype, copy=False)
    return Node(
        slot, operation, (seed.slot,), tuple(attributes["axes"]), shape, ((),),
        attributes={"stream": stream}, kernel=kernel,
    )


def _drawn(node: Node, index: Index, groups: Groups) -> float:
    """Draw again, as far as the cell: the numbers come in row-major order."""
    place = int(np.ravel_multi_index(index, node.shape))
    return float(generator(groups[0][0], node.attributes["stream"]).standard_normal(place + 1)[-1])


# what is drawn does not move with the seed: no derivative
ROWS: dict[str, Operation] = {"normal": Operation(_normal, _drawn)}
