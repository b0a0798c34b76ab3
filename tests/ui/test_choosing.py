"""Lesson 20's board: what each cell says about itself, tokens by name, settings as edits, and the histogram."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Edit, presets
from tests.ui.support import alive, edit, framed, is_chinese, page, reader, send, strictly
from ui.address import address, open_address
from ui.explanation import explanation
from ui.state import Choices, State
from ui.text import LANGUAGES, say

LESSON = "choosing"
STEPS = ("order", "ranked", "tempered", "kept_k", "shares", "mass_before", "kept_p", "probabilities", "running_sum",
         "counts")


def state_with(preset: str = "today", language: str = "en", **settings: float) -> State:
    state = reader(LESSON, preset=preset, language=language)
    for name, value in settings.items():
        edit(state, f"choosing.{name}", (), value)
    assert state.message is None
    return state


def told(state: State, name: str, *index: int) -> dict[str, Any]:
    return explanation(state, f"choosing.{name}", index)


def formula(cell: dict[str, Any]) -> str:
    return "".join(piece.get("text") or piece["label"] for piece in cell["pieces"])


@pytest.mark.parametrize(("settings", "name", "rank", "written", "said"), [
    ({}, "order", 2, "ID(choosing.logits[棒])", "rank 2 among all 50257 logits"),
    ({}, "ranked", 2, "choosing.logits[棒], ID choosing.order[r2]", "at this rank"),
    ({"temperature": 0.5}, "tempered", 2, "choosing.shifted[r2] ÷ choosing.temperature", "divided by the temperature"),
    ({"temperature": 0}, "tempered", 1, "(T = choosing.temperature, r1) → ", "argmax"),
    ({"temperature": 0}, "tempered", 2, "(T = choosing.temperature, r2) → ", "argmax"),
    ({"top_k": 2}, "kept_k", 2, "2 ≤ choosing.top_k → choosing.tempered[r2]", "Kept by top-k: its rank 2"),
    ({"top_k": 2}, "kept_k", 3, "3 > choosing.top_k → ", "Cut by top-k: its rank 3 is beyond k = 2"),
    ({}, "mass_before", 3, "choosing.shares[r1] + choosing.shares[r2]", "before this one"),
    ({}, "mass_before", 1, "", "before this one"),
    ({"top_p": 0.9}, "kept_p", 2, "choosing.mass_before[r2] < choosing.top_p → choosing.shares[r2]",
     "the mass before it, 0.8500, is below p = 0.9"),
    ({"top_p": 0.9}, "kept_p", 3, "choosing.mass_before[r3] ≥ choosing.top_p → ", "0.9500, has reached p = 0.9"),
    ({}, "kept_p", 3, "(p = choosing.top_p) → choosing.shares[r3]", "keeps every token"),
    ({}, "running_sum", 2, "choosing.probabilities[r1] + choosing.probabilities[r2]", "its own included"),
    ({}, "probabilities", 2, "choosing.kept_p[r2] ÷ choosing.kept_mass", "what the filters left"),
    ({}, "drawn", 7, "choosing.running_sum[r1] ≤ choosing.u[n7] < choosing.running_sum[r2] → choosing.order[r2]",
     "u = 0.9233 falls to rank 2"),
    ({}, "drawn", 1, "choosing.u[n1] < choosing.running_sum[r1] → choosing.order[r1]", "u = 0.6824 falls to rank 1"),
    ({}, "counts", 2, "count(choosing.drawn[n7], choosing.drawn[n10], choosing.drawn[n17])",
     "3 of 20 draws"),
    ({}, "counts", 3, "", "0 of 20 draws"),
])
def test_a_cell_says_why(settings: dict[str, float], name: str, rank: int, written: str, said: str) -> None:
    state = state_with(**settings)
    cell = told(state, name, 0, rank - 1)
    assert formula(cell) == written
    assert said in cell["words"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("settings", [{}, {"temperature": 0}, {"temperature": 2, "top_k": 3, "top_p": 0.8}], ids=str)
@pytest.mark.parametrize("preset", presets.NAMES)
def test_lines_give_the_values_and_words_are_whole(preset: str, settings: dict[str, float], language: str) -> None:
    state = state_with(preset, language, **settings)
    for name in (*STEPS, "drawn"):
        for place in (0, 1, 2, 5, 9):
            cell = told(state, name, 0, place)
            value = state.trace[f"choosing.{name}"].number((0, place))
            line = float(eval(cell["numpy"], {"trace": state.trace, "np": np}))
            assert line == pytest.approx(value, rel=1e-12, abs=1e-14), (name, place, cell["numpy"])
            assert not {"{", "}"} & set(cell["words"])
            assert is_chinese(cell["words"]) == (language == "zh")
    for name in ("shares", "kept_p", "probabilities", "counts"):
        cell = told(state, f"others.{name}", 0)
        value = state.trace[f"choosing.others.{name}"].number((0,))
        assert float(eval(cell["numpy"], {"trace": state.trace, "np": np})) == pytest.approx(value, rel=1e-12)


def test_every_operand_is_a_link_to_its_cell() -> None:
    state = state_with(temperature=0.7, top_k=40, top_p=0.99)
    for name in (*STEPS, "drawn"):
        for piece in (piece for place in range(4) for piece in told(state, name, 0, place)["pieces"]):
            if "tensor" in piece:
                assert piece["value"] == state.trace[piece["tensor"]].number(tuple(piece["index"])), name


def test_ids_are_shown_as_tokens_each_column_with_a_look_of_its_own() -> None:
    state = state_with()
    frame = framed(LESSON, state)
    table = next(grid for grid in frame.data["grids"].values() if len(grid.get("looks", ())) == 10)
    assert [look["names"] for look in table["looks"]] == [True, *[False] * 9]
    assert table["looks"][-1]["integer"]
    assert {look["scale"] for look in table["looks"][4:9]} == {"share"}
    assert len(table["rows"]) == 10
    names = alive(LESSON, state)["names"]
    assert {number: names[number] for number in (5120, 6144, 7168, 0)} == {5120: "好", 6144: "棒", 7168: "差", 0: "#0"}
    edit(state, "choosing.logits", (0, 777), 50.0)
    assert alive(LESSON, state)["names"][777] == "#777"


@pytest.mark.parametrize("preset", presets.NAMES)
def test_nothing_as_large_as_the_vocabulary_is_sent(preset: str) -> None:
    state = state_with(preset, temperature=0.5)
    assert len(strictly(framed(LESSON, state).data)) < 40_000
    assert len(strictly(alive(LESSON, state))) < 12_000


def test_a_sum_far_down_the_ranks_lists_its_first_terms_alone() -> None:
    """At a high temperature a draw falls to rank 33725, and its operand is the sum up to there."""
    state = state_with(temperature=2)
    rank = 33724
    send(state, "select", tensor="choosing.running_sum", index=[0, rank])
    assert state.message is None
    assert len(strictly(alive(LESSON, state))) < 16_000
    cell = told(state, "running_sum", 0, rank)
    assert sum("tensor" in piece for piece in cell["pieces"]) == 24
    assert "33701" in cell["words"]
    line = float(eval(cell["numpy"], {"trace": state.trace, "np": np}))
    assert line == pytest.approx(state.trace["choosing.running_sum"].number((0, rank)), rel=1e-9)


@pytest.mark.parametrize(("name", "value"), [
    ("temperature", -0.1), ("top_k", 0), ("top_k", 1.5), ("top_p", 0), ("top_p", 1.01), ("seed", -1),
])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_setting_that_cannot_be_is_refused_in_words(language: str, name: str, value: float) -> None:
    state = reader(LESSON, language=language)
    edit(state, f"choosing.{name}", (), value)
    assert state.edits == ()
    assert state.message is not None
    assert state.message[0] == "error"
    # by its label on the board
    key = {"seed": "slider_draw_seed"}.get(name, f"slider_{name}")
    assert f"“{say(language, key)}”" in state.message[1]
    assert is_chinese(state.message[1]) == (language == "zh")


def test_settings_are_in_the_address_and_in_undo() -> None:
    state = state_with(temperature=0.5, top_k=3, seed=7)
    again = open_address(dict(pair.split("=") for pair in address(state).removeprefix("?").split("&")), None)
    assert {(item.name, item.value) for item in again.edits} == {
        ("choosing.temperature", 0.5), ("choosing.top_k", 3.0), ("choosing.seed", 7.0),
    }
    send(state, "undo")
    assert [item.name for item in state.edits] == ["choosing.temperature", "choosing.top_k"]


def test_a_link_with_a_setting_that_cannot_be_is_broken() -> None:
    state = State(Choices(), [(), (Edit("choosing.temperature", (), -1.0),)], 1)
    query = dict(pair.split("=") for pair in address(state).removeprefix("?").split("&"))
    opened = open_address(query, None)
    assert opened.edits == ()
    assert opened.message is not None
    assert "“temperature T” must be between 0 and 1000, not −1." in opened.message[1]


def test_infinities_of_tokens_that_are_cut_are_no_fault() -> None:
    for preset in presets.NAMES:
        assert alive(LESSON, state_with(preset, temperature=0, top_k=2))["message"] is None


def test_the_histogram_holds_draws_against_probabilities() -> None:
    chart = page(LESSON).chart
    assert chart is not None
    likely, drawn = chart(state_with())["data"]
    assert likely["y"] == drawn["y"]
    assert (len(likely["y"]), likely["y"][0], likely["y"][-1]) == (11, "好 · 5120", "all others")
    np.testing.assert_allclose(likely["x"][:3], [0.85, 0.10, 0.02], atol=1e-12)
    assert sum(likely["x"]) == pytest.approx(1.0)
    assert drawn["x"][:3] == [17 / 20, 3 / 20, 0]
    assert "◆" in likely["text"][0]
    assert sum("◆" in text for text in likely["text"]) == 1
    assert drawn["text"][0] == "17 / 20"


def test_a_draw_among_the_others_is_marked_there() -> None:
    chart = page(LESSON).chart
    assert chart is not None
    likely, drawn = chart(state_with("cats"))["data"]
    assert "◆" in likely["text"][-1]
    assert drawn["x"][-1] == 1.0
