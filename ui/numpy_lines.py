"""One line of Python that gives a cell's value from its operands; `trace`, `np` and `math` are at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from types import MappingProxyType

from engine import Cell, Term
from engine.chance import draw_number
from engine.elementwise import CLIP_EPSILON, ROUNDING_STEPS
from engine.explain import LEAVES
from engine.rearrangement import is_first_member
from ui.operands import Groups, behind, grouped, handed_on, is_empty_row

Line = Callable[[Cell, Groups], str]


class TooLongError(Exception):
    """A line would list more numbers than anybody reads."""


def numpy_line(cell: Cell) -> str:
    """The line for a cell; none where it would have to list what is too much to list."""
    try:
        return _line(cell)
    except TooLongError:
        return ""


def literal(value: float) -> str:
    """The number as it is written in Python."""
    return repr(value) if isfinite(value) else f"{'-' if value < 0 else ''}np.{abs(value)}"


def _line(cell: Cell) -> str:
    if cell.op in LEAVES:
        return _at(cell.terms[0])
    line = NUMPY[cell.op](cell, grouped(cell))
    if cell.op == "max" and is_empty_row(cell):
        return f"np.nan_to_num({line}, neginf=0.0)"
    if cell.op == "share" and cell.terms[1].value == 0:
        return f"{line} if {_at(cell.terms[1])} else 0.0"
    return line


def _at(term: Term) -> str:
    """One operand; what has no name is computed on the spot."""
    if term.name is not None:
        return _data(term.name, [str(part) for part in term.index])
    return literal(term.value) if term.tensor.op in LEAVES else f"({_line(behind(term))})"


def _data(name: str, parts: Sequence[str]) -> str:
    return f'trace["{name}"].data[{", ".join(parts) or "()"}]'


def _vector(cell: Cell, groups: Groups, number: int) -> str:
    """The cells of one input along the summed axes, in their order."""
    first = next(term for term in cell.terms if term.input == number)
    name = handed_on(first.tensor).name
    if name is None:
        if cell.omitted:
            raise TooLongError
        return f"np.array([{', '.join(map(_at, groups[number]))}])"
    entries = cell.tensor.node.maps[number]
    parts = [
        ":" if entry[0] == "sum" else str(place) for entry, place in zip(entries, first.index, strict=True)
    ]
    line, sums = _data(name, parts), [entry[1] for entry in entries if entry[0] == "sum"]
    if len(sums) < 2:
        return line
    order = sorted(range(len(sums)), key=sums.__getitem__)
    turned = "" if order == sorted(order) else f".transpose({', '.join(map(str, order))})"
    return f"{line}{turned}.ravel()"


def _infix(sign: str) -> Line:
    return lambda cell, groups: f"{_at(groups[0][0])} {sign} {_at(groups[1][0])}"


def _gap(cell: Cell, groups: Groups) -> str:
    """Left minus right, without what is rounding only."""
    left, right = (_at(group[0]) for group in groups)
    rounding = f"{ROUNDING_STEPS} * np.finfo(float).eps * max(abs(a), abs(b), 1)"
    return f"a - b if abs((a := {left}) - (b := {right})) >= {rounding} else 0.0"


def _with(template: str) -> Line:
    """A line of one operand, which stands wherever the template has an X; read more than once, it is called x."""
    def line(cell: Cell, groups: Groups) -> str:
        operand = _at(groups[0][0])
        first = operand if template.count("X") == 1 else f"(x := {operand})"
        return template.replace("X", first, 1).replace("X", "x")
    return line


def _with_cap(template: str) -> Line:
    def line(cell: Cell, groups: Groups) -> str:
        return _with(template.replace("CAP", literal(cell.tensor.node.attributes["cap"])))(cell, groups)
    return line


def _of_vector(template: str) -> Line:
    return lambda cell, groups: template.format(_vector(cell, groups, 0))


def _dot(cell: Cell, groups: Groups) -> str:
    if not cell.tensor.node.summed:
        return f"{_at(groups[0][0])} * {_at(groups[1][0])}"
    return f"{_vector(cell, groups, 0)} @ {_vector(cell, groups, 1)}"


def _sum(cell: Cell, groups: Groups) -> str:
    """Operands added one by one; 0 where a cell has none."""
    return " + ".join(_at(term) for group in groups for term in group) or "0.0"


def _turned(cell: Cell, groups: Groups) -> str:
    (a, b), (cos,), (sin,) = ([_at(term) for term in group] for group in groups)
    if is_first_member(cell.tensor.node, cell.index):
        return f"{a} * {cos} - {b} * {sin}"
    return f"{a} * {sin} + {b} * {cos}"


def _scattered(cell: Cell, groups: Groups) -> str:
    values, ids = _vector(cell, groups, 0), _vector(cell, groups, 1)
    return f"np.sum({values}[{ids} == {cell.index[0]}])"


def _placed(cell: Cell, groups: Groups) -> str:
    attributes = cell.tensor.node.attributes
    return _at(groups[0][0]) if cell.index[attributes["number"]] == attributes["index"] else "0.0"


def _skewness(cell: Cell, groups: Groups) -> str:
    """third / variance^1.5; 0 by agreement where nothing varies."""
    line = f"{_at(groups[0][0])} / {_at(groups[1][0])} ** 1.5"
    return line if groups[1][0].value else "0.0"


def _drawn(cell: Cell, groups: Groups) -> str:
    """The generator started again, and the cell's own number of what it draws."""
    number = draw_number(cell.tensor.node, cell.index)
    return f"np.random.default_rng(int(abs({_at(groups[0][0])}))).random({number + 1})[{number}]"


def _drawn_normal(cell: Cell, groups: Groups) -> str:
    node = cell.tensor.node
    seed = ", ".join([f"int(abs({_at(groups[0][0])}))", *map(str, node.attributes["stream"])])
    number = draw_number(node, cell.index)
    return f"np.random.default_rng([{seed}]).standard_normal({number + 1})[{number}]"


def _ranked(cell: Cell, groups: Groups) -> str:
    token = cell.tensor.node.attributes["token"]
    return f"1 + np.sum((x := {_vector(cell, groups, 0)}) > x[{token}]) + np.sum(x[:{token}] == x[{token}])"


def _tempered(cell: Cell, groups: Groups) -> str:
    limit = "0.0" if cell.index[-1] == 0 else "-np.inf"
    return f"{_at(groups[0][0])} / {_at(groups[1][0])}" if groups[1][0].value else limit


def _kept_by_rank(cell: Cell, groups: Groups) -> str:
    fill = literal(cell.tensor.node.attributes["fill"])
    return f"{_at(groups[0][0])} if {cell.index[-1] + 1} <= {_at(groups[1][0])} else {fill}"


def _running_sum(cell: Cell, groups: Groups) -> str:
    """The numbers on one side of the cell, as a slice where there are too many to write down."""
    if not cell.omitted:
        return _sum(cell, groups)
    (first, *_), attributes, place = groups[0], cell.tensor.node.attributes, cell.index[-1]
    if first.name is None:
        raise TooLongError
    reach = f"{place + (not attributes['own'])}:" if attributes["back"] else f":{place + attributes['own']}"
    return f"np.sum({_data(first.name, [*map(str, first.index[:-1]), reach])})"


def _summed_from(cell: Cell, groups: Groups) -> str:
    first = groups[0][0]
    if first.name is None:
        raise TooLongError
    places = [*map(str, first.index[:-1]), f"{cell.tensor.node.attributes['first']}:"]
    return f"np.sum({_data(first.name, places)})"


_COPY = _with("X")
_TANH = "np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3))"
NUMPY: Mapping[str, Line] = MappingProxyType({
    "add": _infix("+"), "subtract": _infix("-"), "difference": _gap, "multiply": _infix("*"), "divide": _infix("/"),
    "share": _infix("/"), "matmul": _dot, "contract": _dot,
    "affine": lambda cell, groups: f"{_dot(cell, groups)} + {_at(groups[2][0])}",
    "scale": lambda cell, groups: f"{literal(cell.tensor.node.attributes['factor'])} * {_at(groups[0][0])}",
    "scale_shift": lambda cell, groups: f"{_at(groups[0][0])} * {_at(groups[1][0])} + {_at(groups[2][0])}",
    "root": lambda cell, groups: f"np.sqrt({_at(groups[0][0])} + {_at(groups[1][0])})",
    "exp": _with("np.exp(X)"), "cosine": _with("np.cos(X)"), "sine": _with("np.sin(X)"),
    "relu": _with("np.maximum(X, 0)"), "positive": _with("float(X > 0)"),
    "relu_squared": _with("np.maximum(X, 0) ** 2"),
    "gelu_tanh": _with(f"X / 2 * (1 + {_TANH})"),
    "gelu_tanh_slope": _with(
        f"(1 + {_TANH}) / 2 + X / 2 * (1 - {_TANH}**2) * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * X**2)"
    ),
    "gelu_erf": _with("X / 2 * (1 + math.erf(X / math.sqrt(2)))"),
    "gelu_erf_slope": _with(
        "(1 + math.erf(X / math.sqrt(2))) / 2 + X * np.exp(-X**2 / 2) / np.sqrt(2 * np.pi)"
    ),
    "soft_cap": _with_cap("CAP * np.tanh(X / CAP)"), "soft_cap_slope": _with_cap("1 - np.tanh(X / CAP)**2"),
    "tanh": _with("np.tanh(X)"), "normal_cdf": _with("(1 + math.erf(X / math.sqrt(2))) / 2"),
    "normal_density": _with("np.exp(-X**2 / 2) / np.sqrt(2 * np.pi)"), "skewness": _skewness,
    "at_least": lambda cell, groups: f"float({_at(groups[0][0])} >= {_at(groups[1][0])})",
    "normal": _drawn_normal, "length": _of_vector("np.linalg.norm({})"), "deviation": _of_vector("np.std({})"),
    "entropy": _of_vector("-sum(p * np.log(p) for p in {} if p > 0)"), "entropy_slope": _with("-1 - np.log(X)"),
    "uniform": _drawn, "mean_cube": _of_vector("np.mean({} ** 3)"),
    "mean": _of_vector("np.mean({})"), "mean_square": _of_vector("np.mean({} ** 2)"),
    "max": _of_vector("np.max({})"), "largest": _of_vector("np.max({})"),
    "sum": _of_vector("np.sum({})"), "collapse": _of_vector("np.sum({})"), "total": _sum,
    "rotate": _turned, "fold_pairs": _sum,
    "log": _with("np.log(X)"), "square": _with("np.square(X)"), "square_root": _with("np.sqrt(X)"),
    "complement": _with("1 - X"), "pass": _infix("*"),
    "power": lambda cell, groups: f"np.power({_at(groups[0][0])}, {_at(groups[1][0])})",
    "clip_share": lambda cell, groups: f"np.minimum(1, {_at(groups[0][0])} / ({_at(groups[1][0])} + {CLIP_EPSILON}))",
    "pick": _COPY,
    "unpick": lambda cell, groups: _at(groups[0][0]) if int(groups[1][0].value) == cell.index[-1] else "0.0",
    "lookup": _COPY, "scatter": _scattered, "rows": _COPY, "pad_rows": _sum, "concatenate": _sum,
    "take": _COPY, "place": _placed,
    "split_heads": _COPY, "merge_heads": _COPY, "copy": _COPY, "expand": _COPY,
    "order": lambda cell, groups: f"np.argsort(-{_vector(cell, groups, 0)}, kind='stable')[{cell.index[-1]}]",
    "gather": lambda cell, groups: f"{_vector(cell, groups, 0)}[int({_at(groups[1][0])})]",
    "ungather": lambda cell, groups: (
        f"np.sum({_vector(cell, groups, 0)}[{_vector(cell, groups, 1)} == {cell.index[-1]}])"
    ),
    "leader": lambda cell, groups: f"np.argmax({_vector(cell, groups, 0)})", "rank": _ranked,
    "temper": _tempered, "keep_top_k": _kept_by_rank,
    "keep_top_p": lambda cell, groups: (
        f"{_at(groups[0][0])} if {_at(groups[1][0])} < {_at(groups[2][0])} or {_at(groups[2][0])} >= 1 else 0.0"
    ),
    "running_sum": _running_sum, "sum_from": _summed_from,
    "spread_from": lambda cell, groups: (
        _at(groups[0][0]) if cell.index[-1] >= cell.tensor.node.attributes["first"] else "0.0"
    ),
    "draw": lambda cell, groups: (
        f"{_vector(cell, groups, 1)}[np.argmax({_vector(cell, groups, 0)} > {_at(groups[2][0])})]"
    ),
    "count": lambda cell, groups: f"np.sum({_vector(cell, groups, 0)} == {_at(groups[1][0])})",
})
