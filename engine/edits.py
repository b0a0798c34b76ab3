"""Edits: a name, an index and a value; of a parameter or of an activation alike."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real

import numpy as np

from engine.errors import EditError
from engine.plan import GRADIENT, Node, Plan
from engine.types import Index

Part = int | slice
# axes whose length depends on the sentence: an index beyond them is kept and inactive
SENTENCE_AXES = frozenset({"batch", "position", "query", "key"})
MASKS = ("masked_scores", "causal_mask")
# where a tensor has more than one of them, a mean runs over the first: over what a query reads
POSITION_AXES = ("position", "key", "query")


@dataclass(frozen=True)
class Mean:
    """The mean over the positions of this sentence, of the tensor as this run computed it.

    A table of queries and keys has one for each query: over itself and the positions before it (over
    all, without a causal mask), −∞ left out.
    """


@dataclass(frozen=True)
class Carried:
    """The same cells of another run: this model, unedited, on a sentence of token `ids`.

    Positions are matched by index; cells beyond the other sentence are kept and inactive. A loss or a
    gradient is of the other sentence scored against the targets of this one: how well its tokens predict
    what comes next here. Raises `EditError` for what is no list of token ids.
    """

    ids: tuple[int, ...]

    def __post_init__(self) -> None:
        given: object = self.ids
        ids = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
        if not ids or not all(_is_whole(token) and token >= 0 for token in ids):
            raise EditError("carried_ids", f"{given!r} are no token ids of a sentence")
        object.__setattr__(self, "ids", tuple(map(int, ids)))


Given = float | Mean | Carried


@dataclass(frozen=True)
class Edit:
    """Set the cells `index` of the tensor `name` to `value`: a number, a `Mean` or cells `Carried` over.

    `index` holds whole numbers and slices, one per axis; axes left out, or `...` for the whole
    index, mean all of them. Raises `EditError` for a value that is not a finite number (−∞ is
    allowed in `masked_scores` and `causal_mask`) or an index of another kind.
    """

    name: str
    index: tuple[Part, ...]
    value: Given

    def __post_init__(self) -> None:
        given: object = self.index
        if given is Ellipsis:
            parts: tuple[object, ...] = ()
        else:
            parts = tuple(given) if isinstance(given, Sequence) else (given,)
        for part in parts:
            if not _is_index(part):
                raise EditError("index", f"{self.name}: {part!r} is no index", name=self.name, index=part)
        index = tuple(part if isinstance(part, slice) else int(part) for part in parts)  # type: ignore[call-overload]
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "value", checked_value(self.name, self.value))

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> tuple[object, ...]:
        """What the edit is about; a later edit with the same key takes the place of this one."""
        return (self.name, *(
            (part.start, part.stop, part.step) if isinstance(part, slice) else part for part in self.index
        ))


def _is_index(part: object) -> bool:
    if isinstance(part, slice):
        ends = (part.start, part.stop, part.step)
        return part.step != 0 and all(end is None or _is_whole(end) for end in ends)
    return _is_whole(part)


def _is_whole(part: object) -> bool:
    return isinstance(part, (int, np.integer)) and not isinstance(part, bool)


def checked_value(name: str, value: object) -> Given:
    """Return `value`, a number as a float, if a cell of `name` may hold it; else raise `EditError`."""
    if isinstance(value, Mean | Carried):
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise EditError("value", f"{name}: {value!r} is not a number", name=name, value=value)
    try:
        number = float(value) + 0.0  # −0 becomes 0: equal edits must give equal bits
    except OverflowError:
        number = inf
    if not isfinite(number) and not (number == -inf and is_mask(name)):
        raise EditError("not_finite", f"{name}: {number} is not a finite number", name=name, value=number)
    return number


def is_mask(name: str) -> bool:
    """Whether cells of that tensor may be −∞; those of its gradient may not."""
    return name.endswith(MASKS) and not name.startswith(GRADIENT)


def among(edits: Iterable[Edit], names: Container[str]) -> tuple[Edit, ...]:
    """The edits of tensors of these names, in order; those of others wait for a run that computes them."""
    return tuple(edit for edit in edits if edit.name in names)


def by_slot(plan: Plan, edits: Iterable[Edit],
            donors: Mapping[tuple[int, ...], Plan] | None = None) -> dict[int, tuple[Edit, ...]]:
    """The active edits of each slot, in order; a later edit wins where two meet.

    `donors` are the plans of the runs that cells are carried from. Raises `EditError` for a name that
    the run does not have, for the token ids (type another sentence instead), for a value outside a
    tensor's bounds or of a kind that it cannot have, and for an index outside a tensor, unless only
    the sentence is too short.
    """
    grouped: dict[int, tuple[Edit, ...]] = {}
    for edit in edits:
        slot = plan.names.get(edit.name)
        if slot is None:
            raise EditError("unknown_name", f"there is no tensor {edit.name}", name=edit.name)
        node = plan.nodes[slot]
        if node.operation == "ids":
            raise EditError("ids", "token ids are not edited; run another sentence", name=edit.name)
        donor = None
        if isinstance(edit.value, float):
            if "bounds" in node.attributes:
                node.attributes["bounds"].check(edit.name, edit.value)
        else:
            _check_computed(edit, node, slot in plan.deferred)
            if isinstance(edit.value, Carried) and donors is not None:
                donor = donors[edit.value.ids]
        if _active(edit, node, node.shape if donor is None else reached(node, donor)):
            grouped[slot] = (*grouped.get(slot, ()), edit)
    return grouped


def _check_computed(edit: Edit, node: Node, deferred: bool) -> None:
    """Raise `EditError` where a tensor is given, not computed, or cannot hold a mean over positions."""
    if node.kernel is None:
        raise EditError("needs_number", f"{edit.name} is not computed; it can be set to numbers only", name=edit.name)
    axis = position_axis(node.axes)
    if isinstance(edit.value, Mean) and (axis is None or (deferred and node.axes[axis] != "position")):
        raise EditError("no_positions", f"{edit.name} has no axis of positions to take a mean over", name=edit.name)
    # another run's numbers, and means of numbers that need not be whole, keep within bounds of themselves
    if isinstance(edit.value, Mean) and "bounds" in node.attributes and node.attributes["bounds"].whole:
        raise EditError("whole_mean", f"{edit.name} holds whole numbers, which a mean need not be", name=edit.name)


def position_axis(axes: Sequence[str]) -> int | None:
    """The number of the axis that a mean over positions runs along; None where there is none."""
    return next((axes.index(axis) for axis in POSITION_AXES if axis in axes), None)


def reached(node: Node, donor: Plan) -> tuple[int, ...]:
    """How far along each axis of a tensor another run of the model has cells for it; all of a batch."""
    other = donor.nodes[donor.names[str(node.name)]]
    return tuple(
        size if axis == "batch" else min(size, there)
        for axis, size, there in zip(node.axes, node.shape, other.shape, strict=True)
    )


def _active(edit: Edit, node: Node, ends: Sequence[int]) -> bool:
    if len(edit.index) > len(node.axes):
        raise EditError(
            "index", f"{edit.name} has {len(node.axes)} axes, the index {edit.index} has more",
            name=edit.name, index=edit.index, shape=node.shape,
        )
    for part, axis, size, end in zip(edit.index, node.axes, node.shape, ends, strict=False):
        if not _meets(part, size, end):
            if axis in SENTENCE_AXES:
                return False
            raise EditError(
                "index_out_of_range", f"{edit.name}: {part} is outside axis {axis} of size {size}",
                name=edit.name, index=edit.index, shape=node.shape,
            )
    return True


def _meets(part: Part, size: int, end: int) -> bool:
    """Whether the part of an index stands for a place before `end` on an axis of that size."""
    if isinstance(part, slice):
        places = range(size)[part]
        return bool(places) and min(places) < end
    return -size <= part < size and part % size < end


def indices_of(part: Part, size: int) -> list[int]:
    """The indices along an axis of that size that one part of an edit's index stands for; none if outside."""
    if isinstance(part, slice):
        return list(range(size)[part])
    place = part + size if -size <= part < 0 else part
    return [place] if 0 <= place < size else []


def covers(edit: Edit, index: Index, shape: tuple[int, ...]) -> bool:
    """Whether the edit sets that cell of a tensor of that shape."""
    return all(
        place in indices_of(part, size) for part, place, size in zip(edit.index, index, shape, strict=False)
    )
