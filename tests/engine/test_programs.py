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
