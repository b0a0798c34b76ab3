"""The numbers of one run of a plan, and the tensors through which people look at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index as whole
from typing import Any

import numpy as np

from engine.errors import EditError
from engine.plan import Node, Plan
from engine.types import Array, Index


@dataclass(frozen=True, eq=False)
class Override:
    """What an edit of an activation replaced: the computed array, and which cells are covered."""

    computed: Array
    covered: Array


@dataclass(frozen=True, eq=False)
class Recording:
    """A plan with the numbers of one run."""

    plan: Plan
    values: Sequence[Array]
    overrides: Mapping[int, Override]

    def data(self, slot: int, computed: bool = False) -> Array:
        """The array of a slot, frozen: as it stands, or as it was computed before an override."""
        override = self.overrides.get(slot)
        array = np.asarray(override.computed if computed and override else self.values[slot])
        frozen: Any = array
        # a read-only view may stand on an array that is not
        while isinstance(frozen, np.ndarray):
            frozen.flags.writeable = False
            frozen = frozen.base
        return array

    def ids(self) -> Array | None:
        """The token ids [B,T] of the run, if it has any."""
        slot = self.plan.names.get("input_ids")
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
    def overridden(self) -> bool:
        """Whether cells of this computed tensor have been set by hand."""
        return not self.computed and self.slot in self.recording.overrides

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
