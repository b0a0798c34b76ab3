"""What readers do and what becomes of their state: edits, undo, resets, snapshots, sentences, presets."""

from __future__ import annotations

import copy
import dataclasses
import json
from math import inf, nan
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine import Edit, programs, run
from engine.edits import covers, indices_of
from formats import edits as edit_links
from formats.edits import MOST_EDITS
from tests.ui.support import alive, edit, is_chinese, reader, send
from ui import events
from ui.address import address, open_address
from ui.events import LONGEST_TEXT, without
from ui.state import (
    LONGEST_NAME,
    LONGEST_TRAIL,
    MOST_ROWS,
    MOST_SNAPSHOTS,
    MOST_STEPS,
    Choices,
    Shelf,
    State,
)
from ui.text import LANGUAGES, say

WQ, WK = "layers.0.attention.Wq", "layers.0.attention.Wk"
Q = "layers.0.attention.q"
MASKED = "layers.0.attention.masked_scores"


def value(state: State, tensor: str, *index: int) -> float:
    return float(state.trace[tensor].data[index])


def snapshot_of(state: State) -> dict[str, Any]:
    """Everything that an event may change, but for what it reports."""
    kept = {field.name: copy.copy(getattr(state, field.name)) for field in dataclasses.fields(state)}
    return {name: kept[name] for name in kept if name not in ("seq", "message", "_last", "_situation")}


def test_three_quick_edits_all_stay() -> None:
    """C01."""
    state = reader()
    for column, number in enumerate((1.5, 2.5, 3.5)):
        edit(state, WQ, (0, column), number)
    assert state.trace[WQ].data[0].tolist() == [1.5, 2.5, 3.5, 0.0]
    assert state.edits == (Edit(WQ, (0, 0), 1.5), Edit(WQ, (0, 1), 2.5), Edit(WQ, (0, 2), 3.5))


def test_a_fraction_fits_into_a_matrix_of_whole_numbers() -> None:
    """C02: 0.25 in an identity matrix is 0.25, not 25 and not 0."""
    state = reader()
    edit(state, WQ, (0, 1), 0.25)
    assert value(state, WQ, 0, 1) == 0.25
    assert state.trace[WQ].data.dtype == np.float64


def test_an_edit_ripples_as_computed_by_hand(golden: dict[str, NDArray[Any]]) -> None:
    """q[on, c1] gains norm1.output[on, c0] · 0.25; k stays."""
    state = reader()
    edit(state, WQ, (0, 1), 0.25)
    before, x = golden[Q][0, 2, 1], golden["layers.0.norm1.output"][0, 2, 0]
    assert value(state, Q, 0, 2, 1) == pytest.approx(before + 0.25 * x, abs=1e-12)
    np.testing.assert_array_equal(
        state.trace["layers.0.attention.k"].data, state.baseline["layers.0.attention.k"].data
    )
    assert value(state, "logits", 0, 2, 90) != float(state.baseline["logits"].data[0, 2, 90])


def test_the_trace_of_many_edits_equals_a_run_from_nothing() -> None:
    state = reader()
    for index, number in (((0, 1), 0.5), ((3, 3), -2.0), ((0, 1), 0.75)):
        edit(state, WQ, index, number)
        edit(state, "layers.1.mlp.activation", (0, 1, 2), number)
    send(state, "undo")
    full = run(state.model, [list(state.ids)], edits=state.edits, program=programs.lessons)
    assert all(state.trace[name].data.tobytes() == full[name].data.tobytes() for name in full)


def test_a_second_edit_of_a_cell_replaces_the_first() -> None:
    state = reader()
    edit(state, WQ, (0, 1), 0.25)
    edit(state, WQ, (0, 1), 0.5)
    assert state.edits == (Edit(WQ, (0, 1), 0.5),)


@pytest.mark.parametrize(("tensor", "index", "baseline"), [
    (WQ, (2, 2), 1.0), ("embedding.weight", (78, 2), -0.2), ("norm_epsilon", (), 1e-6),
    ("rope.positions", (2,), 2.0),
])
def test_going_back_to_the_baseline_value_removes_the_edit(
    tensor: str, index: tuple[int, ...], baseline: float
) -> None:
    state = reader()
    edit(state, tensor, index, 7.0)
    assert value(state, tensor, *index) == 7.0
    edit(state, tensor, index, baseline)
    assert state.edits == ()
    assert state.trace is state.baseline
    send(state, "undo")
    assert value(state, tensor, *index) == 7.0


def test_the_baseline_value_of_a_computed_cell_is_still_an_override() -> None:
    state = reader()
    edit(state, Q, (0, 2, 0), float(state.baseline[Q].data[0, 2, 0]))
    assert len(state.edits) == 1


def test_the_baseline_value_under_a_wider_edit_is_an_edit() -> None:
    """A link may set a whole row; one cell of it can still go back to what it was."""
    state = State(Choices(), [(), (Edit(WQ, (0,), 5.0),)], 1)
    edit(state, WQ, (0, 0), 1.0)
    assert state.trace[WQ].data[0].tolist() == [1.0, 5.0, 5.0, 5.0]


def test_undo_and_redo_walk_through_the_history() -> None:
    state = reader()
    for number in (1.0, 2.0, 3.0):
        edit(state, WQ, (0, 1), number)
    seen = []
    for kind in ("undo", "undo", "redo", "undo", "undo", "undo", "redo", "redo", "redo", "redo"):
        send(state, kind)
        seen.append(value(state, WQ, 0, 1))
    assert seen == [2.0, 1.0, 2.0, 1.0, 0.0, 0.0, 1.0, 2.0, 3.0, 3.0]


def test_an_edit_after_undo_drops_what_was_undone() -> None:
    state = reader()
    edit(state, WQ, (0, 1), 1.0)
    edit(state, WQ, (0, 1), 2.0)
    send(state, "undo")
    edit(state, WQ, (0, 2), 9.0)
    send(state, "redo")
    assert state.trace[WQ].data[0].tolist() == [1.0, 1.0, 9.0, 0.0]
    send(state, "undo")
    assert state.trace[WQ].data[0].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_one_gesture_is_one_step_of_undo() -> None:
    state = reader()
    edit(state, WQ, (0, 1), 9.0, gesture=1)
    for number in (0.1, 0.2, 0.3):
        edit(state, WQ, (0, 1), number, gesture=2)
    send(state, "undo")
    assert value(state, WQ, 0, 1) == 9.0
    send(state, "redo")
    assert value(state, WQ, 0, 1) == 0.3


def test_gestures_without_a_number_or_on_other_cells_stay_apart() -> None:
    state = reader()
    edit(state, WQ, (0, 1), 0.1, gesture=1)
    edit(state, WQ, (0, 2), 0.2, gesture=1)
    edit(state, WQ, (0, 3), 0.3)
    edit(state, WQ, (0, 3), 0.4)
    steps = []
    for _ in range(4):
        send(state, "undo")
        steps.append(state.trace[WQ].data[0].tolist())
    assert steps == [[1, 0.1, 0.2, 0.3], [1, 0.1, 0.2, 0], [1, 0.1, 0, 0], [1, 0, 0, 0]]


def test_a_gesture_that_comes_back_leaves_no_step() -> None:
    state = reader()
    for number in (0.1, 0.2, 0.0):
        edit(state, WQ, (0, 1), number, gesture=1)
    assert state.history == [()]
    edit(state, WQ, (0, 1), 0.5, gesture=1)
    send(state, "undo")
    assert state.edits == ()


def test_undo_ends_a_gesture() -> None:
    state = reader()
    edit(state, WQ, (0, 1), 0.1, gesture=1)
    edit(state, WQ, (0, 1), 0.2, gesture=2)
    send(state, "undo")
    edit(state, WQ, (0, 1), 0.3, gesture=2)
    send(state, "undo")
    assert value(state, WQ, 0, 1) == 0.1


def test_the_history_is_bounded() -> None:
    state = reader()
    for number in range(MOST_STEPS + 50):
        edit(state, WQ, (0, 1), number + 1.0)
    assert len(state.history) == MOST_STEPS
    assert value(state, WQ, 0, 1) == MOST_STEPS + 50
    for _ in range(MOST_STEPS + 50):
        send(state, "undo")
    assert value(state, WQ, 0, 1) == 51


def edited() -> State:
    state = reader()
    for tensor, index in ((WQ, (0, 1)), (WQ, (1, 0)), (WK, (0, 1))):
        edit(state, tensor, index, 0.5)
    return state


@pytest.mark.parametrize(("event", "left"), [
    ({"tensor": WQ, "index": [0, 1]}, [(WQ, (1, 0)), (WK, (0, 1))]),
    ({"tensor": WQ}, [(WK, (0, 1))]),
    ({}, []),
    ({"tensor": WQ, "index": [3, 3]}, [(WQ, (0, 1)), (WQ, (1, 0)), (WK, (0, 1))]),
    ({"tensor": "logits"}, [(WQ, (0, 1)), (WQ, (1, 0)), (WK, (0, 1))]),
])
def test_reset_of_a_cell_a_tensor_and_all(event: dict[str, Any], left: list[Any]) -> None:
    state = edited()
    steps = len(state.history)
    send(state, "reset", **event)
    assert [(each.name, each.index) for each in state.edits] == left
    assert len(state.history) == steps + (len(left) < 3)
    send(state, "undo")
    assert len(state.edits) == (3 if len(left) < 3 else 2)


@pytest.mark.parametrize(("wide", "left"), [
    ((0,), {(0, 0), (0, 2), (0, 3)}), ((slice(None), 1), {(1, 1), (2, 1), (3, 1)}),
    ((), {(row, column) for row in range(4) for column in range(4)} - {(0, 1)}),
    ((slice(None, 2), slice(1, 3)), {(0, 2), (1, 1), (1, 2)}), ((-4, 1), set()), ((1,), None), ((3, 3), None),
])
def test_reset_of_a_cell_leaves_the_rest_of_a_wider_edit(
    wide: tuple[int | slice, ...], left: set[tuple[int, int]] | None
) -> None:
    state = State(Choices(), [(), (Edit(WK, (), 2.0), Edit(WQ, wide, 5.0))], 1)
    before = state.trace[WQ].data.copy()
    send(state, "reset", tensor=WQ, index=[0, 1])
    assert state.edits[0] == Edit(WK, (), 2.0)
    expected = (Edit(WQ, wide, 5.0),) if left is None else tuple(Edit(WQ, cell, 5.0) for cell in sorted(left))
    assert state.edits[1:] == expected
    before[0, 1] = 0.0
    np.testing.assert_array_equal(state.trace[WQ].data, before)
    assert [edit.name for edit in without(Edit(WQ, wide, 5.0), (0, 1), (4, 4))] == [WQ] * len(expected)


def test_reset_of_a_cell_under_several_edits_takes_it_out_of_each() -> None:
    edits = (Edit(WQ, (0,), 5.0), Edit(WQ, (slice(None), 1), 6.0), Edit(WQ, (0, 1), 7.0))
    state = State(Choices(), [(), edits], 1)
    send(state, "reset", tensor=WQ, index=[0, 1])
    assert state.trace[WQ].data[:, :2].tolist() == [[5, 0], [0, 6], [0, 6], [0, 6]]
    assert state.trace[WQ].data[0].tolist() == [5, 0, 5, 5]
    send(state, "undo")
    assert state.edits == edits


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wide_edit_of_more_cells_than_an_address_holds_is_not_split(language: str) -> None:
    state = State(Choices(language=language), [(), (Edit("embedding.weight", (), 0.5),)], 1)
    before = snapshot_of(state)
    send(state, "reset", tensor="embedding.weight", index=[78, 0])
    assert snapshot_of(state) == before
    assert state.message == ("error", say(language, "error_too_many_edits", most=MOST_EDITS))


@pytest.mark.parametrize(("rows", "fits"), [(MOST_EDITS // 4, True), (MOST_EDITS // 4 + 1, False)])
def test_a_wide_edit_is_split_up_to_what_an_address_holds(rows: int, fits: bool) -> None:
    state = State(Choices(), [(), (Edit("embedding.weight", (slice(0, rows),), 0.5),)], 1)
    send(state, "reset", tensor="embedding.weight", index=[rows - 1, 3])
    assert len(state.edits) == (4 * rows - 1 if fits else 1)
    assert (state.message is None) == fits


@pytest.mark.parametrize("language", LANGUAGES)
def test_edits_are_bounded(language: str) -> None:
    rows = [Edit("embedding.weight", (row, column), 0.5) for row in range(80) for column in range(4)]
    state = State(Choices(language=language), [(), tuple(rows[:MOST_EDITS - 1])], 1)
    edit(state, WQ, (0, 1), 0.5)
    assert (len(state.edits), state.message) == (MOST_EDITS, None)
    before = snapshot_of(state)
    edit(state, WQ, (0, 2), 0.5)
    assert snapshot_of(state) == before
    assert value(state, WQ, 0, 2) == 0
    assert state.message == ("error", say(language, "error_too_many_edits", most=MOST_EDITS))
    assert str(MOST_EDITS) in state.message[1]
    edit(state, WQ, (0, 1), 0.75)
    assert (len(state.edits), state.message) == (MOST_EDITS, None)
    assert edit_links.decode(edit_links.encode(state.edits)) == state.edits


REFUSED = [
    (WQ, [0, 1], nan, "NaN"), (WQ, [0, 1], inf, "∞"), (WQ, [0, 1], -inf, "∞"),
    (WQ, [0, 1], "-inf", "∞"),
    (WQ, [0, 1], 10**400, "∞"), (WQ, [0, 1], True, "True"), (WQ, [0, 1], "1,5", "1,5"),
    (WQ, [0, 1], None, "None"), (WQ, [0, 1], [1.0], "[1.0]"), (MASKED, [0, 0, 0, 0], inf, "∞"),
    (MASKED, [0, 0, 0, 0], nan, "NaN"), (WQ, [4, 0], 1.0, WQ), (WQ, [0, -5], 1.0, WQ),
    (WQ, [0, 0, 0], 1.0, WQ),
    ("logits", [0, 0, 256], 1.0, "logits"), ("no.such.tensor", [0], 1.0, "no.such.tensor"),
    ("layers.2.attention.Wq", [0, 0], 1.0, "layers.2.attention.Wq"), ("input_ids", [0, 0], 5.0, "oken"),
]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("tensor", "index", "number", "named"), REFUSED)
def test_a_refused_edit_changes_nothing_and_is_explained(
    tensor: str, index: list[int], number: Any, named: str, language: str
) -> None:
    state = reader(language=language)
    edit(state, WK, (0, 1), 0.25, gesture=3)
    before = snapshot_of(state)
    send(state, "edit", tensor=tensor, index=index, value=number, gesture=3)
    assert snapshot_of(state) == before
    assert value(state, WK, 0, 1) == 0.25
    assert state.message is not None
    kind, words = state.message
    assert kind == "error"
    assert named in words
    assert is_chinese(words) == (language == "zh")
    assert "{" not in words
    edit(state, WK, (0, 1), 0.5)
    assert state.message is None


def test_minus_infinity_masks_a_key() -> None:
    """scores on → (Cats, sit, on) without sit: softmax of the other two."""
    state = reader()
    edit(state, MASKED, (0, 0, 2, 1), "-inf")
    weights = state.trace["layers.0.attention.weights"].data[0, 0, 2]
    # 1 / (1 + exp(0.3143 + 0.3500)), from the article's scores
    assert weights.tolist() == pytest.approx([0.3398, 0.0, 0.6602], abs=2e-4)
    assert weights[1] == 0


def test_an_unknown_event_does_nothing() -> None:
    state = edited()
    before = snapshot_of(state)
    send(state, "explode")
    assert snapshot_of(state) == before
    assert state.message == ("error", say("en", "error_event"))


MALFORMED: list[Any] = [
    {}, {"seq": 1}, {"type": "undo"}, {"type": "undo", "seq": None}, {"type": "undo", "seq": "x"},
    {"type": "undo", "seq": inf}, {"type": "undo", "seq": nan}, {"type": ["undo"], "seq": 1}, [], None, "undo", 7,
    {"type": "__class__", "seq": 1},
    *({"seq": 99, **event} for event in (
        {"type": "edit"}, {"type": "edit", "tensor": WQ, "index": [0, 1]}, {"type": "edit", "tensor": WQ, "value": 1.0},
        {"type": "edit", "tensor": WQ, "index": None, "value": 1.0},
        {"type": "edit", "tensor": WQ, "index": ["x", 1], "value": 1.0},
        {"type": "edit", "tensor": WQ, "index": [inf, 1], "value": 1.0}, {"type": "edit", "index": [0], "value": 1.0},
        {"type": "cancel"}, {"type": "reset", "tensor": WQ, "index": 5}, {"type": "select"},
        {"type": "select", "tensor": WQ, "index": [0, 1], "trail": "sideways"},
        {"type": "select", "tensor": WQ, "index": [0, 1], "trail": None}, {"type": "mode"}, {"type": "text"},
        {"type": "layer"}, {"type": "layer", "value": "x"}, {"type": "layer", "value": None},
        {"type": "layer", "value": inf}, {"type": "head", "value": [1]}, {"type": "head", "value": nan}, {"type": "go"},
        {"type": "rows"}, {"type": "rows", "row": "7b"}, {"type": "rows", "row": -inf}, {"type": "snapshot"},
        {"type": "restore"}, {"type": "restore", "name": ["mine"]}, {"type": "open"},
    )),
]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("event", MALFORMED, ids=str)
def test_an_event_that_makes_no_sense_changes_nothing_and_says_so(event: Any, language: str) -> None:
    state = edited()
    send(state, "snapshot", name="mine")
    send(state, "select", tensor=WQ, index=[0, 0], trail="start")
    state.choose(language=language)
    event = {**event, "seq": state.seq + 1} if isinstance(event, dict) and event.get("seq") in (1, 99) else event
    before = snapshot_of(state)
    events.apply(state, event)
    assert snapshot_of(state) == before
    assert state.message == ("error", say(language, "error_event"))


def test_forgetting_needs_a_name() -> None:
    state = edited()
    send(state, "snapshot", name="mine")
    send(state, "forget")
    assert list(state.snapshots) == ["mine"]
    assert state.message == ("error", say("en", "error_event"))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from([WQ, Q, MASKED, "logits", "-inf", "start", "push", "mine", "Cats sit", "both"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=2), max_leaves=4,
)
cells = st.lists(st.integers(-1, 4), max_size=4)
fields = {"tensor": anything, "value": anything, "gesture": anything, "trail": anything, "name": anything,
          "row": anything, "lesson": anything, "address": anything, "index": cells | anything}


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.sampled_from([*events.HANDLERS]), st.fixed_dictionaries({}, optional=fields)), max_size=6))
def test_no_events_are_too_strange(told: list[tuple[str, dict[str, Any]]]) -> None:
    """Whatever arrives, the reader has a state that every page can show."""
    state = reader()
    for kind, event in told:
        send(state, kind, **event)
    json.dumps(alive("scores", state), allow_nan=False)
    assert open_address(dict(parse_qsl(address(state)[1:], keep_blank_values=True)), None).edits == state.edits


def test_the_largest_event_number_is_reported() -> None:
    state = reader()
    for number in (5, 7, 6):
        send(state, "dismiss", seq=number)
    assert state.seq == 7


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_event_that_comes_again_is_carried_out_once(number: int) -> None:
    """The board repeats what it has no answer to; a late repetition must not undo once more, nor hide a message."""
    state = edited()
    assert state.seq == 3
    edit(state, WQ, (0, 1), nan)
    before, message = snapshot_of(state), state.message
    assert message is not None
    for event in ({"type": "undo"}, {"type": "reset"}, {"type": "edit", "tensor": WQ, "index": [0, 1], "value": 9.0}):
        events.apply(state, {**event, "seq": number})
        events.apply(state, {**event, "seq": state.seq})
    assert (snapshot_of(state), state.message, state.seq) == (before, message, 4)
    send(state, "undo")
    assert len(state.edits) == 2


def test_a_gesture_that_is_given_up_has_never_been() -> None:
    state = reader()
    edit(state, WQ, (0, 1), 9.0, gesture=1)
    before = snapshot_of(state)
    for number in (0.1, 0.2, 0.3):
        edit(state, WQ, (0, 1), number, gesture=2)
    send(state, "cancel", gesture=2)
    assert value(state, WQ, 0, 1) == 9.0
    assert state.gesture is None
    assert (state.history, state.cursor) == (before["history"], before["cursor"])
    send(state, "redo")
    assert value(state, WQ, 0, 1) == 9.0
    send(state, "undo")
    assert state.edits == ()


@pytest.mark.parametrize("between", [
    [], [("undo", {})], [("undo", {}), ("redo", {})], [("edit", {"tensor": WK, "index": [0, 1], "value": 0.7})],
    [("edit", {"tensor": WQ, "index": [0, 1], "value": 0.0, "gesture": 2})], [("reset", {})],
    [("edit", {"tensor": WK, "index": [0, 1], "value": 0.7, "gesture": 3})],
])
def test_only_the_gesture_that_goes_on_can_be_given_up(between: list[tuple[str, dict[str, Any]]]) -> None:
    state = reader()
    edit(state, WQ, (0, 1), 0.5, gesture=2)
    for kind, event in between:
        send(state, kind, **event)
    before = snapshot_of(state)
    send(state, "cancel", gesture=2 if between else 1)
    send(state, "cancel", gesture=None)
    assert snapshot_of(state) == before
    assert state.message is None


def test_a_gesture_can_be_given_up_when_the_history_is_full() -> None:
    state = reader()
    for number in range(MOST_STEPS + 5):
        edit(state, WQ, (0, 1), number + 1.0)
    edit(state, WQ, (0, 2), 0.1, gesture=2)
    edit(state, WQ, (0, 2), 0.2, gesture=2)
    send(state, "cancel", gesture=2)
    assert state.edits == (Edit(WQ, (0, 1), MOST_STEPS + 5.0),)
    send(state, "undo")
    assert state.edits == (Edit(WQ, (0, 1), MOST_STEPS + 4.0),)


def test_snapshots_keep_edits_under_a_name() -> None:
    state = edited()
    send(state, "snapshot", name="  mine ")
    send(state, "reset")
    send(state, "restore", name="mine")
    assert [(each.name, each.index) for each in state.edits] == [(WQ, (0, 1)), (WQ, (1, 0)), (WK, (0, 1))]
    send(state, "undo")
    assert state.edits == ()
    send(state, "restore", name="not there")
    assert state.edits == ()


def test_a_snapshot_of_a_known_name_replaces_the_old_one() -> None:
    state = edited()
    send(state, "snapshot", name="mine")
    send(state, "reset")
    send(state, "snapshot", name="mine")
    assert state.snapshots == {"mine": ()}


def test_snapshots_are_bounded() -> None:
    state = reader()
    for number in range(MOST_SNAPSHOTS):
        send(state, "snapshot", name=f"s{number}")
    assert state.message is None
    send(state, "snapshot", name="one more")
    assert len(state.snapshots) == MOST_SNAPSHOTS
    assert "one more" not in state.snapshots
    assert state.message is not None
    assert str(MOST_SNAPSHOTS) in state.message[1]
    send(state, "snapshot", name="s0")
    assert state.message is None


def test_a_snapshot_can_be_forgotten() -> None:
    state = edited()
    for name in ("mine", "yours"):
        send(state, "snapshot", name=name)
    send(state, "forget", name="mine")
    assert list(state.snapshots) == ["yours"]
    send(state, "forget", name="mine")
    assert list(state.snapshots) == ["yours"]
    send(state, "reset")
    send(state, "restore", name="mine")
    assert state.edits == ()
    send(state, "restore", name="yours")
    assert len(state.edits) == 3
    assert state.message is None


def test_forgetting_one_makes_room_for_another() -> None:
    state = reader()
    for number in range(MOST_SNAPSHOTS):
        send(state, "snapshot", name=f"s{number}")
    send(state, "forget", name="s0")
    send(state, "snapshot", name="one more")
    assert state.message is None
    assert len(state.snapshots) == MOST_SNAPSHOTS


@pytest.mark.parametrize(("given", "kept"), [("", []), ("   ", []), ("x" * 99, ["x" * LONGEST_NAME])])
def test_names_of_snapshots(given: str, kept: list[str]) -> None:
    state = reader()
    send(state, "snapshot", name=given)
    assert list(state.snapshots) == kept


def test_another_preset_and_back_keeps_everything() -> None:
    """C04: nothing vanishes because it was not drawn for a while."""
    state = edited()
    send(state, "snapshot", name="mine")
    send(state, "text", value="sit on")
    send(state, "layer", value=1)
    send(state, "select", tensor=WQ, index=[0, 1], trail="start")
    send(state, "undo")
    kept = snapshot_of(state)
    state.switch_preset("scratch")
    assert state.choices == Choices(preset="scratch", text="red fox and red fox")
    assert (state.edits, state.snapshots, state.trail) == ((), {}, [])
    edit(state, WQ, (0, 0), 3.5)
    send(state, "mode", value="both")
    send(state, "language")
    state.switch_preset("cats")
    now = snapshot_of(state)
    assert now["choices"] == dataclasses.replace(kept["choices"], language="zh", mode="both")
    assert {name: now[name] for name in ("history", "cursor", "snapshots", "trail")} == {
        name: kept[name] for name in ("history", "cursor", "snapshots", "trail")
    }
    state.switch_preset("scratch")
    assert value(state, WQ, 0, 0) == 3.5


def test_switching_to_the_same_preset_does_nothing() -> None:
    state = edited()
    before = snapshot_of(state)
    state.switch_preset("cats")
    assert snapshot_of(state) == before


def test_a_shorter_sentence_rests_an_edit_and_a_longer_one_brings_it_back() -> None:
    state = reader()
    edit(state, Q, (0, 2, 0), 5.0)
    edit(state, WQ, (0, 1), 0.5)
    send(state, "text", value="Cats sit")
    assert len(state.edits) == 2
    assert not state.trace[Q].overridden
    assert value(state, WQ, 0, 1) == 0.5
    edit(state, WK, (0, 1), 0.75)
    send(state, "text", value="Cats sit on mats")
    assert value(state, Q, 0, 2, 0) == 5.0
    assert value(state, WK, 0, 1) == 0.75


@pytest.mark.parametrize(("typed", "stored"), [
    ("cats SIT  on", "Cats sit on"), ("12, 45 78", "Cats sit on"), ("on 0 on", "on 0 on"), ("mats", "mats"),
])
def test_a_sentence_is_stored_in_its_usual_spelling(typed: str, stored: str) -> None:
    state = reader()
    send(state, "text", value=typed)
    assert state.choices.text == stored
    assert (state.draft, state.text_error, state.needs_page) == (None, None, True)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("typed", "named"), [
    ("Cats zebra on", "zebra"), ("12 256", "256"), ("on " * 33, "33"), ("", ""), (" , ", ""), ("-1", "-1"),
    ("x" * 1999, "x" * 100), ("x" * 5000, "2000"), ("1.5", "1.5"), ("<b>", "<b>"), ("{word}", "{word}"),
])
def test_a_wrong_sentence_stays_in_the_field_and_the_last_good_one_runs(
    typed: str, named: str, language: str
) -> None:
    state = reader(text="sit on", language=language)
    edit(state, WQ, (0, 1), 0.5)
    trace = state.trace
    send(state, "text", value=typed)
    assert state.choices.text == "sit on"
    assert state.trace is trace
    assert state.draft == typed[:2000]
    assert state.text_error is not None
    assert named in state.text_error
    assert is_chinese(state.text_error) == (language == "zh")
    assert not state.needs_page
    send(state, "text_cancel")
    assert {state.draft, state.text_error} == {None}


def test_two_thousand_characters_are_read_and_no_more() -> None:
    state = reader()
    text = "on ".ljust(LONGEST_TEXT)
    send(state, "text", value=text)
    assert (state.text_error, state.choices.text) == (None, "on")
    send(state, "text", value=text.replace("on", "sit", 1))
    assert state.choices.text == "on"
    assert state.text_error == say("en", "error_long_text", most=LONGEST_TEXT)
    assert state.draft == text.replace("on", "sit", 1)[:LONGEST_TEXT]


@pytest.mark.parametrize(("typed", "ids"), [
    ("#7", (7,)), ("＃１２，４５ ７８", (12, 45, 78)), ("Ｃａｔｓ、sit；#78", (12, 45, 78)), ("[12] 0", (12, 0)),
])
def test_ids_as_the_board_and_a_chinese_keyboard_write_them(typed: str, ids: tuple[int, ...]) -> None:
    state = reader()
    send(state, "text", value=typed)
    assert (state.text_error, state.ids) == (None, ids)


@pytest.mark.parametrize("language", LANGUAGES)
def test_overrides_that_stay_under_another_sentence_are_mentioned(language: str) -> None:
    state = reader(language=language)
    edit(state, WQ, (0, 1), 0.5)
    edit(state, "rope.offset", (), 2.0)
    send(state, "text", value="Cats sit")
    assert state.message is None
    edit(state, Q, (0, 1, 0), 5.0)
    send(state, "text", value="Cats")
    assert state.message == ("info", say(language, "overrides_stay"))
    send(state, "text", value="zebra")
    assert state.message is None
    send(state, "reset", tensor=Q)
    send(state, "text", value="Cats sit")
    assert state.message is None


def test_thirty_two_tokens_fit() -> None:
    state = reader()
    send(state, "text", value="on " * 32)
    assert (state.text_error, len(state.ids)) == (None, 32)


def test_a_shorter_sentence_lets_go_of_a_cell_that_is_gone() -> None:
    state = reader()
    send(state, "select", tensor="logits", index=[0, 2, 90], trail="start")
    send(state, "select", tensor="lm_head.weight", index=[90, 0], trail="push")
    send(state, "select", tensor="final_norm.output", index=[0, 2, 0], trail="push")
    send(state, "text", value="Cats")
    assert state.choices.selected is None
    assert state.trail == [("lm_head.weight", (90, 0))]


def test_the_trail_of_explanations() -> None:
    state = reader()
    cells = [("logits", [0, 2, 90]), ("final_norm.output", [0, 2, 0]), ("final_norm.rms", [0, 2])]
    for (tensor, index), trail in zip(cells, ("start", "push", "push"), strict=True):
        send(state, "select", tensor=tensor, index=index, trail=trail)
    assert state.trail == [(tensor, tuple(index)) for tensor, index in cells]
    send(state, "select", tensor="final_norm.output", index=[0, 2, 0], trail=1)
    assert state.trail == [("logits", (0, 2, 90)), ("final_norm.output", (0, 2, 0))]
    assert state.choices.selected == state.trail[-1]
    send(state, "select", tensor="logits", index=[0, 0, 999], trail="start")
    send(state, "select", tensor="nothing", index=[], trail="start")
    assert state.choices.selected == ("final_norm.output", (0, 2, 0))
    send(state, "unselect")
    assert not state.trail
    assert state.choices.selected is None


def test_the_trail_is_cut_back_to_a_cell_that_is_in_it() -> None:
    state = reader()
    cells = [("logits", [0, 2, 90]), ("final_norm.output", [0, 2, 0]), ("final_norm.rms", [0, 2])]
    for tensor, index in (*cells, cells[1]):
        send(state, "select", tensor=tensor, index=index, trail="push")
    assert state.trail == [("logits", (0, 2, 90)), ("final_norm.output", (0, 2, 0))]
    send(state, "select", tensor="final_norm.output", index=[0, 2, 0], trail="push")
    assert state.trail == [("logits", (0, 2, 90)), ("final_norm.output", (0, 2, 0))]
    send(state, "select", tensor="logits", index=[0, 2, 90], trail="push")
    assert state.trail == [("logits", (0, 2, 90))]


def test_the_trail_is_bounded() -> None:
    state = reader()
    cells = [("embedding.weight", (row, 0)) for row in range(LONGEST_TRAIL + 5)]
    for tensor, index in cells:
        send(state, "select", tensor=tensor, index=list(index), trail="push")
    assert LONGEST_TRAIL == 20
    assert state.trail == cells[-LONGEST_TRAIL:]
    assert state.choices.selected == cells[-1]


@pytest.mark.parametrize(("kind", "given", "taken"), [
    ("layer", 1, 1), ("layer", 9, 1), ("layer", -3, 0), ("head", 1, 1), ("head", 5, 1), ("head", -1, 0),
])
def test_layer_and_head_stay_in_range(kind: str, given: int, taken: int) -> None:
    state = reader()
    send(state, kind, value=given)
    assert getattr(state.choices, kind) == taken
    assert state.needs_page


def test_the_mode_is_one_of_three() -> None:
    state = reader()
    send(state, "mode", value="both")
    send(state, "mode", value="sideways")
    assert state.choices.mode == "both"


def test_rows_that_are_asked_for_are_bounded() -> None:
    state = reader()
    for row in (-1, 256, 7, 7, *range(100, 100 + MOST_ROWS)):
        send(state, "rows", tensor="embedding.weight", row=row)
    assert state.choices.rows == tuple(range(100, 100 + MOST_ROWS))


def test_the_language_goes_round_and_keeps_the_rest() -> None:
    state = edited()
    before = state.choices
    send(state, "language")
    assert state.choices == dataclasses.replace(before, language="zh")
    send(state, "language")
    assert state.choices == before
    assert len(state.edits) == 3


def test_a_page_that_outlived_its_session_brings_its_state_along() -> None:
    """After a restart of the server the page sends the address that it shows."""
    before = edited()
    send(before, "text", value="Cats sit")
    send(before, "select", tensor=WQ, index=[0, 1], trail="start")
    after = reader()
    session = after.session
    send(after, "open", address=address(before), seq=17)
    assert (after.choices, after.edits, after.trail) == (before.choices, before.edits, before.trail)
    assert (after.seq, after.session, after.needs_page, after.message) == (17, session, True, None)
    send(after, "undo")
    assert after.edits == ()


def test_a_broken_address_brings_the_default() -> None:
    after = edited()
    send(after, "open", address="?lang=zh&edits=garbage")
    assert (after.choices, after.edits) == (Choices(language="zh"), ())
    assert after.message is not None


def test_going_to_a_lesson_is_left_to_the_page() -> None:
    state = reader()
    send(state, "go", lesson="rope")
    assert state.destination == "rope"


@pytest.mark.parametrize("kind", [State, Shelf])
def test_two_readers_share_nothing_that_can_change(kind: type[State] | type[Shelf]) -> None:
    first, second = kind(Choices()), kind(Choices())
    for field in dataclasses.fields(kind):
        one, other = getattr(first, field.name), getattr(second, field.name)
        assert one is not other or isinstance(one, (int, str, tuple, type(None))), field.name


def test_one_reader_does_not_see_another_readers_edits() -> None:
    first, second = reader(), reader()
    edit(first, WQ, (0, 1), 9.0)
    send(first, "snapshot", name="mine")
    send(first, "select", tensor=WQ, index=[0, 1], trail="start")
    first.switch_preset("scratch")
    assert second == State(reader().choices, session=second.session)
    assert value(second, WQ, 0, 1) == 0.0
    assert second.trace is second.baseline


@pytest.mark.parametrize(("part", "size", "indices"), [
    (1, 3, [1]), (-1, 3, [2]), (3, 3, []), (-4, 3, []), (slice(None), 3, [0, 1, 2]),
    (slice(1, None), 3, [1, 2]),
    (slice(None, None, -2), 4, [3, 1]), (slice(None, -1), 3, [0, 1]), (slice(5, 9), 3, []),
])
def test_the_indices_of_one_part_of_an_edit(part: int | slice, size: int, indices: list[int]) -> None:
    assert indices_of(part, size) == indices


@pytest.mark.parametrize(("index", "cell", "covered"), [
    ((0, 1), (0, 1), True), ((0, 1), (0, 2), False), ((-4, 1), (0, 1), True), ((0,), (0, 3), True),
    ((), (2, 2), True), ((slice(None), 1), (3, 1), True), ((slice(None, -1), 1), (3, 1), False),
    ((slice(None, -1), 1), (2, 1), True),
])
def test_which_cells_an_edit_covers(
    index: tuple[int | slice, ...], cell: tuple[int, int], covered: bool
) -> None:
    assert covers(Edit(WQ, index, 0.5), cell, (4, 4)) is covered


@pytest.mark.parametrize(("tensor", "number"), [(WQ, 0.0), (WQ, 0.5), (Q, 0.5)])
def test_setting_what_already_stands_is_no_step_of_undo(tensor: str, number: float) -> None:
    state = reader()
    index = (0, 1) if tensor == WQ else (0, 0, 1)
    edit(state, tensor, index, number)
    steps = len(state.history)
    edit(state, tensor, index, number)
    send(state, "reset", tensor=WK)
    assert len(state.history) == steps


def test_restoring_what_already_stands_is_no_step_of_undo() -> None:
    state = edited()
    send(state, "snapshot", name="mine")
    steps = len(state.history)
    send(state, "restore", name="mine")
    assert len(state.history) == steps
