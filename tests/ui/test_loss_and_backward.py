"""The lessons on loss and on backpropagation: boards, the chosen target, and what the panel adds to a gradient."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest

from engine import Edit, explain, presets
from tests.ui.support import (
    ARCHITECTURES,
    EVERY_PRESET,
    addresses,
    alive,
    decoded,
    edit,
    framed,
    is_chinese,
    on_page,
    opened,
    page,
    reader,
    reopened,
    send,
    state_of,
    strictly,
)
from tests.ui.test_explanation import close, every_cell, nearly, python, sample, worked_out
from ui import naming, stations, target_choice
from ui.explanation import explanation, most_operands, words
from ui.formulas import pieces
from ui.layout import EVERYWHERE, STATIONS
from ui.numpy_lines import numpy_line
from ui.state import State
from ui.text import LANGUAGES, say

BOTH = ("loss", "backward")
EVERY_ONE = pytest.mark.parametrize("lesson", BOTH)
Q = "layers.0.attention.q_rotated"
UP = "layers.0.mlp.up"


def pairs(state: State) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The grids that stand as tensor and gradient."""
    frame = framed("backward", state)
    items = [item for part in frame.data["layout"] for item in part["items"] if item["type"] == "pair"]
    grids = frame.data["grids"]
    return [(grids[value], grids[gradient]) for value, gradient in (item["grids"] for item in items)]


def facts(state: State, name: str, *index: int) -> dict[str, float]:
    return {fact["label"]: fact["value"] for fact in explanation(state, name, index)["facts"]}


# ---- the boards

@EVERY_PRESET
def test_each_tensor_has_its_gradient_under_it_cell_for_cell(preset: str) -> None:
    state = reader("backward", preset=preset)
    shown = []
    for station in STATIONS:
        state.set_control("station", station)
        shown += pairs(state)
    assert len(shown) > 25
    for value, gradient in shown:
        assert gradient["tensor"] == f"gradient.{value['tensor']}"
        assert gradient["title"].startswith("∂loss/∂")
        assert [(f"gradient.{name}", index) for name, index in addresses(value)] == addresses(gradient)
        assert (value["rows"], value["columns"]) == (gradient["rows"], gradient["columns"])
        assert value["hue"] == gradient["hue"]
        assert (gradient["scale"], gradient["kind"], gradient["minus_infinity"]) == ("diverging", "computed", False)
        numbers = state.trace[gradient["tensor"]]
        flat = [np.ravel_multi_index(index, numbers.shape) if index else 0 for _, index in addresses(gradient)]
        np.testing.assert_array_equal(decoded(gradient["baseline"]), numbers.take(np.array(flat)))


@pytest.mark.parametrize("switches", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
@EVERY_ONE
def test_every_architecture_has_its_board(lesson: str, switches: dict[str, Any]) -> None:
    for layer, head in ((0, 0), (1, 1)):
        state = reader(lesson, preset="scratch", switches=tuple(switches.items()), layer=layer, head=head)
        shown = {name for grid in framed(lesson, state).data["grids"].values() for name, _ in addresses(grid)}
        assert "loss" in shown
        edit(state, "layers.0.attention.Wq", (0, 1), 0.5)
        strictly(alive(lesson, state))
        if lesson == "backward":
            assert stations.chosen(state) == EVERYWHERE
            needed = {f"layers.{layer}.{name}" for name in ("mlp.up", "attention.q", "attention.Wo", "output")}
            assert {*needed, *(f"gradient.{name}" for name in needed)} <= shown


@EVERY_ONE
def test_an_edited_value_moves_the_gradients(lesson: str) -> None:
    state = reader(lesson)
    frame = framed(lesson, state)
    edit(state, "lm_head.weight", (90, 1), 0.9)
    moved = {frame.data["grids"][key]["tensor"] for key in alive(lesson, state)["values"]}
    assert {"loss", "gradient.logits"} <= moved
    if lesson == "backward":
        assert {f"gradient.{Q}", "gradient.layers.0.attention.Wq", "gradient.embedding.weight"} <= moved


def test_a_gradient_can_be_set_by_hand_and_put_back() -> None:
    state = reader("backward")
    loss = state.trace["loss"].number(())
    edit(state, "gradient.layers.1.output", (0, 2, 1), 0.0)
    assert state.trace["loss"].number(()) == loss
    told = explanation(state, "gradient.layers.1.output", (0, 2, 1))
    assert told["value"] == 0
    assert all(say("en", key) in told["words"] for key in ("explain_override", "check_set"))
    assert told["computed"] == state.baseline["gradient.layers.1.output"].number((0, 2, 1))
    other = reopened(state)
    assert other.edits == (Edit("gradient.layers.1.output", (0, 2, 1), 0.0),)
    send(state, "undo")
    assert state.trace is state.baseline


def test_a_small_model_shows_the_whole_way_and_a_large_one_a_station() -> None:
    small, large = reader("backward"), reader("backward", preset="little_world")
    assert (stations.chosen(small), stations.chosen(large)) == (EVERYWHERE, "head")
    assert EVERYWHERE not in stations.choices(large)
    everything = {value["tensor"] for value, _ in pairs(small)}
    by_station = []
    for station in STATIONS:
        small.set_control("station", station)
        by_station.append({value["tensor"] for value, _ in pairs(small)})
        large.set_control("station", station)
        cells = sum(len(addresses(grid)) for grid in framed("backward", large).data["grids"].values())
        assert cells < 10_000, "more than a board takes at the speed of an edit"
    assert set().union(*by_station) == everything
    assert reopened(small).control("station") == "embedding"
    large.set_control("station", EVERYWHERE)  # from a link to a small model
    assert stations.chosen(large) == "head"
    small.lesson = "loss"
    assert stations.chosen(small) == EVERYWHERE


def test_tensors_of_two_layers_are_told_apart() -> None:
    titles = {value["tensor"]: (value["title"], gradient["title"]) for value, gradient in pairs(reader("backward"))}
    assert titles["layers.0.output"] == ("L1·output", "∂loss/∂L1·output")
    assert titles["layers.1.output"] == ("L2·output", "∂loss/∂L2·output")
    assert titles["layers.0.mlp.output"] == ("mlp.output", "∂loss/∂mlp.output"), "of which the board has one"


# ---- the target

def test_the_target_decides_the_last_position_alone() -> None:
    state = reader("loss")
    assert target_choice.chosen(state) == 90
    own = state.baseline["loss.per_position"].data
    state.set_control("target", 91)
    assert target_choice.chosen(state) == 91
    other = state.baseline["loss.per_position"].data
    assert own[0, :2].tolist() == other[0, :2].tolist()
    assert own[0, 2] < other[0, 2]
    assert reopened(state).target == 91
    assert framed("loss", state).data["targets"] == [45, 78, 91]
    state.lesson = "lm_head"
    assert state.target == -1, "only where predictions are compared"


@pytest.mark.parametrize("lesson", ["loss", "data"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_target_is_told_from_an_id_that_is_looked_up(language: str, lesson: str) -> None:
    """The sentence itself gives all targets but the last, which is chosen, or comes from the text that goes on."""
    state = reader(lesson, language=language)
    last = "behind" if lesson == "data" else "chosen"
    for position, key, token in ((0, "ids_target", "sit"), (1, "ids_target", "on"), (2, f"ids_target_{last}", "mats")):
        said = explanation(state, "targets", (0, position))["words"]
        assert said == say(language, f"explain_{key}", token=token)
    assert explanation(state, "input_ids", (0, 0))["words"] == say(language, "explain_ids")


@EVERY_PRESET
def test_what_the_target_is_chosen_from(preset: str) -> None:
    state = reader("loss", preset=preset)
    offered = target_choice.offered(state)
    own = presets.TARGETS[preset]
    assert next(iter(offered)) == -1
    assert own not in offered, "it is there already, as the first"
    assert naming.token_label(state.model, own) in offered[-1]
    assert {*presets.CANDIDATES[preset], *state.ids} - {own} <= {*offered}
    if state.model.config.vocab_size < 300:
        assert {*offered} == {-1, *range(state.model.config.vocab_size)} - {own}
    state.set_control("target", 777_777)  # no such token: the preset's own
    assert target_choice.chosen(state) == own


def test_the_choice_is_a_list_on_the_page() -> None:
    app = opened(lang="en")
    on_page(app, "loss")
    (box,) = [box for box in app.selectbox if box.label == say("en", "choose_target")]
    box.select(91).run()
    assert not app.exception
    assert state_of(app).target == 91


# ---- the picture

def test_the_curve_goes_as_far_up_as_a_point_does() -> None:
    draw = page("loss").chart
    assert draw is not None
    state = reader("loss")
    edit(state, "logits", (0, 2, 90), -10.0)
    curve, before, points, uniform = draw(state)["data"]
    assert max(curve["y"]) == max(points["y"]) > 15 > max(before["y"] + uniform["y"])
    assert curve["x"] == sorted(curve["x"], reverse=True)


@EVERY_PRESET
def test_points_of_the_picture_lie_on_its_curve(preset: str) -> None:
    draw = page("loss").chart
    assert draw is not None
    state = reader("loss", preset=preset)
    curve, points, uniform = draw(state)["data"]
    np.testing.assert_allclose(curve["y"], -np.log(curve["x"]), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(points["y"], -np.log(points["x"]), rtol=1e-12, atol=1e-15)
    assert len(points["x"]) == len(state.ids)
    size = state.model.config.vocab_size
    assert (uniform["x"], uniform["y"]) == ([1 / size], [log(size)])
    edit(state, "logits", (0, len(state.ids) - 1, 2), 5.0)
    figure = draw(state)
    strictly(figure)
    assert [series["name"] for series in figure["data"]][1] == say("en", "baseline")
    assert figure["data"][1]["y"] == points["y"]


def test_a_probability_of_nothing_leaves_the_picture() -> None:
    draw = page("loss").chart
    assert draw is not None
    state = reader("loss")
    edit(state, "logits", (0, 2, 90), -2000.0)
    strictly(draw(state))
    edit(state, "layers.0.norm1.weight", (0,), 1e308)
    strictly(draw(state))


# ---- explanations

@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("preset", ["cats", "scratch"])
@EVERY_ONE
def test_every_tensor_explains_itself(lesson: str, preset: str, language: str) -> None:
    """Formula, NumPy line and words; without the differences, which take runs for every cell."""
    state = reader(lesson, preset=preset, language=language)
    edit(state, "layers.0.attention.weights", (0, 0, 2, 1), 0.7)
    for name, index in sample(state.trace):
        assert_told(state, name, index)


def test_every_tensor_of_today_explains_itself() -> None:
    state = reader("backward", preset="today", language="zh", text="天真")
    cells = [cell for cell in every_cell(state) if cell[0].startswith(("gradient.", "loss"))]
    for name, index in cells[::40]:
        assert_told(state, name, index)


def assert_told(state: State, name: str, index: tuple[int, ...]) -> None:
    cell = explain(state.trace, name, index, most=most_operands(state.trace[name], index))
    shown = cell.computed or cell
    formula = pieces(state, shown)
    assert python(numpy_line(shown), state.trace) == close(shown.value), (name, index)
    assert not formula or worked_out(formula) == nearly(state, shown.value), (name, index)
    for operand in formula:
        if "tensor" in operand:
            assert float(operand["value"]) == state.trace[operand["tensor"]].number(tuple(operand["index"]))
    said = words(state, cell)
    assert not {"{", "}"} & set(said)
    assert is_chinese(said) == (state.choices.language == "zh"), (name, said)


def test_a_gradient_is_called_after_its_tensor() -> None:
    state = reader("backward")
    told = explanation(state, f"gradient.{Q}", (0, 0, 2, 1))
    assert told["title"] == "∂loss/∂L1·q_rotated[h0, on, d1]"
    assert [piece["label"] for piece in told["pieces"] if "label" in piece] == [
        f"{name}[h0, {place}]" for key in ("Cats", "sit", "on")
        for name, place in (("∂loss/∂L1·dot", f"on, {key}"), ("L1·k_rotated", f"{key}, d1"))
    ]
    assert explanation(state, "gradient.loss", ())["title"] == "∂loss/∂loss"
    assert explanation(state, "gradient.final_norm.weight", (2,))["title"] == "∂loss/∂final_norm.weight[c2]"


def test_consumers_are_named_and_what_came_by_way_of_each() -> None:
    state = reader("backward")
    one = explanation(state, f"gradient.{Q}", (0, 0, 2, 1))
    assert "comes back to L1·q_rotated by way of L1·dot alone" in one["words"]
    assert [fact["label"] for fact in one["facts"][:2]] == ["L1·q_rotated[h0, on, d1]", say("en", "check_recorded")]
    name, index = "gradient.layers.0.residual1", (0, 2, 1)
    many = explanation(state, name, index)
    ways = [fact for fact in many["facts"] if fact["label"].startswith("by way of")]
    assert [fact["label"] for fact in ways] == [
        f"by way of L1·{consumer}" for consumer in ("output", "norm2.normalized", "norm2.mean_square")
    ]
    assert sum(fact["value"] for fact in ways) == pytest.approx(state.trace[name].number(index), rel=1e-12)
    assert ways[0]["value"] == state.trace["gradient.layers.0.output"].number(index), "the straight road"
    assert say("en", "gradient_way_start", goal="loss") in explanation(state, "gradient.loss", ())["words"]


def test_a_value_set_by_hand_is_spoken_of() -> None:
    state = reader("backward")
    edit(state, Q, (0, 0, 2, 1), 0.5)
    assert say("en", "gradient_set") in explanation(state, f"gradient.{Q}", (0, 0, 2, 1))["words"]
    assert say("en", "gradient_set") not in explanation(state, f"gradient.{Q}", (0, 0, 2, 0))["words"]
    before = explanation(state, "gradient.layers.0.attention.q_heads", (0, 0, 2, 1))
    assert "× 0" in "".join(piece.get("text", "") for piece in before["pieces"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_difference_stands_beside_value_and_gradient(language: str) -> None:
    state = reader("backward", language=language)
    edit(state, "layers.0.attention.Wq", (0, 1), 0.37)
    for name, index in ((Q, (0, 0, 2, 1)), ("embedding.weight", (78, 1)), ("norm_epsilon", ()), ("loss", ())):
        value, gradient = (explanation(state, each, index)["facts"] for each in (name, f"gradient.{name}"))
        assert (value[0]["tensor"], value[0]["index"]) == (f"gradient.{name}", list(index))
        assert (gradient[0]["tensor"], gradient[0]["index"]) == (name, list(index)), "each leads to the other"
        assert gradient[0]["value"] == state.trace[name].number(index)
        for panel in (value, gradient):
            recorded, difference, gap = panel[-3:]
            assert recorded["value"] == state.trace[f"gradient.{name}"].number(index)
            assert difference["value"] == pytest.approx(recorded["value"], abs=1e-10)
            assert gap["value"] == abs(difference["value"] - recorded["value"])
            assert all(is_chinese(fact["label"]) == (language == "zh") for fact in (recorded, gap))


def test_where_there_is_no_difference_or_another_one() -> None:
    state = reader("backward")
    masked = explanation(state, "layers.0.attention.masked_scores", (0, 0, 0, 2))
    assert masked["facts"] == []
    assert say("en", "check_infinite") in masked["words"]
    edit(state, UP, (0, 2, 3), 0.0)
    kinked = explanation(state, UP, (0, 2, 3))
    assert say("en", "check_kink", name="L1·mlp.up") in kinked["words"]
    assert facts(state, UP, 0, 2, 3)[say("en", "check_gap")] > 1e-4
    assert "kink" not in explanation(state, UP, (0, 2, 1))["words"]
    send(state, "undo")
    edit(state, "probabilities.shifted", (0, 2, 5), -2.0)
    held = explanation(state, "logits", (0, 2, 90))
    assert say("en", "check_edited") in held["words"]
    for name in ("loss.log_sum", "loss.target_shifted"):
        send(state, "undo")
        edit(state, name, (0, 1), -0.5)
        assert say("en", "check_edited") in explanation(state, "lm_head.weight", (90, 0))["words"]
    assert explanation(state, "targets", (0, 1))["facts"] == []
    assert explanation(state, "loss.target_probability", (0, 1))["facts"] == []


def test_near_the_end_of_the_range_there_is_no_difference() -> None:
    state = reader("backward")
    edit(state, "lm_head.weight", (90, 0), 1.797e308)
    told = explanation(state, "lm_head.weight", (90, 0))
    assert not [fact for fact in told["facts"] if fact["label"] == say("en", "check_gap")]
    send(state, "select", tensor="lm_head.weight", index=[90, 0])
    strictly(alive("backward", state))


def test_gradients_of_something_else_have_no_check() -> None:
    """Where the question is a logit, the loss has no part."""
    state = reader("raise_logit")
    (name, *_) = [name for name in state.trace if name.startswith("gradient.layers")]
    index = (0,) * len(state.trace[name].shape)
    told = explanation(state, name, index)
    assert told["title"].startswith("∂")
    assert not told["title"].startswith("∂loss")
    assert not [fact for fact in told["facts"] if fact["label"] == say("en", "check_recorded")]


def test_the_slider_follows_a_gradient_that_is_looked_at() -> None:
    """A selected gradient keeps its panel while another cell is edited."""
    state = reader("backward")
    send(state, "select", tensor=f"gradient.{Q}", index=[0, 0, 2, 1], trail="start")
    edit(state, "layers.0.attention.Wq", (0, 1), 0.6)
    data = alive("backward", state)
    assert data["explanation"]["value"] == state.trace[f"gradient.{Q}"].number((0, 0, 2, 1))
    assert data["editor"]["title"] == "∂loss/∂L1·q_rotated[h0, on, d1]"
    assert (data["editor"]["range"], data["editor"]["minus_infinity"]) == ([-2, 2], False)
    strictly(data)
