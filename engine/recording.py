"""The numbers of one run of a plan, and the tensors through which people look at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index as whole
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from engine import deferred
from engine.edits import Edit
from engine.errors import EditError
from engine.plan import Node, Plan
from engine.replacements import Donors, covered
from engine.types import Array, Index


@dataclass(frozen=True, eq=False)
class Override:
    """What an edit of an activation replaced: the computed array, and which cells are covered."""

    computed: Array
    covered: Array


@dataclass(frozen=True, eq=False)
class Recording:
    """A plan with the numbers of one run.

    `values` has none for what is deferred; `changes` are the edits of deferred tensors, by slot;
    `donors` the runs that edits carry cells from.
    """

    plan: Plan
    values: Sequence[Array]
    overrides: Mapping[int, Override]
    changes: Mapping[int, tuple[Edit, ...]] = field(default_factory=dict)
    donors: Donors = field(default_factory=dict)
    # by other runs: what has been found out about the deferred slots
    _shared: WeakKeyDictionary[Recording, frozenset[int]] = field(default_factory=WeakKeyDictionary, repr=False)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the run's numbers."""
        return next(self.values[slot].dtype for slot in self.plan.leaves if self.plan.nodes[slot].operation != "ids")

    @property
    def nbytes(self) -> int:
        """The bytes of what the run itself computed; parameters belong to the model."""
        computed = (self.values[slot] for slot, _, _ in self.plan.steps)
        return sum(array.nbytes for array in computed if array.base is None)

    def data(self, slot: int, computed: bool = False) -> Array:
        """The array of a slot, frozen: as it stands, or as it was computed before an override."""
        if slot in self.plan.deferred:
            return self.freeze(deferred.whole(self, slot, computed))
        override = self.overrides.get(slot)
        return self.freeze(np.asarray(override.computed if computed and override else self.values[slot]))

    def take(self, slot: int, flat: Array) -> Array:
        """The numbers of a slot at flat indices, row-major; nothing larger than these is made."""
        if slot in self.plan.deferred:
            return deferred.take(self, slot, flat)
        return np.asarray(self.values[slot].take(flat))

    def row(self, slot: int, batch: int, position: int) -> Array:
        """The numbers [...] of a tensor [batch, position, ...] at one position."""
        if slot in self.plan.deferred:
            return np.asarray(deferred.part(self, slot, (batch, position))[0, 0])
        return self.freeze(np.asarray(self.values[slot][batch, position]))

    def number(self, slot: int, index: Index, computed: bool = False) -> float:
        """One cell of a slot."""
        if slot in self.plan.deferred:
            return deferred.number(self, slot, index, computed)
        override = self.overrides.get(slot)
        if computed and override:
            return float(override.computed[index])
        node = self.plan.nodes[slot]
        return float(self.values[slot].take(np.array([np.ravel_multi_index(index, node.shape)]))[0])

    def mask(self, slot: int) -> Array | None:
        """Which cells of a computed tensor edits set, if there are any."""
        if slot in self.changes:
            return self.freeze(covered(self.plan, self.plan.nodes[slot], self.changes[slot], self.donors))
        return self.overrides[slot].covered if slot in self.overrides else None

    def is_overridden(self, slot: int) -> bool:
        """Whether cells of a computed tensor have been set by hand."""
        return slot in self.overrides or slot in self.changes

    def covers(self, slot: int, index: Index) -> bool:
        """Whether an edit of a computed tensor sets that cell."""
        if slot in self.changes:
            box = tuple(slice(at, at + 1) for at in index)
            return bool(covered(self.plan, self.plan.nodes[slot], self.changes[slot], self.donors, box).any())
        return slot in self.overrides and bool(self.overrides[slot].covered[index])

    def shares(self, slot: int, other: Recording) -> bool:
        """Whether another run of the plan has the very same numbers there, so that nothing needs comparing."""
        if slot not in self.plan.deferred:
            return self.values[slot] is other.values[slot]
        if other not in self._shared:
            self._shared[other] = self._deferred_shared(other)
        return slot in self._shared[other]

    def _deferred_shared(self, other: Recording) -> frozenset[int]:
        """The deferred slots whose numbers are the same in both runs: made of the same, and edited alike."""
        found: set[int] = set()
        for slot in sorted(self.plan.deferred):
            node = self.plan.nodes[slot]
            same = (
                source in found if source in self.plan.deferred else self.values[source] is other.values[source]
                for source in node.inputs
            )
            edited = node.attributes["of"] if node.operation == "kept" else slot
            if self.changes.get(edited) == other.changes.get(edited) and all(same):
                found.add(slot)
        return frozenset(found)

    @staticmethod
    def freeze(array: Array) -> Array:
        """The array made read-only, with those that it is a view of."""
        frozen: Any = array
        while isinstance(frozen, np.ndarray):
            frozen.flags.writeable = False
            frozen = frozen.base
        return array

    def ids(self, node: Node) -> Array | None:
        """The token ids or targets [B,T] among the inputs of a step, if it has any."""
        slot = next((slot for slot in node.inputs if self.plan.nodes[slot].operation == "ids"), None)
        return None if slot is None else self.data(slot)


class Tensor:
    """A value that knows how it was made: its data, axes, operation and inputs."""

    __slots__ = ("computed", "recording", "slot")

    def __init__(self, recording: Recording, slot: int, computed: bool = False) -> None:
        self.recording = recording
        self.slot = slot
        self.computed = computed

    @property
    def node(self) -> Node:
        """The step of the plan that this tensor is the result of."""
        return self.recording.plan.nodes[self.slot]

    @property
    def data(self) -> Array:
        """The numbers, read-only."""
        return self.recording.data(self.slot, self.computed)

    def take(self, flat: Array) -> Array:
        """The numbers at flat indices, row-major; of a large tensor nothing else is made."""
        return self.recording.take(self.slot, flat)

    def row(self, batch: int, position: int) -> Array:
        """The numbers [...] of a tensor [batch, position, ...] at one position."""
        return self.recording.row(self.slot, batch, position)

    def number(self, index: Index) -> float:
        """The number of one cell."""
        return self.recording.number(self.slot, index, self.computed)

    def shares(self, other: Tensor) -> bool:
        """Whether another run's tensor of the same slot is the very same numbers."""
        return self.recording.shares(self.slot, other.recording)

    @property
    def axes(self) -> tuple[str, ...]:
        """One name per dimension of `data`."""
        return self.node.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of every axis."""
        return self.node.shape

    @property
    def name(self) -> str | None:
        """The name in the trace; None for an unnamed step and for what an override replaced."""
        return None if self.computed else self.node.name

    @property
    def op(self) -> str:
        """The operation; `override` where cells of a computed tensor have been set by hand."""
        return "override" if self.overridden else self.node.operation

    @property
    def is_deferred(self) -> bool:
        """Whether its numbers are made when somebody looks."""
        return self.slot in self.recording.plan.deferred

    @property
    def overridden(self) -> bool:
        """Whether cells of this computed tensor have been set by hand."""
        return not self.computed and self.recording.is_overridden(self.slot)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors it was made from; for an override, the tensor that it replaced."""
        if self.overridden:
            return (Tensor(self.recording, self.slot, computed=True),)
        return tuple(Tensor(self.recording, slot) for slot in self.node.inputs)

    def __repr__(self) -> str:
        axes = " ".join(f"{axis}={size}" for axis, size in zip(self.axes, self.shape, strict=True))
        return f"Tensor({self.name or f'step {self.slot}'}: {self.op}; {axes})"


class TensorMap(Mapping[str, Tensor]):
    """Tensors by name, in order of computation."""

    __slots__ = ("_slots", "recording")

    def __init__(self, recording: Recording, slots: Mapping[str, int]) -> None:
        self.recording = recording
        self._slots = slots

    def __getitem__(self, name: str) -> Tensor:
        return Tensor(self.recording, self._slots[name])

    def __contains__(self, name: object) -> bool:
        # Mapping's own would make a tensor to find out
        return name in self._slots

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)


def checked_index(tensor: Tensor, index: Sequence[int]) -> Index:
    """Return `index` as non-negative whole numbers; raise `EditError` if the tensor has no such cell."""
    where = tuple(whole(part) for part in index)
    fits = len(where) == len(tensor.shape) and all(
        -size <= part < size for part, size in zip(where, tensor.shape, strict=True)
    )
    if not fits:
        raise EditError(
            "index_out_of_range", f"{tensor.name or 'the step'} has no cell {where}; its shape is {tensor.shape}",
            name=tensor.name, index=where, shape=tensor.shape,
        )
    return tuple(part % size for part, size in zip(where, tensor.shape, strict=True))
