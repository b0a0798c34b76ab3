"""Lesson 32: which parameter and row it follows, its tables, its sliders, and what the step does to the loss."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest

from engine import Edit, Model, presets, run
from engine.optimizers import KINDS
from engine.training import Setting, start, train
from tests.ui.support import (
    ARCHITECTURES,
    EVERY_PRESET,
    addresses,
    alive,
    decoded,
    edit,
    framed,
    is_chinese,
    items,
    on_page,
    opened,
    reader,
    state_of,
    strictly,
    words_of,
)
from tests.ui.test_explanation import check, sample, worked_out
from ui import board, optimizer_cards, stepping
from ui.address import address, open_address
from ui.explanation import explanation
from ui.naming import short_name
from ui.state import State
from ui.text import LANGUAGES

LESSON = "optimizer"
UP = "layers.0.mlp.W_up"
TABLES = ("optimizer.embedding.weight.square_sum", "optimizer.lm_head.weight.square_sum")


def following(parameter: str, row: int = -1, **choices: Any) -> State:
    state = reader(LESSON, **choices)
    state.set_control("parameter", parameter)
    state.set_control("row", row)
    return state


def tables(state: State) -> list[dict[str, Any]]:
    """The tables of one row, a line for each stage."""
    grids = framed(LESSON, state).data["grids"].values()
    return [grid for grid in grids if grid["row_axis"] == state.say("axis_stage_of_step")]


def outcomes(state: State) -> tuple[Any, ...]:
    choices = state.choices
    return optimizer_cards.outcomes(
        choices.preset, choices.seed, choices.switches, state.ids, state.target, state.edits
    )


# ---- what is followed

@pytest.mark.parametrize(("parameter", "row", "expected"), [
    ("", -1, ("lm_head.weight", 90)), ("no.such.weight", 3, ("lm_head.weight", 3)),
    ("embedding.weight", -1, ("embedding.weight", 78)), ("final_norm.weight", 2, ("final_norm.weight", 0)),
    (UP, 3, (UP, 3)), (UP, 4, (UP, 0)),
])
def test_a_parameter_and_a_row_that_there_is(parameter: str, row: int, expected: tuple[str, int]) -> None:
    state = following(parameter, row)
    assert (stepping.parameter(state), stepping.row(state)) == expected or parameter == UP
    if parameter == UP and row == 4:  # beyond its rows: the one with the longest gradient
        lengths = np.linalg.norm(state.baseline[f"gradient.{UP}"].data, axis=1)
        assert lengths[stepping.row(state)] == lengths.max()


def test_the_row_follows_the_target() -> None:
    state = following("")
    state.set_control("target", 91)
    assert stepping.row(state) == 91


def test_a_tied_head_is_followed_under_the_embedding_s_name() -> None:
    state = following("", switches=(("tied_head", True),))
    assert (stepping.parameter(state), stepping.row(state)) == ("embedding.weight", 90)


def test_other_lessons_follow_nothing() -> None:
    state = following(UP, 2)
    state.lesson = "backward"
    assert (stepping.row(state), board.view(state).words) == (0, {})


def test_only_the_parameter_in_question_is_stepped() -> None:
    names = [name for name in following(UP).baseline if name.endswith(".updated")]
    assert names == [f"optimizer.{kind}.{UP}.updated" for kind in KINDS]


# ---- the board

@pytest.mark.parametrize("parameter", [*presets.load("cats").config.parameter_shapes()])
def test_every_parameter_has_a_table_for_each_kind(parameter: str) -> None:
    state = following(parameter)
    found = tables(state)
    assert [len(grid["rows"]) for grid in found] == [4, 6, 14]
    row, width = stepping.row(state), state.baseline[parameter].shape[-1]
    place = (row,) if len(state.baseline[parameter].shape) == 2 else ()
    for grid in found:
        cells = addresses(grid)
        assert len(cells) == width * len(grid["rows"])
        assert cells[:width] == [(parameter, (*place, column)) for column in range(width)]
        assert {index[:-1] for _, index in cells} == {place}


@pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
@EVERY_PRESET
def test_it_works_whatever_is_switched(preset: str, changes: dict[str, Any]) -> None:
    state = reader(LESSON, preset=preset)
    state.switch(**changes)
    strictly(framed(LESSON, state).data)
    strictly(alive(LESSON, state))
    assert len(tables(state)) == 3


def test_sliders_are_the_settings_of_every_kind() -> None:
    state = reader(LESSON)
    grids = framed(LESSON, state).data["grids"]
    sliders = [item for item in items(framed(LESSON, state)) if item["type"] == "slider"]
    assert [grids[item["grid"]]["tensor"] for item in sliders] == [
        f"optimizer.{name}" for name in ("clip", "learning_rate", "momentum", "beta1", "beta2", "weight_decay")
    ]
    for item in sliders:
        for value in (item["min"], item["max"]):
            tensor = grids[item["grid"]]["tensor"]
            edit(state, tensor, (), value)
            assert state.trace[tensor].number(()) == value


@pytest.mark.parametrize(("tensor", "value"), [
    ("optimizer.beta1", 1.0), ("optimizer.learning_rate", -1.0), ("optimizer.clip", 0.0),
    ("optimizer.adamw.step", 0.0), ("optimizer.adamw.step", 1.5),
])
def test_settings_out_of_bounds_are_refused_in_words(tensor: str, value: float) -> None:
    state = reader(LESSON)
    edit(state, tensor, (), value)
    assert state.edits == ()
    assert state.message is not None
    assert state.message[0] == "error"


@pytest.mark.parametrize("name", ["v_before", "squared", "v", "v_hat"])
@pytest.mark.parametrize(("language", "said"), [("en", "must be 0 or more, not −1."), ("zh", "不能小于 0，−1 不行。")])
def test_a_mean_of_squares_is_not_negative(name: str, language: str, said: str) -> None:
    state = reader(LESSON, language=language)
    edit(state, f"optimizer.adamw.lm_head.weight.{name}", (90, 1), -1.0)
    assert state.edits == ()
    assert state.message is not None
    assert said in state.message[1]
    assert "optimizer" not in state.message[1]
    edit(state, f"optimizer.adamw.lm_head.weight.{name}", (90, 1), 0.25)
    assert len(state.edits) == 1
    assert alive(LESSON, state)["message"] is None


def test_what_is_remembered_can_be_typed_in() -> None:
    """m = 0.9 · 0.5 + 0.1 · g and t = 3, by hand."""
    state = reader(LESSON)
    gradient = state.baseline["optimizer.lm_head.weight.gradient"].number((90, 1))
    edit(state, "optimizer.adamw.lm_head.weight.m_before", (90, 1), 0.5)
    edit(state, "optimizer.adamw.step", (), 3.0)
    m = 0.9 * 0.5 + 0.1 * gradient
    assert state.trace["optimizer.adamw.lm_head.weight.m"].number((90, 1)) == pytest.approx(m, rel=1e-14)
    assert state.trace["optimizer.adamw.lm_head.weight.m_hat"].number((90, 1)) == pytest.approx(m / (1 - 0.9**3))
    live = alive(LESSON, state)
    assert live["message"] is None
    again = open_address(dict(parse_qsl(address(state).removeprefix("?"))), None)
    again.lesson = LESSON
    assert (again.message, again.edits) == (None, state.edits)


def test_a_link_to_a_cell_of_another_parameter_s_step_is_no_broken_link() -> None:
    cell = f"optimizer.momentum.{UP}.velocity~2.3"
    state = open_address({"cell": cell, "parameter": UP}, None)
    assert state.message is None
    assert state.choices.selected == (f"optimizer.momentum.{UP}.velocity", (2, 3))


def test_cells_explain_themselves_without_the_parameter_s_long_name() -> None:
    assert short_name("optimizer.adamw.layers.1.attention.Wq.m_hat") == "adamw.m_hat"
    assert short_name("optimizer.layers.1.attention.Wq.gradient") == "clipped"
    assert short_name("optimizer.adamw.step") == "adamw.step"
    assert short_name("optimizer.gradient_length") == "gradient_length"
    told = explanation(reader(LESSON), "optimizer.adamw.lm_head.weight.ratio", (90, 3))
    assert told["title"] == "adamw.ratio[mats, c3]"
    assert [piece["label"] for piece in told["pieces"] if "label" in piece] == [
        "adamw.m_hat[mats, c3]", "adamw.size[mats, c3]",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("parameter", ["", UP, "final_norm.weight"])
def test_formulas_lines_and_words_of_every_stage(parameter: str, language: str) -> None:
    state = following(parameter, language=language)
    edit(state, "optimizer.adamw.step", (), 3.0)
    edit(state, f"optimizer.adamw.{stepping.parameter(state)}.v_before", (0,) * len(state.baseline[
        stepping.parameter(state)].shape), 0.2)
    for name, index in sample(state.trace):
        # a sum over a whole table is cut short
        if name.startswith("optimizer.") and name not in TABLES:
            check(state, name, index)
    for name in TABLES:
        told = explanation(state, name, ())
        assert worked_out(told["pieces"]) == pytest.approx(state.trace[name].number(()), rel=1e-7)


# ---- what it does to the loss

@EVERY_PRESET
def test_the_outcome_is_that_of_a_run_of_each_kind(preset: str) -> None:
    """Beside `engine.training`, whose steps PyTorch confirms; a large vocabulary is left out."""
    if presets.load(preset).config.vocab_size > 4096:
        return
    state = reader(LESSON, preset=preset)
    edit(state, "layers.0.attention.Wq", (0, 1), 0.7)
    edit(state, "optimizer.learning_rate", (), 0.0005)
    targets = [[*state.ids[1:], presets.TARGETS[preset]]]
    before, *after = outcomes(state)
    moved = run(state.model, [list(state.ids)], targets=targets, edits=[Edit("layers.0.attention.Wq", (0, 1), 0.7)])
    assert before[0] == moved["loss"].number(())
    edited = Model(state.model.config, {name: moved[name].data for name in state.model.parameters})
    for kind, (loss, chance) in zip(KINDS, after, strict=True):
        setting = Setting(kind, {"learning_rate": 0.0005}, clips=True)
        _, (trace, _) = train(start(edited), [list(state.ids)], targets, setting, 2)
        assert loss == pytest.approx(trace["loss"].number(()), rel=1e-13)
        assert chance == pytest.approx(trace["loss.target_probability"].data[0, -1], rel=1e-13)
        assert loss < before[0]


def test_a_step_of_momentum_is_one_of_sgd_while_nothing_is_remembered() -> None:
    state = reader(LESSON)
    _, sgd, momentum, adamw = outcomes(state)
    assert sgd == momentum != adamw
    edit(state, "optimizer.momentum.lm_head.weight.velocity_before", (90, 0), 0.5)
    _, sgd, momentum, _ = outcomes(state)
    assert sgd != momentum


# ---- the page

@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_tells_what_each_step_does_to_the_loss(language: str) -> None:
    app = opened(lang=language)
    on_page(app, "optimizer")
    words = words_of(app)
    state = state_of(app)
    for loss, _ in outcomes(state):
        assert f"{loss:.4f}" in words
    assert is_chinese(words) == (language == "zh")
    app.selectbox(key=f"parameter_{language}_cats").set_value(UP).run()
    assert not app.exception
    assert stepping.parameter(state_of(app)) == UP
    row = app.selectbox(key=f"row_{language}_cats")
    row.set_value(1).run()
    assert board.view(state_of(app)).row == 1
    assert len(decoded(next(iter(tables(state_of(app))))["baseline"])) == 4 * 8


def test_a_large_vocabulary_gets_a_sentence_instead() -> None:
    app = opened(lang="en", preset="today")
    on_page(app, "optimizer")
    assert "three whole tables" in " ".join(element.proto.body for element in app.get("html"))
