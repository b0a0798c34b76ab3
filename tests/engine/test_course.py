"""A training run that is kept as a few checkpoints: the same at every step as one that keeps them all."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest

from engine import Edit, Model, presets
from engine.course import MOST_CHECKPOINTS, Course
from engine.optimizers import ADAMW, KINDS, SGD
from engine.training import Checkpoint, Setting, start, train
from engine.variants import variant

IDS, TARGETS = [[12, 45, 78]], [[45, 78, 90]]
HEAD = "lm_head.weight"


def course(model: Model, kind: str = ADAMW, *edits: Edit) -> Course:
    return Course(model, IDS, TARGETS, Setting(kind, clips=True), edits)


def assert_same(found: Checkpoint, expected: Checkpoint) -> None:
    """To the last bit: the steps are the same ones."""
    assert found.step == expected.step
    for name, array in expected.model.parameters.items():
        np.testing.assert_array_equal(found.model.parameters[name], array)
    for name, array in expected.moments.arrays.items():
        np.testing.assert_array_equal(found.moments.arrays[name], array)


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_can_be_looked_at(cats: Model, kind: str) -> None:
    run, setting = course(cats, kind), Setting(kind, clips=True)
    run.advance(75)
    steps = list(train(start(cats), IDS, TARGETS, setting, 76))
    assert run.losses == [trace["loss"].number(()) for trace, _ in steps]
    assert run.chances == [trace["loss.target_probability"].number((0, 2)) for trace, _ in steps]
    for number in (0, 1, 75, 74, 40, 41, 3):
        assert_same(run.at(number), steps[number - 1][1] if number else start(cats))


def test_few_checkpoints_are_kept_evenly_spaced(cats: Model) -> None:
    run = course(cats, SGD)
    for goal in (1, 10, 16, 17, 40, 200):
        run.advance(goal)
        assert run.reached == goal
        gaps = np.diff(run.kept)
        assert len(run.kept) <= MOST_CHECKPOINTS
        assert run.kept[0] == 0
        assert len({*gaps.tolist()}) == 1
        # no step is further from the one before it than half of all that are kept
        assert goal - run.kept[-1] <= gaps[0]
    assert run.kept[-1] == 192


def test_edited_parameters_are_where_it_starts_and_settings_hold_throughout(cats: Model) -> None:
    edits = (Edit(HEAD, (90, 0), 0.7), Edit("optimizer.learning_rate", (), 0.05), Edit("layers.0.output", (0, 0), 0.5))
    run = course(cats, ADAMW, *edits)
    run.advance(5)
    assert run.at(0).model.parameters[HEAD][90, 0] == 0.7
    assert run.at(1).model.parameters[HEAD][90, 0] != 0.7
    assert [edit.name for edit in run.held] == ["optimizer.learning_rate", "layers.0.output"]
    # the first step of AdamW is as large as the learning rate
    moved = run.at(1).model.parameters[HEAD][91] - cats.parameters[HEAD][91]
    np.testing.assert_allclose(np.abs(moved), 0.05, rtol=0.01)
    slow = course(cats)
    slow.advance(5)
    assert slow.losses[5] > run.losses[5]


def test_a_tied_head_is_edited_under_either_name() -> None:
    tied = variant(presets.load("scratch"), tied_head=True)
    run = Course(tied, [[0, 1]], [[1, 2]], Setting(SGD, clips=True), (Edit(HEAD, (3, 0), 0.25),))
    assert run.at(0).model.parameters["embedding.weight"][3, 0] == 0.25


def test_edits_of_what_the_run_does_not_compute_are_left_out(cats: Model) -> None:
    assert course(cats, SGD, Edit("optimizer.beta1", (), 0.5), Edit("choosing.top_k", (), 3.0)).held == ()


def test_it_goes_on_for_as_long_as_it_may(cats: Model) -> None:
    run = course(cats)
    run.advance(400, seconds=0.0)
    assert run.reached == 1
    run.advance(400, seconds=0.05)
    assert 1 < run.reached < 400


def test_a_run_whose_numbers_run_over_ends() -> None:
    """Without norms nothing holds the stream: a weight of 1e160 makes as large a gradient, and their product is ∞."""
    model = variant(presets.load("scratch"), norm="none")
    edits = (Edit(HEAD, (2, 0), 1e160), Edit("optimizer.learning_rate", (), 10.0))
    run = Course(model, [[0, 1, 2]], [[1, 2, 3]], Setting(SGD), edits)
    run.advance(50)
    assert run.ended
    assert 0 < run.reached < 50
    reached = run.reached
    run.advance(50)
    assert run.reached == reached
    assert run.at(reached).step == reached


def test_two_readers_share_a_run_and_neither_waits(cats: Model) -> None:
    run = course(cats)
    workers = [Thread(target=run.advance, args=(120,)) for _ in range(2)]
    seen = []
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        seen.append(run.at(run.reached).step)
    for worker in workers:
        worker.join()
    run.advance(120)
    alone = course(cats)
    alone.advance(120)
    assert run.losses == alone.losses
    assert seen == sorted(seen)
