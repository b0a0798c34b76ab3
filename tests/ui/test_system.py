"""Lesson 28: every box of the article's first picture is a place in the app, and shows where its part stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import presets
from tests.ui.support import (
    ARCHITECTURES,
    EVERY_PRESET,
    alive,
    applies,
    decoded,
    edit,
    framed,
    items,
    numbers_at,
    on_page,
    opened,
    page,
    reader,
    send,
    strictly,
)
from tests.ui.support import addresses as cells_of
from ui import flow, navigation, target_choice
from ui.prose import title
from ui.state import State
from ui.text import LANGUAGES

LESSON = "system"
LEFT, RIGHT, MODEL = "system_training", "system_inference", "system_model"
# the picture, as the first article draws it, box by box; and the lessons that each may lead to
ARTICLE = {
    LEFT: {
        "Dataset / Tokenizer": ("data", "data"), "Loss (Targets)": ("loss", "loss"),
        "Backward": ("backward", "backward"), "Optimizer": ("optimizer", "optimizer"),
        "Update Parameters": ("update", "optimizer"), "Repeat Training": ("repeat_training", "training"),
    },
    MODEL: {
        "Input IDs": ("ids", "embedding"), "Forward": ("forward", "overview"), "Logits": ("logits", "lm_head"),
    },
    RIGHT: {
        "Prompt / Tokenizer": ("prompt", "tokens"), "Token Selection": ("select", "choosing"),
        "Next Token": ("next", "choosing"), "Decode + KV Cache": ("decode", "generating"),
        "Repeat Forward": ("repeat_forward", "generating"), "Output Text": ("text", "tokens"),
    },
}
BOXES = [(part, name, *place) for part, boxes in ARTICLE.items() for name, place in boxes.items()]


def picture(state: State) -> dict[str, Any]:
    (found,) = (item for item in items(framed(LESSON, state)) if item["type"] == "flow")
    return found


def boxes(state: State) -> dict[str, dict[str, Any]]:
    return {box["id"]: box for box in picture(state)["blocks"]}


def shown(state: State) -> dict[str, list[float]]:
    """The numbers of every box that has any, as the browser gets them: of the frame, or what an edit made of them."""
    grids, values = framed(LESSON, state).data["grids"], alive(LESSON, state)["values"]
    return {
        name: decoded(values.get(box["cells"], grids[box["cells"]]["baseline"])).tolist()
        for name, box in boxes(state).items() if box["cells"]
    }


# ---- the article's picture

def test_the_picture_has_the_article_s_boxes_and_no_others() -> None:
    drawn = flow.blocks("system", presets.load("cats").config, 0)
    assert sorted(block.id for block in drawn) == sorted(place for _, _, place, _ in BOXES)
    for part in ARTICLE:
        own = [block.id for block in drawn if part in (block.side, block.group)]
        assert own == [place for place, _ in ARTICLE[part].values()]


@pytest.mark.parametrize(("part", "name", "box", "lesson"), BOXES, ids=[name for _, name, _, _ in BOXES])
def test_every_box_is_a_place_in_the_app_that_works(part: str, name: str, box: str, lesson: str) -> None:
    """It leads to a lesson that stands in the list, shows *Cats sit on*, and has something on its board."""
    state = reader(LESSON)
    assert boxes(state)[box]["lesson"] == lesson
    assert lesson in navigation.LESSONS
    assert applies(lesson, "cats")
    send(state, "go", lesson=lesson)
    assert state.destination == lesson
    there = reader(lesson)
    assert page(lesson).sections
    assert framed(lesson, there).data["layout"]
    strictly(alive(lesson, there))
    assert all(title(lesson, language) for language in LANGUAGES)


def test_the_loops_come_back_to_the_model() -> None:
    drawn = boxes(reader(LESSON))
    assert {name: box["from"] for name, box in drawn.items() if box["from"]} == {
        "ids": "repeat_forward", "forward": "repeat_training",
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_sides_have_a_heading(language: str) -> None:
    drawn = picture(reader(LESSON, language=language))
    assert list(drawn["sides"]) == [LEFT, RIGHT]
    assert all(drawn["sides"].values())
    assert {box["side"] for box in drawn["blocks"]} == {LEFT, RIGHT, None}
    assert len({box["group"] for box in drawn["blocks"]} - {None}) == 1


# ---- the state of each box

@EVERY_PRESET
def test_every_box_shows_the_trace(preset: str) -> None:
    state = reader(LESSON, preset=preset)
    grids = framed(LESSON, state).data["grids"]
    for name, box in boxes(state).items():
        if name in ("repeat_training", "repeat_forward"):
            assert box["cells"] is None
            continue
        grid = grids[box["cells"]]
        np.testing.assert_array_equal(decoded(grid["baseline"]), numbers_at(state.trace, cells_of(grid)))


def test_cats_sit_on() -> None:
    state = reader(LESSON)
    now = shown(state)
    assert (now["prompt"], now["data"], now["ids"]) == ([12, 45, 78], [45, 78, 90], [12, 45, 78])
    assert now["text"] == [12, 45, 78, *now["next"]]
    assert now["logits"][0] == pytest.approx(0.9073, abs=5e-5)
    assert len(now["logits"]) == len(now["select"]) == 10
    grids = framed(LESSON, state).data["grids"]
    looks = {name: grids[box["cells"]]["names"] for name, box in boxes(state).items() if box["cells"]}
    assert {name for name, is_token in looks.items() if is_token} == {"data", "prompt", "next", "text"}
    # each rank with its token above it, and a draw that is one of many
    for box in ("logits", "select"):
        above = grids[boxes(state)[box]["names"]]
        assert above["names"]
        assert decoded(above["baseline"])[:2].tolist() == [90, 0]
        assert above["columns"] == grids[boxes(state)[box]["cells"]]["columns"]
    assert boxes(state)["next"]["shape"] == ""
    # the row of the token that should follow
    for box in ("optimizer", "update"):
        assert {index[0] for _, index in cells_of(grids[boxes(state)[box]["cells"]])} == {90}


def test_an_edit_moves_both_sides() -> None:
    state = reader(LESSON)
    before = shown(state)
    edit(state, "layers.1.output", (0, 2, 3), 1.0)
    after = shown(state)
    still = {name for name in before if before[name] == after[name]}
    assert still <= {"data", "prompt", "ids", "decode", "next", "text"}
    assert after["loss"] != before["loss"]
    assert after["backward"] != before["backward"]


def test_settings_belong_to_one_side() -> None:
    state = reader(LESSON)
    before = shown(state)
    edit(state, "choosing.temperature", (), 0.0)
    cold = shown(state)
    assert cold["text"] == [12, 45, 78, 90]
    assert {name for name in before if before[name] != cold[name]} == {"select", "next", "text"}
    edit(state, "optimizer.learning_rate", (), 0.5)
    assert {name for name in cold if cold[name] != shown(state)[name]} == {"optimizer", "update"}


def test_another_target_changes_the_left_side_alone() -> None:
    state = reader(LESSON)
    before = shown(state)
    state.set_control("target", 91)
    assert target_choice.chosen(state) == 91
    after = shown(state)
    assert after["data"] == [45, 78, 91]
    assert {name for name in before if before[name] != after[name]} == {
        "data", "loss", "backward", "optimizer", "update",
    }


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_any_architecture_has_the_picture(architecture: str) -> None:
    state = reader(LESSON)
    state.switch(**ARCHITECTURES[architecture])
    now = shown(state)
    assert np.isfinite(now["loss"]).all()
    # what earlier positions would change anyway cannot be kept
    assert ("decode" in now) == state.model.config.causal
    assert len(boxes(state)) == len(BOXES)


# ---- the page

@EVERY_PRESET
def test_the_page(preset: str) -> None:
    app: AppTest = opened(lang="zh", preset=preset)
    on_page(app, "system")
    assert [element.value for element in app.title] == [title(LESSON, "zh")]
    assert any(box.key.startswith("target_zh") for box in app.selectbox)
