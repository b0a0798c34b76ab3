"""Generation: cached steps equal full ones, are traced, count what they save, and slide by a stated rule."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Edit, Model, ModelConfig, explain, presets, run
from engine.generation import Step, generate, head_multiplications, largest_difference, read, remember
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


@pytest.mark.parametrize("variant", CAUSAL)
def test_cached_logits_agree_with_a_cache_in_pytorch(variant: str) -> None:
    ids, logits = (VARIANTS.arrays[f"cache/{variant}/{name}"] for name in ("ids", "logits"))
    steps = list(generate(VARIANTS.model(variant), PROMPT, len(logits), temperature=0))
    assert [*PROMPT, *(step.token for step in steps)] == ids.tolist()
    for step, expected in zip(steps, logits, strict=True):
        np.testing.assert_allclose(step.trace["logits"].data[0, -1], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("preset", presets.NAMES)
def test_every_preset_goes_on_with_a_cache_even_past_its_positions(preset: str) -> None:
    model = presets.load(preset)
    assert model.tokenizer is not None
    text = model.tokenizer.encode(presets.SENTENCES[preset])
    past, generator = None, np.random.default_rng(1)
    for _ in range(32):
        cached, full = read(model, text, past), read(model, text)
        assert largest_difference(cached, full) <= 1e-12
        past = remember(cached.trace)
        text.append(int(generator.choice(list(model.tokenizer.words))))
    assert cached.rebuilt == (model.config.max_positions is not None)
    assert len(full.positions) == min(len(text) - 1, model.config.max_positions or len(text))


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
    assert head_multiplications(first.trace.recording.plan) == 4 * 5
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


@pytest.mark.parametrize("variant", ["gpt2", "rope", "qk_norm", "post_norm"])
@pytest.mark.parametrize("edit", [
    Edit("layers.0.output", (0, 1, 3), 2.0), Edit("layers.0.output", (0, 4, 3), 2.0),
    Edit("layers.0.output", (0, slice(2, 5), slice(0, 4)), 0.5), Edit("layers.1.mlp.up", (0, slice(None), 1), 0.5),
    Edit("layers.0.output", (0, slice(None, 5, 2)), -1.0), Edit("layers.0.attention.v_heads", (0, 1, slice(3, 6)), 1.5),
    Edit("layers.1.attention.weights", (0, 0, 4, 2), 0.9), Edit("layers.0.attention.scores", (0, 1, 5, 0), 3.0),
    Edit("causal_mask", (slice(None), 1), -np.inf), Edit("layers.0.attention.k", (), 0.25),
], ids=str)
def test_an_edit_of_a_position_is_about_the_same_position_with_a_cache(variant: str, edit: Edit) -> None:
    """Prompt of three: positions 0 to 2 are read at once and 3, 4, 5 one by one."""
    for cached, full in both(VARIANTS.model(variant), 4, edits=[edit]):  # type: ignore[arg-type]
        assert largest_difference(cached, full) <= 1e-12
    assert len(cached.positions) == 1


def test_an_edit_that_counts_from_the_end_leaves_nothing_to_keep() -> None:
    edit = Edit("layers.0.output", (0, -1, 3), 2.0)
    for cached, full in both(VARIANTS.model("gpt2"), 3, edits=[edit]):  # type: ignore[arg-type]
        assert cached.positions == full.positions


def test_an_edit_that_lets_a_position_read_later_ones_shows_in_the_difference() -> None:
    """Position 1 reads position 3 once there is one: what was kept of position 1 is not true any more."""
    first, second = both(VARIANTS.model("gpt2"), 2, edits=[Edit("causal_mask", (1, 3), 0.0)])  # type: ignore[arg-type]
    assert largest_difference(*first) <= 1e-12
    assert largest_difference(*second) > 1e-3


def test_without_a_causal_mask_nothing_is_cached() -> None:
    for cached, full in both(VARIANTS.model("not_causal"), 3):
        np.testing.assert_array_equal(cached.trace["logits"].data, full.trace["logits"].data)
