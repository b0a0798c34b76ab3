"""Gradients against five-point finite differences of runs with one cell edited."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from engine import Edit, Model, Trace, gradient, presets, programs, run
from tests.engine.support import Array, model_with, slope

IDS = [0, 2, 3, 0, 2]
TARGET = ("probabilities", (0, 4, 2))
OVERRIDES = (
    Edit("layers.0.attention.head_output", (0, 1), 0.0),
    Edit("layers.1.attention.weights", (0, 0, 4, 1), 0.7),
    Edit("layers.0.attention.masked_scores", (0, 0, 3, 1), -inf),
    Edit("layers.1.residual1", (0, 4, 3), 0.4),
    Edit("layers.0.mlp.W_up", (slice(None), 2), 0.2),
)


@pytest.fixture(scope="module")
def scratch() -> Model:
    return presets.load("scratch")


@pytest.mark.parametrize("edits", [(), OVERRIDES], ids=["plain", "overridden"])
def test_every_cell_of_every_tensor(scratch: Model, edits: tuple[Edit, ...]) -> None:
    """Parameters, activations, softmax steps, ε, √D, positions, frequencies and the mask's zeros."""
    trace = run(scratch, IDS, edits=edits)
    gradients = gradient(trace, *TARGET)
    assert set(gradients) == set(trace) - {"input_ids"}
    for name, tensor in gradients.items():
        assert tensor.axes == trace[name].axes
        for index in np.ndindex(*tensor.shape):
            if np.isfinite(trace[name].data[index]):
                expected = slope(trace, *TARGET, name, index)
                assert float(tensor.data[index]) == pytest.approx(expected, rel=1e-7, abs=1e-9), (name, index)


@pytest.mark.parametrize("pairing", ["interleaved", "half"])
@pytest.mark.parametrize("name", ["norm_epsilon", "sqrt_head_size", "rope.positions", "rope.frequencies"])
def test_leaves_of_either_pairing(pairing: str, name: str) -> None:
    model = model_with(hidden_size=12, heads=2, layers=2, rope_pairing=pairing)
    ids, target = [1, 6, 6, 2], ("logits", (0, 3, 4))
    trace = run(model, ids)
    gradients = gradient(trace, *target)
    assert np.any(gradients[name].data != 0)
    for index in np.ndindex(*gradients[name].shape):
        expected = slope(trace, *target, name, index)
        assert float(gradients[name].data[index]) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_of_a_lesson_program(scratch: Model) -> None:
    trace = run(scratch, IDS, program=programs.lessons)
    target = ("scaled.with_norm.logits", (0, 3))
    gradients = gradient(trace, *target)
    for name in ("scaled.factor", "final_norm.weight", "layers.1.output"):
        for index in np.ndindex(*gradients[name].shape):
            expected = slope(trace, *target, name, index)
            assert float(gradients[name].data[index]) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_by_hand(cats_trace: Trace) -> None:
    """∂ (h · w) / ∂ w = h and ∂ / ∂ h = w; rows of other candidates and positions get nothing."""
    gradients = gradient(cats_trace, "logits", (0, 2, 90))
    expected_table = np.zeros((256, 4))
    expected_table[90] = cats_trace["final_norm.output"].data[0, 2]
    assert np.array_equal(gradients["lm_head.weight"].data, expected_table)
    expected_vector = np.zeros((1, 3, 4))
    expected_vector[0, 2] = [0.2, 0.4, 0.1, 0.3]
    assert np.array_equal(gradients["final_norm.output"].data, expected_vector)
    assert gradients["logits"].data.sum() == 1.0


def test_the_largest_score_is_a_number_that_does_not_move(cats_trace: Trace) -> None:
    """shifted = x − max: −1 for the maximum, where the gradient ends, and 1 for x."""
    name = "layers.1.attention.weights"
    gradients = gradient(cats_trace, f"{name}.shifted", (0, 1, 2, 0))
    assert gradients[f"{name}.max"].data[0, 1].tolist() == [0, 0, -1]
    assert gradients["layers.1.attention.masked_scores"].data[0, 1, 2].tolist() == [1, 0, 0]


def test_only_what_is_upstream(cats_trace: Trace) -> None:
    gradients = gradient(cats_trace, "layers.0.attention.scores", (0, 0, 2, 1))
    assert {"layers.0.attention.Wq", "embedding.weight", "rope.positions"} <= set(gradients)
    assert not {"layers.0.attention.Wv", "layers.0.attention.weights", "logits"} & set(gradients)


def test_repeated_tokens_add_up() -> None:
    """The row of a token that stands three times gets the sum over its positions."""
    gradients = gradient(run(model_with(hidden_size=4), [3, 3, 1, 3]), "logits", (0, 3, 0))
    at_positions: Array = gradients["embedding.output"].data[0]
    rows = gradients["embedding.weight"].data
    np.testing.assert_allclose(rows[3], at_positions[[0, 1, 3]].sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(rows[1], at_positions[2], rtol=1e-12)
    assert not rows[[0, 2, 4, 5, 6]].any()


def test_stops_at_an_override(cats: Model) -> None:
    """With every head set by hand only the skip path is left, and it does not leave the position."""
    edits = [Edit(f"layers.{layer}.attention.head_output", (), 0.25) for layer in range(2)]
    gradients = gradient(run(cats, "Cats sit on", edits=edits), "logits", (0, 2, 90))
    assert gradients["layers.1.attention.head_output"].data.any()
    for name in ("layers.1.attention.v", "layers.1.attention.weights", "layers.0.attention.Wv"):
        assert not gradients[name].data.any()
    assert gradients["embedding.output"].data[0, 2].any()
    assert not gradients["embedding.output"].data[0, :2].any()
