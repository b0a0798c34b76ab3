"""Models under other choices of architecture: own parameters kept, neutral ones where there are none."""

from __future__ import annotations

from itertools import combinations
from math import erf

import numpy as np
import pytest

from engine import ConfigError, Model, explain, presets, run
from engine.variants import POSITIONS, variant

FIELDS: dict[str, tuple[object, ...]] = {
    "norm": ("rmsnorm", "layernorm", "none"), "norm_placement": ("pre", "post"),
    "positions": ("rope", "learned", "none"), "rope_pairing": ("interleaved", "half"), "rope_direction": (1, -1),
    "activation": ("relu", "gelu_tanh", "gelu_erf", "relu_squared"), "bias": (True, False),
    "tied_head": (True, False), "causal": (True, False), "scale_scores": (True, False),
    "residual": (True, False), "qk_norm": (True, False), "logit_soft_cap": (None, 15.0),
}
CHOICES = [(field, value) for field, values in FIELDS.items() for value in values]
PAIRS = [dict(pair) for pair in combinations(CHOICES, 2) if pair[0][0] != pair[1][0]]


@pytest.mark.parametrize("name", presets.NAMES)
def test_every_pair_of_choices_runs_and_gives_probabilities(name: str) -> None:
    model, sentence = presets.load(name), presets.SENTENCES[name]
    for changes in PAIRS:
        trace = run(variant(model, **changes), sentence)
        last = trace["probabilities"].row(0, trace.ids.shape[1] - 1)
        assert last.sum() == pytest.approx(1.0, abs=1e-12), changes


@pytest.mark.parametrize("name", presets.NAMES)
def test_parameters_that_fit_are_the_model_s_own(name: str) -> None:
    model = presets.load(name)
    for field, value in CHOICES:
        changed = variant(model, **{field: value})
        for parameter, array in changed.parameters.items():
            if parameter in model.parameters:
                assert array is model.parameters[parameter], (field, parameter)


def test_parameters_that_are_missing_are_neutral(cats: Model) -> None:
    changed = variant(cats, norm="layernorm", bias=True, positions="learned").parameters
    assert (changed["layers.1.norm2.bias"] == 0).all()
    assert (changed["layers.0.attention.bq"] == 0).all()
    assert (changed["layers.0.mlp.b_up"] == np.zeros(8)).all()
    today = presets.load("today")
    untied = variant(today, tied_head=False).parameters
    assert untied["lm_head.weight"] is today.parameters["embedding.weight"]
    assert (variant(variant(cats, norm="none"), norm="rmsnorm").parameters["final_norm.weight"] == 1).all()


def test_a_position_table_is_drawn_once_and_is_small(cats: Model) -> None:
    first, again = (variant(cats, positions="learned").parameters["position_embedding.weight"] for _ in range(2))
    assert first.shape == (POSITIONS, 4)
    assert first.tobytes() == again.tobytes()
    assert 0.05 < first.std() < 0.2
    assert len({row.tobytes() for row in first}) == POSITIONS


def test_the_bound_on_positions_comes_and_goes_with_their_table(cats: Model) -> None:
    today = presets.load("today")
    assert variant(cats, positions="learned").config.max_positions == POSITIONS
    assert variant(today, positions="rope").config.max_positions is None
    assert variant(today, positions="none").config.max_positions is None
    assert variant(today, norm="rmsnorm").config.max_positions == today.config.max_positions


def test_layernorm_in_place_of_rmsnorm(cats: Model) -> None:
    """(x − mean) / √(variance + ε) by plain NumPy; weight 1 and bias 0 change nothing."""
    trace = run(variant(cats, norm="layernorm"), "Cats sit on")
    x = trace["embedding.output"].data
    expected = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(trace["layers.0.norm1.output"].data, expected, rtol=0, atol=1e-14)


def test_exact_gelu_in_place_of_relu(cats: Model) -> None:
    trace = run(variant(cats, activation="gelu_erf"), "Cats sit on")
    up = trace["layers.1.mlp.up"].data
    expected = up * 0.5 * (1 + np.vectorize(erf)(up / np.sqrt(2)))
    np.testing.assert_allclose(trace["layers.1.mlp.activation"].data, expected, rtol=0, atol=1e-12)
    cell = explain(trace, "layers.1.mlp.activation", (0, 2, 3))
    assert cell.evaluate() == pytest.approx(cell.value, rel=1e-12)


def test_choices_that_do_not_go_together() -> None:
    odd = variant(presets.load("scratch"), positions="none")
    with pytest.raises(ConfigError) as raised:
        variant(odd, heads=8, positions="rope")
    assert raised.value.code == "odd_head_size"
