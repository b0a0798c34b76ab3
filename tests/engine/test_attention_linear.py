"""The lesson on attention's linearity: on every preset and architecture, against NumPy and by hand."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine import Edit, Model, Trace, gradient, presets, run
from engine.programs import attention_linear
from engine.variants import variant
from tests.engine.support import Array, assert_explained, slope

LAB = "attention_linear"
SWITCHES: tuple[dict[str, object], ...] = (
    {}, {"norm": "none"}, {"norm": "layernorm"}, {"norm_placement": "post"}, {"norm": "none", "norm_placement": "post"},
    {"positions": "none"}, {"positions": "learned"}, {"positions": "rope", "rope_pairing": "half"},
    {"positions": "rope", "rope_direction": -1}, {"qk_norm": True}, {"causal": False}, {"scale_scores": False},
    {"residual": False}, {"bias": True}, {"tied_head": True}, {"logit_soft_cap": 15.0},
    {"qk_norm": True, "causal": False, "scale_scores": False, "norm": "none", "residual": False},
)
EVERY_ARCHITECTURE = pytest.mark.parametrize("changes", SWITCHES, ids=lambda changes: "-".join(changes) or "own")
EVERY_PRESET = pytest.mark.parametrize("preset", presets.NAMES)
HELD = ("held.sum_difference", "held.scaled_difference", "match.query_difference", "match.square_difference",
        "raw.cube_difference", "two_held.sum_difference")
FOLLOWING = ("follow.sum_difference", "match.both_difference", "raw.difference", "two.sum_difference")


@lru_cache(maxsize=8)
def traced(model: Model, text: str, *edits: Edit) -> Trace:
    return run(model, text, program=attention_linear.program, edits=edits)


def example(preset: str, **changes: object) -> Trace:
    model = presets.load(preset)
    return traced(variant(model, **changes) if changes else model, presets.SENTENCES[preset])


def named(name: str) -> str:
    """The full name of a tensor of the lesson; one that begins with a number is that layer's."""
    layer, _, inner = name.partition(".")
    return f"layers.{layer}.{LAB}.{inner}" if layer.isdigit() else f"{LAB}.{name}"


def numbers(trace: Trace, name: str) -> Array:
    return trace[named(name)].data


def layers(trace: Trace) -> range:
    return range(trace.model.config.layers)


def largest(trace: Trace, name: str) -> float:
    return float(np.abs(numbers(trace, name)).max())


@EVERY_PRESET
@EVERY_ARCHITECTURE
def test_what_is_linear_and_what_is_not(preset: str, changes: dict[str, object]) -> None:
    trace = example(preset, **changes)
    for layer in layers(trace):
        assert {name: largest(trace, f"{layer}.{name}") for name in HELD} == dict.fromkeys(HELD, 0)
        assert all(largest(trace, f"{layer}.{name}") > 1e-3 for name in FOLLOWING)
        # with QK norm the scores hardly notice a factor of x: nothing but ε does
        scale = largest(trace, f"{layer}.follow.scaled_difference")
        assert scale < 1e-3 if trace.model.config.qk_norm else scale > 1e-3


@EVERY_PRESET
@EVERY_ARCHITECTURE
def test_x_is_what_attention_reads(preset: str, changes: dict[str, object]) -> None:
    trace = example(preset, **changes)
    for layer in layers(trace):
        attention = f"layers.{layer}.attention"
        bias = trace[f"{attention}.bq"].data if trace.model.config.bias else 0.0
        x = numbers(trace, f"{layer}.x")
        assert_allclose(x @ trace[f"{attention}.Wq"].data + bias, trace[f"{attention}.q"].data, atol=1e-12)
        assert_allclose(numbers(trace, f"{layer}.other_x"), x[:, ::-1], atol=0)


@pytest.mark.parametrize("preset", ["cats", "scratch"])
@EVERY_ARCHITECTURE
def test_without_biases_it_is_the_model_s_own_attention(preset: str, changes: dict[str, object]) -> None:
    """Biases that a switch has just added are zero."""
    trace = example(preset, **changes)
    for layer in layers(trace):
        attention = f"layers.{layer}.attention"
        for own, here in (("weights", "once.weights"), ("head_output", "once.output")):
            assert_allclose(numbers(trace, f"{layer}.{here}"), trace[f"{attention}.{own}"].data, atol=1e-12)


def by_hand(trace: Trace, x: Array) -> Array:
    """One head of attention without positions and biases, [T,C] → [T,D]."""
    query, key, values = (x @ trace[f"layers.0.attention.W{letter}"].data for letter in "qkv")
    scores = query @ key.T / np.sqrt(trace.model.config.head_size)
    shares = np.exp(np.where(np.tri(len(x)) > 0, scores, -np.inf))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True) @ values)


def test_today_by_hand() -> None:
    """One layer and one head, so that the second layer is the first once more."""
    trace = example("today")
    x, out = numbers(trace, "0.x")[0], trace["layers.0.attention.Wo"].data
    inputs = {"once": x, "other": x[::-1], "both": x + x[::-1], "scaled": 2 * x}
    for name, tokens in inputs.items():
        assert_allclose(numbers(trace, f"0.{name}.output")[0, 0], by_hand(trace, tokens), atol=1e-12)
    for name in ("once", "other", "both"):
        twice = by_hand(trace, by_hand(trace, inputs[name]) @ out) @ out
        assert_allclose(numbers(trace, f"0.two.{name}.result")[0], twice, atol=1e-12)


def test_held_at_those_of_x_the_layers_agree_on_x() -> None:
    for preset in presets.NAMES:
        trace = example(preset)
        for layer in layers(trace):
            held, following = (numbers(trace, f"{layer}.{place}.once.result") for place in ("two_held", "two"))
            assert_allclose(held, following, atol=1e-12)
            assert np.abs(numbers(trace, f"{layer}.two_held.other.result")
                          - numbers(trace, f"{layer}.two.other.result")).max() > 1e-3


@pytest.mark.parametrize("factor", [-2.0, 0.5, 3.0])
def test_doubling_q_doubles_and_doubling_x_quadruples(cats: Model, factor: float) -> None:
    trace = traced(cats, "Cats sit on", Edit(f"{LAB}.factor", (), factor))
    for layer in layers(trace):
        dot = numbers(trace, f"{layer}.once.dot")
        assert_allclose(numbers(trace, f"{layer}.match.of_query"), factor * dot, rtol=1e-12)
        assert_allclose(numbers(trace, f"{layer}.match.of_both"), factor**2 * dot, rtol=1e-12)
        assert_allclose(numbers(trace, f"{layer}.scaled.dot"), factor**2 * dot, rtol=1e-12)
        once, thrice = (numbers(trace, f"{layer}.raw.{name}") for name in ("output", "of_all"))
        assert_allclose(thrice, factor**3 * once, rtol=1e-12)


def test_without_softmax_the_future_is_not_read() -> None:
    trace = example("cats")
    first = numbers(trace, "0.once.dot")[0, :, 0, 0, None] * numbers(trace, "0.once.v_heads")[0, :, 0]
    assert_allclose(numbers(trace, "0.raw.output")[0, :, 0], first, rtol=1e-12)
    assert numbers(trace, "visible").tolist() == np.tri(3).tolist()
    assert numbers(example("cats", causal=False), "visible").tolist() == np.ones((3, 3)).tolist()


def test_the_sign_of_x_passes_through(cats: Model) -> None:
    """q and k both change their signs, so the weights stay and v carries the sign out."""
    trace = traced(cats, "Cats sit on", Edit(f"{LAB}.factor", (), -1.0))
    for layer in layers(trace):
        assert largest(trace, f"{layer}.follow.scaled_difference") == 0


@EVERY_PRESET
def test_one_token_alone_is_read_whole_whatever_it_is(preset: str) -> None:
    model, sentence = presets.load(preset), presets.SENTENCES[preset]
    assert model.tokenizer is not None
    trace = traced(model, sentence[0] if model.tokenizer.characters else sentence.split()[0])
    for layer in layers(trace):
        for name in ("follow.sum_difference", "follow.scaled_difference", "two.sum_difference"):
            assert largest(trace, f"{layer}.{name}") == 0


def test_larger_scores_let_one_key_win(cats: Model) -> None:
    small, large = (
        numbers(traced(cats, "Cats sit on", Edit(f"{LAB}.factor", (), factor)), "0.scaled.weights")[0, 0, 2]
        for factor in (0.01, 6.0)
    )
    assert_allclose(small, [1 / 3] * 3, atol=1e-3)
    assert large.max() > 0.999


def test_every_cell_explains_itself(cats: Model) -> None:
    trace = traced(cats, "Cats sit on", Edit(named("0.once.weights"), (0, 0, 2, 1), 0.5))
    assert_explained(gradient(trace, named("0.two.sum_difference"), (0, 2, 1)))


@pytest.mark.parametrize(("target", "index", "name", "where"), [
    ("0.two.sum_difference", (0, 2, 1), "layers.1.attention.Wq", (0, 1)),
    ("0.follow.scaled_difference", (0, 0, 2, 0), f"{LAB}.factor", ()),
    ("0.raw.difference", (0, 1, 2, 1), named("0.x"), (0, 1, 2)),
    ("1.match.both_difference", (0, 0, 2, 1), "layers.1.attention.Wk", (1, 0)),
])
def test_gradients_by_finite_differences(
    cats: Model, target: str, index: tuple[int, ...], name: str, where: tuple[int, ...]
) -> None:
    trace = traced(cats, "Cats sit on")
    expected = slope(trace, named(target), index, name, where)
    found = gradient(trace, named(target), index)[name].data[where]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-8)
