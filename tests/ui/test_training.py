"""Lesson 33: a run in portions, its way through time, what edits do to it, and its page."""

from __future__ import annotations

import gc
import itertools
import math
import weakref
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import Edit, presets
from engine.optimizers import KINDS
from engine.training import Setting, start, train
from tests.ui.support import (
    ARCHITECTURES,
    alive,
    applies,
    decoded,
    edit,
    framed,
    is_chinese,
    items,
    on_page,
    opened,
    reader,
    send,
    state_of,
    strictly,
    words_of,
)
from ui import courses, training_charts
from ui.address import address, open_address
from ui.controls import MOST_TRAINED
from ui.navigation import arrive
from ui.state import State
from ui.text import LANGUAGES

LESSON = courses.LESSON
HEAD = "lm_head.weight"
PRESETS = [name for name in presets.NAMES if applies(LESSON, name)]
EVERY_PRESET = pytest.mark.parametrize("preset", PRESETS)


def trained(steps: int, time: int = -1, **choices: Any) -> State:
    """A reader whose run has got to where they want it."""
    controls = choices.pop("set", {})
    state = reader(LESSON, **choices)
    for name, value in {"trained": steps, "time": time, **controls}.items():
        state.set_control(name, value)
    catch_up(state)
    return state


def catch_up(state: State) -> None:
    """What the board asks for until there is no more to do."""
    for _ in range(1000):
        if not courses.is_behind(state):
            return
        send(state, "go_on")
    raise AssertionError("the run never ends")


def expected(state: State, steps: int, kind: str = "adamw", **settings: float) -> list[Any]:
    """The traces of a run that keeps them all."""
    targets = [[*state.ids[1:], presets.TARGETS[state.choices.preset]]]
    setting = Setting(kind, settings, clips=True)
    return [trace for trace, _ in train(start(state.model), [list(state.ids)], targets, setting, steps + 1)]


# ---- the run

@EVERY_PRESET
def test_the_board_shows_the_model_at_the_step_that_is_looked_at(preset: str) -> None:
    state = trained(12, preset=preset)
    steps = expected(state, 12)
    grids = framed(LESSON, state)
    for time in (-1, 12, 5, 0, 4):
        send(state, "control", name="time", value=time)
        number = 12 if time < 0 else time
        assert courses.step(state) == number
        for name in (HEAD, "layers.0.attention.weights", "gradient.layers.0.mlp.W_up", "loss"):
            np.testing.assert_array_equal(state.trace[name].data, steps[number][name].data, err_msg=name)
        live = alive(LESSON, state)
        strictly(live)
        assert live["dials"] == {"time": {"value": number, "high": 12}}
        key = next(grid.key for grid in grids.grids if HEAD in grid.by_tensor)
        assert (key in live["values"]) == (number > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_optimizer_remembers_is_there_at_every_step(kind: str) -> None:
    state = trained(7, set={"optimizer": kind})
    steps = expected(state, 7, kind)
    own = f"optimizer.{kind}.{HEAD}"
    for name in (name for name in state.trace if name.startswith(own)):
        np.testing.assert_array_equal(state.trace[name].data, steps[7][name].data, err_msg=name)
    assert f"{own}.updated" in state.trace
    tables = [grid for grid in framed(LESSON, state).data["grids"].values()
              if grid["row_axis"] == state.say("axis_stage_of_step")]
    assert [len(grid["rows"]) for grid in tables] == [{"sgd": 4, "momentum": 6, "adamw": 14}[kind]]


def test_a_run_goes_on_in_portions_and_the_board_asks_for_more() -> None:
    state = reader(LESSON, text="sit on Cats sit on Cats")
    state.set_control("trained", 300)
    assert courses.step(state) == 0
    assert alive(LESSON, state)["more"] == courses.SOON
    reached = []
    while courses.is_behind(state):
        send(state, "go_on")
        reached.append(courses.step(state))
    assert len(reached) > 3
    assert reached == sorted(reached)
    assert reached[-1] == 300
    assert alive(LESSON, state)["more"] is None


def test_it_runs_by_itself_until_it_is_stopped_or_at_its_end() -> None:
    state = trained(0)
    courses.set_running(state, True)
    assert state.walk.running
    for _ in range(3):
        send(state, "go_on")
    assert 0 < courses.trained(state) == courses.step(state) <= 4 * courses.STEPS_AT_ONCE
    courses.set_running(state, False)
    stopped = courses.trained(state)
    send(state, "go_on")
    assert courses.trained(state) == stopped
    courses.set_running(state, True)
    catch_up(state)
    assert (courses.trained(state), state.walk.running) == (MOST_TRAINED, False)
    assert len(courses.course(state).kept) <= 16


def test_another_setting_stops_it_and_so_does_leaving_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    state = trained(5)
    courses.set_running(state, True)
    edit(state, "optimizer.learning_rate", (), 0.02)
    assert not state.walk.running
    courses.set_running(state, True)
    monkeypatch.setattr("ui.navigation.st.session_state", {"glassbox_pages": {"overview": "page"}})
    arrive(state, "page")
    assert not state.walk.running
    assert courses.live(state) == {}
    send(state, "go_on")
    assert state.message is None


def test_readers_share_a_run() -> None:
    one, other = trained(30, text="on sit Cats"), reader(LESSON, text="on sit Cats")
    assert courses.course(one) is courses.course(other)
    # whoever comes later may watch it all the same
    courses.set_running(other, True)
    assert courses.trained(other) == courses.STEPS_AT_ONCE


def test_a_reader_holds_no_run_that_the_shared_ones_have_let_go() -> None:
    """It is the largest thing of the page; whoever comes back to it gets the same again, from its start."""
    state = trained(12, text="Cats on sit")
    loss, held = state.trace["loss"].number(()), weakref.ref(courses.course(state))
    courses.shared.cache_clear()
    gc.collect()
    assert held() is None
    while courses.is_behind(state):
        courses.go_on(state)
    assert (courses.step(state), state.trace["loss"].number(())) == (12, loss)


def test_more_readers_than_runs_are_shared_all_get_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten steps to a portion, on a machine of any speed: fewer than the run is ahead of what it would begin again."""
    monkeypatch.setattr("engine.course.monotonic", itertools.count(0.0, courses.SLICE_SECONDS / 10).__next__)
    readers = [reader(LESSON, text="on sit") for _ in range(courses.MOST_COURSES + 3)]
    for seed, state in enumerate(readers, 1):
        state.set_control("start", seed)
        courses.set_running(state, True)
    for state in readers * 3:
        send(state, "go_on")
    assert min(map(courses.trained, readers)) > courses.STEPS_AT_ONCE
    for state in readers:
        courses.set_running(state, False)
    assert [state.walk.held for state in readers] == [None] * len(readers)


def test_random_weights_are_those_of_their_seed() -> None:
    state = trained(3, set={"start": 7})
    assert abs(state.baseline["loss"].number(()) - math.log(256)) < 0.3
    assert state.model is not presets.load("cats")
    other = reader(LESSON)
    other.set_control("start", 8)
    assert not np.array_equal(other.baseline[HEAD].data, state.baseline[HEAD].data)
    # of 256 rows that are not zero, the board has those that matter
    rows = next(grid for grid in framed(LESSON, state).data["grids"].values() if grid["tensor"] == HEAD)["rows"]
    assert len(rows) < 10
    state.lesson = "lm_head"
    assert state.model is presets.load("cats")


# ---- edits

def test_settings_make_another_run_up_to_the_same_step() -> None:
    state = trained(20)
    slow = state.trace["loss"].number(())
    edit(state, "optimizer.learning_rate", (), 0.05)
    catch_up(state)
    assert courses.step(state) == 20
    assert state.trace["loss"].number(()) < slow
    assert state.trace["loss"].number(()) == expected(state, 20, learning_rate=0.05)[20]["loss"].number(())
    send(state, "undo")
    catch_up(state)
    assert state.trace["loss"].number(()) == slow


def test_another_start_leads_back_to_the_start() -> None:
    state = trained(20)
    edit(state, HEAD, (90, 1), 0.9)
    assert (courses.step(state), courses.trained(state)) == (0, 20)
    assert state.message == ("info", state.say("training_rewound"))
    assert state.trace[HEAD].number((90, 1)) == 0.9
    catch_up(state)
    send(state, "control", name="time", value=1)
    # AdamW's first step is as long as the learning rate
    assert state.trace[HEAD].number((90, 1)) == pytest.approx(0.91, abs=2e-4)


def test_edits_of_other_lessons_do_not_make_another_run() -> None:
    state = trained(5)
    before = courses.terms(state)
    state.lesson = "choosing"
    edit(state, "choosing.temperature", (), 0.5)
    state.lesson = LESSON
    assert courses.terms(state) == before


def test_what_is_held_by_hand_stays_so_at_every_step() -> None:
    """Without attention both *fox* look alike; one is followed by `and`, one by `or`: at best ½ each, 2 ln 2 / 5."""
    state = reader("why_layers", preset="scratch")
    for layer in range(2):
        send(state, "cover", places=[[f"layers.{layer}.attention.output", [0]]], value=0)
    state.lesson = LESSON
    for name, value in (("target", 5), ("trained", 500)):
        state.set_control(name, value)
    catch_up(state)
    assert not state.trace["layers.1.attention.output"].data.any()
    assert state.trace["loss"].number(()) == pytest.approx(2 * math.log(2) / 5, rel=0.01)
    with_attention = trained(500, preset="scratch", set={"target": 5})
    assert with_attention.trace["loss"].number(()) < 0.01


def test_a_run_that_runs_over_ends_and_says_so() -> None:
    state = reader(LESSON, preset="scratch", switches=(("norm", "none"), ("activation", "relu_squared")))
    for tensor, index, value in (("optimizer.learning_rate", (), 10.0), ("optimizer.clip", (), 1e6),
                                 (HEAD, (2, 0), 1e150), ("embedding.weight", (0, 0), 1e5)):
        edit(state, tensor, index, value)
    state.set_control("trained", 50)
    catch_up(state)
    course = courses.course(state)
    assert course.ended == (course.reached < 50)
    strictly(alive(LESSON, state))


# ---- links

@EVERY_PRESET
def test_a_link_brings_the_run_back(preset: str) -> None:
    state = trained(15, 6, preset=preset, set={"optimizer": "momentum", "start": 3})
    edit(state, "optimizer.momentum", (), 0.5)
    catch_up(state)
    again = open_address(dict(parse_qsl(address(state).removeprefix("?"))), None)
    again.lesson = LESSON
    catch_up(again)
    assert again.message is None
    assert courses.step(again) == courses.step(state) == 6
    np.testing.assert_array_equal(again.trace[HEAD].data, state.trace[HEAD].data)
    assert address(again) == address(state)


@pytest.mark.parametrize("query", [
    {"trained": "501"}, {"trained": "-1"}, {"time": "-2"}, {"optimizer": "adam"}, {"start": "10000"}, {"stride": "7"},
])
def test_a_link_with_a_run_that_there_is_not_is_broken(query: dict[str, str]) -> None:
    assert open_address(query, None).message is not None


def test_the_board_s_slider_sets_no_other_control() -> None:
    state = trained(5)
    send(state, "control", name="trained", value=500)
    assert courses.trained(state) == 5
    send(state, "control", name="time", value=900)
    assert state.message is not None


# ---- the board and its chart

@pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
@EVERY_PRESET
def test_it_works_whatever_is_switched(preset: str, changes: dict[str, Any]) -> None:
    state = reader(LESSON, preset=preset)
    state.switch(**changes)
    strictly(framed(LESSON, state).data)
    state.set_control("trained", 3)
    catch_up(state)
    live = alive(LESSON, state)
    strictly(live)
    shown = {grid["tensor"] for grid in framed(LESSON, state).data["grids"].values()}
    assert {name for name in state.model.parameters if not name.startswith("layers.1")} <= shown
    assert any(item["type"] == "dial" for item in items(framed(LESSON, state)))


def test_every_cell_explains_itself_as_it_was_then() -> None:
    state = trained(9, 4)
    for name, index in ((HEAD, (90, 1)), ("layers.0.attention.weights", (0, 0, 2, 1)),
                        (f"optimizer.adamw.{HEAD}.m_before", (90, 1)), ("gradient.layers.0.mlp.W_up", (0, 0))):
        send(state, "select", tensor=name, index=list(index))
        told = alive(LESSON, state)["explanation"]
        assert told["value"] == state.trace[name].number(index)


def test_the_curves_are_the_run_s() -> None:
    state = trained(25, 10)
    figure = training_charts.curves(state)
    strictly(figure)
    course = courses.course(state)
    uniform, losses, chances, *points = figure["data"]
    assert set(uniform["y"]) == {math.log(256)}
    assert losses["y"] == course.losses[:26]
    assert chances["y"] == course.chances[:26]
    assert [(point["x"], point["y"]) for point in points] == [([10], [course.losses[10]]), ([10], [course.chances[10]])]
    assert figure["layout"]["shapes"][0]["x0"] == 10


def test_the_chart_follows_the_slider_after_a_moment() -> None:
    state = trained(25)
    assert courses.picture(state) == (25, 25)
    send(state, "control", name="time", value=3)
    assert alive(LESSON, state)["more"] == courses.LATER
    assert courses.picture(state) == (25, 25)
    send(state, "go_on")
    assert courses.picture(state) == (25, 3)
    assert alive(LESSON, state)["more"] is None


def test_prose_quotes_the_run_that_the_page_makes() -> None:
    from ui import runs
    state = trained(100)
    example = runs.article("cats", LESSON)
    assert runs.later(example, 100)["loss"].number(()) == state.trace["loss"].number(())


# ---- the page

def on_the_page(app: AppTest) -> AppTest:
    return on_page(app, "training")


def press(app: AppTest, name: str) -> None:
    app.button(key=f"{name}_{state_of(app).choices.language}").click().run()
    on_the_page(app)


@pytest.mark.parametrize("language", LANGUAGES)
def test_buttons_step_run_stop_and_go_back(language: str) -> None:
    app = on_the_page(opened(lang=language))
    state = state_of(app)
    assert is_chinese(words_of(app)) == (language == "zh")
    assert app.button(key=f"training_first_{language}").disabled
    press(app, "training_step")
    assert courses.trained(state) == 10
    catch_up(state)
    assert f"{state.trace['loss'].number(()):.4f}" in words_of(on_the_page(app))
    assert state.say("training_edits") in words_of(app)
    press(app, "training_run")
    assert state.walk.running
    press(app, "training_run")
    assert not state.walk.running
    press(app, "training_first")
    assert (courses.trained(state), courses.step(state)) == (0, 0)
    assert state.say("training_edits") not in words_of(app)
    # on a phone the buttons go on in a second line
    assert all(app.segmented_control(key=f"{key}_{language}").proto.wrap for key in ("optimizer", "start"))
    app.segmented_control(key=f"optimizer_{language}").set_value("sgd").run()
    app.segmented_control(key=f"start_{language}").set_value("random").run()
    assert (state.control("optimizer"), state.control("start")) == ("sgd", 1)
    app.number_input(key=f"start_seed_{language}").set_value(4).run()
    assert state.control("start") == 4
    assert not app.exception


def test_a_large_vocabulary_is_told_why_not() -> None:
    app = on_the_page(opened(lang="en", preset="today"))
    assert "so many rows" in app.info[0].value
    assert courses.live(state_of(app)) == {}


def test_a_link_may_leave_out_the_controls_and_the_chart() -> None:
    app = on_the_page(opened(lang="en", hide="controls.chart", trained="3"))
    assert not [button for button in app.button if str(button.key).startswith("training_")]
    assert not app.get("plotly_chart")
    state = state_of(app)
    assert not any(item["type"] == "dial" for item in items(framed_without_controls(state)))
    before = courses.step(state)
    send(state, "control", name="time", value=0)
    assert courses.step(state) == before


def framed_without_controls(state: State) -> Any:
    from tests.ui.support import page
    from ui import board, frame, hiding
    return frame.build(LESSON, hiding.without_controls(page(LESSON).sections), board.view(state))


def test_numbers_travel_exactly() -> None:
    state = trained(2)
    live, frame = alive(LESSON, state), framed(LESSON, state)
    for grid in frame.grids:
        if grid.key in live["values"]:
            np.testing.assert_array_equal(decoded(live["values"][grid.key]), grid.numbers(state.trace))


def test_edits_in_a_link_wait_for_the_run() -> None:
    state = open_address({"trained": "5"}, None)
    state.commit((Edit(HEAD, (90, 0), 0.7),))
    assert courses.live(state) == {}
