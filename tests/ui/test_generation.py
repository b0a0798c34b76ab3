"""Lesson 21: the text that the loop makes, its board, its cards, and what an edit does to them."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from engine.generation import generate
from engine.programs.generating import MOST_STEPS
from tests.ui.support import EVERY_PRESET, alive, edit, framed, on_page, opened, reader, state_of, words_of
from ui import board, generation
from ui.address import address, open_address
from ui.state import State

LESSON = generation.LESSON
WQ = "layers.0.attention.Wq"


def at_step(steps: int, preset: str = "today", **choices: object) -> State:
    state = reader(LESSON, preset=preset, **choices)
    state.set_control("steps", steps)
    return state


def turns(state: State) -> list[generation.Turn]:
    return list(generation.turns(state.continuation, state.steps + 1))


@EVERY_PRESET
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.0}, {"temperature": 0.6, "top_k": 5, "seed": 4}], ids=str)
def test_the_text_is_the_reference_generator_s(preset: str, settings: dict[str, float]) -> None:
    state = at_step(6, preset)
    for name, value in settings.items():
        edit(state, f"choosing.{name}", (), value)
    filters = {**settings, "seed": int(settings.get("seed", 123))}
    if "top_k" in filters:
        filters["top_k"] = int(filters["top_k"])
    prompt = reader(preset=preset).ids
    steps = list(generate(state.model, list(prompt), 7, **filters))  # type: ignore[arg-type]
    assert turns(state)[-1].text == (*prompt, *(step.token for step in steps[:6]))
    assert turns(state)[-1].token == steps[6].token
    # the first step's pass is the same either way
    for turn, step in zip(turns(state)[1:], steps[1:], strict=True):
        assert (turn.positions, turn.cached) == (step.positions, step.multiplications)


@EVERY_PRESET
def test_the_board_shows_what_the_model_reads_in_the_next_step(preset: str) -> None:
    state = at_step(3, preset)
    assert state.ids == turns(state)[-1].text
    assert tuple(state.trace.ids[0].tolist()) == state.ids
    assert state.trace["generating.drawn"].number((0, 3)) == turns(state)[-1].token
    frame = framed(LESSON, state)
    assert [token["id"] for token in frame.data["tokens"]] == list(state.ids)
    muted = {grid["tensor"]: grid["muted_rows"] for grid in frame.data["grids"].values() if "muted_rows" in grid}
    assert len(muted) == 6
    assert {tuple(rows) for rows in muted.values()} == {tuple(range(len(state.ids) - 1))}


def test_on_other_pages_the_sentence_is_the_reader_s_own() -> None:
    state = at_step(3)
    state.lesson = "overview"
    assert len(state.ids) == 5
    assert (board.view(state).steps, board.view(state).reused) == (0, 0)
    state.lesson = LESSON
    assert len(state.ids) == 8


def test_nothing_is_grey_where_nothing_can_be_kept() -> None:
    assert board.view(at_step(0)).reused == 0
    assert board.view(at_step(3, switches=(("causal", False),))).reused == 0
    assert board.view(at_step(MOST_STEPS)).reused == 0
    assert board.view(at_step(MOST_STEPS, "cats")).reused == 34


def test_past_its_positions_the_window_slides_and_the_cache_is_made_anew() -> None:
    state = at_step(MOST_STEPS)
    every = turns(state)
    assert len(state.ids) == 32
    assert state.ids == every[-1].text[5:]
    slid = [turn.rebuilt for turn in every]
    assert slid == [len(turn.text) > 32 for turn in every]
    for turn in every:
        assert turn.window == range(max(len(turn.text) - 32, 0), len(turn.text))
        assert turn.positions == (turn.window if turn.rebuilt or turn is every[0] else turn.window[-1:])
        assert turn.full / turn.cached == pytest.approx(1.0) if turn.rebuilt else turn.cached <= turn.full


@EVERY_PRESET
@pytest.mark.parametrize("tensor", [
    (WQ, (0, 1)), ("layers.0.output", (0, 1, 2)), ("layers.0.attention.weights", (0, 0, 6, 2)),
])
def test_both_ways_agree_at_every_step_under_edits_too(preset: str, tensor: tuple[str, tuple[int, ...]]) -> None:
    state = at_step(0, preset)
    state.set_control("steps", 12)
    edit(state, *tensor, 0.4)
    assert state.message is None
    assert len(state.edits) == 1
    assert max(turn.difference for turn in turns(state)) <= 1e-12


def test_a_peek_into_the_future_shows_where_another_layer_reads_what_it_changed() -> None:
    state = at_step(4, "cats")
    edit(state, "causal_mask", (1, 5), 0.0)
    differences = [turn.difference for turn in turns(state)]
    assert max(differences[:3]) <= 1e-12
    assert differences[3] > 1e-6


def test_an_id_may_be_drawn_that_stands_at_no_rank() -> None:
    state = at_step(1)
    edit(state, "choosing.order", (0, 0), 7)
    edit(state, "generating.drawn", (0, 0), 5120)
    assert state.message is None
    first, _ = turns(state)
    assert (first.token, first.probability) == (5120, 0.0)
    assert alive(LESSON, state)["message"] is None


def test_an_edit_changes_the_text_from_the_token_on_that_it_reaches() -> None:
    state = at_step(8)
    before = state.ids
    edit(state, "choosing.temperature", (), 0.0)
    after = state.ids
    assert before[:5] == after[:5]
    assert before != after
    assert after[5:] == (5120,) * 8
    assert tuple(state.trace.ids[0].tolist()) == after
    assert state.baseline["choosing.temperature"].number(()) == 1.0
    assert alive(LESSON, state)["edited"]


def test_turns_are_computed_once_and_shared() -> None:
    one, other = at_step(5, "scratch", text="owl owl fox"), at_step(5, "scratch", text="owl owl fox")
    assert [id(turn) for turn in turns(one)] == [id(turn) for turn in turns(other)]
    asked = generation.turn.cache_info().misses
    one.set_control("steps", 6)
    turns(one)
    assert generation.turn.cache_info().misses == asked + 1


@EVERY_PRESET
def test_a_link_brings_the_text_back_with_a_cell_that_the_loop_made(preset: str) -> None:
    state = at_step(3, preset)
    state.choose(selected=("layers.0.attention.k_heads", (0, 0, len(state.ids) - 1, 1)))
    again = open_address(dict(parse_qsl(address(state).removeprefix("?"))), None)
    again.lesson = LESSON
    assert again.message is None
    assert (again.ids, again.choices.selected) == (state.ids, state.choices.selected)
    assert address(again) == address(state)


@pytest.mark.parametrize("steps", ["33", "-1", "x", "1.5"])
def test_a_link_with_too_many_steps_is_broken(steps: str) -> None:
    assert open_address({"preset": "today", "steps": steps}, None).message is not None


# ---- the page

def playing(**query: str) -> AppTest:
    return on_the_page(opened(**{"lang": "en", "preset": "today", **query}))


def on_the_page(app: AppTest) -> AppTest:
    return on_page(app, "generating")


def press(app: AppTest, name: str) -> AppTest:
    app.button(key=f"{name}_{app.session_state['glassbox'].choices.language}").click().run()
    return on_the_page(app)


def test_buttons_take_the_loop_on_and_back() -> None:
    app = playing()
    state = state_of(app)
    assert app.button(key="loop_back_en").disabled
    assert "0 of at most 32 tokens appended" in words_of(app)
    for name, steps in (("loop_step", 1), ("loop_step", 2), ("loop_back", 1), ("loop_first", 0)):
        press(app, name)
        assert state.steps == steps
    press(app, "loop_play")
    assert state.steps == 1
    assert state.due is not None
    press(app, "loop_play")
    assert state.due is None


def test_the_table_counts_both_ways() -> None:
    """First step by hand: 5 positions of 4·12² + 2·12·48 + 12·50257, and q·k and weights·v over 5 × 5 pairs of 12."""
    said = words_of(playing(steps="1"))
    position = 4 * 144 + 2 * 12 * 48 + 12 * 50257
    first, full, cached = 5 * position + 2 * 25 * 12, 6 * position + 2 * 36 * 12, position + 2 * 6 * 12
    for count in (first, full, cached, first + full, first + cached, 12 * 50257):
        assert f"{count:,}".replace(",", "\u202f") in said
    assert "0…5 → 5" in said
    assert "Both ways give the same logits" in said


@pytest.mark.parametrize(("query", "said"), [
    ({"steps": "32"}, "The loop stops here"), ({"steps": "32"}, "The window has slid: it holds tokens 5 to 36"),
    ({"steps": "0"}, "nothing to keep yet"), ({"steps": "2", "arch": "causal-off"}, "nothing can be kept"),
    ({"steps": "2", "lang": "zh"}, "两种算法得到的 logit 相同"),
])
def test_the_cards_say_where_the_loop_stands(query: dict[str, str], said: str) -> None:
    assert said in words_of(playing(**query))


def test_leaving_the_page_stops_the_loop() -> None:
    app = playing()
    press(app, "loop_play")
    on_page(app, "choosing")
    assert app.session_state["glassbox"].due is None


def test_controls_can_be_hidden() -> None:
    app = playing(steps="2", hide="controls")
    assert not [button for button in app.button if button.key.startswith("loop_")]
    assert "2 of at most 32 tokens appended" in words_of(app)


