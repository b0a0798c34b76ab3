"""What the board reports, and what it does to the reader's state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from math import inf
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from engine import Carried, Edit, EditError, GlassboxError, InputError, Mean
from engine.edits import covers, indices_of
from formats.edits import MOST_EDITS
from ui import courses, hiding, runs
from ui.address import is_cell, open_address
from ui.controls import ON_BOARD
from ui.state import (
    LONGEST_NAME,
    LONGEST_TRAIL,
    MODES,
    MOST_ROWS,
    MOST_SNAPSHOTS,
    CellAddress,
    Index,
    State,
)
from ui.text import LANGUAGES, explain_error

Event = Mapping[str, Any]
LONGEST_TEXT = 2000


def apply(state: State, event: Event) -> None:
    """Carry out one event, once. One that is not allowed leaves a message, and the state as it was."""
    try:
        number, handler = int(event["seq"]), HANDLERS[str(event["type"])]
        # the board sends again what it has no answer to
        if number <= state.seq:
            return
        state.seq, state.message = number, None
        if not state.hides(hiding.owner(event)):
            handler(state, event)
    except GlassboxError as error:
        state.message = ("error", explain_error(state.choices.language, error))
    except (KeyError, TypeError, ValueError, OverflowError):
        state.message = ("error", state.say("error_event"))


def _edit(state: State, event: Event) -> None:
    cell = _cell(state, event)
    edit = Edit(*cell, _given(event["value"]))
    others = tuple(other for other in state.edits if other.key != edit.key)
    gesture = None if event.get("gesture") is None else (str(edit.key), event["gesture"])
    back = _is_baseline(state, edit, cell[1], others)
    state.commit(others if back else (*others, edit), gesture)


def _cover(state: State, event: Event) -> None:
    """Set all cells of some slices to one value, or leave them alone again; one step of undo."""
    value = 0.0 if event["value"] is None else _given(event["value"])
    edits = [Edit(str(name), _slices(index), value) for name, index in event["places"]]
    keys = {edit.key for edit in edits}
    others = tuple(edit for edit in state.edits if edit.key not in keys)
    state.commit(others if event["value"] is None else (*others, *edits))


def _given(value: Any) -> Any:
    """What an event sets cells to: a number, −∞, the mean over positions, or those of a run on other ids."""
    match value:
        case "-inf":
            return -inf
        case "mean":
            return Mean()
        case {"ids": ids}:
            return Carried(tuple(ids))
    return value


def _slices(index: Sequence[Any]) -> tuple[int | slice, ...]:
    """None stands for a whole axis, a pair for the places from the first number to before the second."""
    return tuple(
        slice(None) if part is None else slice(*part) if isinstance(part, list) else int(part) for part in index
    )


def _cancel(state: State, event: Event) -> None:
    state.cancel(event["gesture"])


def _is_baseline(state: State, edit: Edit, index: Index, others: Sequence[Edit]) -> bool:
    """Whether the edit sets a parameter or constant to what it is without it."""
    tensor = state.baseline[edit.name]
    if tensor.node.kernel is not None or tensor.number(index) != edit.value:
        return False
    return not any(other.name == edit.name and covers(other, index, tensor.shape) for other in others)


def _undo(state: State, event: Event) -> None:
    state.move(-1)


def _redo(state: State, event: Event) -> None:
    state.move(1)


def _reset(state: State, event: Event) -> None:
    if "tensor" not in event:
        state.commit(())
    elif "index" not in event:
        state.commit(tuple(edit for edit in state.edits if edit.name != event["tensor"]))
    else:
        name, index = _cell(state, event)
        shape = state.trace[name].shape
        state.commit(tuple(
            kept for edit in state.edits
            for kept in (without(edit, index, shape) if edit.name == name else (edit,))
        ))


def without(edit: Edit, index: Index, shape: tuple[int, ...]) -> Iterator[Edit]:
    """The edit with one cell left out: itself, nothing, or the cells of a wider edit one by one."""
    if not covers(edit, index, shape):
        yield edit
        return
    parts = (*edit.index, *[slice(None)] * (len(shape) - len(edit.index)))
    cells = product(*(indices_of(part, size) for part, size in zip(parts, shape, strict=True)))
    for cell in islice(cells, MOST_EDITS + 2):
        if cell != index:
            yield Edit(edit.name, cell, edit.value)


def _select(state: State, event: Event) -> None:
    cell = _cell(state, event)
    step = event.get("trail", "start")
    if step == "start":
        state.trail = [cell]
    elif step == "push":
        seen = state.trail.index(cell) if cell in state.trail else len(state.trail)
        state.trail = [*state.trail[:seen], cell][-LONGEST_TRAIL:]
    else:
        state.trail = state.trail[: int(step) + 1]
    state.choose(selected=cell)


def _unselect(state: State, event: Event) -> None:
    state.trail = []
    state.choose(selected=None)


def _mode(state: State, event: Event) -> None:
    if event["value"] in MODES:
        state.choose(mode=event["value"])


def _text(state: State, event: Event) -> None:
    take_text(state, str(event["value"]))


def take_text(state: State, text: str) -> None:
    """Take a new sentence; a wrong one stays in the field, with the reason, and the last good one runs."""
    state.draft = text[:LONGEST_TEXT]
    try:
        if len(text) > LONGEST_TEXT:
            raise InputError("long_text", f"{len(text)} characters", most=LONGEST_TEXT)
        ids = runs.read_sentence(state.model, text)
    except GlassboxError as error:
        state.text_error = explain_error(state.choices.language, error)
        return
    tokenizer = state.model.tokenizer
    assert tokenizer is not None
    state.text_error = state.draft = None
    state.choose(text=tokenizer.decode(list(ids)))
    state.trail = [cell for cell in state.trail if is_cell(state.trace, *cell)]
    if state.choices.selected is not None and not is_cell(state.trace, *state.choices.selected):
        state.choose(selected=None)
    if any(state.baseline[edit.name].node.kernel is not None for edit in state.active(state.edits)):
        state.message = ("info", state.say("overrides_stay"))
    state.needs_page = True


def _text_cancel(state: State, event: Event) -> None:
    state.text_error = state.draft = None


def _language(state: State, event: Event) -> None:
    here = LANGUAGES.index(state.choices.language)
    state.choose(language=LANGUAGES[here - 1])
    state.text_error = state.draft = None
    state.needs_page = True


def _layer(state: State, event: Event) -> None:
    state.choose(layer=_below(event["value"], state.model.config.layers))
    state.needs_page = True


def _head(state: State, event: Event) -> None:
    state.choose(head=_below(event["value"], state.model.config.heads))
    state.needs_page = True


def _below(value: Any, count: int) -> int:
    return min(max(int(value), 0), count - 1)


def _control(state: State, event: Event) -> None:
    """Set a control that the board has a slider for."""
    if event["name"] in ON_BOARD:
        state.set_control(event["name"], event["value"])


def _go_on(state: State, event: Event) -> None:
    courses.go_on(state)


def _go(state: State, event: Event) -> None:
    """Go to a lesson, with the layer and the head chosen that a picture of them leads to."""
    config, choices = state.model.config, state.choices
    layer, head = event.get("layer", choices.layer), event.get("head", choices.head)
    state.choose(layer=_below(layer, config.layers), head=_below(head, config.heads))
    state.destination = str(event["lesson"])


def _present(state: State, event: Event) -> None:
    state.choose(presenting=bool(event["value"]))
    state.needs_page = True


def _hand_out(state: State, event: Event) -> None:
    """Open, change or close the panel that makes a link for a class."""
    page = event["page"]
    state.handing = None if page is None else hiding.Handing(
        str(page)[:LONGEST_TEXT], hiding.parse(".".join(event.get("hide", state.choices.hidden))),
        bool(event.get("present", state.choices.presenting)),
    )


def _rows(state: State, event: Event) -> None:
    row = int(event["row"])
    if 0 <= row < state.model.config.vocab_size and row not in state.choices.rows:
        state.choose(rows=(*state.choices.rows, row)[-MOST_ROWS:])
        state.needs_page = True


def _snapshot(state: State, event: Event) -> None:
    name = str(event["name"]).strip()[:LONGEST_NAME]
    if not name:
        return
    if name not in state.snapshots and len(state.snapshots) >= MOST_SNAPSHOTS:
        state.message = ("error", state.say("too_many_snapshots", most=MOST_SNAPSHOTS))
        return
    state.snapshots = {**state.snapshots, name: state.edits}


def _forget(state: State, event: Event) -> None:
    state.snapshots = {name: edits for name, edits in state.snapshots.items() if name != event["name"]}


def _restore(state: State, event: Event) -> None:
    if event["name"] in state.snapshots:
        state.commit(state.snapshots[event["name"]])


def _open(state: State, event: Event) -> None:
    """Take up the state of an address: the page has outlived the session that it belonged to."""
    query = dict(parse_qsl(str(event["address"]).removeprefix("?")))
    opened = open_address({"lang": state.choices.language, **query}, None)
    # the reader's own tokenizer is in no address
    kept = {"seq": state.seq, "session": state.session, "desk": state.desk, "needs_page": True}
    vars(state).update({**vars(opened), **kept})


def _dismiss(state: State, event: Event) -> None:
    state.message, state.dismissed = None, str(event.get("text", ""))


def _cell(state: State, event: Event) -> CellAddress:
    """The cell that an event speaks of. Raises `EditError` if the trace has no such cell."""
    name, index = str(event["tensor"]), tuple(int(part) for part in event["index"])
    if not is_cell(state.baseline, name, index):
        raise EditError("index_out_of_range", f"no cell {name}{index}", name=name, index=index)
    return name, index


HANDLERS: Mapping[str, Callable[[State, Event], None]] = MappingProxyType({
    "edit": _edit, "cover": _cover, "cancel": _cancel, "undo": _undo, "redo": _redo, "reset": _reset,
    "select": _select, "unselect": _unselect,
    "mode": _mode, "text": _text, "text_cancel": _text_cancel, "language": _language, "layer": _layer,
    "head": _head, "go": _go, "rows": _rows, "snapshot": _snapshot, "forget": _forget,
    "restore": _restore, "dismiss": _dismiss, "present": _present, "hand_out": _hand_out,
    "open": _open, "control": _control, "go_on": _go_on,
})
