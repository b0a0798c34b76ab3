"""Generation: cached steps equal full ones, are traced, count what they save, and slide by a stated rule."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Edit, Model, ModelConfig, explain, presets, run
from engine.generation import Step, generate
from tests.engine.test_gpt2_parts import VARIANTS

CAUSAL = [name for name, config in VARIANTS.configs.items() if config.get("causal", True)]
PROMPT = [3, 17, 3]


def both(model: Model, count: int, prompt: list[int] = PROMPT, **settings: float) -> list[tuple[Step, Step]]:
    cached, full = (
        list(generate(model, prompt, count, cached=choice, seed=4, **settings))  # type: ignore[arg-type]
        for choice in (True, False)
    )
    return list(zip(cached, full, strict=True))


@pytest.mark.parametrize("variant", CAUSAL)
def test_a22_a_cached_step_equals_a_full_one(variant: str) -> None:
    for cached, full in both(VARIANTS.model(variant), 5):
        np.testing.assert_allclose(
            cached.trace["logits"].data[0, -1], full.trace["logits"].data[0, -1], rtol=1e-12, atol=1e-12
        )
        assert cached.token == full.token


def test_cats_goes_on_with_a_cache() -> None:
    cats = presets.load("cats")
    steps = both(cats, 4, [12, 45, 78], temperature=0)
    assert [cached.token for cached, _ in steps] == [full.token for _, full in steps]
    assert steps[0][0].token == 90
    for cached, full in steps:
        np.testing.assert_allclose(
            cached.trace["logits"].data[0, -1], full.trace["logits"].data[0, -1], rtol=1e-12, atol=1e-12
        )


def test_a_cached_step_has_one_query_row_and_explains_every_cell() -> None:
    step = list(generate(VARIANTS.model("gpt2"), PROMPT, 2, seed=4))[1]
    trace = step.trace
    assert step.positions == range(3, 4)
    assert trace["layers.0.attention.weights"].shape == (1, 2, 1, 4)
    for name, tensor in trace.items():
        for index in np.ndindex(*tensor.shape):
            cell = explain(trace, name, index)
            assert cell.evaluate() == pytest.approx(cell.value, rel=1e-12, abs=1e-14), (name, index)


def test_cached_keys_and_values_are_those_of_the_step_that_made_them() -> None:
    first, second = generate(VARIANTS.model("rope"), PROMPT, 2, seed=4)
    for letter, made in (("k", "k_rotated"), ("v", "v_heads")):
        kept = second.trace[f"layers.1.attention.{letter}_cache"].data
        np.testing.assert_array_equal(kept, first.trace[f"layers.1.attention.{made}"].data)


def test_multiplications_by_hand() -> None:
    config = ModelConfig(vocab_size=5, hidden_size=4, layers=1, heads=2, mlp_size=6)
    generator = np.random.default_rng(0)
    model = Model(config, {name: generator.standard_normal(shape) for name, shape in config.parameter_shapes().items()})
    first, second = generate(model, [1, 2, 3], 2)
    per_position = 4 * 4 * 4 + 2 * 4 * 6 + 4 * 5  # Wq Wk Wv Wo, W_up and W_down, the head
    assert first.multiplications == 3 * per_position + 2 * (3 * 3 * 4)  # q·k and weights·v over all pairs
    assert second.multiplications == per_position + 2 * (1 * 4 * 4)


def test_beyond_its_positions_the_window_slides_and_positions_restart() -> None:
    model = VARIANTS.model("gpt2")
    prompt = [1, 2, 3, 4, 5, 6, 7]
    steps = list(generate(model, prompt, 3, temperature=0))
    assert [step.rebuilt for step in steps] == [False, False, True]
    assert [step.positions for step in steps] == [range(7), range(7, 8), range(1, 9)]
    window = [*prompt, steps[0].token, steps[1].token][-8:]
    np.testing.assert_allclose(
        steps[2].trace["logits"].data, run(model, window)["logits"].data, rtol=1e-12, atol=1e-12
    )


def test_an_edit_holds_in_every_step() -> None:
    edit = Edit("layers.0.mlp.W_down", (0, 0), 3.0)
    steps = list(generate(VARIANTS.model("gpt2"), PROMPT, 2, edits=[edit]))
    assert all(step.trace["layers.0.mlp.W_down"].data[0, 0] == 3.0 for step in steps)


def test_without_a_causal_mask_nothing_is_cached() -> None:
    for cached, full in both(VARIANTS.model("not_causal"), 3):
        np.testing.assert_array_equal(cached.trace["logits"].data, full.trace["logits"].data)
