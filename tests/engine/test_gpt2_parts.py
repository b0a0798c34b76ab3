"""GPT-2's parts against PyTorch (tests/reference/make_gpt2_reference.py), and the cases about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import ConfigError, Edit, InputError, Model, ModelConfig, Trace, explain, gradient, run
from engine.activations import gelu_erf, gelu_erf_slope, gelu_tanh, gelu_tanh_slope, relu_squared, soft_cap
from engine.blocks import layer_norm
from engine.plan import Builder, Scope
from engine.types import Array

FILE = Path(__file__).parents[1] / "reference" / "gpt2_variants.npz"
TARGET = ("logits", (0, 4, 7))


class Variants:
    """The PyTorch arrays, and a model for each variant."""

    def __init__(self) -> None:
        self.arrays = dict(np.load(FILE, allow_pickle=False))
        self.configs: dict[str, dict[str, Any]] = json.loads(self.arrays["settings"].item())["variants"]

    def model(self, variant: str, **changes: Any) -> Model:
        config = ModelConfig(**{**self.configs[variant], **changes})
        return Model(config, {name: self.arrays[f"parameters/{name}"] for name in config.parameter_shapes()})

    def trace(self, variant: str) -> Trace:
        return run(self.model(variant), self.arrays["ids"])

    def under(self, prefix: str) -> Iterator[tuple[str, Array]]:
        return ((key.removeprefix(prefix), array) for key, array in self.arrays.items() if key.startswith(prefix))


VARIANTS = Variants()
every_variant = pytest.mark.parametrize("variant", VARIANTS.configs)


@every_variant
def test_tensors_agree_with_pytorch(variant: str) -> None:
    trace = VARIANTS.trace(variant)
    compared = 0
    for name, expected in VARIANTS.under(f"{variant}/tensors/"):
        np.testing.assert_allclose(trace[name].data, expected, rtol=1e-12, atol=1e-12, err_msg=name)
        compared += 1
    assert compared >= 4


@every_variant
def test_gradients_agree_with_pytorch(variant: str) -> None:
    gradients = gradient(VARIANTS.trace(variant), *TARGET)
    compared = 0
    for name, expected in VARIANTS.under(f"{variant}/gradients/A/"):
        np.testing.assert_allclose(gradients[name].data, expected, rtol=1e-11, atol=1e-12, err_msg=name)
        compared += 1
    assert compared >= 4


@every_variant
def test_every_cell_explains_itself(variant: str) -> None:
    trace = run(VARIANTS.model(variant), VARIANTS.arrays["ids"][:1, :3])
    for tensors in (trace, gradient(trace, "logits", (0, 2, 7))):
        for name, tensor in tensors.items():
            for index in np.ndindex(*tensor.shape):
                cell = explain(tensors, name, index)
                assert cell.evaluate() == pytest.approx(cell.value, rel=1e-12, abs=1e-14), (name, index)


def test_a_tied_table_is_one_leaf_that_collects_both_gradients() -> None:
    trace = VARIANTS.trace("gpt2")
    gradients = gradient(trace, "logits", (0, 4, 3))
    expected = VARIANTS.arrays["gpt2/gradients/B/embedding.weight"]
    np.testing.assert_allclose(gradients["embedding.weight"].data, expected, rtol=1e-11, atol=1e-12)
    assert gradients["lm_head.weight"].data is gradients["embedding.weight"].data
    assert trace["lm_head.weight"].data is trace["embedding.weight"].data
    edited = run(trace.model, trace.ids, edits=[Edit("lm_head.weight", (3, 1), 0.5)])
    assert edited["embedding.weight"].data[3, 1] == 0.5
    assert edited["embedding.output"].data[0, 0, 1] == 0.5


@pytest.mark.parametrize(("function", "slope"), [(gelu_tanh, gelu_tanh_slope), (gelu_erf, gelu_erf_slope)])
def test_gelu_curves(function: Any, slope: Any) -> None:
    x = VARIANTS.arrays["curves/x"]
    for name, computed in (("value", function(x)), ("derivative", slope(x))):
        expected = VARIANTS.arrays[f"curves/{function.__name__}/{name}"]
        np.testing.assert_allclose(computed, expected, rtol=1e-12, atol=1e-14)


def normalised(row: list[float], epsilon: float) -> Array:
    """LayerNorm of one row by the engine's own steps, weight one and bias zero."""
    scope = Scope(Builder())
    width = len(row)
    x = scope.constant("x", ("batch", "position", "feature"), np.array([[row]]))
    weight, bias = (
        scope.constant(name, ("feature",), np.full(width, fill)) for name, fill in (("weight", 1.0), ("bias", 0.0))
    )
    layer_norm(scope.at("norm"), weight, bias, scope.constant("epsilon", (), np.array(epsilon)), x)
    plan = scope.builder.finish()
    values: list[Any] = [node.constant for node in plan.nodes]
    for slot, kernel, inputs in plan.steps:
        values[slot] = kernel(*[values[number] for number in inputs])
    return np.asarray(values[plan.names["norm.output"]][0, 0])


@pytest.mark.parametrize(("row", "expected"), [
    ([0.0, 2.0], [-0.99999500, 0.99999500]),
    ([1.0, 2.0, 3.0, 4.0], [-1.34163542, -0.44721181, 0.44721181, 1.34163542]),
    ([5.0, 5.0, 5.0, 5.0], [0.0, 0.0, 0.0, 0.0]),
    ([0.0, 0.001], [-0.15617376, 0.15617376]),
], ids=["A10 pair", "A10 row", "A10 constant", "A09 small"])
def test_a10_a09_biased_variance_and_epsilon_under_the_root(row: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(normalised(row, 1e-5), expected, atol=5e-9)


def test_a12_gelu_values() -> None:
    x = np.array([-3, -1, 0.5, 1, 2, 3])
    tanh = [-0.00363739, -0.15880801, 0.34571401, 0.84119199, 1.95459769, 2.99636261]
    erf = [-0.00404969, -0.15865525, 0.34573123, 0.84134475, 1.95449974, 2.99595031]
    np.testing.assert_allclose(gelu_tanh(x), tanh, atol=5e-9)
    np.testing.assert_allclose(gelu_erf(x), erf, atol=5e-9)
    assert np.abs(gelu_tanh(2.699) - gelu_erf(2.699)) == pytest.approx(4.732e-4, abs=5e-8)


def test_a25_soft_cap() -> None:
    expected = [4.82269106, 8.74174418, 11.42391234, 14.46041370, 14.99995141, -14.99995141]
    np.testing.assert_allclose(soft_cap(np.array([5, 10, 15, 30, 100, -100]), 15.0), expected, atol=5e-9)


def test_a27_relu_squared() -> None:
    np.testing.assert_array_equal(relu_squared(np.array([-2, -0.5, 0.5, 3])), [0, 0, 0.25, 9])


def test_dropout_is_on_in_training_only_and_keeps_the_expected_value() -> None:
    model = VARIANTS.model("gpt2", dropout=0.25)
    ids = VARIANTS.arrays["ids"]
    plain = run(model, ids)
    assert "layers.0.mlp.dropped" not in plain
    np.testing.assert_array_equal(plain["logits"].data, VARIANTS.trace("gpt2")["logits"].data)
    trained, again, other = (run(model, ids, training=True, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(trained["logits"].data, again["logits"].data)
    assert not np.array_equal(trained["logits"].data, other["logits"].data)
    masks = [run(model, ids, training=True, seed=seed)["layers.1.mlp.dropout_mask"].data for seed in range(60)]
    assert set(np.unique(masks)) == {0.0, 1 / 0.75}
    assert np.mean(masks) == pytest.approx(1.0, abs=0.03)
    masked = trained["layers.0.mlp.output"].data * trained["layers.0.mlp.dropout_mask"].data
    np.testing.assert_array_equal(trained["layers.0.mlp.dropped"].data, masked)


@pytest.mark.parametrize(("changes", "code"), [
    ({"max_positions": None}, "max_positions"), ({"max_positions": 0}, "size"), ({"dropout": 1.0}, "dropout"),
    ({"logit_soft_cap": 0.0}, "positive"), ({"rope_direction": 2}, "choice"), ({"norm_placement": "mid"}, "choice"),
    ({"causal": 2}, "choice"),
])
def test_choices_that_no_model_can_have(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ModelConfig(**{**VARIANTS.configs["gpt2"], **changes})
    assert raised.value.code == code


def test_more_tokens_than_learned_positions() -> None:
    with pytest.raises(InputError) as raised:
        run(VARIANTS.model("gpt2"), [1] * 9)
    assert (raised.value.code, raised.value.details) == ("too_long", {"count": 9, "most": 8})
