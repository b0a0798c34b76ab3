"""Why a cell has its value: the operands, as numbers with addresses, and the arithmetic on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import EditError
from engine.operands import operand_cells
from engine.operations import OPERATIONS
from engine.recording import Tensor, TensorMap, checked_index
from engine.types import Index

LEAVES = frozenset({"parameter", "constant", "ids", "dropout_mask", "cache"})


@dataclass(frozen=True)
class Term:
    """One operand of a cell: its number, and the tensor, index and input that it came from."""

    value: float
    tensor: Tensor
    index: Index
    input: int

    @property
    def name(self) -> str | None:
        """The operand's name in the trace, None for an unnamed step."""
        return self.tensor.name


@dataclass(frozen=True)
class Cell:
    """One cell with its value, its operation and the terms that it is computed from.

    A parameter, a constant or a token id is its own single term; so is a value set by hand (`op`
    is `override`), where `computed` is the cell that it replaced.
    """

    tensor: Tensor
    index: Index
    value: float
    op: str
    terms: tuple[Term, ...]
    computed: Cell | None = None

    def evaluate(self) -> float:
        """Recompute the value from the numbers in `terms` alone."""
        if self.op in LEAVES or self.op == "override":
            return self.terms[0].value
        count = len(self.tensor.node.inputs)
        groups = [[term.value for term in self.terms if term.input == number] for number in range(count)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return OPERATIONS[self.op].arithmetic(self.tensor.node, self.index, groups)


def explain(trace: TensorMap, tensor: str | Tensor, index: Sequence[int]) -> Cell:
    """Return the cell `index` of a tensor of a trace, or of the mapping that `gradient` returns.

    `tensor` is a name or a Tensor, so that unnamed steps are in reach. Raises `EditError` for an
    unknown name or an index outside the tensor.
    """
    found = trace.get(tensor) if isinstance(tensor, str) else tensor
    if found is None:
        raise EditError("unknown_name", f"there is no tensor {tensor}", name=tensor)
    where = checked_index(found, index)
    value = _number(found, where)
    if found.overridden:
        replaced = found.inputs[0]
        if found.recording.overrides[found.slot].covered[where]:
            return Cell(found, where, value, "override", (Term(value, found, where, 0),),
                        explain(trace, replaced, where))
        return Cell(found, where, value, replaced.op, _terms(replaced, where))
    if found.op in LEAVES:
        return Cell(found, where, value, found.op, (Term(value, found, where, 0),))
    return Cell(found, where, value, found.op, _terms(found, where))


def _terms(tensor: Tensor, index: Index) -> tuple[Term, ...]:
    groups = operand_cells(tensor.node, index, tensor.recording.ids())
    return tuple(
        Term(_number(source, cell), source, cell, number)
        for number, (source, cells) in enumerate(zip(tensor.inputs, groups, strict=True))
        for cell in cells
    )


def _number(tensor: Tensor, index: Index) -> float:
    return float(tensor.data[index])
