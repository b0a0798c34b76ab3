"""Random scores by head size: draws that can be repeated, measures by hand, and what theory expects of them."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from engine import Edit, EditError, Trace, explain, gradient, presets, run
from engine.programs import of
from engine.programs.why_sqrt import DIVISIONS, SIZES
from tests.engine.support import Array, slope

PROGRAM = of("why_sqrt")
EVERY_SIZE = pytest.mark.parametrize("size", SIZES)
DRAWS = 24


def traced(seed: float = 0, *edits: Edit) -> Trace:
    return run(presets.load("cats"), "on", edits=[Edit("why_sqrt.seed", (), seed), *edits], program=PROGRAM)


def number(trace: Trace, size: int, division: str, measure: str) -> float:
    return float(trace[f"why_sqrt.D{size}.{division}.{measure}"].data)


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@EVERY_SIZE
@pytest.mark.parametrize("seed", [0, 7])
def test_queries_and_keys_are_numpy_s_own_draws(size: int, seed: int) -> None:
    trace = traced(seed)
    for which, letter in enumerate("qk"):
        drawn = np.random.default_rng([seed, size, which]).standard_normal((16, size))
        np.testing.assert_array_equal(trace[f"why_sqrt.D{size}.{letter}"].data, drawn)
        cell = explain(trace, f"why_sqrt.D{size}.{letter}", (5, 3))
        assert [term.name for term in cell.terms] == ["why_sqrt.seed"]
        assert cell.evaluate() == drawn[5, 3]


def test_every_draw_is_another() -> None:
    trace = traced()
    firsts = [float(trace[f"why_sqrt.D{size}.{letter}"].data[0, 0]) for size in SIZES for letter in "qk"]
    assert len({*firsts}) == 2 * len(SIZES)
    assert float(traced(1)["why_sqrt.D4.q"].data[0, 0]) not in firsts


@pytest.mark.parametrize("seed", [-1, 0.5, 10_000])
def test_seeds_are_whole_numbers(seed: float) -> None:
    with pytest.raises(EditError):
        traced(seed)


@EVERY_SIZE
def test_measures_by_hand(size: int) -> None:
    trace = traced(3)
    q, k = (trace[f"why_sqrt.D{size}.{letter}"].data for letter in "qk")
    for division, divisor in zip(DIVISIONS, (1, sqrt(size), size), strict=True):
        scores = q @ k.T / divisor
        weights = softmax(scores)
        centred = scores - scores.mean()
        with np.errstate(divide="ignore", invalid="ignore"):
            entropies = -np.nansum(weights * np.log(weights), axis=1)
        for measure, expected in (
            ("spread", sqrt((centred**2).mean())), ("entropy", entropies.mean()),
            ("slope", (weights * (1 - weights)).max(axis=1).mean()),
        ):
            assert number(trace, size, division, measure) == pytest.approx(expected, rel=1e-10), (division, measure)


@EVERY_SIZE
def test_the_spread_that_theory_expects(size: int) -> None:
    """Var(q·k) = D for independent standard normal features: √D undivided, 1 with √D, 1/√D with D."""
    draws = [traced(seed) for seed in range(DRAWS)]
    for division, expected in zip(DIVISIONS, (sqrt(size), 1.0, 1 / sqrt(size)), strict=True):
        mean_square = np.mean([number(trace, size, division, "spread") ** 2 for trace in draws])
        assert sqrt(mean_square) == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize("seed", range(6))
def test_what_the_lesson_says(seed: int) -> None:
    """Undivided, softmax hardens; with √D it stays as it is; with D it goes flat, and its slope small as well."""
    trace = traced(seed)
    entropy, steepest = (
        {division: [number(trace, size, division, name) for size in SIZES] for division in DIVISIONS}
        for name in ("entropy", "slope")
    )
    assert entropy["undivided"][-1] < 0.3 < 1.4 < entropy["undivided"][0]
    assert steepest["undivided"][-1] < 0.07
    assert all(2.1 < each < 2.6 for each in entropy["by_root"])
    assert all(0.13 < each < 0.21 for each in steepest["by_root"])
    assert entropy["by_size"][-1] == pytest.approx(log(16), abs=0.01)
    assert steepest["by_size"][-1] == pytest.approx(1 / 16 * 15 / 16, abs=0.01)


def test_the_two_ends() -> None:
    """Equal scores: entropy ln 16, slope 1/16 · 15/16. One key that has all: 0 and 0."""
    even = traced(0, Edit("why_sqrt.D4.q", (), 0.0))
    assert number(even, 4, "undivided", "spread") == 0
    assert number(even, 4, "undivided", "entropy") == pytest.approx(log(16), rel=1e-14)
    assert number(even, 4, "undivided", "slope") == pytest.approx(15 / 256, rel=1e-14)
    one = traced(0, Edit("why_sqrt.D4.dot", (slice(None), 2), 5000.0))
    assert number(one, 4, "undivided", "entropy") == 0
    assert number(one, 4, "undivided", "slope") == 0


@pytest.mark.parametrize(("measure", "edits"), [
    ("spread", ()), ("entropy", ()), ("slope", ()),
    ("entropy", (Edit("why_sqrt.D4.dot", (0, 1), -3000.0),)),
])
def test_slopes_of_the_measures(measure: str, edits: tuple[Edit, ...]) -> None:
    trace = traced(5, *edits)
    target = f"why_sqrt.D4.by_root.{measure}"
    found = gradient(trace, target, ())["why_sqrt.D4.dot"].data
    for index in ((0, 0), (0, 2), (3, 7), (15, 15)):
        assert found[index] == pytest.approx(slope(trace, target, (), "why_sqrt.D4.dot", index), rel=1e-6, abs=1e-10)


def test_the_spread_of_equal_scores_has_no_slope() -> None:
    even = traced(0, Edit("why_sqrt.D4.q", (), 0.0))
    assert not gradient(even, "why_sqrt.D4.undivided.spread", ())["why_sqrt.D4.dot"].data.any()


@EVERY_SIZE
def test_cells_explain_themselves(size: int) -> None:
    trace = traced(2)
    for name, tensor in trace.items():
        if not name.startswith(f"why_sqrt.D{size}."):
            continue
        for flat in {0, tensor.data.size // 3, tensor.data.size - 1}:
            cell = explain(trace, name, tuple(map(int, np.unravel_index(flat, tensor.shape))))
            assert cell.evaluate() == pytest.approx(cell.value, rel=1e-12, abs=1e-14), name
