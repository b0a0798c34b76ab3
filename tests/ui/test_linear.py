"""The boards of the two lessons on linearity: lines of several tensors, verdicts, switches, and the chart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ui.support import EVERY_PRESET, Numbers, addresses, alive, decoded, edit, framed, items, lessons, reader
from ui import board
from ui.drawing import Drawing
from ui.explanation import explanation
from ui.layout import Rows, Switch, Verdict, grid
from ui.state import State
from ui.text import LANGUAGES, catalogue

LAYERS = "linear.layers"
SWITCHED = {"relu": (f"{LAYERS}.relu", 1.0), "gelu": (f"{LAYERS}.gelu", 1.0)}


def table(state: State, title: str) -> tuple[dict[str, Any], Numbers]:
    """The grid of that title's key, with its numbers as they stand."""
    frame, words = framed(state.lesson, state), catalogue(state.choices.language)[title]
    (key, found), *_ = ((key, each) for key, each in frame.data["grids"].items() if each["title"] == words)
    numbers = decoded(alive(state.lesson, state)["values"].get(key, found["baseline"]))
    return found, numbers.reshape(len(found["rows"]), -1)


def verdicts(state: State) -> list[str]:
    """The sentences as the browser chooses them, by whether all cells of a grid are 0."""
    frame, live = framed(state.lesson, state), alive(state.lesson, state)
    return [
        item["other" if decoded(live["values"].get(item["grid"], frame.data["grids"][item["grid"]]["baseline"])).any()
             else "zero"]
        for item in items(frame) if item["type"] == "verdict"
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_board_says_of_five_functions_and_of_three_layers(language: str) -> None:
    words = catalogue(language)
    passes, fails = words["verdict_linear_passes"], words["verdict_linear_fails"]
    state = reader("linear", language=language)
    assert verdicts(state) == [passes, *[fails] * 4, words["verdict_linear_collapses"]]
    for place in range(3):
        edit(state, "linear.bias", (place,), 0.0)
    assert verdicts(state) == [passes, passes, *[fails] * 3, words["verdict_linear_collapses"]]
    edit(state, *SWITCHED["gelu"][:1], (), SWITCHED["gelu"][1])
    assert verdicts(state)[-1] == words["verdict_linear_does_not_collapse"]


def test_a_table_of_several_tensors_has_a_line_for_each() -> None:
    state = reader("linear")
    found, numbers = table(state, "title_linear_test_sum")
    assert [row["text"] for row in found["rows"]] == ["f(a)", "f(b)", "f(a) + f(b)", "f(a + b)", "difference"]
    assert [column["text"] for column in found["columns"]] == ["x0", "x1", "x2"]
    names = ("of_a", "of_b", "sum_of_outputs", "of_sum", "sum_difference")
    assert addresses(found) == [(f"linear.matrix.{name}", (place,)) for name in names for place in range(3)]
    assert numbers.tolist() == [state.trace[f"linear.matrix.{name}"].data.tolist() for name in names]
    edit(state, "linear.a", (0,), 4.0)
    assert table(state, "title_linear_test_sum")[1][0].tolist() == state.trace["linear.matrix.of_a"].data.tolist()


def test_a_switch_puts_an_activation_in_and_takes_it_out() -> None:
    (sections,) = (lesson.sections for name, lesson in lessons().items() if name == "linear")
    switches = [item for section in sections for item in section.items if isinstance(item, Switch)]
    assert [(item.grid.tensor, item.off, item.on) for item in switches] == [
        (f"{LAYERS}.relu", None, 1.0), (f"{LAYERS}.gelu", None, 1.0),
    ]
    drawn = [item for item in items(framed("linear", reader("linear"))) if item["type"] == "switch"]
    assert [(item["off"], item["on"]) for item in drawn] == [(None, 1.0)] * 2


@pytest.mark.parametrize("name", [None, "relu", "gelu"])
def test_the_chart_draws_what_bends_and_the_straight_lines_beside_it(name: str | None) -> None:
    chart = lessons()["linear"].chart
    assert chart is not None
    state = reader("linear")
    if name:
        edit(state, SWITCHED[name][0], (), SWITCHED[name][1])
    series = chart(state)["data"]
    assert len(series) == 6
    assert len({each["name"] for each in series}) == 6
    bends = [np.abs(np.diff(each["y"], 2)).max() > 1e-9 for each in series]
    # the straight lines are drawn last, on top
    assert bends == [name is not None] * 3 + [False] * 3
    if name is None:
        assert np.allclose([each["y"] for each in series[:3]], [each["y"] for each in series[3:]], atol=1e-12)
    # in the middle nothing is added
    middle = [each["y"][40] for each in series]
    assert series[0]["x"][40] == 0
    assert middle[:3] == pytest.approx(state.trace[f"{LAYERS}.z3"].data.tolist(), abs=1e-12)


def about(name: str, zero: bool, language: str = "en") -> str:
    return catalogue(language)[f"verdict_attention_{name}_{'same' if zero else 'other'}"]


@EVERY_PRESET
def test_what_the_board_says_of_attention(preset: str) -> None:
    """Held it is linear; scaled, added to, as a product, without softmax and in two layers it is not."""
    layers = reader(preset=preset).model.config.layers
    for layer in range(layers):
        state = reader("attention_linear", preset=preset, layer=layer)
        expected = [about("held", True), *(about(name, False) for name in ("scale", "sum", "products", "raw", "two"))]
        assert verdicts(state) == [*expected, about("two_held", True)]
        edit(state, "attention_linear.factor", (), 1.0)
        assert verdicts(state)[1] == about("scale", True)
        assert verdicts(state)[3:5] == [about("products", True), about("raw", True)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_token_alone(language: str) -> None:
    state = reader("attention_linear", text="on", language=language)
    told = verdicts(state)
    assert (told[2], told[5]) == (about("sum", True, language), about("two", True, language))


def test_with_qk_norm_only_adding_tells() -> None:
    """ε leaves a trace of the factor, too small to be seen in four decimals; the verdict says so."""
    state = reader("attention_linear", switches=(("qk_norm", True),))
    assert verdicts(state)[1] == catalogue("en")["verdict_attention_scale_other_qk_norm"]
    _, numbers = table(state, "title_attention_scale")
    assert np.abs(numbers[-1]).max() < 5e-5
    assert np.abs(table(state, "title_attention_sum")[1][-1]).max() > 0.01


def test_the_other_input_has_its_rows_turned_round() -> None:
    state = reader("attention_linear")
    rows = {grid["title"]: grid["rows"] for grid in framed("attention_linear", state).data["grids"].values()}
    titles = (catalogue("en")[f"title_attention_{name}"] for name in ("x", "other_x"))
    own, other = ([(row["text"], row["sub"]) for row in rows[title]] for title in titles)
    assert own == [("Cats", "0"), ("sit", "1"), ("on", "2")]
    assert other == [("on", "0"), ("sit", "1"), ("Cats", "2")]
    assert explanation(state, "layers.0.attention_linear.other_x", (0, 0, 1))["title"].endswith("[on, c1]")


@EVERY_PRESET
def test_the_last_position_stands_in_the_tables(preset: str) -> None:
    state = reader("attention_linear", preset=preset)
    last = len(state.ids) - 1
    found, numbers = table(state, "title_attention_weights")
    assert found["scale"] == "share"
    assert [column["sub"] for column in found["columns"]] == [str(place) for place in range(last + 1)]
    assert {(name, index[:3]) for name, index in addresses(found)} == {
        (f"layers.0.attention_linear.{name}.weights", (0, 0, last)) for name in ("once", "scaled")
    }
    assert numbers.sum(axis=1) == pytest.approx([1, 1])


def test_a_verdict_is_drawn_where_its_tensors_exist() -> None:
    there, missing = grid("logits", position="last"), grid("no.such.tensor")
    for table, drawn in ((there, True), (missing, False), (Rows("title_linear_a", (("x", missing),)), False)):
        verdict = Verdict(table, "verdict_linear_passes", "verdict_linear_fails")
        assert Drawing(board.view(reader())).exists(verdict) is drawn
