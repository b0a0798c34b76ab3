"""Lesson 39: the steepest cells, the search on demand, and edits that are applied with a click and taken back."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import Edit, presets, run
from engine.search import MARGIN
from tests.ui.support import (
    ARCHITECTURES,
    EVERY_PRESET,
    alive,
    edit,
    framed,
    on_page,
    opened,
    reader,
    send,
    state_of,
    words_of,
)
from ui import naming, raise_cards
from ui.address import address, open_address
from ui.quests import Quest
from ui.state import MOST_STEPS, State
from ui.text import LANGUAGES, say

LESSON = "raise_logit"
MATS, CHAIRS = 90, 91


def on_raise(**choices: Any) -> State:
    return reader(LESSON, **choices)


def leader(state: State) -> int:
    """Of a run without the lesson's program and without a base."""
    edits = state.active(state.edits)
    return int(np.argmax(run(state.model, [list(state.ids)], edits=edits)["logits"].row(0, len(state.ids) - 1)))


# ---- the search

def test_a_search_is_made_once_for_all_who_ask_the_same() -> None:
    first, second = (raise_cards.quest(on_raise(language=language), CHAIRS) for language in LANGUAGES)
    assert first == second
    assert first.outcome is second.outcome


def test_edits_in_force_are_part_of_the_question() -> None:
    state = on_raise()
    plain = raise_cards.quest(state, CHAIRS)
    edit(state, "lm_head.weight", (CHAIRS, 3), 0.2)
    nearer = raise_cards.quest(state, CHAIRS)
    assert plain != nearer
    assert abs(nearer.outcome.found[0].change) < abs(plain.outcome.found[0].change)


@EVERY_PRESET
def test_an_edit_that_was_found_wins_and_is_an_edit_like_any_other(preset: str) -> None:
    """One step of undo; in the link; marked on the board; the page takes it back."""
    state = on_raise(preset=preset)
    token = CHAIRS if preset == "cats" else state.question.rival
    asked = raise_cards.quest(state, token)
    found = asked.outcome.found[0]
    before = leader(state)
    assert before != token
    assert asked.covers(state.edits)
    state.commit(asked.with_found(found))
    assert leader(state) == token
    assert asked.covers(state.edits)
    data = alive(LESSON, state)
    assert data["strip"]["edits"] == 1
    assert data["strip"]["candidates"][0]["baseline_logit"] is not None
    again = open_address(dict(parse_qsl(address(state).removeprefix("?"))), None)
    assert again.edits == (Edit(found.name, found.index, found.after),)
    send(state, "undo")
    assert leader(state) == before
    assert state.cursor == 0


def test_another_edit_of_the_list_takes_the_place_of_the_first() -> None:
    state = on_raise()
    edit(state, "layers.0.mlp.W_up", (0, 0), 0.9)
    asked = raise_cards.quest(state, CHAIRS)
    for found in asked.outcome.found[:3]:
        state.commit(asked.with_found(found))
        assert state.edits == (*asked.edits, found.edit)
        assert leader(state) == CHAIRS
    edit(state, "layers.0.mlp.W_up", (0, 0), 0.8)
    assert not asked.covers(state.edits)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_any_architecture(architecture: str) -> None:
    state = on_raise(preset="scratch", text="fox and owl")
    state.switch(**ARCHITECTURES[architecture])
    alive(LESSON, state)
    outcome = raise_cards.quest(state, state.question.rival).outcome
    for found in outcome.found[:2]:
        state.commit((found.edit,))
        assert leader(state) == state.question.rival


# ---- the board

def test_the_switch_turns_the_goal_into_the_lead() -> None:
    state = on_raise()
    trace = state.trace
    assert trace["raise_logit.goal"].number((0,)) == trace["logits"].data[0, -1, MATS]
    assert not trace["gradient.lm_head.weight"].data[CHAIRS].any()
    edit(state, "raise_logit.against", (), 1.0)
    goal = state.trace["raise_logit.goal"].number((0,))
    assert goal == pytest.approx(0.9984, abs=5e-5)
    rows = state.trace["gradient.lm_head.weight"].data
    np.testing.assert_array_equal(rows[CHAIRS], -rows[MATS])


def test_parameters_and_their_slopes_stand_side_by_side() -> None:
    """What is not a parameter of the model is not on the board; a tied table stands there once."""
    for preset in presets.NAMES:
        state = on_raise(preset=preset)
        shown = [grid["tensor"] for grid in framed(LESSON, state).data["grids"].values()]
        for name in state.model.parameters:
            if not name.startswith("layers.") or name.startswith("layers.0."):
                place = shown.index(name)
                assert shown[place + 1] == f"gradient.{name}"
        assert len(shown) == len(set(shown))


def test_rows_of_the_tokens_that_are_asked_about_are_there() -> None:
    state = on_raise()
    state.set_control("token", 7)
    state.set_control("rival", 200)
    grids = framed(LESSON, state).data["grids"].values()
    (head,) = (grid for grid in grids if grid["tensor"] == "gradient.lm_head.weight")
    assert {"#7", "#200"} <= {row["text"] for row in head["rows"]}


# ---- the page

def on_the_page(**query: str) -> AppTest:
    app = opened(**query)
    on_page(app, "raise_logit")
    return app


def press(app: AppTest, key: str) -> None:
    app.button(key=key).click().run()
    assert not app.exception


def test_find_apply_and_take_back() -> None:
    app = on_the_page(lang="en")
    assert app.button(key="raise_find_0_en").disabled, "mats leads"
    assert "÷ slope" not in words_of(app)
    press(app, "raise_find_1_en")
    found = raise_cards.quest(state_of(app), CHAIRS).outcome.found
    assert f"{found[0].after:.4f}" in words_of(app)
    assert f"{found[0].estimate:.4f}" in words_of(app)
    assert f"at least {MARGIN}" in words_of(app)
    press(app, "raise_apply_0_en")
    assert state_of(app).edits == (found[0].edit,)
    assert app.button(key="raise_find_1_en").disabled, "chairs leads now"
    assert app.button(key="raise_apply_0_en").label.startswith("Take back")
    press(app, "raise_apply_1_en")
    assert state_of(app).edits == (found[1].edit,)
    press(app, "raise_apply_1_en")
    assert state_of(app).edits == ()
    assert len(state_of(app).history) == 4 < MOST_STEPS


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_parameter_is_accounted_for(language: str) -> None:
    """A line of the table, or a name among those that were tried in vain or have no slope."""
    app = on_the_page(lang=language)
    press(app, f"raise_find_1_{language}")
    state, said = state_of(app), words_of(app)
    outcome = raise_cards.quest(state, CHAIRS).outcome
    assert len(outcome.found) > raise_cards.MOST_BUTTONS
    named = [one.name for one in outcome.found] + [*outcome.failed, *outcome.flat]
    assert sorted(named) == sorted(state.model.parameters)
    for one in outcome.found:
        assert f"{naming.cell_title(state.model, state.ids, state.trace[one.name], one.name, one.index)} " in said
    assert all(naming.long_name(name) in said for name in named)
    assert say(language, "raise_buttons", count=raise_cards.MOST_BUTTONS) in said


def test_an_edit_of_one_s_own_asks_for_another_search() -> None:
    app = on_the_page(lang="zh")
    press(app, "raise_find_1_zh")
    assert "一阶估计" in words_of(app)
    edit(state_of(app), "layers.0.attention.Wq", (0, 1), 0.5)
    app.run()
    assert "一阶估计" not in words_of(app)
    assert not app.exception


def test_a_token_that_no_cell_helps() -> None:
    """With an embedding of zeros nothing flows: no slope, nothing tried, and the page says so."""
    app = on_the_page(lang="en", text="7 7 7")
    press(app, "raise_find_1_en")
    said = words_of(app)
    assert "No single small edit was found" in said
    assert "No parameter cell has a slope" in said
    assert "0 of 2324 cells" in said


@EVERY_PRESET
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page(preset: str, language: str) -> None:
    app = on_the_page(lang=language, preset=preset)
    press(app, f"raise_find_1_{language}")
    assert isinstance(state_of(app).sought, Quest)


def test_controls_that_a_link_leaves_out() -> None:
    app = on_the_page(lang="en", hide="controls")
    assert not [button.key for button in app.button if str(button.key).startswith("raise_")]
