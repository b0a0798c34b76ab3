"""LayerNorm beside RMSNorm: against PyTorch, closed forms, and what people got wrong elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine import Edit, Model, Trace, presets, programs, run
from tests.engine.support import Array, assign, model_with
from tests.engine.test_parts import PartsReference

PROGRAM = programs.of("layernorm")
ARRAYS = PartsReference().arrays
HERE = "layers.0.layernorm"


def with_stream(x: Array, *edits: Edit) -> Trace:
    """A model whose stream into its one layer, norm and ε are those of the reference."""
    given = {f"layers.0.norm1.{name}": ARRAYS[f"norms/{name}"] for name in ("weight", "bias")}
    model = model_with(given, hidden_size=8, norm="layernorm", norm_epsilon=1e-5, positions="none")
    return run(model, [0, 1, 2], edits=[*assign("embedding.output", x, 0), *edits], program=PROGRAM)


def of_own(numbers: Sequence[float], epsilon: float = 1e-5) -> Trace:
    edits = [Edit("layernorm.own.x", (place,), number) for place, number in enumerate(numbers)]
    return run(presets.load("cats"), [12], edits=[*edits, Edit("norm_epsilon", (), epsilon)], program=PROGRAM)


def test_both_norms_agree_with_pytorch() -> None:
    trace = with_stream(ARRAYS["norms/x"])
    for name in ("layer_norm", "rms_norm"):
        np.testing.assert_allclose(trace[f"{HERE}.{name}.output"].data[0], ARRAYS[f"norms/{name}"], rtol=1e-13)
    np.testing.assert_array_equal(trace[f"{HERE}.layer_norm.output"].data, trace["layers.0.norm1.output"].data)


def test_a_constant_changes_rmsnorm_alone() -> None:
    plain, shifted = (with_stream(ARRAYS["norms/x"], Edit("layernorm.shift", (), value)) for value in (0.0, 3.0))
    layer, rms = (
        np.abs(shifted[f"{HERE}.{name}.output"].data - plain[f"{HERE}.{name}.output"].data).max()
        for name in ("layer_norm", "rms_norm")
    )
    assert layer < 1e-14
    assert rms > 0.1


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_factor_changes_neither_but_for_epsilon(factor: float) -> None:
    plain, scaled = (
        with_stream(ARRAYS["norms/x"], Edit("layernorm.stretch", (), value), Edit("norm_epsilon", (), 1e-18))
        for value in (1.0, factor)
    )
    for name in ("layer_norm", "rms_norm"):
        output = f"{HERE}.{name}.output"
        np.testing.assert_allclose(scaled[output].data, plain[output].data, rtol=1e-12)
    seen = with_stream(ARRAYS["norms/x"], Edit("layernorm.stretch", (), 0.1), Edit("norm_epsilon", (), 0.01))
    assert np.abs(seen[f"{HERE}.layer_norm.output"].data - plain[f"{HERE}.layer_norm.output"].data).max() > 0.1


@pytest.mark.parametrize("preset", presets.NAMES)
def test_the_shape_stays(preset: str) -> None:
    """Mean 0 and variance v/(v + ε); order, proportions of gaps, and skewness as before."""
    model = presets.load(preset)
    trace = run(model, presets.SENTENCES[preset], program=PROGRAM)
    before, after = (
        {name: trace[f"{HERE}.{when}.{name}"].data[0] for name in ("mean", "variance", "skewness")}
        for when in ("before", "after")
    )
    np.testing.assert_allclose(after["mean"], 0.0, atol=1e-15)
    epsilon = model.config.norm_epsilon
    np.testing.assert_allclose(after["variance"], before["variance"] / (before["variance"] + epsilon), rtol=1e-12)
    np.testing.assert_allclose(after["skewness"], before["skewness"], rtol=1e-10, atol=1e-13)
    assert np.abs(before["skewness"]).max() > 0.1
    x, normalized = (trace[f"{HERE}.{name}"].data[0] for name in ("x", "layer_norm.normalized"))
    for vector, out in zip(x, normalized, strict=True):
        # a straight line through all features
        np.testing.assert_allclose(np.polyval(np.polyfit(vector, out, 1), vector), out, atol=1e-12)


def test_a_lopsided_vector_by_hand() -> None:
    """[1, 1, 2, 8]: mean 3, centred −2, −2, −1, 5, variance 34/4, mean cube 108/4."""
    trace = of_own([1, 1, 2, 8], epsilon=1e-300)
    assert float(trace["layernorm.own.before.third_moment"].data) == pytest.approx(27.0, rel=1e-15)
    for when in ("before", "after"):
        assert float(trace[f"layernorm.own.{when}.skewness"].data) == pytest.approx(27 / 8.5**1.5, rel=1e-13)
    np.testing.assert_allclose(
        trace["layernorm.own.layer_norm.output"].data, np.array([-2, -2, -1, 5]) / 8.5**0.5, rtol=1e-15
    )
    np.testing.assert_allclose(
        trace["layernorm.own.rms_norm.output"].data, np.array([1, 1, 2, 8]) / 17.5**0.5, rtol=1e-15
    )


def test_a10_biased_variance() -> None:
    trace = of_own([1, 2, 3, 4])
    np.testing.assert_allclose(
        trace["layernorm.own.layer_norm.output"].data, [-1.34163542, -0.44721181, 0.44721181, 1.34163542], atol=5e-9
    )


def test_a09_epsilon_under_the_root() -> None:
    trace = of_own([0.001, 0.002, 0.003, 0.004])
    np.testing.assert_allclose(
        trace["layernorm.own.rms_norm.output"].data, [0.23904572, 0.47809144, 0.71713717, 0.95618289], atol=5e-9
    )
    # two numbers twice have the mean and the variance of two
    twice = of_own([0, 0.001, 0, 0.001])
    np.testing.assert_allclose(
        twice["layernorm.own.layer_norm.output"].data, np.tile([-0.15617376, 0.15617376], 2), atol=5e-9
    )


def test_a10_a_vector_that_does_not_vary() -> None:
    trace = of_own([5, 5, 5, 5])
    assert not trace["layernorm.own.layer_norm.output"].data.any()
    for when in ("before", "after"):
        assert float(trace[f"layernorm.own.{when}.skewness"].data) == 0
    np.testing.assert_allclose(trace["layernorm.own.rms_norm.output"].data, 1.0, rtol=1e-6)


def test_every_layer_has_both_norms_of_its_own_input(cats: Model) -> None:
    trace = run(cats, "Cats sit on", program=PROGRAM)
    for layer in range(2):
        np.testing.assert_array_equal(
            trace[f"layers.{layer}.layernorm.rms_norm.output"].data, trace[f"layers.{layer}.norm1.output"].data
        )


def test_two_norms_of_a_block_have_weights_of_their_own() -> None:
    model = presets.load("today")
    first, second = (model.parameters[f"layers.0.norm{number}.weight"] for number in (1, 2))
    assert not np.array_equal(first, second)
    edited = run(model, "今天天气真", edits=[Edit("layers.0.norm2.bias", (3,), 5.0)])
    plain = run(model, "今天天气真")
    np.testing.assert_array_equal(edited["layers.0.norm1.output"].data, plain["layers.0.norm1.output"].data)
    changed = edited["layers.0.norm2.output"].data != plain["layers.0.norm2.output"].data
    assert changed[..., 3].all()
    assert not np.delete(changed, 3, axis=-1).any()
