"""Edits to a mean over positions or to another run's cells, as readers make, undo, link and read about them."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from engine import Carried, Edit, EditError, Mean, run
from formats.edits import MOST_TOKENS
from tests.ui.support import alive, edit, reader, send
from ui.address import address, open_address
from ui.explanation import explanation
from ui.state import State
from ui.text import LANGUAGES, catalogue, explain_error

HEADS = "layers.0.attention.head_output"
WEIGHTS = "layers.0.attention.weights"
PLACES: list[list[Any]] = [[HEADS, [0, 1]], ["layers.1.mlp.output", []]]
GIVEN = pytest.mark.parametrize(("value", "given"), [("mean", Mean()), ({"ids": [90, 91]}, Carried((90, 91)))])


def cover(state: State, value: Any, places: list[list[Any]] = PLACES) -> None:
    send(state, "cover", places=places, value=value)


@GIVEN
def test_covering_is_one_step_of_undo(value: Any, given: Mean | Carried) -> None:
    state = reader()
    cover(state, value)
    assert state.edits == (Edit(HEADS, (0, 1), given), Edit("layers.1.mlp.output", (), given))
    expected = run(state.model, [list(state.ids)], edits=state.edits)
    assert (state.trace["logits"].data == expected["logits"].data).all()
    send(state, "undo")
    assert state.edits == ()
    send(state, "redo")
    cover(state, None)
    assert state.edits == ()


@GIVEN
def test_a_link_brings_it_back(value: Any, given: Mean | Carried) -> None:
    state = reader()
    cover(state, value)
    opened = open_address(dict(parse_qsl(address(state)[1:])), None)
    assert opened.message is None
    assert opened.edits == state.edits
    assert (opened.trace["logits"].data == state.trace["logits"].data).all()


@GIVEN
def test_a_snapshot_brings_it_back(value: Any, given: Mean | Carried) -> None:
    state = reader()
    cover(state, value)
    send(state, "snapshot", name="a")
    send(state, "reset")
    send(state, "restore", name="a")
    assert [edit.value for edit in state.edits] == [given, given]


@GIVEN
def test_a_cell_of_it_can_be_reset_and_set_again(value: Any, given: Mean | Carried) -> None:
    state = reader()
    cover(state, value)
    send(state, "reset", tensor=HEADS, index=[0, 1, 0, 1])
    kept = [edit for edit in state.edits if edit.name == HEADS]
    assert len(kept) == 5
    assert {edit.value for edit in kept} == {given}
    edit(state, HEADS, (0, 1, 0, 0), 4.5)
    assert state.trace[HEADS].data[0, 1, 0, 0] == 4.5


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_say_where_a_value_comes_from(language: str) -> None:
    state = reader(language=language)
    cover(state, "mean", [[HEADS, [0, 1]], [WEIGHTS, [0, 0]]])
    cover(state, {"ids": [90, 91]}, [["layers.1.output", [0, 1]]])
    words = catalogue(language)
    assert explanation(state, HEADS, (0, 1, 2, 0))["words"] == words["explain_override_mean"]
    assert explanation(state, WEIGHTS, (0, 0, 2, 0))["words"] == words["explain_override_mean_read"]
    carried = explanation(state, "layers.1.output", (0, 1, 2))
    assert "mats chairs" in carried["words"]
    assert carried["computed"] is not None
    edit(state, "layers.1.output", (0, 1, 2), 0.5)
    assert explanation(state, "layers.1.output", (0, 1, 2))["words"] == words["explain_override"]
    assert "mats chairs" in explanation(state, "layers.1.output", (0, 1, 1))["words"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("places", "value", "key"), [
    ([["layers.0.attention.Wq", [0]]], "mean", "error_needs_number"),
    ([["layers.0.attention.Wq", [0]]], {"ids": [1]}, "error_needs_number"),
    ([["softmax_demo.small_weights", []]], "mean", "error_no_positions"),
    (PLACES, {"ids": []}, "error_carried_ids"), (PLACES, {"ids": [1.5]}, "error_carried_ids"),
    (PLACES, {"ids": 3}, "error_event"), (PLACES, "median", "error_value"),
    (PLACES, {"ids": [256]}, "error_id_out_of_range"), (PLACES, {"ids": [1] * (MOST_TOKENS + 1)}, "error_too_long"),
])
def test_what_is_refused_is_explained(places: list[list[Any]], value: Any, key: str, language: str) -> None:
    state = reader(language=language)
    cover(state, value, places)
    assert state.edits == ()
    assert state.message is not None
    start = catalogue(language)[key].partition("{")[0]
    assert state.message[0] == "error"
    assert state.message[1].startswith(start)


@pytest.mark.parametrize("ids", [(300,), (1,) * (MOST_TOKENS + 1)])
def test_one_that_waits_for_another_page_is_checked_at_once(ids: tuple[int, ...]) -> None:
    state = reader("overview")
    cover(state, {"ids": list(ids)}, [["why_residuals.with.1", [0]]])
    assert state.edits == ()
    assert state.message is not None


def test_a_shorter_sentence_stays_out_of_the_way() -> None:
    state = reader()
    cover(state, {"ids": [90]}, [["layers.0.output", [0, 2]]])
    assert len(state.edits) == 1
    assert state.trace["layers.0.output"].op == "add"
    assert alive("overview", state)["strip"]["edits"] == 1


def test_errors_have_words_in_both_languages() -> None:
    for code in ("needs_number", "no_positions", "carried_ids", "whole_mean"):
        for language in LANGUAGES:
            assert explain_error(language, EditError(code, "", name="x"))


@pytest.mark.parametrize("ids", [[1024, 2048], [1024, 2048, 2048, 3072, 4096, 4096]])
def test_cells_of_a_large_vocabulary_s_gradients_can_be_looked_at(ids: list[int]) -> None:
    """They are made when somebody looks, and a shorter or a longer sentence has a table of another size."""
    state = reader("backward", preset="today")
    cover(state, {"ids": ids}, [["gradient.layers.0.attention.dot", [0, 0]]])
    assert len(state.edits) == 1
    assert alive("backward", state)["strip"]["edits"] == 1
