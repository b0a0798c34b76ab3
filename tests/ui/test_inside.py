"""The boards of the logit lens and of the split of a logit: their tables, words, charts and explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import presets
from tests.ui.support import (
    ARCHITECTURES,
    EVERY_PRESET,
    addresses,
    alive,
    decoded,
    edit,
    framed,
    items,
    numbers_at,
    page,
    reader,
    strictly,
)
from tests.ui.test_explanation import check, python, sample
from ui import applicability, charts, inside_rows, runs, text
from ui.explanation import explanation
from ui.frame import Frame
from ui.state import State
from ui.text import LANGUAGES

LESSONS = ("lens", "wrote")
EVERY_LESSON = pytest.mark.parametrize("lesson", LESSONS)
EVERY_ARCHITECTURE = pytest.mark.parametrize("switches", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())


def table(frame: Frame, title: str) -> dict[str, Any]:
    """The grid of that title."""
    return next(grid for grid in frame.data["grids"].values() if grid["title"] == title)


def words_in(grid: dict[str, Any], side: str) -> list[str]:
    return [header["text"] for header in grid[side]]


def chart(lesson: str, state: State) -> dict[str, Any]:
    draw = page(lesson).chart
    assert draw is not None
    figure = draw(state)
    strictly(figure)
    return figure


def shown(state: State, grid: dict[str, Any]) -> Any:
    numbers = numbers_at(state.trace, addresses(grid))
    return numbers.reshape(len(grid["rows"]), len(grid["columns"]))


@EVERY_LESSON
@EVERY_PRESET
@EVERY_ARCHITECTURE
def test_every_architecture_has_a_board_and_a_chart(lesson: str, preset: str, switches: dict[str, Any]) -> None:
    state = reader(lesson, preset=preset, switches=tuple(switches.items()), layer=0)
    if not applicability.applies(lesson, state.model.config):
        assert lesson == "wrote"
        return
    edit(state, "layers.0.attention.Wv", (0, 1), 0.7)
    frame, data = framed(lesson, state), alive(lesson, state)
    strictly(frame.data)
    strictly(data)
    assert data["values"]
    for grid in frame.data["grids"].values():
        assert np.isfinite(shown(state, grid)).all()
    assert chart(lesson, state)["data"]


@EVERY_LESSON
@EVERY_ARCHITECTURE
@pytest.mark.parametrize("language", LANGUAGES)
def test_cells_explain_themselves(lesson: str, switches: dict[str, Any], language: str) -> None:
    state = reader(lesson, preset="scratch", language=language, switches=tuple(switches.items()))
    edit(state, "layers.0.residual1", (0, 4, 1), 0.8)
    for name, index in sample(state.trace):
        parts = set(name.split("."))
        if parts & {"rank", "leading"}:
            # their formulas point to one logit of many, as tests below see
            assert python(explanation(state, name, index)["numpy"], state.trace) == state.trace[name].data[index]
        elif parts & {"lens", "wrote"}:
            check(state, name, index)


def test_a_rank_says_how_many_stand_before_it() -> None:
    state = reader("lens")
    state.set_control("token", 91)
    told = explanation(state, "lens.embedding.rank", (0, 2))
    assert told["value"] == 256
    operand, reached = told["pieces"]
    assert (operand["tensor"], operand["index"]) == ("lens.embedding.logits", [0, 2, 91])
    assert reached == {"text": " → 1 + 255"}
    assert "255" in told["words"]
    assert eval(told["numpy"], {"np": np, "trace": state.trace}) == 256


def test_a_leader_points_to_its_logit() -> None:
    told = explanation(reader("lens"), "layers.0.lens.leading", (0, 2))
    assert told["integer"]
    assert [piece.get("index") for piece in told["pieces"]] == [None, [0, 2, 90], None]


# ---- the lens

@pytest.mark.parametrize("language", LANGUAGES)
def test_a_row_for_each_stage_and_a_column_for_each_position(language: str) -> None:
    state = reader("lens", language=language, preset="scratch")
    frame = framed("lens", state)
    leading = table(frame, text.say(language, "title_lens_leading"))
    assert len(leading["rows"]) == 3
    assert [column["sub"] for column in leading["columns"]] == ["0", "1", "2", "3", "4"]
    assert leading["names"]
    rank, climb = (table(frame, text.say(language, f"title_lens_{name}")) for name in ("rank", "climb"))
    assert rank["integer"]
    assert climb["scale"] == "diverging"
    assert shown(state, climb).tolist() == (-np.diff(shown(state, rank), axis=0)).tolist()
    # and the words for the ids come along
    ids = {int(number) for number in shown(state, leading).ravel()}
    assert ids <= set(alive("lens", state)["names"])


def test_the_turns_that_the_prose_tells_of() -> None:
    """The leaders as the lesson names them: after `sit` the same one throughout, after `on` one after another."""
    state = reader("lens", preset="little_world")
    leading = shown(state, table(framed("lens", state), text.say("en", "title_lens_leading")))
    name = state.model.tokenizer.label
    assert [name(int(number)) for number in leading[:, 1]] == ["on", "on", "on"]
    assert [name(int(number)) for number in leading[:, 2]] == ["pond", "logs", "mats"]
    assert set(runs.article("cats", "lens")["layers.0.lens.leading"].data.ravel()) == {presets.TARGETS["cats"]}
    assert set(runs.article("cats", "lens")["lens.embedding.leading"].data.ravel()) == {presets.TARGETS["cats"]}


def test_one_stage_in_full_follows_layer_and_position() -> None:
    for layer, normed, logits in ((0, "layers.0.lens.norm.output", "layers.0.lens.logits"),
                                  (1, "final_norm.output", "logits")):
        state = reader("lens", layer=layer)
        state.set_control("position", 1)
        tensors = {grid["tensor"]: grid for grid in framed("lens", state).data["grids"].values()}
        assert tensors[f"layers.{layer}.output"]["base"] == [0, 1]
        assert {normed, logits} <= set(tensors)


def test_the_chart_of_the_lens_is_the_trace() -> None:
    state = reader("lens", preset="scratch")
    state.set_control("position", 2)
    question = state.question
    for token, series in zip((question.token, question.rival), chart("lens", state)["data"], strict=True):
        stages = ["lens.embedding.probabilities", "layers.0.lens.probabilities", "probabilities"]
        assert series["y"] == [state.trace[name].data[0, 2, token] for name in stages]
        assert series["x"] == ["Embedding", "After layer 1", "After layer 2"]
    edit(state, "layers.0.mlp.W_down", (0, 1), 2.0)
    dashes = [series["line"]["dash"] for series in chart("lens", state)["data"]]
    assert dashes == ["dot", "dot", "solid", "solid"]


# ---- the split

def test_the_parts_of_mats_in_the_order_of_the_stream() -> None:
    state = reader("wrote")
    grid = table(framed("wrote", state), "parts")
    assert words_in(grid, "columns") == ["mats", "chairs", "mats − chairs"]
    assert words_in(grid, "rows") == [
        "Token embedding", "Layer 1 · Head 0", "Layer 1 · Head 1", "Layer 1 · MLP", "Layer 2 · Head 0",
        "Layer 2 · Head 1", "Layer 2 · MLP", "Set by hand",
    ]
    numbers = shown(state, grid)
    logits = state.trace["logits"].data[0, 2]
    np.testing.assert_allclose(numbers.sum(axis=0), [logits[90], logits[91], logits[90] - logits[91]], atol=1e-12)
    sums = shown(state, table(framed("wrote", state), "sum and logit"))
    np.testing.assert_allclose(sums[:2], [numbers.sum(axis=0)] * 2, atol=1e-12)
    assert sums[2].tolist() == [0, 0, 0], "rounding counts as 0"


def test_parts_that_only_some_models_have() -> None:
    grid = table(framed("wrote", reader("wrote", preset="today")), "parts")
    assert words_in(grid, "rows") == [
        "Token embedding", "Position embedding", "Layer 1 · Head 0", "Layer 1 · bo", "Layer 1 · MLP",
        "Layer 1 · b_down", "Final norm · bias", "Set by hand",
    ]


def test_the_table_is_of_the_chosen_position() -> None:
    state = reader("wrote")
    state.set_control("position", 0)
    cells = addresses(table(framed("wrote", state), "parts"))
    assert {index[-1] for _, index in cells} == {0}


def test_a_head_by_its_sources() -> None:
    state = reader("wrote", layer=1, head=1)
    frame = framed("wrote", state)
    titles = [section["title"] for section in frame.data["layout"]]
    assert "One head’s part, over the positions that it reads · Layer 2 · Head 1" in titles
    found = {grid["title"]: shown(state, grid) for grid in frame.data["grids"].values()}
    weights, worth = found["weights"][0], found["worth of the value"][0]
    sources = table(frame, "part by source position")
    assert sources["tensor"] == "layers.1.wrote.token.sources"
    (scale,) = found["scale, held"].ravel()
    np.testing.assert_allclose(shown(state, sources)[0], weights * worth / scale, rtol=1e-12)
    np.testing.assert_allclose(shown(state, sources)[0].sum(), found["sum and the head’s part"][2, 0], rtol=1e-12)


def test_the_chosen_tokens_are_among_the_logits_on_the_board() -> None:
    state = reader("wrote")
    state.set_control("token", 200)
    (grid,) = (grid for grid in framed("wrote", state).data["grids"].values() if grid["tensor"] == "logits")
    assert {"#200", "mats", "chairs"} <= {header["text"] for header in grid["rows"]}


def test_a_cap_is_said_to_come_after_the_split() -> None:
    state = reader("wrote", switches=(("logit_soft_cap", 15.0),))
    notes = " ".join(section["note"] or "" for section in framed("wrote", state).data["layout"])
    assert "cap" in notes
    assert "logits.uncapped" in {grid["tensor"] for grid in framed("wrote", state).data["grids"].values()}
    assert "cap" not in " ".join(section["note"] or "" for section in framed("wrote", reader("wrote")).data["layout"])


@pytest.mark.parametrize("switches", [{"residual": False}, {"norm_placement": "post"}])
@pytest.mark.parametrize("language", LANGUAGES)
def test_without_a_sum_there_is_no_split_and_the_page_says_why(switches: dict[str, Any], language: str) -> None:
    state = reader("wrote", switches=tuple(switches.items()))
    assert not applicability.applies("wrote", state.model.config)
    assert text.catalogue(language)["absent_wrote"]
    assert applicability.applies("lens", state.model.config)


def test_the_chart_of_the_parts_is_the_table() -> None:
    for preset in presets.NAMES:
        state = reader("wrote", preset=preset)
        numbers = shown(state, table(framed("wrote", state), "parts"))
        labels = [label for label, _, _ in inside_rows.named_parts(state.model.config, state.say)]
        for column, series in enumerate(chart("wrote", state)["data"]):
            assert series["x"] == numbers[:, column].tolist()
            assert series["y"] == labels


@pytest.mark.parametrize("preset", ["cats", "little_world"])
def test_numbers_beside_bars_have_room(preset: str) -> None:
    """A negative bar's number stands on the side of the words, which make way for it; a positive one in the margin."""
    drawn = chart("wrote", reader("wrote", preset=preset))
    assert min(size for series in drawn["data"] for size in series["x"]) < 0
    assert drawn["layout"]["yaxis"]["ticklabelstandoff"] == drawn["layout"]["margin"]["r"] == charts.NUMBER_WIDTH
    assert charts.room_for_numbers([0.0, 1.0, None])["yaxis"]["ticklabelstandoff"] == 0


def test_an_edit_of_the_stream_has_a_bar_of_its_own() -> None:
    state = reader("wrote")
    edit(state, "layers.0.residual1", (0, 2, 3), 4.0)
    grid = table(framed("wrote", state), "parts")
    assert shown(state, grid)[-1, 0] != 0
    changed = decoded(alive("wrote", state)["values"][next(
        key for key, drawn in framed("wrote", state).data["grids"].items() if drawn["title"] == "parts"
    )])
    np.testing.assert_array_equal(changed, shown(state, grid).ravel())
    assert len(items(framed("wrote", state))) > 10
