"""Activations, their slopes and what they let back: against PyTorch, finite differences and the article."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, sqrt, tanh

import numpy as np
import pytest

from engine import Edit, Trace, gradient, presets, programs, run
from engine.variants import variant
from tests.engine.support import assign, five_point, model_with
from tests.engine.test_parts import PartsReference

PROGRAM = programs.of("gelu")
ARRAYS = PartsReference().arrays
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(0.0, x), "relu_squared": lambda x: max(0.0, x) ** 2,
    "gelu_tanh": lambda x: 0.5 * x * (1 + tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: x * (1 + erf(x / sqrt(2))) / 2,
}
# second article, 3.2
PRINTED = [-0.01, -0.05, -0.16, 0, 0.84, 1.95, 2.99]


@pytest.fixture(scope="module")
def today() -> Trace:
    return run(presets.load("today"), "今天天气真", program=PROGRAM)


def at(x: float) -> Trace:
    return run(presets.load("cats"), [12], edits=[Edit("gelu.own.x", (), x)], program=PROGRAM)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_curves_agree_with_pytorch(today: Trace, name: str) -> None:
    np.testing.assert_allclose(today["gelu.curve.x"].data, ARRAYS["activations/x"], rtol=0, atol=1e-15)
    for ending, kind in (("", "value"), ("_slope", "derivative")):
        np.testing.assert_allclose(
            today[f"gelu.curve.{name}{ending}"].data, ARRAYS[f"activations/{name}/{kind}"], rtol=0, atol=1e-14
        )


@pytest.mark.parametrize("x", [-6.0, -3.0, -0.7518, -0.2, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_number_of_the_reader_s_own(name: str, x: float) -> None:
    trace = at(x)
    assert float(trace[f"gelu.own.{name}"].data) == pytest.approx(FUNCTIONS[name](x), rel=1e-12, abs=1e-15)
    expected = five_point(FUNCTIONS[name], x)
    assert float(trace[f"gelu.own.{name}_slope"].data) == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("x", [-2.5, -1.0, 0.0, 0.4, 3.0])
def test_the_article_s_formula_by_steps_is_gelu(x: float) -> None:
    trace = at(x)
    for steps, whole in (("gelu", "gelu_tanh"), ("product", "gelu_erf")):
        found = float(trace[f"gelu.own.steps.{steps}"].data)
        assert found == pytest.approx(float(trace[f"gelu.own.{whole}"].data), rel=1e-13, abs=1e-16)
    assert float(trace["gelu.own.steps.cube"].data) == x**3


def test_the_article_s_table_and_where_it_is_off(today: Trace) -> None:
    assert today["gelu.table.x"].data.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert today["gelu.table.printed"].data.tolist() == PRINTED
    real = today["gelu.table.gelu_tanh"].data
    np.testing.assert_allclose(real[[0, 6]], [-0.0036, 2.9964], atol=5e-5)
    off = np.flatnonzero(np.round(real, 2) != PRINTED)
    assert off.tolist() == [0, 6]
    np.testing.assert_array_equal(today["gelu.table.difference"].data, PRINTED - real)


def test_a12_tanh_and_erf_are_furthest_apart_near_2_699(today: Trace) -> None:
    gap = np.abs(today["gelu.curve.gelu_tanh"].data - today["gelu.curve.gelu_erf"].data)
    assert gap.max() == pytest.approx(4.732e-4, abs=1e-6)
    assert abs(today["gelu.curve.x"].data[gap.argmax()]) == pytest.approx(2.7)


def test_a27_relu_squared() -> None:
    assert [float(at(x)["gelu.own.relu_squared"].data) for x in (-2, -0.5, 0.5, 3)] == [0, 0, 0.25, 9]


def test_wide_and_narrow_again(today: Trace) -> None:
    shapes = [today[f"layers.0.mlp.{name}"].shape for name in ("up", "activation", "output")]
    assert shapes == [(1, 5, 48), (1, 5, 48), (1, 5, 12)]


def test_dead_units_are_negative_everywhere(today: Trace) -> None:
    dead = np.flatnonzero((today["layers.0.mlp.up"].data[0] <= 0).all(axis=0))
    assert dead.tolist() == [20, 36, 45]
    assert today["layers.0.gelu.dead"].data.tolist() == [3.0]
    assert np.flatnonzero(today["layers.0.gelu.relu_slopes"].data[0] == 0).tolist() == dead.tolist()
    assert not today["layers.0.gelu.relu_gradient"].data[0, dead].any()
    assert np.abs(today["layers.0.gelu.gelu_gradient"].data[0, dead]).min() > 0.01


def test_a_unit_wakes_when_its_bias_is_raised(today: Trace) -> None:
    """f36 is negative by 0.0174 at its least."""
    bias = float(today["layers.0.mlp.b_up"].data[36])
    for raised, dead in ((0.0173, 3), (0.0176, 2)):
        edits = [Edit("layers.0.mlp.b_up", (36,), bias + raised)]
        trace = run(today.model, today.ids, base=today, edits=edits, program=PROGRAM)
        assert trace["layers.0.gelu.dead"].data.tolist() == [dead]


@pytest.mark.parametrize("name", ["gelu_tanh", "gelu_erf"])
@pytest.mark.parametrize("x", [-2.0, -0.7, 0.0, 0.3, 1.5])
def test_slopes_have_slopes_of_their_own(name: str, x: float) -> None:
    """The labs show slopes as tensors, so a gradient passes through them, too."""
    trace = at(x)
    found = gradient(trace, f"gelu.own.{name}_slope", ())["gelu.own.x"].number(())
    # the second difference of the function itself
    step, function = 1e-4, FUNCTIONS[name]
    expected = (function(x + step) - 2 * function(x) + function(x - step)) / step**2
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_gradients_of_units_agree_with_pytorch(name: str) -> None:
    model = model_with({"layers.0.mlp.W_down": ARRAYS["units/W_down"]}, hidden_size=8, mlp_size=10)
    trace = run(model, [0, 1, 2], edits=assign("layers.0.mlp.up", ARRAYS["units/up"], 0), program=PROGRAM)
    np.testing.assert_allclose(
        trace[f"layers.0.gelu.{name}_gradient"].data[0], ARRAYS[f"units/{name}_gradient"], rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize(("activation", "name"), [("relu", "relu"), ("gelu_tanh", "gelu")])
@pytest.mark.parametrize("unit", [0, 20, 45])
def test_gradients_of_units_are_slopes_of_the_model(today: Trace, activation: str, name: str, unit: int) -> None:
    """By runs with the unit's bias moved; the sum of the MLP's outputs, positions and features."""
    model = variant(today.model, activation=activation)
    start = float(model.parameters["layers.0.mlp.b_up"][unit])

    def total(bias: float) -> float:
        edited = run(model, today.ids, edits=[Edit("layers.0.mlp.b_up", (unit,), bias)])
        return float(edited["layers.0.mlp.output"].data.sum())

    found = today[f"layers.0.gelu.{name}_gradient"].data[0, unit]
    assert found == pytest.approx(five_point(total, start), rel=1e-6, abs=1e-7)
