"""Parts of the computation that can be left out, as edits: to zero, or to their mean over the positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from engine.config import ModelConfig
from engine.edits import Edit, Given, Mean
from engine.edits import Part as IndexPart

# what is set of which tensor: batch 0, and the whole of the axes that are left out
Place = tuple[str, tuple[IndexPart, ...]]
EVERY = slice(None)
BRANCHES = ("attention", "mlp")
# tables of a head's queries and keys, whose cells stand for an edge, and what a hidden unit holds
TABLES = ("dot", "scores", "masked_scores", "weights.shifted", "weights.exp", "weights")
UNITS = ("up", "activation")


@dataclass(frozen=True)
class Edge:
    """What one query of a head reads of one key: its score −∞, so that the other weights grow to sum to 1."""

    layer: int
    head: int
    query: int
    key: int

    def places(self, config: ModelConfig) -> tuple[Place, ...]:
        """The score; without a causal mask no score may be −∞, and the weight becomes 0 with no other growing."""
        return ((_table(config, self.layer), (0, self.head, self.query, self.key)),)


@dataclass(frozen=True)
class Position:
    """What all later positions read of one, in every layer and head; it goes on reading, itself too."""

    position: int

    def places(self, config: ModelConfig) -> tuple[Place, ...]:
        """Its column of scores below the diagonal; without a causal mask, of weights, above it too."""
        readers = [slice(self.position + 1, None)]
        if not config.causal:
            readers.insert(0, slice(None, self.position))
        return tuple(
            (_table(config, layer), (0, EVERY, queries, self.position))
            for layer in range(config.layers) for queries in readers
        )


@dataclass(frozen=True)
class Head:
    """What a head hands on, weights · v: at every position, or at one."""

    layer: int
    head: int
    position: int | None = None

    def places(self, config: ModelConfig) -> tuple[Place, ...]:
        """Its slice of `head_output`."""
        return ((f"layers.{self.layer}.attention.head_output", (0, self.head, *_at(self.position))),)


@dataclass(frozen=True)
class Unit:
    """What a hidden unit of an MLP holds behind the activation: at every position, or at one."""

    layer: int
    unit: int
    position: int | None = None

    def places(self, config: ModelConfig) -> tuple[Place, ...]:
        """Its column of `activation`."""
        return ((f"layers.{self.layer}.mlp.activation", (0, *(_at(self.position) or [EVERY]), self.unit)),)


@dataclass(frozen=True)
class Contribution:
    """What the attention or the MLP of a layer adds to the stream: at every position, or at one."""

    layer: int
    branch: str
    position: int | None = None

    def places(self, config: ModelConfig) -> tuple[Place, ...]:
        """The branch's `output`."""
        return ((f"layers.{self.layer}.{self.branch}.output", (0, *_at(self.position))),)


Part = Edge | Position | Head | Unit | Contribution


def values(part: Part, config: ModelConfig) -> tuple[Given, ...]:
    """What a part can be set to: zero or its mean; an edge is masked, and has no mean."""
    if isinstance(part, Edge | Position):
        return (-inf,) if config.causal else (0.0,)
    return (0.0, Mean())


def removal(part: Part, config: ModelConfig, value: Given) -> tuple[Edit, ...]:
    """The edits that leave a part out."""
    return tuple(Edit(name, index, value) for name, index in part.places(config))


def removed(edits: Iterable[Edit], config: ModelConfig) -> dict[Part, Given]:
    """The parts that edits leave out, in the order of their first edit, and what each is set to."""
    given: Mapping[tuple[object, ...], Given] = {edit.key: edit.value for edit in edits}
    found: dict[Part, Given] = {}
    for edit in edits:
        part = _part_of(edit)
        if part is None or part in found or edit.value not in values(part, config):
            continue
        if all(given.get(whole.key) == edit.value for whole in removal(part, config, edit.value)):
            found[part] = edit.value
    return found


def _part_of(edit: Edit) -> Part | None:
    """The part that an edit could belong to, by its name and the form of its index."""
    match edit.name.split("."), edit.index:
        case ["layers", layer, "attention", "head_output"], (0, int(head)):
            return Head(int(layer), head)
        case ["layers", layer, "attention", "head_output"], (0, int(head), int(position)):
            return Head(int(layer), head, position)
        case ["layers", layer, "attention", "masked_scores" | "weights"], (0, int(head), int(query), int(key)):
            return Edge(int(layer), head, query, key)
        case ["layers", _, "attention", "masked_scores" | "weights"], (0, slice(), slice(), int(key)):
            return Position(key)
        case ["layers", layer, "mlp", "activation"], (0, int(position), int(unit)):
            return Unit(int(layer), unit, position)
        case ["layers", layer, "mlp", "activation"], (0, slice(), int(unit)):
            return Unit(int(layer), unit)
        case ["layers", layer, ("attention" | "mlp") as branch, "output"], (0,):
            return Contribution(int(layer), branch)
        case ["layers", layer, ("attention" | "mlp") as branch, "output"], (0, int(position)):
            return Contribution(int(layer), branch, position)
    return None


def parts_at(name: str, index: tuple[int, ...], config: ModelConfig, length: int) -> tuple[Part, ...]:
    """The parts that a cell of a tensor belongs to, in a sentence of that length; the smallest first."""
    layers, layer, inner = [*name.split(".", 2), "", ""][:3]
    if layers != "layers":
        return ()
    return tuple(_around(inner, int(layer), index, config, length))


def _around(inner: str, layer: int, index: tuple[int, ...], config: ModelConfig, length: int) -> Iterator[Part]:
    module, _, tensor = inner.partition(".")
    if module == "attention" and tensor in TABLES:
        _, head, query, key = index
        if key <= query or not config.causal:
            yield Edge(layer, head, query, key)
        # of the last position nothing reads but itself
        if key < length - 1 or not config.causal:
            yield Position(key)
        yield Head(layer, head)
    elif module == "attention" and tensor == "head_output":
        yield from (Head(layer, index[1], index[2]), Head(layer, index[1]))
    elif module == "mlp" and tensor in UNITS:
        yield from (Unit(layer, index[2], index[1]), Unit(layer, index[2]))
    elif module in BRANCHES and tensor == "output":
        yield from (Contribution(layer, module, index[1]), Contribution(layer, module))


def _table(config: ModelConfig, layer: int) -> str:
    return f"layers.{layer}.attention.{'masked_scores' if config.causal else 'weights'}"


def _at(position: int | None) -> tuple[IndexPart, ...]:
    return () if position is None else (position,)
