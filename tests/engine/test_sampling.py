"""Temperature, top-k, top-p and the draw: PyTorch's filtered probabilities, and the reported cases."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from engine import InputError
from engine.sampling import choose, draw
from tests.engine.test_gpt2_parts import VARIANTS

FILTERS = [key for key in VARIANTS.arrays if key.startswith("sampling/") and not key.endswith("/logits")]


@pytest.mark.parametrize("key", FILTERS)
def test_filtered_probabilities_agree_with_pytorch(key: str) -> None:
    _, vector, spec = key.split("/")
    found = {name: re.search(rf"{name}_([\d.]+)", spec) for name in ("temperature", "top_k", "top_p")}
    settings: dict[str, Any] = {
        name: int(match[1]) if name == "top_k" else float(match[1]) for name, match in found.items() if match
    }
    probabilities = choose(VARIANTS.arrays[f"sampling/{vector}/logits"], **settings).probabilities
    np.testing.assert_allclose(probabilities, VARIANTS.arrays[key], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("temperature", "expected"), [
    (0.0, [0, 0, 1]), (1e-3, [0, 0, 1]), (1e-40, [0, 0, 1]), (5e-324, [0, 0, 1]),
    (1.0, [0.12195165, 0.33149896, 0.54654939]), (2.0, [0.20983183, 0.34595419, 0.44421398]),
])
def test_a18_temperature(temperature: float, expected: list[float]) -> None:
    np.testing.assert_allclose(choose(np.array([1, 2, 2.5]), temperature).probabilities, expected, atol=5e-9)


@pytest.mark.parametrize(("probabilities", "top_p", "expected"), [
    ([0.5, 0.41, 0.09], 0.9, [0.54945055, 0.45054945, 0]),
    ([0.4, 0.3, 0.2, 0.1], 0.8, [0.44444444, 0.33333333, 0.22222222, 0]),
    ([0.4, 0.3, 0.2, 0.1], 1e-9, [1, 0, 0, 0]),
    # the mass before the second is p itself, which is not below p
    ([0.5, 0.25, 0.25], 0.5, [1, 0, 0]), ([0.5, 0.25, 0.25], 0.75, [0.66666667, 0.33333333, 0]),
])
def test_a20_top_p_keeps_the_token_that_crosses(
    probabilities: list[float], top_p: float, expected: list[float]
) -> None:
    filtered = choose(np.log(probabilities), top_p=top_p).probabilities
    np.testing.assert_allclose(filtered, expected, atol=5e-9)


def test_of_equal_logits_the_lower_id_comes_first_everywhere() -> None:
    tied = np.array([1.0, 3.0, 3.0, 3.0])
    assert choose(tied, 0.0).probabilities.tolist() == [0, 1, 0, 0]
    assert choose(tied, top_k=2).probabilities.tolist() == [0, 0.5, 0.5, 0]
    assert choose(tied, top_p=0.4).probabilities.tolist() == [0, 0.5, 0.5, 0]
    assert choose(tied).order.tolist() == [1, 2, 3, 0]


def test_d02_draws_follow_the_odds_and_repeat_under_their_seed() -> None:
    choice = choose(np.log([0.6, 0.3, 0.1]))
    draws = [draw(choice, generator) for generator in [np.random.default_rng(7)] for _ in range(4000)]
    again = [draw(choice, generator) for generator in [np.random.default_rng(7)] for _ in range(4000)]
    assert draws == again
    np.testing.assert_allclose(np.bincount(draws) / 4000, [0.6, 0.3, 0.1], atol=0.03)


@pytest.mark.parametrize(("settings", "code"), [
    ({"temperature": -0.1}, "temperature"), ({"temperature": float("nan")}, "temperature"),
    ({"top_k": 0}, "top_k"), ({"top_p": 0.0}, "top_p"), ({"top_p": 1.1}, "top_p"),
])
def test_settings_that_choose_nothing(settings: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as raised:
        choose(np.zeros(3), **settings)
    assert raised.value.code == code
