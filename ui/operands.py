"""The operands of a cell as the panel speaks of them: by input, copies without a name seen through."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

from engine import Cell, Tensor, TensorMap, Term, explain

Groups = Sequence[Sequence[Term]]

# operations that hand a number on as it is
COPIES = frozenset({"lookup", "split_heads", "merge_heads", "take", "copy", "rows", "expand", "pick"})
# operations whose operands say more by their names than by their numbers
NAMED = COPIES | {"order", "gather", "leader"}
# operation → the input that it hands on as it is, or counts: the name says more, even of a whole number
HANDED_ON = {"keep_top_k": 0, "keep_top_p": 0, "draw": 1, "count": 0}


def grouped(cell: Cell) -> Groups:
    """The operands by input; one that is a copy without a name gives way to what it is a copy of."""
    inputs = range(len(cell.tensor.node.inputs))
    return [[_original(term) for term in cell.terms if term.input == number] for number in inputs]


def _original(term: Term) -> Term:
    while term.name is None and term.tensor.op in (*COPIES, "pass"):
        cell = behind(term)
        if cell.op == "pass" and cell.terms[1].value == 0:
            break
        term = cell.terms[0]
    return term


def handed_on(tensor: Tensor) -> Tensor:
    """The tensor itself; a gradient on its way that no edit stops anywhere is the one that it came from."""
    while tensor.name is None and tensor.op == "pass" and tensor.inputs[1].data.all():
        tensor = tensor.inputs[0]
    return tensor


def behind(term: Term) -> Cell:
    """The cell that an operand is, with operands of its own: how one without a name is spoken of."""
    recording = term.tensor.recording
    return explain(TensorMap(recording, recording.plan.names), term.tensor, term.index)


def is_empty_row(cell: Cell) -> bool:
    """Whether the cell belongs to a softmax over nothing but −∞, which gives zeros by agreement."""
    if cell.op == "max":
        return all(term.value == -inf for term in cell.terms)
    return cell.op == "share" and all(term.value == 0 for term in cell.terms)


def finite(value: float) -> float | str:
    """JSON has no infinities: they travel as words."""
    return value if isfinite(value) else {"inf": "inf", "-inf": "-inf"}.get(str(value), "nan")
