"""Where the cells of a grid are, how numbers travel, the letters of the article, and what is looked up once."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from engine import Edit, InputError, run
from tests.ui.support import decoded, edit, reader, send
from ui import board, runs
from ui import state as states
from ui.state import Choices, Situation, State
from ui.view import ResolvedGrid, View, encode

WQ, WK = "layers.0.attention.Wq", "layers.0.attention.Wk"
GRID = ResolvedGrid("g", ((WQ, np.array([1, 0, 15])), (WK, np.array([5, 6]))))


@pytest.mark.parametrize("numbers", [
    [0.1 + 0.2, -inf, inf, 5e-324, -1e300, 1 / 3], [], [12.0],
])
def test_numbers_travel_to_the_last_bit(numbers: list[float]) -> None:
    assert decoded(encode(np.array(numbers))).tolist() == numbers


def test_other_layouts_of_numbers_travel_too() -> None:
    array = np.arange(12.0).reshape(3, 4)
    assert decoded(encode(array.T)).tolist() == array.T.ravel().tolist()
    assert decoded(encode(array[:, 1])).tolist() == [1, 5, 9]
    assert decoded(encode(np.array([12, 45]))).tolist() == [12, 45]
    assert decoded(encode(np.array([1.5, -2.0], dtype=">f8"))).tolist() == [1.5, -2.0]
    assert np.isnan(decoded(encode(np.array([nan])))).all()


def test_a_grid_of_two_tensors() -> None:
    state = reader()
    edit(state, WQ, (3, 3), 2.5)
    assert GRID.numbers(state.trace).tolist() == [0, 1, 2.5, 1, 0]
    assert GRID.numbers(state.baseline).tolist() == [0, 1, 1, 1, 0]


def test_a_grid_is_covered_by_the_masks_of_its_tensors() -> None:
    mask = np.zeros((4, 4), dtype=bool)
    mask[3, 3] = mask[1, 1] = True
    assert GRID.covered({}).tolist() == [False] * 5
    assert GRID.covered({WQ: mask}).tolist() == [False, False, True, False, False]
    assert GRID.covered({WK: mask, "logits": mask}).tolist() == [False, False, False, True, False]


def test_arrays_that_are_shared_need_no_comparing() -> None:
    state = reader()
    edit(state, "layers.1.attention.Wq", (0, 1), 0.5)
    assert GRID.shares_arrays(state.trace, state.baseline)
    edit(state, WK, (0, 1), 0.5)
    assert not GRID.shares_arrays(state.trace, state.baseline)


def test_a_view_has_all_that_decides_a_frame() -> None:
    state = reader(preset="scratch", language="zh", seed=7, pairing="half", layer=1, head=1, rows=(3,), text="red fox")
    assert board.view(state) == View(
        "zh", "scratch", 7, (("rope_pairing", "half"),), (0, 2), 1, 1, (3,), "overview",
    )
    assert board.view(state).baseline is state.baseline


@pytest.mark.parametrize(("preset", "sizes"), [
    ("cats", {"B": 1, "T": 3, "C": 4, "H": 2, "D": 2, "F": 8, "V": 256, "N": 2}),
    ("scratch", {"B": 1, "T": 5, "C": 8, "H": 2, "D": 4, "F": 12, "V": 16, "N": 2}),
])
def test_the_letters_of_the_article(preset: str, sizes: dict[str, int]) -> None:
    assert runs.sizes(reader(preset=preset).baseline) == sizes
    batch = run(reader(preset=preset).model, [[1, 2], [3, 4], [5, 6]])
    assert runs.sizes(batch) == {**sizes, "B": 3, "T": 2}


def test_a_situation_is_looked_up_once_for_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def counted(*key: Any) -> Situation:
        asked.append(key)
        return look_up(*key)

    look_up = states.situation
    monkeypatch.setattr(states, "situation", counted)
    state = reader()
    first = state.situation
    edit(state, WQ, (0, 1), 0.5)
    for kind, event in (("layer", {"value": 1}), ("head", {"value": 1}), ("language", {}), ("mode", {"value": "both"}),
                        ("select", {"tensor": WQ, "index": [0, 1]}), ("undo", {})):
        send(state, kind, **event)
    assert state.situation is first
    assert (state.model, state.ids, state.baseline) == (first.model, first.ids, first.baseline)
    assert asked == [("cats", 1, (), "Cats sit on", "overview", None, -1, 0)]
    send(state, "text", value="sit on")
    assert (state.ids, state.situation.key) == ((45, 78), ("cats", 1, (), "sit on", "overview", None, -1, 0))
    state.switch_preset("scratch")
    state.choose(seed=2)
    state.switch(rope_pairing="half")
    assert state.model.config.rope_pairing == "half"
    state.switch_preset("cats")
    assert state.ids == (45, 78)
    assert state.situation is not first
    assert first.ids == (12, 45, 78)


def test_readers_who_see_the_same_share_model_and_baseline() -> None:
    one, other = reader(), reader(layer=1, language="zh")
    assert one.model is other.model
    assert one.baseline is other.baseline
    assert reader(text="12 45 78").baseline is one.baseline


def test_the_trace_follows_every_choice_that_it_depends_on() -> None:
    """Edits are kept, numbers are those of a run from nothing."""
    state = State(Choices(preset="scratch", text="red fox"), [(), (Edit(WQ, (0, 1), 0.5),)], 1)
    half = (("rope_pairing", "half"),)
    for change in ({"seed": 9}, {"switches": half}, {"text": "owl or fox"}, {"seed": 1}):
        state.choose(**change)
        full = run(runs.model("scratch", state.choices.seed, state.choices.switches), [list(state.ids)],
                   edits=state.edits)
        assert all(state.trace[name].data.tobytes() == full[name].data.tobytes() for name in full), change


@pytest.mark.parametrize(("text", "code"), [("zebra", "unknown_word"), ("", "empty"), ("on " * 33, "too_long")])
def test_a_sentence_that_cannot_be_read_has_no_situation(text: str, code: str) -> None:
    with pytest.raises(InputError) as raised:
        states.situation("cats", 1, (), text, "overview")
    assert raised.value.code == code
