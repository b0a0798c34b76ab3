"""The formula behind `title =` in the explanation panel: signs and operands in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import Any

from engine import Cell, Term
from engine.chance import draw_number
from engine.elementwise import CLIP_EPSILON
from engine.explain import LEAVES
from engine.rearrangement import is_first_member
from ui import naming, ranking_words
from ui.operands import HANDED_ON, NAMED, Groups, behind, finite, grouped
from ui.state import State
from ui.text import short

Piece = dict[str, Any]
Part = str | Term
Formula = Callable[[Cell, Groups], list[Part]]

# factors that read better as fractions have small denominators
LARGEST_DENOMINATOR = 100_000
# an operand without a name is written out as long as the whole formula stays readable
MOST_WRITTEN_OUT = 96


def pieces(state: State, cell: Cell) -> list[Piece]:
    """The formula as the panel draws it: texts and operands; a leaf has none."""
    parts = [] if cell.op in LEAVES else formula(cell)
    # without operands it is 0, as the result says
    if parts == ["0"]:
        return []
    found: list[Piece] = []
    for part in _written_out(parts):
        if not isinstance(part, str):
            found.append(_operand(state, part, cell.op))
        elif found and "text" in found[-1]:
            found[-1] = {"text": found[-1]["text"] + part}
        else:
            found.append({"text": part})
    return [piece for piece in found if piece.get("text") != ""]


def formula(cell: Cell) -> list[Part]:
    """Signs and operands of the cell's own operation."""
    return FORMULAS[cell.op](cell, grouped(cell))


def _written_out(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts, with the formula of what has no name in its place: nobody could look it up."""
    count = sum(isinstance(part, Term) for part in parts)
    for part in parts:
        if isinstance(part, str) or part.name is not None:
            yield part
            continue
        cell = behind(part)
        if cell.op in LEAVES or count * len(cell.terms) > MOST_WRITTEN_OUT:
            yield short(part.value)
        else:
            yield from ("(", *_written_out(formula(cell)), ")")


def _operand(state: State, term: Term, operation: str) -> Piece:
    """An operand: its number; of a copy its name, which says more, and of a token id the whole number."""
    name = str(term.name)
    handed_on = HANDED_ON.get(operation) == term.input
    show = (
        "label" if handed_on else "integer" if naming.is_whole(name) else "label" if operation in NAMED else "number"
    )
    return {
        "value": finite(term.value), "tensor": name, "index": list(term.index), "show": show,
        "label": naming.cell_title(state.model, state.ids, term.tensor, name, term.index),
    }


def _between(sign: str) -> Formula:
    return lambda cell, groups: [groups[0][0], sign, groups[1][0]]


def _with(template: str) -> Formula:
    """A formula of one operand, which stands wherever the template has an X."""
    signs = template.split("X")

    def written(cell: Cell, groups: Groups) -> list[Part]:
        parts: list[Part] = [signs[0]]
        for sign in signs[1:]:
            parts += [groups[0][0], sign]
        return parts
    return written


def _with_cap(template: str) -> Formula:
    return lambda cell, groups: _with(template.replace("CAP", short(cell.tensor.node.attributes["cap"])))(cell, groups)


def _joined(terms: Sequence[Sequence[Part]], sign: str) -> list[Part]:
    return [part for number, term in enumerate(terms) for part in ([sign] if number else []) + list(term)]


def _rest(cell: Cell, total: float, shown: float) -> list[list[Part]]:
    """What the operands come to that are too many to list, behind dots."""
    return [[f"(… {short(float(f'{total - shown:.8g}'))})"]] if cell.omitted else []


def _sum(cell: Cell, groups: Groups) -> list[Part]:
    """All operands added up; 0 where a cell has none."""
    terms = [term for group in groups for term in group]
    rest = _rest(cell, cell.value, sum(term.value for term in terms))
    return _joined([*([term] for term in terms), *rest], " + ") or ["0"]


def _products(cell: Cell, groups: Groups) -> list[Part]:
    pairs = list(zip(groups[0], groups[1], strict=True))
    products: list[list[Part]] = [[left, " × ", right] for left, right in pairs]
    shown = sum(left.value * right.value for left, right in pairs)
    return _joined(products + _rest(cell, cell.value, shown), " + ")


def _affine(cell: Cell, groups: Groups) -> list[Part]:
    return [*_products(cell, groups), " + ", groups[2][0]]


def _mean(power: int) -> Formula:
    sign = ("", "²", "³")[power - 1]

    def written(cell: Cell, groups: Groups) -> list[Part]:
        count = len(groups[0]) + cell.omitted
        powers: list[list[Part]] = [[term, sign] for term in groups[0]]
        rest = _rest(cell, cell.value * count, sum(prod([term.value] * power) for term in groups[0]))
        return ["(", *_joined(powers + rest, " + "), f") ÷ {count}"]
    return written


def _largest(cell: Cell, groups: Groups) -> list[Part]:
    is_listed = any(term.value == cell.value for term in groups[0])
    rest = [["…"]] if is_listed else _rest(cell, cell.value, 0.0)
    return ["max(", *_joined([*([term] for term in groups[0]), *(rest if cell.omitted else [])], ", "), ")"]


def _listed(function: str) -> Formula:
    """A function of all operands, and none left out."""
    return lambda cell, groups: [f"{function}(", *_joined([[term] for term in groups[0]], ", "), ")"]


def _length(cell: Cell, groups: Groups) -> list[Part]:
    return ["√(", *_joined([[term, "²"] for term in groups[0]], " + "), ")"]


def _drawn_normal(cell: Cell, groups: Groups) -> list[Part]:
    node = cell.tensor.node
    stream = "".join(f", {part}" for part in node.attributes["stream"])
    return ["normal([", groups[0][0], f"{stream}], {draw_number(node, cell.index)})"]


def _scaled(cell: Cell, groups: Groups) -> list[Part]:
    """factor × x, the factor as a fraction where it is one."""
    factor = cell.tensor.node.attributes["factor"]
    fraction = Fraction(factor).limit_denominator(LARGEST_DENOMINATOR)
    if float(fraction) != factor or fraction.denominator == 1:
        return [groups[0][0]] if factor == 1 else [f"{short(factor)} × ", groups[0][0]]
    before = "" if fraction.numerator == 1 else f"{short(fraction.numerator)} × "
    return [before, groups[0][0], f" ÷ {fraction.denominator}"]


def _turned(cell: Cell, groups: Groups) -> list[Part]:
    (a, b), (cos,), (sin,) = groups
    if is_first_member(cell.tensor.node, cell.index):
        return [a, " × ", cos, " − ", b, " × ", sin]
    return [a, " × ", sin, " + ", b, " × ", cos]


def _scattered(cell: Cell, groups: Groups) -> list[Part]:
    """The gradients of the positions whose id is this row."""
    pairs = zip(*groups, strict=True)
    return _joined([[value] for value, token in pairs if int(token.value) == cell.index[0]], " + ") or ["0"]


def _placed(cell: Cell, groups: Groups) -> list[Part]:
    attributes = cell.tensor.node.attributes
    return [groups[0][0] if cell.index[attributes["number"]] == attributes["index"] else "0"]


def _by_id(cell: Cell, groups: Groups) -> list[Part]:
    return [groups[0][0], ", ID ", groups[1][0]]


def _unpicked(cell: Cell, groups: Groups) -> list[Part]:
    """The gradient at the target's cell, 0 at all others."""
    return [groups[0][0] if int(groups[1][0].value) == cell.index[-1] else "0"]


_COPY = _with("X")
_TANH = "tanh(√(2 ÷ π) × (X + 0.044715 × X³))"
FORMULAS: Mapping[str, Formula] = MappingProxyType({
    "add": _between(" + "), "subtract": _between(" − "), "difference": _between(" − "),
    "multiply": _between(" × "),
    "divide": _between(" ÷ "), "share": _between(" ÷ "), "matmul": _products, "contract": _products,
    "affine": _affine, "scale": _scaled,
    "scale_shift": lambda cell, groups: [groups[0][0], " × ", groups[1][0], " + ", groups[2][0]],
    "root": lambda cell, groups: ["√(", groups[0][0], " + ", groups[1][0], ")"],
    "exp": _with("exp(X)"), "cosine": _with("cos(X)"), "sine": _with("sin(X)"),
    "relu": _with("max(0, X)"), "positive": _with("(X > 0)"), "relu_squared": _with("max(0, X)²"),
    "gelu_tanh": _with(f"X ÷ 2 × (1 + {_TANH})"),
    "gelu_tanh_slope": _with(
        f"(1 + {_TANH}) ÷ 2 + X ÷ 2 × (1 − {_TANH}²) × √(2 ÷ π) × (1 + 3 × 0.044715 × X²)"
    ),
    "gelu_erf": _with("X ÷ 2 × (1 + erf(X ÷ √2))"),
    "gelu_erf_slope": _with("(1 + erf(X ÷ √2)) ÷ 2 + X × exp(−X² ÷ 2) ÷ √(2 × π)"),
    "soft_cap": _with_cap("CAP × tanh(X ÷ CAP)"), "soft_cap_slope": _with_cap("1 − tanh(X ÷ CAP)²"),
    "tanh": _with("tanh(X)"), "normal_cdf": _with("(1 + erf(X ÷ √2)) ÷ 2"),
    "normal_density": _with("exp(−X² ÷ 2) ÷ √(2 × π)"),
    "skewness": lambda cell, groups: [groups[0][0], " ÷ √(", groups[1][0], "³)"],
    "at_least": lambda cell, groups: ["(", groups[0][0], " ≥ ", groups[1][0], ")"],
    "normal": _drawn_normal, "length": _length, "entropy": _listed("entropy"), "deviation": _listed("std"),
    "entropy_slope": _with("−1 − ln(X)"),
    "uniform": lambda cell, groups: [
        "random(", groups[0][0], f", {draw_number(cell.tensor.node, cell.index)})"
    ],
    "mean": _mean(1), "mean_square": _mean(2), "mean_cube": _mean(3), "max": _largest, "largest": _largest,
    "sum": _sum, "collapse": _sum, "total": _sum,
    "rotate": _turned, "fold_pairs": _sum,
    "log": _with("ln(X)"), "square": _with("X²"), "square_root": _with("√(X)"), "complement": _with("1 − X"),
    "power": _between(" ^ "), "pass": _between(" × "),
    "clip_share": lambda cell, groups: ["min(1, ", groups[0][0], " ÷ (", groups[1][0], f" + {CLIP_EPSILON:f}))"],
    "lookup": _by_id, "pick": _by_id, "unpick": _unpicked,
    "scatter": _scattered, "rows": _COPY, "pad_rows": _sum, "concatenate": _sum, "take": _COPY, "place": _placed,
    "split_heads": _COPY, "merge_heads": _COPY, "copy": _COPY, "expand": _COPY,
    **ranking_words.FORMULAS, "running_sum": _sum, "sum_from": _sum,
})
