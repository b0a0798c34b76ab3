"""A cell's arithmetic for the explanation panel: pieces of a formula, words, and a NumPy line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite
from types import MappingProxyType
from typing import Any

from engine import Cell, Term, explain
from engine.explain import LEAVES
from engine.operands import operand_cells
from engine.rearrangement import is_first_member
from engine.types import Index
from ui import naming
from ui.state import State

Piece = dict[str, Any]
Groups = Sequence[Sequence[Term]]


def explanation(state: State, name: str, index: Index) -> dict[str, Any]:
    """What the panel shows for one cell of the current trace."""
    cell = explain(state.trace, name, index)
    shown = cell.computed or cell
    return {
        "title": naming.cell_title(state.model, state.ids, cell.tensor, name, index),
        "value": finite(cell.value), "integer": naming.is_whole(name),
        "pieces": pieces(state, shown),
        "words": words(state, cell),
        "numpy": literal(cell.value) if cell.computed else numpy_line(cell),
        "trail": [
            {"title": naming.cell_title(state.model, state.ids, state.trace[step], step, place),
             "tensor": step, "index": list(place)}
            for step, place in state.trail
        ],
        "computed": None if cell.computed is None else finite(cell.computed.value),
    }


def finite(value: float) -> float | str:
    """JSON has no infinities: they travel as words."""
    return value if isfinite(value) else {"inf": "inf", "-inf": "-inf"}.get(str(value), "nan")


def literal(value: float) -> str:
    """The number as it is written in Python."""
    return repr(value) if isfinite(value) else f"{'-' if value < 0 else ''}np.{abs(value)}"


def words(state: State, cell: Cell) -> str:
    """One sentence on what the operation does, or on what kind of leaf this is."""
    if is_empty_row(cell):
        return state.say("explain_empty_row")
    if cell.op == "lookup":
        return state.say("explain_lookup", id=int(cell.terms[-1].value))
    if cell.op == "rotate":
        return state.say(f"explain_rotate_{cell.tensor.node.attributes['pairing']}")
    name = str(cell.tensor.name).rpartition(".")[2]
    return state.say(f"explain_{cell.op}_{name}" if (cell.op, name) in SPECIFIC else f"explain_{cell.op}")


# operations that mean something of their own in these tensors, and have a sentence for it
SPECIFIC = frozenset({
    ("constant", "causal_mask"), ("constant", "norm_epsilon"), ("constant", "sqrt_head_size"),
    ("constant", "positions"), ("constant", "offset"), ("constant", "frequencies"),
    ("divide", "scores"), ("divide", "normalized"), ("add", "masked_scores"), ("add", "residual1"),
    ("add", "output"), ("contract", "dot"), ("contract", "head_output"), ("contract", "logits"),
    ("multiply", "output"), ("multiply", "contributions"), ("multiply", "angles"),
})


# operations that hand a number on as it is
COPIES = frozenset({"lookup", "split_heads", "merge_heads", "take", "copy"})


def pieces(state: State, cell: Cell) -> list[Piece]:
    """The formula behind `title =`: texts and operands in turn; a leaf has none."""
    if cell.op in LEAVES:
        return []
    groups = _groups(cell)
    template = FORMULAS[cell.op](cell, groups)
    return [part if isinstance(part, dict) else _operand(state, part, cell.op) for part in template]


def _operand(state: State, term: Term, operation: str) -> Piece:
    """An operand: its number; of a copy its name, which says more, and of a token id the whole number."""
    name = str(term.name)
    show = "integer" if naming.is_whole(name) else "label" if operation in COPIES else "number"
    return {
        "value": finite(term.value), "tensor": name, "index": list(term.index), "show": show,
        "label": naming.cell_title(state.model, state.ids, term.tensor, name, term.index),
    }


def _groups(cell: Cell) -> Groups:
    count = 1 + max(term.input for term in cell.terms)
    return [[_named(term) for term in cell.terms if term.input == number] for number in range(count)]


def _named(term: Term) -> Term:
    """The operand; for a copy that has no name of its own, the cell that it is a copy of."""
    while term.name is None:
        (source,), ((index,),) = term.tensor.inputs, operand_cells(term.tensor.node, term.index, None)
        term = replace(term, tensor=source, index=index)
    return term


def is_empty_row(cell: Cell) -> bool:
    """Whether the cell belongs to a softmax over nothing but −∞, which gives zeros by agreement."""
    if cell.op == "max":
        return all(term.value == -inf for term in cell.terms)
    return cell.op == "share" and all(term.value == 0 for term in cell.terms)


Part = Piece | Term
Formula = Callable[[Cell, Groups], list[Part]]


def _text(text: str) -> Piece:
    return {"text": text}


def _between(sign: str) -> Formula:
    return lambda cell, groups: [groups[0][0], _text(sign), groups[1][0]]


def _around(before: str, after: str) -> Formula:
    return lambda cell, groups: [_text(before), groups[0][0], _text(after)]


def _joined(terms: Sequence[Sequence[Part]], sign: str) -> list[Part]:
    parts: list[Part] = []
    for number, term in enumerate(terms):
        parts += [*([_text(sign)] if number else []), *term]
    return parts


def _products(cell: Cell, groups: Groups) -> list[Part]:
    pairs = zip(*groups, strict=True)
    return _joined([[left, _text(" × "), right] for left, right in pairs], " + ")


def _mean_square(cell: Cell, groups: Groups) -> list[Part]:
    squares = _joined([[term, _text("²")] for term in groups[0]], " + ")
    return [_text("("), *squares, _text(f") ÷ {len(groups[0])}")]


def _largest(cell: Cell, groups: Groups) -> list[Part]:
    return [_text("max("), *_joined([[term] for term in groups[0]], ", "), _text(")")]


def _turned(cell: Cell, groups: Groups) -> list[Part]:
    (a, b), (cos,), (sin,) = groups
    if is_first_member(cell.tensor.node, cell.index):
        return [a, _text(" × "), cos, _text(" − "), b, _text(" × "), sin]
    return [a, _text(" × "), sin, _text(" + "), b, _text(" × "), cos]


FORMULAS: Mapping[str, Formula] = MappingProxyType({
    "add": _between(" + "), "subtract": _between(" − "), "multiply": _between(" × "),
    "divide": _between(" ÷ "), "share": _between(" ÷ "), "matmul": _products, "contract": _products,
    "root": lambda cell, groups: [_text("√("), groups[0][0], _text(" + "), groups[1][0], _text(")")],
    "exp": _around("exp(", ")"), "relu": _around("max(0, ", ")"), "cosine": _around("cos(", ")"),
    "sine": _around("sin(", ")"), "mean_square": _mean_square, "max": _largest,
    "sum": lambda cell, groups: _joined([[term] for term in groups[0]], " + "), "rotate": _turned,
    "lookup": lambda cell, groups: [groups[0][0], _text(", ID "), groups[1][0]],
    "split_heads": _around("", ""), "merge_heads": _around("", ""),
    "take": _around("", ""),
})


def numpy_line(cell: Cell) -> str:
    """One line of Python that gives the value from `trace`; `np` is NumPy."""
    if cell.op in LEAVES:
        return _at(cell.terms[0])
    line = NUMPY[cell.op](cell, _groups(cell))
    if cell.op == "max" and is_empty_row(cell):
        return f"np.nan_to_num({line}, neginf=0.0)"
    if cell.op == "share" and cell.terms[1].value == 0:
        return f"{line} if {_at(cell.terms[1])} else 0.0"
    return line


def _at(term: Term) -> str:
    return _data(str(term.name), [str(part) for part in term.index])


def _data(name: str, parts: Sequence[str]) -> str:
    return f'trace["{name}"].data[{", ".join(parts) or "()"}]'


def _vector(cell: Cell, groups: Groups, number: int) -> str:
    """The cells of one input along the summed axis."""
    entries = cell.tensor.node.maps[number]
    first = groups[number][0]
    parts = [
        ":" if entry[0] == "sum" else str(place)
        for entry, place in zip(entries, first.index, strict=True)
    ]
    return _data(str(first.name), parts)


def _infix(sign: str) -> Callable[[Cell, Groups], str]:
    return lambda cell, groups: f"{_at(groups[0][0])} {sign} {_at(groups[1][0])}"


def _call(function: str) -> Callable[[Cell, Groups], str]:
    return lambda cell, groups: f"{function}({_at(groups[0][0])})"


def _call_vector(function: str) -> Callable[[Cell, Groups], str]:
    return lambda cell, groups: f"{function}({_vector(cell, groups, 0)})"


def _copy(cell: Cell, groups: Groups) -> str:
    return _at(groups[0][0])


def _dot(cell: Cell, groups: Groups) -> str:
    return f"{_vector(cell, groups, 0)} @ {_vector(cell, groups, 1)}"


def _turned_line(cell: Cell, groups: Groups) -> str:
    (a, b), (cos,), (sin,) = ([_at(term) for term in group] for group in groups)
    if is_first_member(cell.tensor.node, cell.index):
        return f"{a} * {cos} - {b} * {sin}"
    return f"{a} * {sin} + {b} * {cos}"


NUMPY: Mapping[str, Callable[[Cell, Groups], str]] = MappingProxyType({
    "add": _infix("+"), "subtract": _infix("-"), "multiply": _infix("*"), "divide": _infix("/"),
    "share": _infix("/"), "matmul": _dot, "contract": _dot,
    "root": lambda cell, groups: f"np.sqrt({_at(groups[0][0])} + {_at(groups[1][0])})",
    "exp": _call("np.exp"), "cosine": _call("np.cos"), "sine": _call("np.sin"),
    "relu": lambda cell, groups: f"np.maximum({_at(groups[0][0])}, 0)",
    "mean_square": lambda cell, groups: f"np.mean({_vector(cell, groups, 0)} ** 2)",
    "max": _call_vector("np.max"), "sum": _call_vector("np.sum"), "rotate": _turned_line,
    "lookup": _copy, "split_heads": _copy, "merge_heads": _copy, "take": _copy,
})
