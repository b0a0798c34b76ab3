"""The shape of the project: which layer may import which, short modules, no arithmetic in pages."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("engine", "formats", "ui", "pages", "app")
LONGEST_MODULE, LONGEST_PAGE = 300, 150
NUMBER_CRUNCHERS = frozenset({"math", "cmath", "statistics", "numpy"})


def modules(*layers: str) -> dict[str, str]:
    """Path from the root → source of every module of those layers that exist so far."""
    found = [
        path for layer in layers
        for path in (*sorted((ROOT / layer).rglob("*.py")), ROOT / f"{layer}.py") if path.is_file()
    ]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in found}


def imported(source: str) -> set[str]:
    """The top packages that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." if node.level else (node.module or "").partition(".")[0])
    return names


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def arithmetic(source: str) -> Iterator[str]:
    """Operations on numbers, wherever neither side is text: sums, products, `sum(…)`, `x += 1`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.BitXor()):
                pass  # joins sets and types
            case ast.BinOp(left, _, right) if not is_text(left) and not is_text(right):
                yield f"line {node.lineno}: {ast.unparse(node)}"
            case ast.AugAssign(_, _, value) if not is_text(value):
                yield f"line {node.lineno}: {ast.unparse(node)}"
            case ast.Call(ast.Name("sum" | "pow" | "divmod" | "abs" | "round")):
                yield f"line {node.lineno}: {ast.unparse(node)}"
    for name in sorted(imported(source) & NUMBER_CRUNCHERS):
        yield f"import {name}"


def test_the_engine_needs_only_numpy_and_the_standard_library() -> None:
    assert len(modules("engine")) > 10
    for path, source in modules("engine").items():
        assert imported(source) <= {"engine", "numpy"} | sys.stdlib_module_names, path


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_go_left_only(layer: str) -> None:
    to_the_right = set(LAYERS[LAYERS.index(layer) + 1:])
    for path, source in modules(layer).items():
        assert not imported(source) & {*to_the_right, "tests", "benchmarks", "."}, path


def test_pages_do_not_import_pages() -> None:
    for path, source in modules("pages").items():
        assert "pages" not in imported(source), path


def test_modules_are_short() -> None:
    lengths = {path: len(source.splitlines()) for path, source in modules(*LAYERS).items()}
    allowed = {path: LONGEST_PAGE if path.startswith("pages/") else LONGEST_MODULE for path in lengths}
    assert {path: length for path, length in lengths.items() if length > allowed[path]} == {}


def test_pages_leave_arithmetic_to_the_engine() -> None:
    found = {path: list(arithmetic(source)) for path, source in modules("pages", "app").items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize("source", [
    "y = x + 1", "y = a @ b", "y = x / n", "n += 1", "y = -x ** 2", "total = sum(xs)", "import numpy as np",
    "from math import exp", "def f():\n    return x % 2", "y = round(x, 4)",
])
def test_arithmetic_is_recognised(source: str) -> None:
    assert list(arithmetic(source))


@pytest.mark.parametrize("source", [
    "text = f'{a}' + 'b'", "path = folder / 'page.md'", "kind = int | None", "last = xs[-1]", "s += '!'",
    "x = f(a, b)", "'%s' % name",
])
def test_text_paths_and_types_are_no_arithmetic(source: str) -> None:
    assert not list(arithmetic(source))


def test_imports_are_recognised() -> None:
    source = "import ui.board\ndef f():\n    from pages import x\nfrom . import y"
    assert imported(source) == {"ui", "pages", "."}
