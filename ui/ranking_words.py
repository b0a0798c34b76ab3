"""Formulas, NumPy lines and details of the steps that choose a token, for the explanation panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from engine import Cell, Tensor, Term
from engine.ranking import drawn_ranks, keeps
from ui.operands import Groups
from ui.text import precise

Formula = Callable[[Cell, Groups], list[str | Term]]
# what these show is one of very many operands: the others are not worth counting
PICKS = frozenset({"order", "gather", "draw", "leader", "rank"})


def _source(cell: Cell, which: int) -> Tensor:
    """An input of the cell's operation, whatever was laid over the cell's tensor."""
    return Tensor(cell.tensor.recording, cell.tensor.node.inputs[which])


def _term(cell: Cell, which: int, last: int) -> Term:
    """The cell of an input at the same batch and another last index."""
    source = _source(cell, which)
    index = (*cell.index[:-1], last)
    return Term(source.number(index), source, index, which)


def _rank(cell: Cell) -> int:
    return cell.index[-1] + 1


def _order(cell: Cell, groups: Groups) -> list[str | Term]:
    return ["ID(", _term(cell, 0, int(cell.value)), ")"]


def _gather(cell: Cell, groups: Groups) -> list[str | Term]:
    order, *_ = groups[1]
    return [_term(cell, 0, int(order.value)), ", ID ", order]


def _leader(cell: Cell, groups: Groups) -> list[str | Term]:
    return ["ID(", _at(cell, int(cell.value)), ")"]


def _rank_of(cell: Cell, groups: Groups) -> list[str | Term]:
    return [_at(cell, cell.tensor.node.attributes["token"]), f" → 1 + {int(cell.value) - 1}"]


def _at(cell: Cell, token: int) -> Term:
    """The number of one token in the row that the cell looks through."""
    source, index = _source(cell, 0), (*cell.index, token)
    return Term(source.number(index), source, index, 0)


def _temper(cell: Cell, groups: Groups) -> list[str | Term]:
    (x,), (temperature,) = groups
    if temperature.value == 0:
        return ["(T = ", temperature, f", r{_rank(cell)}) → "]
    return [x, " ÷ ", temperature]


def _keep_top_k(cell: Cell, groups: Groups) -> list[str | Term]:
    (x,), (k,) = groups
    if _rank(cell) <= k.value:
        return [f"{_rank(cell)} ≤ ", k, " → ", x]
    return [f"{_rank(cell)} > ", k, " → "]


def _keep_top_p(cell: Cell, groups: Groups) -> list[str | Term]:
    (x,), (mass,), (p,) = groups
    if p.value >= 1:
        return ["(p = ", p, ") → ", x]
    return [mass, " < ", p, " → ", x] if keeps(mass.value, p.value) else [mass, " ≥ ", p, " → "]


def _added(cell: Cell, groups: Groups) -> list[str | Term]:
    parts: list[str | Term] = []
    for term in groups[0]:
        parts += [" + ", term] if parts else [term]
    return parts or ["0"]


def _drawn_rank(cell: Cell) -> int:
    """The index of the rank to which the cell's number falls; an edit may put one id at two ranks."""
    running, (*_, u) = _source(cell, 0), cell.terms
    ranks = np.arange(running.shape[-1])
    return int(drawn_ranks(running.take(ranks + cell.index[0] * len(ranks)), np.array([u.value]))[0])


def _draw(cell: Cell, groups: Groups) -> list[str | Term]:
    (u, *_), place = groups[2], _drawn_rank(cell)
    reached: list[str | Term] = [u, " < ", _term(cell, 0, place), " → ", _term(cell, 1, place)]
    return [_term(cell, 0, place - 1), " ≤ ", *reached] if place else reached


def _count(cell: Cell, groups: Groups) -> list[str | Term]:
    token, *_ = groups[1]
    parts: list[str | Term] = []
    for term in groups[0]:
        if term.value == token.value:
            parts += [", ", term] if parts else [term]
    return ["count(", *parts, ")"] if parts else ["0"]


def _ungathered(cell: Cell, groups: Groups) -> list[str | Term]:
    """The gradients of the ranks at which this id stands."""
    here = [value for value, token in zip(*groups, strict=True) if token.value == cell.index[-1]]
    return _added(cell, [here])


FORMULAS: Mapping[str, Formula] = MappingProxyType({
    "order": _order, "gather": _gather, "ungather": _ungathered,
    "temper": _temper, "keep_top_k": _keep_top_k, "keep_top_p": _keep_top_p,
    "spread_from": lambda cell, groups: (
        [groups[0][0]] if cell.index[-1] >= cell.tensor.node.attributes["first"] else ["0"]
    ),
    "draw": _draw, "count": _count, "leader": _leader, "rank": _rank_of,
})


def meaning(cell: Cell) -> str:
    """Which of its cases an operation that decides something is in, as the end of a catalogue key."""
    values = [term.value for term in cell.terms]
    match cell.op:
        case "temper" if values[1] == 0:
            return "temper_zero"
        case "keep_top_k":
            return "keep_top_k_kept" if _rank(cell) <= values[1] else "keep_top_k_cut"
        case "keep_top_p" if values[2] >= 1:
            return "keep_top_p_all"
        case "keep_top_p":
            return "keep_top_p_kept" if keeps(values[1], values[2]) else "keep_top_p_cut"
        case "running_sum" if cell.tensor.node.attributes["own"]:
            return "running_sum_own"
    return cell.op


def details(cell: Cell) -> dict[str, object]:
    """What the sentence of such an operation names."""
    values = [term.value for term in cell.terms]
    match cell.op:
        case "order":
            return {"rank": _rank(cell), "count": _source(cell, 0).shape[-1]}
        case "keep_top_k":
            return {"rank": _rank(cell), "k": f"{values[1]:g}"}
        case "keep_top_p":
            return {"mass": precise(values[1]), "p": f"{values[2]:g}"}
        case "count":
            draws, token = [term.value for term in cell.terms if term.input == 0], cell.terms[-1].value
            return {"draws": len(draws), "times": draws.count(token)}
        case "draw":
            return {"u": precise(cell.terms[-1].value), "rank": _drawn_rank(cell) + 1}
        case "leader":
            return {"count": _source(cell, 0).shape[-1]}
        case "rank":
            return {"count": _source(cell, 0).shape[-1], "above": int(cell.value) - 1}
        case "sum_from":
            return {"first": cell.tensor.node.attributes["first"]}
    return {}
