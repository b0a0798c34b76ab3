"""Five-point differences of the loss: where they agree with the gradient, and where they cannot."""

from __future__ import annotations

import pytest

from engine import Edit, InputError, Trace, presets, programs, run
from engine.differences import FIRST_STEP, five_point

BACKWARD = programs.of("backward")
IDS, TARGETS = [[0, 2, 3, 0]], [[2, 3, 0, 4]]
UP = "layers.0.mlp.up"


def scratch(*edits: Edit) -> Trace:
    return run(presets.load("scratch"), IDS, targets=TARGETS, program=BACKWARD, edits=edits)


def assert_agrees(trace: Trace, name: str, index: tuple[int, ...], tolerance: float = 1e-10) -> None:
    found = five_point(trace, name, index)
    assert found is not None
    assert found.kink is None
    recorded = trace[f"gradient.{name}"].number(index)
    assert found.slope == pytest.approx(recorded, rel=tolerance, abs=tolerance)
    assert abs(found.slope - recorded) <= 4 * found.uncertain


@pytest.mark.parametrize(("name", "index"), [
    ("layers.0.attention.Wq", (0, 1)), ("layers.1.norm2.weight", (3,)), ("embedding.weight", (0, 2)),
    ("lm_head.weight", (4, 7)), ("norm_epsilon", ()), ("sqrt_head_size", ()), ("rope.positions", (2,)),
    ("rope.frequencies", (1,)), ("causal_mask", (2, 1)), ("layers.0.attention.weights", (0, 1, 2, 0)),
    ("layers.0.attention.weights.exp", (0, 1, 2, 0)), ("layers.1.output", (0, 1, 6)), ("logits", (0, 3, 4)),
    ("loss.per_position", (0, 2)), ("loss", ()),
])
def test_parameters_constants_and_activations(name: str, index: tuple[int, ...]) -> None:
    assert_agrees(scratch(), name, index)


def test_under_the_edits_in_force() -> None:
    edits = [Edit("layers.0.attention.Wq", (0, 1), 0.5), Edit("layers.0.attention.q", (0, 2, 3), 1.5),
             Edit("gradient.layers.1.output", (), 0.0)]
    trace = scratch(*edits)
    found = five_point(trace, "layers.0.attention.q", (0, 2, 3))
    assert found is not None
    without = scratch(*edits[:2])
    assert found.slope == pytest.approx(without["gradient.layers.0.attention.q"].number((0, 2, 3)), abs=1e-10)
    assert found.slope != pytest.approx(scratch()["gradient.layers.0.attention.q"].number((0, 2, 3)), abs=1e-6)


def test_at_a_kink_there_is_no_one_slope() -> None:
    """Exactly at 0 the gradient takes the side of 0, and a difference sees both."""
    trace = scratch(Edit(UP, (0, 3, 5), 0.0))
    found = five_point(trace, UP, (0, 3, 5))
    assert found is not None
    assert found.kink == UP
    assert trace[f"gradient.{UP}"].number((0, 3, 5)) == 0
    passed = trace["gradient.layers.0.mlp.activation"].number((0, 3, 5))
    assert found.slope == pytest.approx(passed / 2, rel=1e-4)


def test_near_a_kink_the_step_is_shorter() -> None:
    trace = scratch(Edit(UP, (0, 3, 5), 1e-5))
    found = five_point(trace, UP, (0, 3, 5))
    assert found is not None
    assert found.step < FIRST_STEP / 100
    assert_agrees(trace, UP, (0, 3, 5), 1e-7)


def test_where_the_loss_bends_fast_the_step_is_shorter() -> None:
    """A row of zeros has the size √ε = 0.001, so that no step may be longer than ε = 10⁻⁶."""
    trace = run(presets.load("cats"), [[200, 45]], targets=[[45, 90]], program=BACKWARD)
    found = five_point(trace, "norm_epsilon", ())
    assert found is not None
    assert found.step < 1e-6
    assert_agrees(trace, "norm_epsilon", (), 1e-7)


def test_what_cannot_be_varied() -> None:
    trace = scratch()
    assert five_point(trace, "layers.0.attention.masked_scores", (0, 0, 1, 2)) is None, "−∞"
    assert five_point(trace, "causal_mask", (0, 1)) is None
    assert five_point(trace, "input_ids", (0, 1)) is None
    assert five_point(trace, "targets", (0, 1)) is None
    assert five_point(trace, "gradient.logits", (0, 1, 2)) is None, "the loss is not made from it"
    beside = five_point(trace, "loss.target_probability", (0, 1))
    assert beside is not None
    assert beside.slope == 0


@pytest.mark.parametrize("value", [1.797e308, -1.797e308, 1.7975e308])
def test_near_the_end_of_the_range_there_is_no_room_for_a_step(value: float) -> None:
    assert five_point(scratch(Edit("lm_head.weight", (3, 0), value)), "lm_head.weight", (3, 0)) is None


def test_a_tied_table_goes_by_either_name() -> None:
    today = presets.load("today")
    trace = run(today, [[1024, 2048]], targets=[[2048, 3072]], program=BACKWARD)
    for name in ("embedding.weight", "lm_head.weight"):
        found = five_point(trace, name, (2048, 3))
        assert found is not None
        assert found.slope == pytest.approx(trace["gradient.embedding.weight"].number((2048, 3)), abs=1e-10)


def test_with_dropout_the_masks_stay_as_they_were_drawn() -> None:
    today = presets.load("today")
    trace = run(today, [[1024, 2048]], targets=[[2048, 3072]], program=BACKWARD, training=True, seed=5)
    found = five_point(trace, "layers.0.attention.Wv", (1, 2))
    assert found is not None
    assert found.slope == pytest.approx(trace["gradient.layers.0.attention.Wv"].number((1, 2)), abs=1e-10)


def test_without_targets_there_is_no_loss() -> None:
    with pytest.raises(InputError, match="compares predictions with targets"):
        five_point(run(presets.load("scratch"), IDS), "logits", (0, 0, 0))
