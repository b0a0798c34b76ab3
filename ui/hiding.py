"""What a teacher can leave out of a link, so that it hands out exactly one experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ui.layout import Dial, Item, Optional, Removed, Section, Slider, Switch

# where it stands on the page → what can be hidden there, as the address names it
PLACES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "page": ("lessons", "model", "prose", "chart", "downloads"),
    "strip": ("strip", "sentence", "prediction", "undo", "view", "layer", "snapshots", "language", "class"),
    "board": ("editing", "controls", "explanation"),
})
# what the notes of a board invite to, each in a sentence of its own
INVITED = ("lessons", "explanation", "editing", "controls")
NAMES = tuple(name for names in PLACES.values() for name in names)
# event of the board → what it belongs to; what is not on the page is not carried out either
_OWNERS: Mapping[str, str] = MappingProxyType({
    "undo": "undo", "redo": "undo", "mode": "view", "text": "sentence", "language": "language", "layer": "layer",
    "head": "layer", "go": "lessons", "snapshot": "snapshots", "forget": "snapshots", "restore": "snapshots",
    "hand_out": "class", "cover": "controls", "control": "controls", "cancel": "editing",
})


@dataclass(frozen=True)
class Handing:
    """A link in the making: the page's own address without its query, what to hide, and how to open."""

    page: str
    hidden: tuple[str, ...]
    presenting: bool


def spread(hidden: Iterable[str]) -> frozenset[str]:
    """The hidden names; a hidden strip takes along everything in it."""
    names = frozenset(hidden)
    return names | frozenset(PLACES["strip"]) if "strip" in names else names


def parse(text: str) -> tuple[str, ...]:
    """The names of an address, in the order of `NAMES`. Raises `ValueError` for one that there is not."""
    asked = {name for name in text.split(".") if name}
    if not asked <= set(NAMES):
        raise ValueError(f"cannot hide {', '.join(sorted(asked.difference(NAMES)))}")
    return tuple(name for name in NAMES if name in asked)


def owner(event: Mapping[str, Any]) -> str:
    """What the event of the board belongs to; nothing that can be hidden for most."""
    match event["type"]:
        case "edit":
            return "controls" if event.get("control") else "editing"
        case "reset":
            return "editing" if "tensor" in event else "undo"
        case kind:
            return _OWNERS.get(kind, "")


def without_controls(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    """The sections of a board without the lesson's sliders and switches, and those that hold nothing else."""
    left = ((part, _uncontrolled(part.items)) for part in sections)
    return tuple(replace(part, items=items) for part, items in left if items or not part.items)


def _uncontrolled(items: tuple[Item, ...]) -> tuple[Item, ...]:
    return tuple(
        replace(item, items=_uncontrolled(item.items)) if isinstance(item, Optional) else item
        for item in items if not isinstance(item, Slider | Dial | Switch | Removed)
    )
