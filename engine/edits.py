"""Edits: a name, an index and a value; of a parameter or of an activation alike."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real

import numpy as np

from engine.errors import EditError
from engine.plan import Node, Plan
from engine.types import Index

Part = int | slice
# axes whose length depends on the sentence: an index beyond them is kept and inactive
SENTENCE_AXES = frozenset({"batch", "position", "query", "key"})
MASKS = ("masked_scores", "causal_mask")


@dataclass(frozen=True)
class Edit:
    """Set the cells `index` of the tensor `name` to `value`.

    `index` holds whole numbers and slices, one per axis; axes left out, or `...` for the whole
    index, mean all of them. Raises `EditError` for a value that is not a finite number (−∞ is
    allowed in `masked_scores` and `causal_mask`) or an index of another kind.
    """

    name: str
    index: tuple[Part, ...]
    value: float

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


def checked_value(name: str, value: object) -> float:
    """Return `value` as a float if a cell of `name` may hold it; else raise `EditError`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise EditError("value", f"{name}: {value!r} is not a number", name=name, value=value)
    try:
        number = float(value) + 0.0  # −0 becomes 0: equal edits must give equal bits
    except OverflowError:
        number = inf
    if not isfinite(number) and not (number == -inf and name.endswith(MASKS)):
        raise EditError("not_finite", f"{name}: {number} is not a finite number", name=name, value=number)
    return number


def among(edits: Iterable[Edit], names: Container[str]) -> tuple[Edit, ...]:
    """The edits of tensors of these names, in order; those of others wait for a run that computes them."""
    return tuple(edit for edit in edits if edit.name in names)


def by_slot(plan: Plan, edits: Iterable[Edit]) -> dict[int, tuple[Edit, ...]]:
    """The active edits of each slot, in order; a later edit wins where two meet.

    Raises `EditError` for a name that the run does not have, for the token ids (type another
    sentence instead), for a value outside a tensor's bounds, and for an index outside a tensor,
    unless only the sentence is too short.
    """
    grouped: dict[int, tuple[Edit, ...]] = {}
    for edit in edits:
        slot = plan.names.get(edit.name)
        if slot is None:
            raise EditError("unknown_name", f"there is no tensor {edit.name}", name=edit.name)
        node = plan.nodes[slot]
        if node.operation == "ids":
            raise EditError("ids", "token ids are not edited; run another sentence", name=edit.name)
        if "bounds" in node.attributes:
            node.attributes["bounds"].check(edit.name, edit.value)
        if _active(edit, node):
            grouped[slot] = (*grouped.get(slot, ()), edit)
    return grouped


def _active(edit: Edit, node: Node) -> bool:
    if len(edit.index) > len(node.axes):
        raise EditError(
            "index", f"{edit.name} has {len(node.axes)} axes, the index {edit.index} has more",
            name=edit.name, index=edit.index, shape=node.shape,
        )
    for part, axis, size in zip(edit.index, node.axes, node.shape, strict=False):
        cells = range(size)[part] if isinstance(part, slice) else -size <= part < size
        if not cells:
            if axis in SENTENCE_AXES:
                return False
            raise EditError(
                "index_out_of_range", f"{edit.name}: {part} is outside axis {axis} of size {size}",
                name=edit.name, index=edit.index, shape=node.shape,
            )
    return True


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
