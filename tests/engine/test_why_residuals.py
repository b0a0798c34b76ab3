"""Ten layers forward and backward: against plain NumPy, finite differences and the engine's own gradients."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest

from engine import Edit, Model, Trace, explain, gradient, presets, run
from engine.programs import of
from engine.programs.why_residuals import LAYERS, PATHS
from tests.engine.support import Array, assert_explained, slope

PROGRAM = of("why_residuals")
SCOPE = "why_residuals"
EVERY_PATH = pytest.mark.parametrize("path", PATHS)


def traced(gain: float = 1.0, *edits: Edit) -> Trace:
    return run(presets.load("cats"), "Cats sit on", edits=[Edit(f"{SCOPE}.gain", (), gain), *edits], program=PROGRAM)


def size(trace: Trace, path: str, layer: int) -> float:
    return float(trace[f"{SCOPE}.{path}.{layer}.gradient_size"].data)


def what_enters(path: str, layer: int) -> str:
    return f"{SCOPE}.input" if layer == 1 else f"{SCOPE}.{path}.{layer - 1}.x_out"


def by_hand(trace: Trace, path: str) -> Array:
    """The last layer's output, from the constants alone."""
    x = np.array([0.5, -0.3, -0.5, -0.2])
    for layer in range(1, 11):
        weight = float(trace[f"{SCOPE}.gain"].data) * trace[f"{SCOPE}.{layer}.W_drawn"].data
        h = (x / np.sqrt(np.mean(x**2) + 1e-6) if path == "normed" else x) @ weight
        f = h / 2 * (1 + np.tanh(sqrt(2 / pi) * (h + 0.044715 * h**3)))
        x = f if path == "plain" else x + f
    return x


@pytest.mark.parametrize("gain", [0.3, 1.0, 3.0])
@EVERY_PATH
def test_forward(path: str, gain: float) -> None:
    trace = traced(gain)
    expected = by_hand(trace, path)
    np.testing.assert_allclose(trace[f"{SCOPE}.{path}.10.x_out"].data, expected, rtol=1e-12)
    np.testing.assert_allclose(
        float(trace[f"{SCOPE}.{path}.L"].data), expected.sum() / 2, rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("gain", [0.3, 1.0, 3.0])
@EVERY_PATH
def test_gradients_are_those_of_finite_differences(path: str, gain: float) -> None:
    trace = traced(gain)
    for layer in LAYERS:
        name, found = what_enters(path, layer), trace[f"{SCOPE}.{path}.{layer}.gradient"].data
        expected = [slope(trace, f"{SCOPE}.{path}.L", (), name, (unit,)) for unit in range(4)]
        # a difference of numbers of the size of L says nothing below its last digits
        size_of_l = abs(float(trace[f"{SCOPE}.{path}.L"].data)) + 1e-6
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * size_of_l)


@EVERY_PATH
def test_gradients_are_those_of_reverse_mode(path: str) -> None:
    """Beside the steps that the lesson writes out, the engine's own derivatives."""
    trace = traced()
    by_rules = gradient(trace, f"{SCOPE}.{path}.L", ())
    # the input is read by all three paths, but L of one path alone depends on it here
    for layer in LAYERS:
        np.testing.assert_allclose(
            trace[f"{SCOPE}.{path}.{layer}.gradient"].data, by_rules[what_enters(path, layer)].data,
            rtol=1e-12, atol=1e-15,
        )


@EVERY_PATH
def test_sizes_are_lengths(path: str) -> None:
    trace = traced(1.7)
    for layer in LAYERS:
        vector = trace[f"{SCOPE}.{path}.{layer}.gradient"].data
        assert size(trace, path, layer) == pytest.approx(sqrt(sum(part * part for part in vector)), rel=1e-14)


def test_the_article_s_two_terms() -> None:
    """∂L/∂x = ∂L/∂out · 1 + ∂L/∂out · ∂f/∂x in every layer with a residual; without, the second alone."""
    trace = traced()
    for layer in range(1, 10):
        for path in ("residual", "normed"):
            here, arriving = f"{SCOPE}.{path}.{layer}", trace[f"{SCOPE}.{path}.{layer + 1}.gradient"].data
            np.testing.assert_array_equal(trace[f"{here}.gradient"].data, arriving + trace[f"{here}.through"].data)
        cell = explain(trace, f"{SCOPE}.residual.{layer}.gradient", (0,))
        assert [term.name for term in cell.terms] == [
            f"{SCOPE}.residual.{layer + 1}.gradient", f"{SCOPE}.residual.{layer}.through",
        ]
        assert f"{SCOPE}.plain.{layer}.through" not in trace


@EVERY_PATH
def test_every_cell_explains_itself(path: str) -> None:
    """Forward, backward, and the engine's own backward steps behind them."""
    assert_explained(gradient(traced(1.5), f"{SCOPE}.{path}.L", ()))


def test_small_weights_let_a_plain_stack_vanish() -> None:
    """And what the residual keeps is the straight road: ∂L/∂x stays near ∂L/∂out."""
    trace = traced(0.3)
    assert size(trace, "plain", 1) < 1e-8
    assert size(trace, "residual", 1) == pytest.approx(1, abs=0.1)
    assert size(trace, "normed", 1) == pytest.approx(1, abs=0.8)
    nothing = traced(0.0)
    assert size(nothing, "plain", 1) == 0
    for path in ("residual", "normed"):
        assert [size(nothing, path, layer) for layer in LAYERS] == [1.0] * 10


def test_large_weights_let_it_explode_and_the_norm_holds_it() -> None:
    trace = traced(3.0)
    assert size(trace, "plain", 1) > 100
    assert size(trace, "residual", 1) > size(trace, "plain", 1)
    assert size(trace, "normed", 1) < 30


def test_as_drawn_the_gradient_fades_layer_by_layer_or_grows() -> None:
    trace = traced()
    plain, residual = ([size(trace, path, layer) for layer in LAYERS] for path in ("plain", "residual"))
    assert plain == sorted(plain)
    assert plain[0] < 1e-3
    assert residual[0] > 10
    assert size(trace, "normed", 1) < 3


def test_all_paths_share_weights_and_start_from_length_one() -> None:
    trace = traced()
    assert np.linalg.norm(trace[f"{SCOPE}.direction"].data) == 1
    changed = traced(1.0, Edit(f"{SCOPE}.1.W_drawn", (0, 0), 1.5))
    for path in PATHS:
        assert changed[f"{SCOPE}.{path}.1.x_out"].data[0] != trace[f"{SCOPE}.{path}.1.x_out"].data[0]


@pytest.mark.parametrize("preset", presets.NAMES)
def test_the_model_does_not_matter(preset: str) -> None:
    trace = run(presets.load(preset), presets.SENTENCES[preset], program=PROGRAM)
    reference = traced()
    for name in (name for name in reference if name.startswith(SCOPE)):
        np.testing.assert_array_equal(trace[name].data, reference[name].data)


def test_the_slope_of_a_length(cats: Model) -> None:
    """∂|v|/∂v = v/|v|, and 0 for a vector of zeros, where it has none."""
    trace = traced()
    target = f"{SCOPE}.residual.3.gradient_size"
    found = gradient(trace, target, ())[f"{SCOPE}.residual.3.gradient"].data
    for unit in range(4):
        assert found[unit] == pytest.approx(slope(trace, target, (), f"{SCOPE}.residual.3.gradient", (unit,)), rel=1e-8)
    flat = gradient(traced(0.0), f"{SCOPE}.plain.3.gradient_size", ())[f"{SCOPE}.plain.3.gradient"].data
    assert flat.tolist() == [0, 0, 0, 0]
