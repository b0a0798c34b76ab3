"""The operations table: one row per operation that a model, or its gradient, is made of.

A row says how to build a node (axes, shape, operands, NumPy kernel), how to recompute one cell
from the numbers of its operands, and how its inputs' gradients follow from its own. Derivatives
are written with operations of this same table, so a gradient explains itself like any value.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from engine import activations, chance, contraction, elementwise, loss, ranking, rearrangement, reduction, standing
from engine.rows import Operation

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    elementwise.ROWS | activations.ROWS | reduction.ROWS | contraction.ROWS | rearrangement.ROWS
    | chance.ROWS | ranking.ROWS | loss.ROWS | standing.ROWS
)
