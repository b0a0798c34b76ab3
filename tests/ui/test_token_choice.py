"""Which token, which rival, where: what a reader may choose, what stands for no choice, and how a link keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.programs.question import Question
from tests.ui.support import EVERY_PRESET, ROOT, edit, framed, on_page, reader, reopened, send, state_of
from ui import runs, token_choice
from ui.address import address, open_address
from ui.text import LANGUAGES

LESSONS = ("lens", "wrote")


@EVERY_PRESET
def test_without_a_choice_it_is_the_token_that_leads(preset: str) -> None:
    state = reader("wrote", preset=preset)
    row = state.baseline["logits"].row(0, len(state.ids) - 1)
    assert token_choice.chosen(state) == row.argmax()
    assert token_choice.rival(state) != token_choice.chosen(state)


def test_a_named_token_is_held_against_the_next_of_its_kind() -> None:
    """`mats` against `chairs`, and not against the first of 254 tokens whose logit is 0."""
    state = reader("wrote")
    assert state.question == Question(90, 91)
    state.set_control("token", 91)
    assert state.question == Question(91, 90)
    state.set_control("token", 12)
    assert state.question == Question(12, 90)
    assert reader("lens", preset="today").question == Question(5120, 6144)


def test_an_edit_never_changes_which_token_is_meant() -> None:
    state = reader("wrote")
    edit(state, "lm_head.weight", (91, 3), 9.0)
    assert state.trace["logits"].row(0, 2).argmax() == 91
    assert state.question == Question(90, 91)


def test_the_token_leads_at_the_position_that_is_looked_at() -> None:
    state = reader("wrote", preset="scratch")
    leaders = state.baseline["logits"].data[0].argmax(axis=-1).tolist()
    assert len(set(leaders)) > 1
    for position, leader in enumerate(leaders):
        state.set_control("position", position)
        assert (state.position, state.question.token) == (position, leader)
    # a lesson that looks at the last position only takes no notice
    state.lesson = "overview"
    assert (state.position, state.question.token) == (len(state.ids) - 1, leaders[-1])


@pytest.mark.parametrize(("name", "value"), [("token", 256), ("rival", 999_999), ("position", 3), ("position", 31)])
def test_what_this_model_or_sentence_has_not_leaves_the_choice_to_the_model(name: str, value: int) -> None:
    state = reader("wrote")
    state.set_control(name, value)
    assert (state.question, state.position) == (Question(90, 91), 2)


def test_a_token_held_against_itself_is_held_against_another() -> None:
    state = reader("wrote")
    state.set_control("rival", 90)
    assert state.question == Question(90, 91)


@pytest.mark.parametrize("value", ["1000000", "-2", "x", "1.5"])
def test_no_vocabulary_reaches_that_far(value: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        reader("wrote").set_control("token", value)
    state = open_address({"token": value}, None)
    assert state.message is not None


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_link_brings_the_choice_back(lesson: str) -> None:
    state = reader(lesson)
    assert "token" not in address(state)
    for name, value in (("token", 78), ("rival", 92), ("position", 1)):
        state.set_control(name, value)
    edit(state, "layers.0.attention.Wq", (0, 1), 0.5)
    other = reopened(state)
    assert (other.question, other.position) == (Question(78, 92), 1)
    assert address(other) == address(state)
    assert all(other.trace[name].data.tobytes() == state.trace[name].data.tobytes() for name in state.trace)


def test_undo_leaves_the_choice_alone_and_another_preset_has_its_own() -> None:
    state = reader("wrote")
    edit(state, "layers.0.attention.Wq", (0, 1), 0.5)
    state.set_control("token", 91)
    send(state, "undo")
    assert (state.question.token, state.edits) == (91, ())
    state.switch_preset("today")
    assert state.question.token == 5120
    state.switch_preset("cats")
    assert state.question.token == 91


@pytest.mark.parametrize("lesson", LESSONS)
def test_readers_who_ask_the_same_share_baseline_and_frame(lesson: str) -> None:
    one, other, third = reader(lesson), reader(lesson, language="en", mode="both"), reader(lesson)
    third.set_control("token", 78)
    assert one.baseline is other.baseline
    assert framed(lesson, one) is framed(lesson, other)
    assert framed(lesson, one).version != framed(lesson, third).version
    assert list(one.baseline) == list(third.baseline)
    # the structure of other lessons does not depend on it
    first, second = reader("scores"), reader("scores")
    second.set_control("token", 78)
    assert first.baseline is second.baseline
    assert framed("scores", first) is framed("scores", second)


def drawn(**choices: Any) -> AppTest:
    """The panel alone, for a reader on the lesson of the split."""
    app = AppTest.from_string("""
import streamlit as st
from ui import token_choice
token_choice.panel(st.session_state["glassbox"])
""", default_timeout=30)
    app.session_state["glassbox"] = reader("wrote", **choices)
    return app.run()


def box(app: AppTest, name: str) -> Any:
    return next(each for each in app.selectbox if each.key.startswith(f"{name}_"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_small_vocabulary_is_offered_whole(language: str) -> None:
    app = drawn(language=language)
    assert not app.exception
    tokens = box(app, "token").options
    assert len(tokens) == 257
    assert "mats" in tokens[0]
    assert tokens[1] == "mats · 90"
    assert {"chairs · 91", "volcano · 92", "Cats · 12", "#255"} <= set(tokens)
    assert not app.number_input
    assert len(box(app, "position").options) == 3


def test_choosing_from_the_list() -> None:
    app = drawn()
    box(app, "token").set_value(91).run()
    assert state_of(app).question == Question(91, 90)
    assert "mats" in box(app, "rival").options[0]
    assert "chairs · 91" not in box(app, "rival").options, "no token is held against itself"
    box(app, "position").set_value(0).run()
    assert state_of(app).position == 0
    box(app, "token").set_value(token_choice.MODEL_S_OWN).run()
    assert state_of(app).control("token") == -1


def test_a_large_vocabulary_offers_those_that_matter_and_takes_any_id() -> None:
    app = drawn(preset="today")
    tokens = box(app, "token").options
    assert len(tokens) < 40
    assert {"好 · 5120", "棒 · 6144", "差 · 7168", "今 · 1024"} <= set(tokens)
    (token, rival) = app.number_input
    assert (token.value, rival.value) == (5120, 6144)
    token.set_value(50256).run()
    assert state_of(app).question == Question(50256, 5120)
    assert "#50256" in box(app, "token").options


def test_a_leading_token_is_found_without_making_all_logits() -> None:
    before = reader("wrote", preset="today", text="真 天 气 今 气")
    assert before.question.token == int(np.argmax(before.baseline["logits"].row(0, 4)))
    assert runs.asked("today", 1, (), before.ids).token == before.question.token


def test_what_can_be_asked_is_in_every_preset() -> None:
    for preset in presets.NAMES:
        assert set(presets.CANDIDATES[preset]) <= set(range(presets.load(preset).config.vocab_size))


def test_the_page_has_the_panel_unless_a_link_hides_it() -> None:
    for hidden in ("", "controls"):
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["hide"] = hidden
        on_page(app, "wrote")
        assert bool([each for each in app.selectbox if str(each.key).startswith("rival_")]) == (not hidden)
