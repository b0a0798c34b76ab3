"""What a lesson puts on its board: sections of grids, joined by words for the operations.

In a tensor's name `{layer}` stands for the layer that the reader chose, `{input}` for the tensor
that enters it, `{last}` for the last layer, and `{each}` makes one grid of every layer; `places` has
the others. Architectures differ: `a | b` means the first of them that the model has, and what is
`optional` is drawn where all of its tensors exist. Titles and signs may name a size or a choice of the
model, such as `{activation}`; notes have sentences of their own for some models (`wording.note`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from engine import ModelConfig

# what other modules read, whatever the architecture did to it before
STREAM = "embedding.sum | embedding.output"
ATTENTION_INPUT = "{attention_input}"
QUERY, KEY = (
    f"layers.{{layer}}.attention.{letter}_norm.output | layers.{{layer}}.attention.{letter}_rotated"
    f" | layers.{{layer}}.attention.{letter}_heads" for letter in "qk"
)
SCORES = "layers.{layer}.attention.scores | layers.{layer}.attention.dot"
MASKED_SCORES = f"layers.{{layer}}.attention.masked_scores | {SCORES}"

# on the way of a gradient from the loss back to the tokens, what a reader can look at alone; and all of it
STATIONS = ("head", "mlp", "mlp_weights", "attention", "qkv", "qkv_weights", "embedding")
EVERYWHERE = "all"

# an axis fixed at a place: "last" is the last position, "chosen" the one that the reader looks at, "next" the
# loop's next step, "target" the token that should follow, "each" makes one grid of every head; "row" is the first
# axis of a parameter's table, and its place "followed" the row whose step the lesson follows
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
    # rows that a cache would have from earlier steps are greyed
    muted: bool = False
    # shaded only, with the numbers on hover
    small: bool = False
    # lessons that it leads to, with its layer and head chosen there
    ways: tuple[str, ...] = ()
    # the first head of a layer stands at the left, under the layer before
    starts_row: bool = False


@dataclass(frozen=True)
class Stages:
    """The stream of the last position, a row for each stage from the embedding to the last layer."""

    title: str


@dataclass(frozen=True)
class Rows:
    """Vectors of several tensors under one another; each line has a label, a key or a sign, and its vector.

    A line may hold single numbers of several tensors instead, under `columns` with labels of their own;
    where they are of different kinds, each of these columns has `looks` of its own.
    """

    title: str
    lines: tuple[tuple[str, Grid | tuple[Grid, ...]], ...]
    axis: str = ""
    columns: tuple[str, ...] = ()
    column_axis: str = ""
    looks: bool = False

    @property
    def grids(self) -> tuple[tuple[Grid, ...], ...]:
        """The grids of each line."""
        return tuple(line if isinstance(line, tuple) else (line,) for _, line in self.lines)


# what a key stands for in the reader's language, with numbers filled in
Say = Callable[..., str]
Line = tuple[str, Grid | tuple[Grid, ...]]


@dataclass(frozen=True)
class Lines:
    """A table like `Rows` whose lines the model decides: `make` gives them, with labels in the reader's language."""

    title: str
    make: Callable[[ModelConfig, Say], Iterable[Line]]
    axis: str = ""
    columns: tuple[str, ...] = ()
    column_axis: str = ""
    looks: bool = False


@dataclass(frozen=True)
class Pair:
    """A tensor and, under it, its gradient, cell for cell."""

    grid: Grid


@dataclass(frozen=True)
class Verdict:
    """A sentence by its key: `zero` where every cell of the table is 0, else `other`. The table is not drawn."""

    table: Grid | Rows
    zero: str
    other: str


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
    # a letter stands for that size of the model
    high: float | str
    step: float
    logarithmic: bool = False


@dataclass(frozen=True)
class Dial:
    """A labelled slider for a control of the lesson that is a whole number; how far it goes may change."""

    control: str
    label: str


@dataclass(frozen=True)
class Switch:
    """A labelled switch: one side leaves all cells of its grids alone, the other sets them to a number.

    With `{each}` in the tensors' names, one switch for every layer.
    """

    grid: Grid
    label: str
    off: float | None = None
    on: float | None = None
    also: tuple[Grid, ...] = ()


@dataclass(frozen=True)
class Heads:
    """The picture of C features shared out among H heads of size D."""

    width: int
    heads: int


@dataclass(frozen=True)
class Block:
    """One box of a data-flow picture; `lesson` is where a click leads.

    A `group` has one frame, called `layer 1` or by a key; a `side` is one of two columns, by its key.
    """

    id: str
    label: str
    lesson: str | None
    tensor: str | None = None
    group: str | None = None
    branch: str | None = None
    operator: str | None = None
    fixed: Fixed = ()
    side: str | None = None
    # token ids that stand above the cells, one for each
    names: str | None = None


@dataclass(frozen=True)
class Flow:
    """A data-flow picture, of the scopes of `ui.flow.blocks`."""

    scope: str


@dataclass(frozen=True)
class Comparison:
    """Two data-flow pictures side by side, without numbers: this model, and the other article's."""

    scope: str


@dataclass(frozen=True)
class Glossary:
    """The terms of all lessons, with a field to search them."""


@dataclass(frozen=True)
class Ranking:
    """Every head in order of what the chosen token loses without it, with ways to lessons; see `ui/head_effects.py`."""

    ways: tuple[str, ...] = ()


@dataclass(frozen=True)
class Removed:
    """The parts that the reader has left out, each with a button that puts it back; see `ui/removal.py`."""


@dataclass(frozen=True)
class Optional:
    """Items that are drawn only where the model has all of their tensors, and these choices of architecture."""

    items: tuple[Item, ...]
    choices: tuple[tuple[str, object], ...] = ()


Item = (
    Grid | Pair | Stages | Rows | Lines | Verdict | Operator | Slider | Dial | Switch | Heads | Flow | Comparison
    | Glossary | Ranking | Removed | Optional
)


@dataclass(frozen=True)
class Section:
    """A part of the board with a title and a sentence of guidance, both by their keys.

    With a `station`, it is drawn when the reader looks there or everywhere.
    """

    title: str | None
    items: tuple[Item, ...]
    note: str | None = field(default=None)
    station: str = ""


def section(title: str | None, *items: Item, note: str | None = None, station: str = "") -> Section:
    """A titled part of the board."""
    return Section(title, items, note, station)


def grid(tensor: str, rows: str | None = None, columns: str | None = None, title: str | None = None,
         muted: bool = False, small: bool = False, ways: tuple[str, ...] = (), **fixed: int | str) -> Grid:
    """A tensor as a table; `fixed` places axes, such as `position="last"`."""
    return Grid(tensor, rows, columns, tuple(fixed.items()), title, muted=muted, small=small, ways=ways)


def with_gradient(tensor: str) -> Pair:
    """A tensor as a table, with its gradient as another under it."""
    return Pair(grid(tensor))


def op(text: str) -> Operator:
    """A sign or word between two grids."""
    return Operator(text)


def optional(*items: Item, **choices: object) -> Optional:
    """Items for models that have these tensors; `choices` are fields of the configuration, as `residual=True`."""
    return Optional(items, tuple(choices.items()))


def places(config: ModelConfig, layer: int) -> dict[str, str]:
    """The tensors of the chosen layer that the order of norms, additions and branches decides.

    `{input}` enters the layer; attention reads `{attention_input}`; the second half starts from
    `{middle}`, and its MLP reads `{mlp_input}`; norms read `{norm1_input}` and `{norm2_input}`.
    """
    before, name, normed = config.stream_into(layer), f"layers.{layer}", config.norm != "none"
    added, first = f"{name}.residual1", f"{name}.norm1.output" if normed else ""
    if config.norm_placement == "post":
        return {
            "input": before, "attention_input": before, "middle": first or added, "mlp_input": first or added,
            "norm1_input": added, "norm2_input": f"{name}.residual2",
        }
    return {
        "input": before, "attention_input": first or before, "middle": added,
        "mlp_input": f"{name}.norm2.output" if normed else added, "norm1_input": before, "norm2_input": added,
    }
