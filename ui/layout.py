"""What a lesson puts on its board: sections of grids, joined by words for the operations.

In a tensor's name `{layer}` stands for the layer that the reader chose, `{input}` for the tensor
that enters it, `{last}` for the last layer, and `{each}` makes one grid of every layer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# an axis fixed at a place: "last" is the last position, "each" makes one grid of every head
Fixed = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True)
class Grid:
    """A tensor, or a slice of it, as a table; axes that are not rows or columns are fixed."""

    tensor: str
    rows: str | None = None
    columns: str | None = None
    fixed: Fixed = ()
    title: str | None = None
    suffix: str = ""


@dataclass(frozen=True)
class Stages:
    """The stream of the last position, a row for each stage from the embedding to the last layer."""

    title: str


@dataclass(frozen=True)
class Operator:
    """A sign or word between two grids."""

    text: str


@dataclass(frozen=True)
class Slider:
    """A labelled slider for the first cell of a grid."""

    grid: Grid
    label: str
    low: float
    high: float
    step: float
    logarithmic: bool = False


@dataclass(frozen=True)
class Switch:
    """A labelled switch: on leaves the first cell of a grid alone, off sets it to a number."""

    grid: Grid
    label: str
    off: float


@dataclass(frozen=True)
class Heads:
    """The picture of C features shared out among H heads of size D."""

    width: int
    heads: int


@dataclass(frozen=True)
class Block:
    """One box of a data-flow picture; `lesson` is where a click leads."""

    id: str
    label: str
    lesson: str | None
    tensor: str | None = None
    group: str | None = None
    branch: str | None = None
    operator: str | None = None


@dataclass(frozen=True)
class Flow:
    """A data-flow picture: of the whole model, or of one layer."""

    scope: str


Item = Grid | Stages | Operator | Slider | Switch | Heads | Flow


@dataclass(frozen=True)
class Section:
    """A part of the board with a title and a sentence of guidance, both by their keys."""

    title: str | None
    items: tuple[Item, ...]
    note: str | None = field(default=None)


def section(title: str | None, *items: Item, note: str | None = None) -> Section:
    """A titled part of the board."""
    return Section(title, items, note)


def grid(tensor: str, rows: str | None = None, columns: str | None = None, title: str | None = None,
         **fixed: int | str) -> Grid:
    """A tensor as a table; `fixed` places axes, such as `position="last"`."""
    return Grid(tensor, rows, columns, tuple(fixed.items()), title)


def op(text: str) -> Operator:
    """A sign or word between two grids."""
    return Operator(text)
