"""What lessons compute beside the model: by hand, and leaving the model's own numbers alone."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Edit, Model, Trace, programs, run
from tests.engine.support import bits


@pytest.fixture(scope="module")
def lesson(cats: Model) -> Trace:
    return run(cats, "Cats sit on", program=programs.lessons)


def test_the_forward_pass_is_untouched(lesson: Trace, cats_trace: Trace) -> None:
    assert [bits(lesson[name]) for name in cats_trace] == [bits(tensor) for tensor in cats_trace.values()]
    assert list(lesson)[:len(cats_trace)] == list(cats_trace)


@pytest.mark.parametrize("layer", [0, 1])
def test_rows_of_weights_add_up_to_one(lesson: Trace, layer: int) -> None:
    sums = lesson[f"layers.{layer}.attention.row_sums"]
    assert (sums.axes, sums.shape) == (("batch", "head", "query"), (1, 2, 3))
    np.testing.assert_allclose(sums.data, 1.0, rtol=1e-15)


def test_a_row_of_weights_with_nothing_to_read_adds_up_to_zero(cats: Model, lesson: Trace) -> None:
    edits = [Edit("layers.0.attention.masked_scores", (0, 0, 0, 0), -np.inf),
             Edit("layers.0.attention.weights", (0, 1, 2, 0), 0.75)]
    trace = run(cats, "Cats sit on", edits=edits, base=lesson, program=programs.lessons)
    sums, weights = (trace[f"layers.0.attention.{name}"].data[0] for name in ("row_sums", "weights"))
    assert sums[0, 0] == 0
    assert sums[1, 2] == pytest.approx(0.75 + weights[1, 2, 1] + weights[1, 2, 2], rel=1e-15)
    np.testing.assert_allclose(sums[0, 1:], 1.0, rtol=1e-15)


def test_softmax_of_small_and_large_scores(lesson: Trace) -> None:
    """[1,2,3] → 9 %, 24 %, 67 %; [10,20,30] → 0 %, 0 %, 100 %."""
    assert lesson["softmax_demo.large"].data.tolist() == [10.0, 20.0, 30.0]
    assert np.round(100 * lesson["softmax_demo.small_weights"].data).tolist() == [9, 24, 67]
    assert np.round(100 * lesson["softmax_demo.large_weights"].data).tolist() == [0, 0, 100]


def test_contributions_of_mats(lesson: Trace) -> None:
    """The article multiplies rounded features; the true products agree to the features' rounding."""
    np.testing.assert_allclose(
        lesson["contributions"].data[90], [-0.00062, 0.38548, -0.00321, 0.52566], rtol=0, atol=0.5e-4
    )
    np.testing.assert_allclose(
        lesson["contributions"].data.sum(axis=-1), lesson["logits"].data[0, -1], rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("factor", [0.1, 1.0, 40.0])
def test_the_final_norm_takes_the_scale_away(cats: Model, lesson: Trace, factor: float) -> None:
    trace = run(
        cats, "Cats sit on", edits=[Edit("scaled.factor", (), factor)], base=lesson, program=programs.lessons
    )
    # 0.2·(−0.0134) + 0.4·4.1119 + 0.1·(−0.1371) + 0.3·7.4768, from the article's last layer
    np.testing.assert_allclose(trace["scaled.without_norm.logits"].data[0, 90], 3.8714 * factor, rtol=1e-4)
    np.testing.assert_allclose(trace["scaled.with_norm.logits"].data[0, 90], 0.9073, rtol=1e-4)
    for outcome in ("with_norm", "without_norm"):
        np.testing.assert_allclose(trace[f"scaled.{outcome}.probabilities"].data.sum(), 1.0, rtol=1e-12)
