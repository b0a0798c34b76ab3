"""The lesson that leaves parts out: what the selected cell belongs to, and what is left out."""

from __future__ import annotations

from math import inf
from typing import Any

from engine.edits import Given, Mean
from engine.removal import Contribution, Edge, Head, Part, Position, Unit, parts_at, removed, values
from ui import naming
from ui.state import State

LESSON = "remove"


def data(state: State) -> dict[str, Any] | None:
    """What the board offers to leave out, and what it can put back; nothing on other pages."""
    if state.lesson != LESSON or state.hides("controls"):
        return None
    out = removed(state.edits, state.model.config)
    return {
        "offers": [_offer(state, part, out.get(part)) for part in _selected_parts(state)],
        "removed": [_removed(state, part, value) for part, value in out.items()],
    }


def _selected_parts(state: State) -> tuple[Part, ...]:
    """The parts that the selected cell belongs to."""
    selected = state.choices.selected
    if selected is None or selected[0] not in state.trace:
        return ()
    return parts_at(*selected, state.model.config, len(state.ids))


def _offer(state: State, part: Part, now: Given | None) -> dict[str, Any]:
    return {
        "label": label(state, part), "places": _places(state, part),
        "choices": [
            {"value": wire(value), "label": state.say(f"remove_{_word(value)}"), "set": value == now}
            for value in values(part, state.model.config)
        ],
    }


def _removed(state: State, part: Part, value: Given) -> dict[str, Any]:
    return {
        "label": label(state, part), "how": state.say(f"removed_{_word(value)}"), "places": _places(state, part),
    }


def wire(value: Given) -> float | str:
    """The value of an event that sets cells to it."""
    return "mean" if isinstance(value, Mean) else "-inf" if value == -inf else 0


def _word(value: Given) -> str:
    return {"mean": "mean", "-inf": "masked", 0: "zero"}[wire(value)]


def _places(state: State, part: Part) -> list[list[Any]]:
    """The slices that the part takes up, as an event names them: null for a whole axis, a pair for a range."""
    return [
        [name, [_wire_index(entry) for entry in index]] for name, index in part.places(state.model.config)
    ]


def _wire_index(entry: int | slice) -> int | list[int | None] | None:
    if isinstance(entry, int):
        return entry
    return None if entry == slice(None) else [entry.start, entry.stop]


def label(state: State, part: Part) -> str:
    """The part in the reader's words, with its tokens and their positions."""
    match part:
        case Edge(layer, head, query, key):
            ends = {"reader": _token(state, query), "read": _token(state, key)}
            return state.say("part_edge", layer=layer + 1, head=head, **ends)
        case Position(position):
            return state.say("part_position", token=_token(state, position))
        case Head(layer, head, position):
            words = state.say("part_head", layer=layer + 1, head=head)
        case Unit(layer, unit, position):
            words = state.say("part_unit", layer=layer + 1, unit=unit)
        case Contribution(layer, branch, position):
            words = state.say(f"part_{branch}", layer=layer + 1)
    return words if position is None else state.say("part_at", part=words, token=_token(state, position))


def _token(state: State, position: int) -> str:
    """`sit (1)`; a number alone beyond the sentence."""
    if position >= len(state.ids):
        return f"({position})"
    return f"{naming.token_label(state.model, state.ids[position])} ({position})"
