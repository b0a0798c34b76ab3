"""Operations that ask where tokens stand in a row of logits, without sorting it.

One rule for ties, as everywhere: of equal logits the lower id counts as larger.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bounds import Bounds
from engine.plan import Kernel, Node
from engine.rows import Groups, Operation, same_axes, stop
from engine.types import Array, Index


def _reduced(operation: str, slot: int, x: Node, bounds: Bounds, kernel: Kernel, **attributes: Any) -> Node:
    """Build a number for each row of the last axis."""
    entries = (*same_axes(x)[:-1], ("sum", 0))
    return Node(slot, operation, (x.slot,), x.axes[:-1], x.shape[:-1], (entries,), (x.shape[-1],),
                attributes={**attributes, "bounds": bounds}, kernel=kernel)


def _leader(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the id of the largest number: […, vocabulary] → […]."""
    (x,) = inputs
    return _reduced(operation, slot, x, Bounds(0, x.shape[-1] - 1, whole=True),
                    lambda array: np.argmax(array, axis=-1).astype(array.dtype))


def _rank(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build the rank of the id `token`, 1 for the largest: […, vocabulary] → […]."""
    (x,) = inputs
    token = attributes["token"]
    return _reduced(operation, slot, x, Bounds(1, x.shape[-1], whole=True),
                    lambda array: ranks(array, token).astype(array.dtype), token=token)


def ranks(logits: Array, token: int) -> Array:
    """1 + the number of ids whose logits […,V] are larger, or as large and lower than `token`, […]."""
    own = logits[..., token:token + 1]
    return np.asarray(1 + np.sum(logits > own, axis=-1) + np.sum(logits[..., :token] == own, axis=-1))


def _ranked(node: Node, index: Index, groups: Groups) -> float:
    return float(ranks(np.array(groups[0]), node.attributes["token"]))


ROWS: dict[str, Operation] = {
    "leader": Operation(_leader, lambda node, index, groups: float(np.argmax(groups[0])), stop),
    "rank": Operation(_rank, _ranked, stop),
}
