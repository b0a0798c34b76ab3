"""Lesson 29: the reader's text and settings, the cards, and a row of a batch on the board."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import InputError, presets
from tests.ui.support import EVERY_PRESET, alive, framed, on_page, opened, reader, state_of, words_of
from ui import dataset
from ui.address import address, open_address
from ui.dataset import Cut
from ui.state import State
from ui.text import LANGUAGES, explain_error

LESSON = "data"


def on_data(**choices: Any) -> State:
    return reader(LESSON, **choices)


def under(state: State, **controls: int | str) -> Cut:
    for name, value in controls.items():
        state.set_control(name, value)
    return dataset.cut(state)


# ---- what is cut

@EVERY_PRESET
def test_the_first_row_is_what_the_board_shows(preset: str) -> None:
    state = on_data(preset=preset)
    now = dataset.cut(state)
    inputs, targets = now.pairs(now.batches[0])
    assert tuple(inputs[0].tolist()) == state.ids
    assert targets[0].tolist() == state.trace["targets"].data[0].tolist()
    assert (now.block, now.stride, now.size, now.seed) == (len(state.ids), len(state.ids), 2, 0)


def test_the_example_s_windows_by_hand() -> None:
    now = dataset.cut(on_data())
    assert now.ids == (12, 45, 78, 90, 12, 45, 78, 91, 12, 45, 78, 90)
    assert list(now.starts) == [0, 3, 6]
    assert now.batches == [(0, 3), (6,)]
    assert now.left_over == 2
    inputs, targets = now.pairs((6,))
    assert (inputs.tolist(), targets.tolist()) == ([[78, 91, 12]], [[91, 12, 45]])


def test_tasks() -> None:
    """Stride 1: nine windows. Stride 4: three windows that read the same and are answered by mats, chairs, mats."""
    state = on_data()
    assert len(under(state, block_stride=1).starts) == 9
    now = under(state, block_stride=4, batch_size=3)
    inputs, targets = now.pairs(now.batches[0])
    assert inputs.tolist() == [[12, 45, 78]] * 3
    assert targets[:, -1].tolist() == [90, 91, 90]


@pytest.mark.parametrize("preset", ["cats", "today"])
def test_windows_are_no_longer_than_the_model_reads(preset: str) -> None:
    state = on_data(preset=preset)
    assert under(state, block=32).block == 32
    assert not dataset.cut(state).starts
    assert dataset.cut(state).left_over == len(dataset.cut(state).ids)


@pytest.mark.parametrize(("typed", "code"), [
    ("Cats dance", "unknown_word"), (" ", "empty"), ("999", "id_out_of_range"),
])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_that_cannot_be_read(typed: str, code: str, language: str) -> None:
    state = on_data(language=language)
    with pytest.raises(InputError) as caught:
        under(state, dataset=typed)
    assert caught.value.code == code
    assert explain_error(language, caught.value)
    assert dataset.text(state) == typed


@EVERY_PRESET
def test_a_link_brings_text_and_settings_back(preset: str) -> None:
    state = on_data(preset=preset)
    now = under(state, dataset=presets.TEXTS[preset] + " " + presets.TEXTS[preset], block=2, block_stride=5,
                batch_size=4, shuffle=7, batch=1)
    again = open_address(dict(parse_qsl(address(state)[1:])), None)
    again.lesson = LESSON
    assert again.message is None
    assert dataset.cut(again) == now
    assert dataset.looked_at(again, now) == 1


@pytest.mark.parametrize(("name", "value"), [
    ("block", "33"), ("block_stride", "65"), ("batch_size", "0"), ("batch_size", "7"), ("shuffle", "-1"),
    ("batch", "x"), ("dataset", "x" * 601),
])
def test_a_link_with_settings_that_cannot_be_is_broken(name: str, value: str) -> None:
    assert open_address({name: value}, None).message is not None


# ---- the board

@EVERY_PRESET
def test_any_row_can_be_put_on_the_board(preset: str) -> None:
    state = on_data(preset=preset)
    now = under(state, block=3, block_stride=2)
    for starts in now.batches:
        inputs, targets = (array.tolist() for array in now.pairs(starts))
        for row, wanted in zip(inputs, targets, strict=True):
            dataset.put_on_board(state, tuple(row), wanted[-1])
            assert list(state.ids) == row
            assert state.trace["targets"].data[0].tolist() == wanted
            alive(LESSON, state)


@EVERY_PRESET
def test_what_the_board_picks_at_the_targets(preset: str) -> None:
    state = on_data(preset=preset)
    framed(LESSON, state)
    trace = state.trace
    picked = [trace["probabilities"].row(0, at)[target] for at, target in enumerate(trace["targets"].data[0])]
    assert np.array_equal(trace["loss.target_probability"].data[0], picked)


# ---- the page

def page(**query: str) -> AppTest:
    return again(opened(**{"lang": "en", **query}))


def again(app: AppTest) -> AppTest:
    return on_page(app, "data")


@pytest.mark.parametrize(("query", "said"), [
    ({}, "Characters: 52. Tokens: 12."),
    ({}, "Windows: 3, each of T + 1 = 4 tokens; batches: 2. Tokens left over at the end: 2."),
    ({}, "Batch 1 of 2: inputs and targets are [B, T] = [2, 3] each."),
    ({"batch": "1"}, "Batch 2 of 2: inputs and targets are [B, T] = [1, 3] each."),
    ({"batch": "99"}, "Batch 2 of 2"), ({"block": "12"}, "Tokens in the text: 12; one window needs T + 1 = 13."),
    ({"dataset": "Cats dance"}, "dance"), ({"dataset": "Cats"}, "Characters: 4. Tokens: 1."),
    ({"dataset": "1 " * 40, "block_stride": "1"}, "Drawn are the first 12."),
    ({"lang": "zh"}, "窗口 3 个，每个 T + 1 = 4 个 token；一共 2 批。末尾剩下 2 个 token 用不上。"),
])
def test_the_cards_say_how_it_stands(query: dict[str, str], said: str) -> None:
    assert said in words_of(page(**query))


def test_windows_and_pairs_are_drawn() -> None:
    said = re.sub(" +", " ", words_of(page(block_stride="4")))
    assert "0 Cats sit on mats 4 Cats sit on chairs 8 Cats sit on mats" in said
    assert "row 0, from 0 input Cats 12 sit 45 on 78 target sit 45 on 78 mats 90" in said
    assert "row 1, from 4 input Cats 12 sit 45 on 78 target sit 45 on 78 chairs 91" in said


def test_settings_and_steps() -> None:
    app = page()
    state = state_of(app)
    app.button(key="data_next_en").click().run()
    again(app)
    assert state.control("batch") == 1
    assert app.button(key="data_next_en").disabled
    app.number_input(key="data_block_stride_en").set_value(1).run()
    again(app)
    assert (state.control("block_stride"), state.control("batch")) == (1, 0), "another cut begins at its first batch"
    app.text_area(key="dataset_en_cats").set_value("on sit on sit on").run()
    again(app)
    assert dataset.cut(state).ids == (78, 45, 78, 45, 78)
    app.text_area(key="dataset_en_cats").set_value("").run()
    again(app)
    assert app.text_area(key="dataset_en_cats").value == presets.TEXTS["cats"]


@pytest.mark.parametrize(("name", "typed", "taken"), [
    ("block_stride", 99, 64), ("block_stride", 0, 1), ("batch_size", 7, 6), ("shuffle", -1, 0), ("block", 33, 32),
])
def test_numbers_out_of_range_become_the_nearest(name: str, typed: int, taken: int) -> None:
    app = page()
    app.number_input(key=f"data_{name}_en").set_value(typed).run()
    again(app)
    assert app.number_input(key=f"data_{name}_en").value == state_of(app).control(name) == taken


def test_a_text_that_is_too_long_stays_to_be_shortened() -> None:
    app = page()
    app.text_area(key="dataset_en_cats").set_value("Cats " * 192).run()
    assert "At most 600 characters; this has 960." in words_of(app)
    assert app.text_area(key="dataset_en_cats").value == "Cats " * 192
    assert dataset.text(state_of(app)) == presets.TEXTS["cats"]
    app.text_area(key="dataset_en_cats").set_value("Cats sit on mats").run()
    assert "At most 600 characters; this" not in words_of(app)
    assert dataset.text(state_of(app)) == "Cats sit on mats"


def test_of_two_texts_that_cannot_be_read_the_one_in_the_field_counts() -> None:
    app = page()
    for typed, said, unsaid in (
        ("Cats dance", "“dance”", "At most 600 characters;"), ("Cats " * 192, "At most 600 characters;", "“dance”"),
    ):
        app.text_area(key="dataset_en_cats").set_value(typed).run()
        again(app)
        words = words_of(app)
        assert said in words
        assert unsaid not in words
        assert "Until it is shorter" not in words
    app.text_area(key="dataset_en_cats").set_value("Cats sit on mats").run()
    again(app)
    app.text_area(key="dataset_en_cats").set_value("Cats " * 192).run()
    assert "Until it is shorter" in words_of(app)


def test_a_row_goes_onto_the_board() -> None:
    app = page()
    app.button(key="data_row_1_en").click().run()
    again(app)
    state = state_of(app)
    assert state.choices.text == "mats Cats sit"
    assert state.trace["targets"].data[0].tolist() == [12, 45, 78]


def test_controls_can_be_hidden() -> None:
    app = page(hide="controls")
    assert not [button for button in app.button if button.key.startswith("data_")]
    assert not app.number_input
    assert "Batch 1 of 2" in words_of(app)


@pytest.mark.parametrize("language", LANGUAGES)
@EVERY_PRESET
def test_the_page_opens_for_every_preset(preset: str, language: str) -> None:
    assert words_of(page(preset=preset, lang=language))
