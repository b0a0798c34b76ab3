"""Why a cell has its value: the operands, as numbers with addresses, and the arithmetic on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import EditError
from engine.operands import operand_cells, term_count
from engine.operations import OPERATIONS
from engine.recording import Tensor, TensorMap, checked_index
from engine.types import Index

LEAVES = frozenset({"parameter", "constant", "ids", "dropout_mask", "cache", "kept", "moment", "step"})


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
    # operands left out because the caller asked for a few only
    omitted: int = 0

    def evaluate(self) -> float:
        """Recompute the value from the numbers in `terms` alone."""
        if self.op in LEAVES or self.op == "override":
            return self.terms[0].value
        count = len(self.tensor.node.inputs)
        groups = [[term.value for term in self.terms if term.input == number] for number in range(count)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return OPERATIONS[self.op].arithmetic(self.tensor.node, self.index, groups)


def explain(trace: TensorMap, tensor: str | Tensor, index: Sequence[int], most: int | None = None) -> Cell:
    """Return the cell `index` of a tensor of a trace, or of the mapping that `gradient` returns.

    `tensor` is a name or a Tensor, so that unnamed steps are in reach. With `most`, a cell that is
    a sum over more numbers lists the first so many of each input and counts the rest in `omitted`.
    Raises `EditError` for an unknown name or an index outside the tensor.
    """
    found = trace.get(tensor) if isinstance(tensor, str) else tensor
    if found is None:
        raise EditError("unknown_name", f"there is no tensor {tensor}", name=tensor)
    where = checked_index(found, index)
    value = found.number(where)
    if found.overridden:
        replaced = found.inputs[0]
        if found.recording.covers(found.slot, where):
            return Cell(found, where, value, "override", (Term(value, found, where, 0),),
                        explain(trace, replaced, where, most))
        return _made(found, replaced, where, value, most)
    if found.op in LEAVES:
        return Cell(found, where, value, found.op, (Term(value, found, where, 0),))
    return _made(found, found, where, value, most)


def _made(tensor: Tensor, maker: Tensor, index: Index, value: float, most: int | None) -> Cell:
    """A computed cell; `maker` is the tensor that has its operation and its operands."""
    groups = operand_cells(maker.node, index, maker.recording.ids(maker.node), most)
    terms = tuple(
        term for number, (source, cells) in enumerate(zip(maker.inputs, groups, strict=True))
        for term in _terms(source, cells, number)
    )
    omitted = 0 if most is None else max(term_count(maker.node, index) - most, 0)
    return Cell(tensor, index, value, maker.op, terms, omitted=omitted)


def _terms(source: Tensor, cells: Sequence[Index], number: int) -> Iterator[Term]:
    """The operands that one input gives, read together."""
    if not cells:
        return
    flat = np.ravel_multi_index(tuple(np.array(cells).reshape(len(cells), -1).T), source.shape) if source.shape else [0]
    for value, cell in zip(source.take(np.asarray(flat)).tolist(), cells, strict=True):
        yield Term(float(value), source, cell, number)
