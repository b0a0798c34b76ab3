"""The structure of a computation: steps, names, axes and operands, without any numbers.

A plan depends on configuration and shapes alone. It is built once, never changes, and is replayed
with new numbers; every reader's run of the same shape shares it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.bounds import Bounds
from engine.types import Array

# rows of a vocabulary beyond which its tensors are computed when somebody looks
LARGE_VOCABULARY = 4096
# how the gradient of a tensor is named
GRADIENT = "gradient."

Kernel = Callable[..., Array]

# How one axis of an input is found from the index of an output cell (see `operands.py`).
AxisMap = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Node:
    """One value of a computation: how it is made, from which slots, and what its axes are called."""

    slot: int
    operation: str
    inputs: tuple[int, ...]
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    maps: tuple[tuple[AxisMap, ...], ...] = ()
    summed: tuple[int, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    kernel: Kernel | None = None
    constant: Array | None = None
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """Nodes in order of computation; `names` finds the slot of a named tensor.

    A run carries out `steps`. What stands on a large vocabulary, and all that is made from it, is
    `deferred`: computed when somebody looks (`engine/deferred.py`).
    """

    nodes: tuple[Node, ...]
    names: Mapping[str, int]
    steps: tuple[tuple[int, Kernel, tuple[int, ...]], ...]
    leaves: tuple[int, ...]
    deferred: frozenset[int] = frozenset()
    # leaves that say where an edit stops a gradient
    gates: tuple[int, ...] = ()


class Value:
    """A value that will exist when the plan runs; arithmetic on it adds steps to the plan."""

    __slots__ = ("builder", "node")

    def __init__(self, builder: Builder, node: Node) -> None:
        self.builder = builder
        self.node = node

    @property
    def axes(self) -> tuple[str, ...]:
        """One name per dimension."""
        return self.node.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of every axis."""
        return self.node.shape

    def size(self, axis: str) -> int:
        """The length of the axis of that name."""
        return self.shape[self.axes.index(axis)]

    def __add__(self, other: Value) -> Value:
        return self.builder.apply("add", self, other)

    def __sub__(self, other: Value) -> Value:
        return self.builder.apply("subtract", self, other)

    def __mul__(self, other: Value) -> Value:
        return self.builder.apply("multiply", self, other)

    def __truediv__(self, other: Value) -> Value:
        return self.builder.apply("divide", self, other)

    def __matmul__(self, other: Value) -> Value:
        return self.builder.apply("matmul", self, other)

    def copy(self) -> Value:
        """The same numbers as a step of their own, which can have a name of its own."""
        return self.builder.apply("copy", self)


class Builder:
    """Collects the nodes of one plan; used by one thread, then frozen by `finish`."""

    def __init__(self, start: Plan | None = None, dtype: np.dtype[Any] | None = None) -> None:
        self.nodes: list[Node] = list(start.nodes) if start else []
        self.names: dict[str, int] = dict(start.names) if start else {}
        self.dtype = dtype or np.dtype(np.float64)

    def leaf(self, operation: str, name: str | None, axes: Sequence[str], shape: Sequence[int],
             constant: Array | None = None, attributes: Mapping[str, Any] | None = None) -> Value:
        """A value that is given, not computed: a parameter, the ids, or a constant."""
        frozen = None
        if constant is not None:
            frozen = np.array(constant, dtype=self.dtype)
            frozen.flags.writeable = False
        return self.append(Node(
            len(self.nodes), operation, (), tuple(axes), tuple(shape), constant=frozen, name=name,
            attributes=attributes or {},
        ))

    def filled(self, operation: str, name: str | None, axes: Sequence[str], shape: Sequence[int], number: float,
               attributes: Mapping[str, Any] | None = None) -> Value:
        """A leaf with the same number in every cell, which takes no more memory than one of them."""
        constant = np.broadcast_to(np.full((), number, dtype=self.dtype), tuple(shape))
        return self.append(Node(
            len(self.nodes), operation, (), tuple(axes), tuple(shape), constant=constant, name=name,
            attributes=attributes or {},
        ))

    def apply(self, operation: str, *inputs: Value, **attributes: Any) -> Value:
        """A value computed by a row of the operations table."""
        from engine.operations import OPERATIONS  # the table's rows are written with values

        node = OPERATIONS[operation].build(
            operation, len(self.nodes), tuple(value.node for value in inputs), attributes
        )
        return self.append(replace(node, attributes={**attributes, **node.attributes}))

    def append(self, node: Node) -> Value:
        """Add a node behind the others."""
        self.nodes.append(node)
        if node.name is not None:
            self._claim(node.name, node.slot)
        return Value(self, node)

    def name(self, name: str, value: Value) -> Value:
        """Give an unnamed value its name in the trace."""
        if value.node.name is not None:
            raise ValueError(f"{value.node.name} cannot be recorded again as {name}")
        self._claim(name, value.node.slot)
        named = replace(value.node, name=name)
        self.nodes[named.slot] = named
        return Value(self, named)

    def alias(self, name: str, value: Value) -> Value:
        """Let a second name find a value that has one already."""
        self._claim(name, value.node.slot)
        return value

    def value(self, slot: int) -> Value:
        """The value of a slot that is there already."""
        return Value(self, self.nodes[slot])

    def _claim(self, name: str, slot: int) -> None:
        if name in self.names:
            raise ValueError(f"{name} is recorded twice")
        self.names[name] = slot

    def finish(self, deferred: frozenset[int] | None = None) -> Plan:
        """Freeze what was collected; `deferred` says what a run leaves out, else the vocabulary decides."""
        in_order = dict(sorted(self.names.items(), key=lambda item: item[1]))
        left_out = self._deferred() if deferred is None else deferred
        steps = tuple(
            (node.slot, node.kernel, node.inputs) for node in self.nodes
            if node.kernel is not None and node.slot not in left_out
        )
        leaves = tuple(node.slot for node in self.nodes if node.kernel is None and node.slot not in left_out)
        gates = tuple(slot for slot in leaves if self.nodes[slot].operation == "kept")
        return Plan(tuple(self.nodes), MappingProxyType(in_order), steps, leaves, left_out, gates)

    def _deferred(self) -> frozenset[int]:
        found: set[int] = set()
        for node in self.nodes:
            made_of = (node.attributes["of"],) if node.operation == "kept" else node.inputs
            if not found.isdisjoint(made_of) or (node.kernel is not None and is_large(node)):
                found.add(node.slot)
        return frozenset(found)


def is_large(node: Node) -> bool:
    """Whether the node has a large vocabulary among its axes."""
    return any(
        axis == "vocabulary" and size > LARGE_VOCABULARY for axis, size in zip(node.axes, node.shape, strict=True)
    )


class Scope:
    """Where a module of the model names, records and finds its values: a prefix over a builder."""

    def __init__(self, builder: Builder, prefix: str = "") -> None:
        self.builder = builder
        self.prefix = prefix

    def at(self, name: str) -> Scope:
        """The scope of a submodule."""
        return Scope(self.builder, f"{self.prefix}{name}.")

    def record(self, name: str, value: Value) -> Value:
        """Give a value its full name; a name taken twice is an error."""
        return self.builder.name(self.prefix + name, value)

    def parameter(self, name: str, axes: Sequence[str], shape: Sequence[int]) -> Value:
        """A parameter of the model, an entry of the trace at its first use."""
        return self.builder.leaf("parameter", self.prefix + name, axes, shape)

    def constant(self, name: str, axes: Sequence[str], array: Array, bounds: Bounds | None = None) -> Value:
        """A named number that no training changes, such as ε or the causal mask; edits keep within its bounds."""
        attributes = {} if bounds is None else {"bounds": bounds}
        return self.builder.leaf("constant", self.prefix + name, axes, array.shape, array, attributes)

    def alias(self, name: str, known: str) -> Value:
        """A second name for a value: one leaf, found under both."""
        return self.builder.alias(self.prefix + name, self.find(known))

    def find(self, name: str) -> Value:
        """A value recorded earlier, by its full name."""
        return self.builder.value(self.builder.names[name])
