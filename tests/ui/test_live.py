"""What an edit, a selection or a refusal sends: what changed, and little of it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import Edit
from formats.edits import MOST_EDITS
from tests.engine.support import again
from tests.ui.support import (
    EVERY_BOARD,
    EVERY_LESSON,
    Cell,
    addresses,
    alive,
    decoded,
    edit,
    framed,
    lessons,
    numbers_at,
    reader,
    send,
    strictly,
)
from ui import navigation, text
from ui.frame import Frame
from ui.state import Choices, State
from ui.text import say

WQ = "layers.0.attention.Wq"
# vectors are two, three and eight times as long in the larger models, and there are more of them
LIVE_BYTES = {"cats": 12_000, "scratch": 16_000, "today": 20_000, "copy_machine": 75_000, "little_world": 100_000}


EDITS = [
    Edit(WQ, (0, 1), 0.5), Edit("embedding.weight", (78, 0), 0.7), Edit("lm_head.weight", (92, 3), 0.4),
    Edit("layers.0.attention.weights", (0, 0, 2, 1), 0.9), Edit("layers.1.mlp.output", (0, 1, 2), -3.0),
    Edit("sqrt_head_size", (), 1.0), Edit("scaled.factor", (), 8.0), Edit("rope.offset", (), 3.0),
    Edit("lm_head.weight", (200, 3), 0.4),
]


def marked(frame: Frame, data: dict[str, Any]) -> set[tuple[str, tuple[int, ...]]]:
    """The cells that the board marks as edited."""
    return {
        (name, tuple(index)) for key, numbers in data["edited"].items()
        for name, index in (list(addresses(frame.data["grids"][key]))[number] for number in numbers)
    }


def framed_key(lesson: str, state: State, tensor: str) -> str:
    """The key of the grid that shows a tensor."""
    return next(key for key, grid in framed(lesson, state).data["grids"].items() if grid["tensor"] == tensor)


@pytest.mark.parametrize(("lesson", "change"), [
    (lesson, change) for lesson in lessons() for change in EDITS if change.name in reader(lesson).baseline
], ids=str)
def test_values_hold_the_grids_that_differ_and_no_others(lesson: str, change: Edit) -> None:
    """Against a run from nothing, by the addresses that the browser has."""
    state = reader(lesson)
    edit(state, change.name, change.index, change.value)  # type: ignore[arg-type]
    frame, data = framed(lesson, state), alive(lesson, state)
    full = again(state.baseline, [change])
    differing = {}
    for key, grid in frame.data["grids"].items():
        numbers = numbers_at(full, addresses(grid))
        if not np.array_equal(numbers, decoded(grid["baseline"]), equal_nan=True):
            differing[key] = numbers
    assert set(data["values"]) == set(differing)
    for key, numbers in differing.items():
        np.testing.assert_array_equal(decoded(data["values"][key]), numbers)
    shown = {cell for grid in frame.data["grids"].values() for cell in addresses(grid)}
    assert marked(frame, data) == {(change.name, change.index)} & shown
    on_board = {key for key, grid in frame.data["grids"].items() if change.name in dict(addresses(grid))}
    assert set(data["edited"]) == on_board


@EVERY_LESSON
def test_nothing_is_sent_of_what_has_not_changed(lesson: str) -> None:
    data = alive(lesson, reader(lesson))
    assert data["values"] == {}
    assert data["edited"] == {}
    assert data["session"]
    assert [data[key] for key in ("selected", "editor", "explanation", "message")] == [None] * 4
    assert data["strip"]["first_changed"] is None


@EVERY_BOARD
def test_an_edit_sends_little(lesson: str, preset: str) -> None:
    """One edit and one selected cell with its explanation."""
    state = reader(lesson, preset=preset)
    edit(state, "embedding.output", (0, 0, 1), 0.123456789)
    send(state, "select", tensor="layers.0.attention.q", index=[0, 0, 1], trail="start")
    data = alive(lesson, state)
    assert data["explanation"]
    # an edit moves every gradient, and these boards have all of them, or a layer's, or those of the tables
    most = {"backward": 4, "raise_logit": 2, "optimizer": 2}.get(lesson, 1) * LIVE_BYTES[preset]
    assert len(strictly(data).encode()) < most


@EVERY_LESSON
def test_numbers_that_ran_over_still_make_strict_json(lesson: str) -> None:
    state = reader(lesson)
    edit(state, "layers.0.norm1.weight", (0,), 1e308)
    edit(state, "layers.0.attention.masked_scores", (0, 0, 2, 1), "-inf")
    masked, exponentials = "layers.0.attention.masked_scores", "layers.0.attention.weights.exp"
    for name in ("logits", "probabilities", masked, exponentials):
        index = [0, 0, 2, 1][-len(state.trace[name].shape):]
        send(state, "select", tensor=name, index=index, trail="start")
        assert state.choices.selected == (name, tuple(index))
        strictly(alive(lesson, state))
    assert np.isnan(state.trace["logits"].data).any()


@pytest.mark.parametrize(("index", "rows", "columns"), [
    ((0, 1), [0], [1]), ((), range(4), range(4)), ((2,), [2], range(4)), ((slice(None), 1), range(4), [1]),
    ((-1, 0), [3], [0]), ((slice(1, 3), 0), [1, 2], [0]),
])
def test_edited_cells_as_the_browser_reads_them(
    index: tuple[int | slice, ...], rows: Iterable[int], columns: Iterable[int]
) -> None:
    state = reader()
    state.commit((Edit(WQ, index, 0.5),))
    marks = marked(framed("qkv", state), alive("qkv", state))
    assert marks == {(WQ, cell) for cell in product(rows, columns)}


def test_marks_of_an_edit_beyond_the_sentence() -> None:
    state = reader(text="Cats sit on")
    state.commit((Edit("layers.0.attention.q", (0, 2), 0.5),))
    send(state, "text", value="Cats sit")
    assert alive("qkv", state)["edited"] == {framed_key("qkv", state, "layers.0.attention.q"): []}


def test_marks_of_many_wide_edits_stay_as_small_as_the_board() -> None:
    state = reader()
    state.commit(tuple(
        Edit("embedding.weight", (slice(number % 250, 256), slice(number // 250, 4)), 1.0 + number)
        for number in range(MOST_EDITS)
    ))
    assert len(state.edits) == MOST_EDITS
    frame, data = framed("embedding", state), alive("embedding", state)
    shown = {cell for grid in frame.data["grids"].values() for cell in addresses(grid)}
    assert marked(frame, data) == {cell for cell in shown if cell[0] == "embedding.weight"}
    assert len(strictly(alive("embedding", state))) < 4 * LIVE_BYTES["cats"]


def test_the_strip_before_and_after(golden: dict[str, NDArray[Any]]) -> None:
    state = reader()
    candidates = {token["text"]: token for token in alive("overview", state)["strip"]["candidates"]}
    assert list(candidates) == ["mats", "chairs", "volcano"]
    for token_id, word in ((90, "mats"), (91, "chairs"), (92, "volcano")):
        assert candidates[word]["id"] == token_id
        assert candidates[word]["top"] == (word == "mats")
        for key, tensor in (("logit", "logits"), ("probability", "probabilities")):
            assert candidates[word][key] == pytest.approx(golden[tensor][0, 2, token_id], abs=1e-12)
    edit(state, "lm_head.weight", (92, 3), 2.0)
    strip = alive("overview", state)["strip"]
    assert strip["first_changed"] == "logits"
    after = {token["text"]: token for token in strip["candidates"]}
    # volcano's row is zero but for c3, where the article's vector has 1.7522
    assert after["volcano"]["logit"] == pytest.approx(2 * 1.7522, abs=1e-4)
    assert after["volcano"]["top"]
    assert not after["mats"]["top"]
    assert after["volcano"]["baseline_logit"] == 0
    assert after["mats"]["baseline_logit"] == candidates["mats"]["logit"]
    assert (strip["edits"], strip["can_undo"], strip["can_redo"]) == (1, True, False)


@pytest.mark.parametrize(("change", "first"), [
    (Edit(WQ, (0, 1), 0.5), "layers.0.attention.q"),
    (Edit("embedding.weight", (12, 0), 9.0), "embedding.output"),
    (Edit("embedding.weight", (200, 0), 9.0), None),
    (Edit("layers.1.output", (0, 2, 0), 9.0), "layers.1.output"),
    (Edit("scaled.factor", (), 2.0), "scaled.stream"),
    (Edit("norm_epsilon", (), 0.5), "layers.0.norm1.rms"),
])
def test_the_first_tensor_that_changed(change: Edit, first: str | None) -> None:
    state = State(Choices(), [(), (change,)], 1)
    assert alive("overview", state)["strip"]["first_changed"] == first


@pytest.mark.parametrize("lesson", ["overview", "choosing", "generating"])
def test_the_strip_tells_probabilities_before_the_settings_from_those_after_them(lesson: str) -> None:
    note = alive(lesson, reader(lesson))["strip"]["share_note"]
    assert note == ("" if lesson == "overview" else say("en", "share_before_choosing"))


def test_the_strip_of_a_random_model_ranks_its_own_tokens() -> None:
    state = reader(preset="scratch")
    logits = state.trace["logits"].data[0, -1]
    ranked = sorted(range(16), key=lambda token: -logits[token])[:3]
    assert [token["id"] for token in alive("overview", state)["strip"]["candidates"]] == ranked


def test_the_editor_of_parameters_overrides_and_leaves() -> None:
    state = reader()
    edit(state, "layers.0.attention.q", (0, 2, 0), 9.0)
    wanted: dict[Cell, dict[str, Any]] = {
        ("layers.0.attention.q", (0, 2, 0)): {
            "edited": True, "tensor_edited": True, "value": 9.0, "kind": "computed", "title": "L1·q[on, c0]",
        },
        ("layers.0.attention.q", (0, 2, 1)): {"edited": False, "tensor_edited": True, "kind": "computed"},
        ("layers.1.attention.q", (0, 2, 1)): {"edited": False, "tensor_edited": False, "title": "L2·q[on, c1]"},
        (WQ, (0, 0)): {"edited": False, "tensor_edited": False, "value": 1.0, "baseline": 1.0, "computed": None,
                       "kind": "parameter"},
        ("input_ids", (0, 1)): {"editable": False, "value": 45.0},
        ("layers.0.attention.masked_scores", (0, 0, 0, 1)): {"value": "-inf", "minus_infinity": True},
        ("causal_mask", (0, 1)): {"value": "-inf", "minus_infinity": True, "editable": True},
    }
    for (name, index), expected in wanted.items():
        send(state, "select", tensor=name, index=list(index), trail="start")
        editor = alive("qkv", state)["editor"]
        assert {key: editor[key] for key in expected} == expected, name
    send(state, "select", tensor="layers.0.attention.q", index=[0, 2, 0], trail="start")
    # Wq is the identity: q is norm1's output, 0.2981 in the article
    assert alive("qkv", state)["editor"]["computed"] == pytest.approx(0.2981, abs=5e-5)


def test_the_editor_of_a_cell_under_a_wider_edit() -> None:
    state = State(Choices(), [(), (Edit(WQ, (0,), 5.0),)], 1)
    for index, covered in (((0, 3), True), ((1, 3), False)):
        send(state, "select", tensor=WQ, index=list(index), trail="start")
        editor = alive("qkv", state)["editor"]
        assert (editor["edited"], editor["tensor_edited"]) == (covered, True)


def test_ties_are_counted() -> None:
    state = reader()
    # volcano and the 253 rows without a word have logit 0
    assert [token["tied"] for token in alive("overview", state)["strip"]["candidates"]] == [1, 1, 254]
    for column in range(3):
        edit(state, "lm_head.weight", (90, column), 0.0)
    edit(state, "lm_head.weight", (92, 3), 0.3)
    after = {token["text"]: token for token in alive("overview", state)["strip"]["candidates"]}
    assert after["mats"]["logit"] == after["volcano"]["logit"] != 0
    assert (after["mats"]["tied"], after["volcano"]["tied"], after["chairs"]["tied"]) == (2, 2, 1)


@pytest.mark.parametrize("language", text.LANGUAGES)
def test_a_softmax_with_nothing_to_share_out_is_mentioned(language: str) -> None:
    state = reader(language=language)
    words = text.say(language, "explain_empty_row")
    edit(state, "layers.1.attention.masked_scores", (0, 1, 0, 0), "-inf")
    assert alive("qkv", state)["message"] == {"kind": "info", "text": words}
    edit(state, WQ, (0, 1), float("nan"))
    assert state.message is not None
    assert alive("qkv", state)["message"] == {"kind": state.message[0], "text": state.message[1]}
    send(state, "dismiss")
    assert alive("qkv", state)["message"] == {"kind": "info", "text": words}
    send(state, "undo")
    assert alive("qkv", state)["message"] is None
    edit(state, "layers.0.attention.masked_scores", (0, 1, 1, 0), "-inf")
    assert alive("qkv", state)["message"] is None


@pytest.mark.parametrize("language", text.LANGUAGES)
@pytest.mark.parametrize(("tensor", "index", "value", "first"), [
    ("layers.0.norm1.weight", (0,), 1e308, "layers.0.attention.dot"),
    ("layers.0.norm1.rms", (0, 1), 0.0, "layers.0.norm1.normalized"),
    ("layers.1.norm2.rms", (0, 0), 0.0, "layers.1.norm2.normalized"),
    ("lm_head.weight", (92, 3), 1.7e308, "logits"),
])
def test_numbers_that_ran_over_are_mentioned_by_the_first_of_them(
    tensor: str, index: tuple[int, ...], value: float, first: str, language: str
) -> None:
    state = reader(language=language)
    edit(state, "layers.0.attention.masked_scores", (0, 0, 2, 1), "-inf")
    assert alive("qkv", state)["message"] is None
    edit(state, tensor, index, value)
    message = alive("qkv", state)["message"]
    assert not np.isfinite(state.trace["logits"].data).all()
    assert message == {"kind": "error", "text": text.say(language, "not_finite_now", name=first)}
    send(state, "undo")
    assert alive("qkv", state)["message"] is None


def test_neighbours_run_from_the_first_lesson_to_the_last() -> None:
    ways = [navigation.neighbours(lesson, reader(lesson)) for lesson in navigation.LESSONS]
    assert ways[0]["previous"] is None
    assert ways[-1]["next"] is None
    assert [way["next"]["lesson"] for way in ways[:-1]] == list(navigation.LESSONS[1:])
    assert [way["previous"]["lesson"] for way in ways[1:]] == list(navigation.LESSONS[:-1])


def test_live_data_of_one_reader_is_not_shared_with_another() -> None:
    first, second = reader(), reader()
    edit(first, WQ, (0, 1), 0.5)
    alive("qkv", first)
    assert alive("qkv", second)["values"] == {}


def test_a_number_that_ran_over_is_named_even_where_the_logits_stay_finite() -> None:
    state = reader()
    edit(state, "layers.1.mlp.output", (0, 2, 0), 1e300)
    assert np.isfinite(state.trace["logits"].data).all()
    message = alive("lm_head", state)["message"]
    assert message == {"kind": "error", "text": say("en", "not_finite_now", name="final_norm.mean_square")}


def test_what_was_dismissed_stays_away_but_an_outcome_is_always_said() -> None:
    state = reader()
    edit(state, "sqrt_head_size", (), 0.0)
    shown = alive("scores", state)["message"]
    send(state, "dismiss", text=shown["text"])
    assert alive("scores", state)["message"] is None
    for _ in range(2):
        edit(state, WQ, (0, 0), "nan")
        refused = alive("scores", state)["message"]
        assert refused["kind"] == "error"
        send(state, "dismiss", text=refused["text"])
