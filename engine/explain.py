"""Why a cell has its value: the operands, as numbers with addresses, and the arithmetic on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import EditError
from engine.operands import operand_cells
from engine.operations import OPERATIONS
from engine.trace import Tensor, TensorMap
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
    if isinstance(tensor, str):
        if tensor not in trace:
            raise EditError("unknown_name", f"there is no tensor {tensor}", name=tensor)
        tensor = trace[tensor]
    where = _checked(tensor, index)
    value = _number(tensor, where)
    if tensor.overridden:
        replaced = tensor.inputs[0]
        if tensor.recording.overrides[tensor.slot].covered[where]:
            return Cell(tensor, where, value, "override", (Term(value, tensor, where, 0),),
                        explain(trace, replaced, where))
        return Cell(tensor, where, value, replaced.op, _terms(replaced, where))
    if tensor.op in LEAVES:
        return Cell(tensor, where, value, tensor.op, (Term(value, tensor, where, 0),))
    return Cell(tensor, where, value, tensor.op, _terms(tensor, where))


def _terms(tensor: Tensor, index: Index) -> tuple[Term, ...]:
    groups = operand_cells(tensor.node, index, tensor.recording.ids())
    return tuple(
        Term(_number(source, cell), source, cell, number)
        for number, (source, cells) in enumerate(zip(tensor.inputs, groups, strict=True))
        for cell in cells
    )


def _number(tensor: Tensor, index: Index) -> float:
    return float(tensor.data[index])


def _checked(tensor: Tensor, index: Sequence[int]) -> Index:
    where = tuple(int(part) for part in index)
    fits = len(where) == len(tensor.shape) and all(
        -size <= part < size for part, size in zip(where, tensor.shape, strict=True)
    )
    if not fits:
        raise EditError(
            "index_out_of_range",
            f"{tensor.name or 'the step'} has no cell {where}; its shape is {tensor.shape}",
            name=tensor.name, index=where, shape=tensor.shape,
        )
    return tuple(part % size for part, size in zip(where, tensor.shape, strict=True))
