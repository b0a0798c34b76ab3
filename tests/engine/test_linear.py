"""The lesson on linearity: two tests of five functions, and three layers that are worth one, by hand."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine import Edit, Model, Trace, gradient, run
from engine.elementwise import difference
from engine.programs import linear
from tests.engine.support import Array, assert_explained, assign, slope

SENTENCE = "on"
A, B, K = np.array([2.0, -1.0, 0.5]), np.array([-3.0, 2.0, 1.0]), 3.0
LAYERS = "linear.layers"
Function = Callable[[Array], Array]


def traced(cats: Model, *edits: Edit) -> Trace:
    return run(cats, SENTENCE, program=linear.program, edits=edits)


@pytest.fixture(scope="module")
def trace(cats: Model) -> Trace:
    return traced(cats)


def numbers(trace: Trace, name: str) -> Array:
    return trace[f"linear.{name}"].data


def gelu(x: Array) -> Array:
    """x · Φ(x), the article's definition."""
    return np.array([value * NormalDist().cdf(value) for value in x.ravel()]).reshape(x.shape)


def relu(x: Array) -> Array:
    return np.where(x > 0, x, 0.0)


def softmax(x: Array) -> Array:
    return np.exp(x) / np.exp(x).sum()


def test_the_article_s_check_of_relu(trace: Trace) -> None:
    """f(2 + (−3)) = f(−1) = 0, f(2) + f(−3) = 2 + 0 = 2."""
    assert [numbers(trace, name)[0] for name in ("a", "b", "sum")] == [2, -3, -1]
    names = ("of_sum", "of_a", "of_b", "sum_of_outputs", "sum_difference")
    assert [numbers(trace, f"relu.{name}")[0] for name in names] == [0, 2, 0, 2, -2]


def test_a_matrix_passes_both_tests_by_hand(trace: Trace) -> None:
    """First column of W is 1, 0, −½: f(a) = 2 − ¼, f(b) = −3 − ½, f(a + b) = −1 − ¾."""
    names = ("of_a", "of_b", "sum_of_outputs", "of_sum", "sum_difference")
    assert [numbers(trace, f"matrix.{name}")[0] for name in names] == [1.75, -3.5, -1.75, -1.75, 0]
    assert numbers(trace, "matrix.of_scaled").tolist() == [5.25, -1.5, -7.5]
    assert numbers(trace, "matrix.scaled_difference").tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_a_matrix_passes_on_any_numbers(cats: Model, seed: int) -> None:
    generator = np.random.default_rng(seed)
    edits = [*assign("linear.W", generator.normal(size=(3, 3))), *assign("linear.a", 100 * generator.normal(size=3)),
             *assign("linear.b", generator.normal(size=3)), Edit("linear.k", (), -0.1)]
    here = traced(cats, *edits)
    assert not numbers(here, "matrix.sum_difference").any()
    assert not numbers(here, "matrix.scaled_difference").any()
    assert all(numbers(here, f"{name}.sum_difference").any() for name in ("affine", "gelu", "softmax"))


def test_a_bias_is_all_that_an_affine_function_is_off_by(cats: Model, trace: Trace) -> None:
    bias = numbers(trace, "bias")
    assert_allclose(numbers(trace, "affine.sum_difference"), -bias)
    assert_allclose(numbers(trace, "affine.scaled_difference"), (1 - K) * bias)
    without = traced(cats, *assign("linear.bias", np.zeros(3)))
    for name in ("sum_difference", "scaled_difference"):
        assert not numbers(without, f"affine.{name}").any()


@pytest.mark.parametrize(("name", "function"), [("relu", relu), ("gelu", gelu), ("softmax", softmax)])
def test_functions_that_bend(trace: Trace, name: str, function: Function) -> None:
    assert_allclose(numbers(trace, f"{name}.of_a"), function(A), rtol=1e-12)
    assert_allclose(numbers(trace, f"{name}.sum_difference"), function(A + B) - function(A) - function(B), atol=1e-12)
    assert_allclose(numbers(trace, f"{name}.scaled_difference"), function(K * A) - K * function(A), atol=1e-12)
    assert numbers(trace, f"{name}.sum_difference").any()


def test_softmax_of_a_sum_sums_to_one(trace: Trace) -> None:
    assert numbers(trace, "softmax.of_sum").sum() == pytest.approx(1)
    assert numbers(trace, "softmax.sum_of_outputs").sum() == pytest.approx(2)


@pytest.mark.parametrize(("k", "passes"), [(3.0, True), (0.0, True), (0.5, True), (-1.0, False), (-0.5, False)])
def test_relu_scales_as_long_as_the_factor_is_not_negative(cats: Model, k: float, passes: bool) -> None:
    differences = numbers(traced(cats, Edit("linear.k", (), k)), "relu.scaled_difference")
    assert bool(differences.any()) is not passes


def test_relu_passes_where_no_sign_changes_and_is_not_linear_for_that(cats: Model) -> None:
    here = traced(cats, *assign("linear.b", [4.0, -3.0, 0.25]))
    assert not numbers(here, "relu.sum_difference").any()
    assert not numbers(here, "relu.scaled_difference").any()


def weights(trace: Trace) -> tuple[list[Array], list[Array]]:
    matrices, biases = ([numbers(trace, f"layers.{letter}{number}") for number in (1, 2, 3)] for letter in "Wb")
    return matrices, biases


def through(trace: Trace, x: Array, *between: Function) -> Array:
    """The three layers with plain NumPy."""
    for number, (matrix, bias) in enumerate(zip(*weights(trace), strict=True)):
        x = x @ matrix + bias
        for activation in between if number < 2 else ():
            x = activation(x)
    return x


def test_three_layers_are_worth_one(trace: Trace) -> None:
    (first, second, third), _ = weights(trace)
    assert_allclose(numbers(trace, "layers.W_total"), np.linalg.multi_dot([first, second, third]), rtol=1e-12)
    # what the stack makes of nothing is the constant
    assert_allclose(numbers(trace, "layers.constant"), through(trace, np.zeros(3)), rtol=1e-12)
    x = numbers(trace, "layers.x")
    assert_allclose(numbers(trace, "layers.z3"), through(trace, x), rtol=1e-12)
    assert numbers(trace, "layers.difference").tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_three_layers_are_worth_one_whatever_their_numbers(cats: Model, seed: int) -> None:
    generator = np.random.default_rng(seed)
    edits = [edit for number in (1, 2, 3) for edit in (
        *assign(f"{LAYERS}.W{number}", generator.normal(size=(3, 3))),
        *assign(f"{LAYERS}.b{number}", 10 * generator.normal(size=3)),
    )]
    assert not numbers(traced(cats, *edits), "layers.difference").any()


@pytest.mark.parametrize(("switched", "between"), [
    (("relu",), (relu,)), (("gelu",), (gelu,)), (("relu", "gelu"), (relu, gelu)),
])
def test_with_an_activation_between_they_are_not(
    cats: Model, switched: tuple[str, ...], between: tuple[Function, ...]
) -> None:
    here = traced(cats, *(Edit(f"{LAYERS}.{name}", (), 1.0) for name in switched))
    x = numbers(here, "layers.x")
    assert_allclose(numbers(here, "layers.z3"), through(here, x, *between), atol=1e-12)
    assert_allclose(numbers(here, "layers.difference"), through(here, x, *between) - through(here, x), atol=1e-12)
    assert numbers(here, "layers.difference").any()


def test_a_line_of_inputs_stays_a_line_until_something_bends_it(cats: Model, trace: Trace) -> None:
    """Along equal steps a line has no second differences."""
    def bend(of: Trace, name: str) -> float:
        return float(np.abs(np.diff(numbers(of, f"layers.line.{name}"), 2, axis=0)).max())

    inputs = numbers(trace, "layers.line.inputs")
    assert inputs.shape == (81, 3)
    assert_allclose(inputs[40], numbers(trace, "layers.x"))
    assert_allclose(inputs[:, 0], numbers(trace, "layers.x")[0] + np.linspace(-4, 4, 81), atol=1e-12)
    assert bend(trace, "z3") < 1e-12
    for name in ("relu", "gelu"):
        bent = traced(cats, Edit(f"{LAYERS}.{name}", (), 1.0))
        assert bend(bent, "z3") > 0.01
        assert bend(bent, "merged") < 1e-12


def test_every_cell_explains_itself(cats: Model) -> None:
    here = traced(cats, Edit(f"{LAYERS}.relu", (), 1.0), Edit("linear.relu.of_a", (0,), 0.5))
    assert_explained(gradient(here, f"{LAYERS}.difference", (1,)))


@pytest.mark.parametrize(("target", "name", "index"), [
    (f"{LAYERS}.difference", f"{LAYERS}.W2", (0, 1)), (f"{LAYERS}.difference", f"{LAYERS}.gelu", ()),
    ("linear.softmax.sum_difference", "linear.a", (1,)), ("linear.affine.scaled_difference", "linear.k", ()),
])
def test_gradients_by_finite_differences(cats: Model, target: str, name: str, index: tuple[int, ...]) -> None:
    here = traced(cats, Edit(f"{LAYERS}.gelu", (), 0.75))
    expected = slope(here, target, (0,), name, index)
    assert gradient(here, target, (0,))[name].data[index] == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(("left", "right", "gap"), [
    (0.1 + 0.2, 0.3, 0.0), (1.0, 1.0 + 1e-13, 0.0), (1e6, 1e6 + 1e-8, 0.0), (0.0, 1e-13, 0.0),
    (0.0, 1e-11, -1e-11), (1e6, 1e6 + 1e-5, 1e6 - (1e6 + 1e-5)), (2.0, -3.0, 5.0), (np.inf, 1.0, np.inf),
])
def test_what_counts_as_rounding(left: float, right: float, gap: float) -> None:
    assert difference(np.float64(left), np.float64(right)) == gap
    assert difference(np.float64(right), np.float64(left)) == -gap


def test_rounding_of_single_precision() -> None:
    ones = np.ones(2, dtype=np.float32)
    gaps = difference(ones, ones + np.array([1e-5, 1e-2], dtype=np.float32))
    assert gaps.dtype == np.float32
    assert gaps[0] == 0
    assert gaps[1] == pytest.approx(-0.01, rel=1e-4)
    assert np.isnan(difference(np.float64(np.inf), np.float64(np.nan)))
