"""The lessons on GPT-2's parts: their boards, charts and explanations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engine import presets
from tests.ui.support import decoded, edit, framed, lessons, reader
from tests.ui.test_explanation import check, in_line, sample, told
from ui import naming
from ui.state import State
from ui.text import LANGUAGES, catalogue

LESSONS = ("positions", "layernorm", "gelu", "dropout")
EVERY_LESSON = pytest.mark.parametrize("lesson", LESSONS)
# what each lesson lets the reader set, and to what
SETTINGS = {
    "positions": (("rope.offset", (), 3.0), ("positions.learned.position_embedding.weight", (2, 1), 0.7)),
    "layernorm": (("layernorm.shift", (), 2.0), ("layernorm.stretch", (), 0.1), ("layernorm.own.x", (3,), -4.0)),
    "gelu": (("gelu.own.x", (), -2.75), ("gelu.table.x", (2,), -0.7518)),
    "dropout": (("dropout.p", (), 0.5), ("dropout.seed", (), 17.0)),
}


def own_cells(state: State, lesson: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, index) for name, index in sample(state.trace) if lesson in name.split(".")]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("preset", presets.NAMES)
@EVERY_LESSON
def test_cells_explain_themselves(lesson: str, preset: str, language: str) -> None:
    state = reader(lesson, preset=preset, language=language)
    cells = own_cells(state, lesson)
    assert len(cells) > 50
    for name, index in cells:
        check(state, name, index)


@EVERY_LESSON
def test_every_axis_has_a_letter_and_words(lesson: str) -> None:
    for tensor in reader(lesson).trace.values():
        assert naming.shape_text(tensor).count(",") == 2 * max(len(tensor.axes) - 1, 0)
        for axis in tensor.axes:
            assert all(f"axis_{axis}" in catalogue(language) for language in LANGUAGES)


@EVERY_LESSON
def test_cells_explain_themselves_when_the_lesson_s_numbers_are_set(lesson: str) -> None:
    state = reader(lesson)
    for name, index, value in SETTINGS[lesson]:
        edit(state, name, index, value)
    assert len(state.edits) == len(SETTINGS[lesson])
    for name, index in own_cells(state, lesson):
        check(state, name, index)


def test_a_vector_that_does_not_vary_explains_its_skewness() -> None:
    state = reader("layernorm")
    for place in range(4):
        edit(state, "layernorm.own.x", (place,), 5.0)
    here = told(state, "layernorm.own.before.skewness")
    assert (here["value"], here["numpy"]) == (0, "0.0")


@pytest.mark.parametrize(("lesson", "name", "index", "title", "formula"), [
    ("positions", "positions.learned.stream", (0, 2, 0), "positions.learned.stream[on, c0]",
     "embedding.output[on, c0] + positions.learned.rows[on, c0]"),
    ("positions", "positions.later.rows", (2, 0), "positions.later.rows[on, c0]",
     "positions.learned.position_embedding.weight[3, c0]"),
    ("layernorm", "layers.0.layernorm.x", (0, 2, 0), "L1·layernorm.x[on, c0]",
     "L1·layernorm.stretched[on, c0] + layernorm.shift"),
    ("layernorm", "layernorm.own.before.skewness", (), "layernorm.own.before.skewness",
     "layernorm.own.before.third_moment ÷ √(layernorm.own.before.variance³)"),
    ("gelu", "gelu.own.steps.normal_cdf", (), "gelu.own.steps.normal_cdf", "(1 + erf(gelu.own.x ÷ √2)) ÷ 2"),
    ("gelu", "gelu.own.relu_squared_slope", (), "gelu.own.relu_squared_slope", "2 × gelu.own.relu"),
    ("gelu", "layers.1.gelu.relu_gradient", (0, 3), "L2·gelu.relu_gradient[f3]",
     "L2·gelu.reach[f3] × L2·gelu.relu_slopes[f3]"),
    ("dropout", "dropout.draws", (0, 2, 3), "dropout.draws[on, c3]", "random(dropout.seed, 11)"),
    ("dropout", "dropout.many.draws", (1, 0), "dropout.many.draws[m1, c0]", "random(dropout.seed, 16)"),
    ("dropout", "dropout.kept", (0, 2, 3), "dropout.kept[on, c3]", "(dropout.draws[on, c3] ≥ dropout.p)"),
    ("dropout", "dropout.h_final", (0, 2, 3), "dropout.h_final[on, c3]",
     "dropout.h_att[on, c3] + dropout.dropped[on, c3]"),
])
def test_formulas(lesson: str, name: str, index: tuple[int, ...], title: str, formula: str) -> None:
    here = told(reader(lesson), name, *index)
    assert here["title"] == title
    assert in_line(here["pieces"]) == formula


def shown(lesson: str, tensor: str, state: State) -> dict[str, Any]:
    return next(grid for grid in framed(lesson, state).data["grids"].values() if grid["tensor"] == tensor)


def test_of_a_position_table_the_rows_in_use_are_shown_and_one_more() -> None:
    table = shown("positions", "position_embedding.weight", reader("positions", preset="today"))
    assert [row["text"] for row in table["rows"]] == list("012345")
    assert table["shape"] == "[max_positions, C] = [32, 12]"
    assert table["row_index"] == [*range(6)]


def test_a_table_of_lines_is_editable_only_where_all_of_it_is() -> None:
    grids = framed("gelu", reader("gelu")).data["grids"].values()
    lines = [grid for grid in grids if grid["tensor"] == "gelu.table.x"]
    assert [grid["kind"] for grid in lines] == ["computed", "computed"]
    assert [row["text"] for row in lines[0]["rows"]] == ["x", "ReLU", "GELU (tanh)", "GELU (erf)", "ReLU²"]


def test_dead_units_on_the_board() -> None:
    state = reader("gelu", preset="today")
    units = shown("gelu", "layers.0.gelu.relu_slopes", state)
    passes, relu, gelu = decoded(units["baseline"]).reshape(3, 48)
    assert np.flatnonzero(passes == 0).tolist() == [20, 36, 45]
    assert not relu[passes == 0].any()
    assert gelu[passes == 0].all()


def chart(lesson: str, state: State) -> dict[str, Any]:
    draw = lessons()[lesson].chart
    assert draw is not None
    return draw(state)


def test_the_chart_of_positions_has_the_last_row_three_ways() -> None:
    state = reader("positions", preset="today")
    none, learned, rope = chart("positions", state)["data"]
    # second article: the last row of the table of scores
    assert learned["y"] == pytest.approx([0.3, 0.8, 0.9, 1.2, 1.5], abs=1e-12)
    assert none["y"][1] == none["y"][2]
    assert rope["y"][1] != rope["y"][2]
    assert [series["x"] for series in (none, learned, rope)] == [[0, 1, 2, 3, 4]] * 3
    assert chart("positions", state)["layout"]["xaxis"]["ticktext"] == ["0:今", "1:天", "2:天", "3:气", "4:真"]


def test_the_chart_of_norms_has_two_straight_lines() -> None:
    state = reader("layernorm", preset="today")
    layer, rms = chart("layernorm", state)["data"]
    for series in (layer, rms):
        slope, start = np.polyfit(series["x"], series["y"], 1)
        np.testing.assert_allclose(series["y"], slope * np.array(series["x"]) + start, atol=1e-12)
    assert np.mean(layer["y"]) == pytest.approx(0, abs=1e-15)
    # RMSNorm's goes through the origin
    assert np.polyfit(rms["x"], rms["y"], 1)[1] == pytest.approx(0, abs=1e-12)


def test_the_chart_of_activations_marks_the_reader_s_x() -> None:
    state = reader("gelu")
    edit(state, "gelu.own.x", (), 2.0)
    figure = chart("gelu", state)
    assert len(figure["data"]) == 16
    marked = {(series["name"], series["yaxis"]): series for series in figure["data"] if series["mode"] == "markers"}
    assert all(series["x"] == [2.0] for series in marked.values())
    assert marked["ReLU²", "y"]["y"] == [4.0]
    assert marked["ReLU²", "y2"]["y"] == [4.0]
    assert marked["GELU (erf)", "y"]["y"] == pytest.approx([2 * 0.5 * (1 + math.erf(2 / math.sqrt(2)))])


def test_the_chart_of_dropout_has_training_beside_inference() -> None:
    state = reader("dropout", preset="today")
    plain, dropped, mean = chart("dropout", state)["data"]
    assert plain["y"] == state.trace["layers.0.mlp.output"].data[0, 4].tolist()
    for now, before in zip(dropped["y"], plain["y"], strict=True):
        assert now == pytest.approx(before / 0.9) or now == 0
    assert mean["y"] == pytest.approx(plain["y"], rel=0.1)
