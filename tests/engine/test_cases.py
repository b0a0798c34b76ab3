"""Faults that people reported elsewhere (`cases.jsonl`), each under its id, with the right numbers.

Small models whose activations are set by hand bring each case's input to the module in question.
"""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from numpy.typing import ArrayLike

from engine import Edit, ModelConfig, gradient, presets, run
from engine.forward import contract
from engine.plan import Scope
from tests.engine.support import Array, assign, model_with, steps

ATTENTION = "layers.0.attention"


def close(actual: Array, expected: ArrayLike) -> None:
    """To the eight decimals that the cases print."""
    printed = np.asarray(expected, dtype=np.float64)
    assert actual.shape == printed.shape
    np.testing.assert_allclose(actual, printed, rtol=0, atol=0.51e-8)


@pytest.mark.parametrize("name", ["q", "k"])
@pytest.mark.parametrize(("pairing", "expected"), [
    ("half", [-1.98411065, 1.95990067, 2.46237790, 4.01979967]),
    ("interleaved", [-1.14263966, 1.92207560, 2.95985067, 4.02979950]),
])
def test_a01_rope_pairings(pairing: str, expected: list[float], name: str) -> None:
    edits = assign(f"{ATTENTION}.{name}_heads", [1, 2, 3, 4], 0, 0, 1)
    trace = run(model_with(hidden_size=4, rope_pairing=pairing), [0, 0], edits=edits)
    close(trace[f"{ATTENTION}.{name}_rotated"].data[0, 0, 1], expected)


@pytest.mark.parametrize(("pairing", "at_one"), [
    ("half", [-0.30116868, 0.98995017, 1.38177329, 1.00994983]),
    ("interleaved", [-0.30116868, 1.38177329, 0.98995017, 1.00994983]),  # the same two pairs, elsewhere
])
def test_a04_rope_turns_by_position_and_not_by_head(pairing: str, at_one: list[float]) -> None:
    edits = [Edit(f"{ATTENTION}.{name}_heads", (), 1.0) for name in ("q", "k")]
    trace = run(model_with(hidden_size=8, heads=2, rope_pairing=pairing), [0, 0], edits=edits)
    for name in ("q", "k"):
        close(trace[f"{ATTENTION}.{name}_rotated"].data[0], [[[1.0] * 4, at_one], [[1.0] * 4, at_one]])


def test_a09_epsilon_stands_under_the_root() -> None:
    edits = assign("embedding.output", [0.001, 0.002, 0.003, 0.004], 0, 0)
    trace = run(model_with(hidden_size=4, norm_epsilon=1e-5), [0], edits=edits)
    close(trace["layers.0.norm1.output"].data[0, 0], [0.23904572, 0.47809144, 0.71713717, 0.95618289])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a13_a_row_with_every_key_masked(dtype: type[np.floating]) -> None:
    double = model_with(hidden_size=8, heads=2, layers=2)
    parameters = {name: array.astype(dtype) for name, array in double.parameters.items()}
    model = type(double)(double.config, parameters)
    for edit in (Edit(f"{ATTENTION}.masked_scores", (0, 1, 2), -inf), Edit("causal_mask", (2,), -inf)):
        trace = run(model, [1, 2, 3, 4], edits=[edit])
        assert not trace[f"{ATTENTION}.weights"].data[0, 1, 2].any()
        assert not trace[f"{ATTENTION}.head_output"].data[0, 1, 2].any()
        downstream = list(trace)[list(trace).index(f"{ATTENTION}.weights"):]
        masked = ("masked_scores", ".shifted", ".weights.max")
        for name in downstream:
            if not name.endswith(masked):
                assert np.isfinite(trace[name].data).all(), name
        for tensor in (*steps(trace), *steps(gradient(trace, "logits", (0, 3, 2)))):
            assert not np.isnan(tensor.data).any(), tensor


def test_d01_rows_are_queries_and_sum_to_one() -> None:
    edits = assign(f"{ATTENTION}.scores", [[1, 5], [2, 3]], 0, 0)
    weights = run(model_with(hidden_size=4), [0, 1], edits=edits)[f"{ATTENTION}.weights"]
    close(weights.data[0, 0], [[1.0, 0.0], [0.26894142, 0.73105858]])
    assert weights.axes[2:] == ("query", "key")


def test_d07_the_final_norm_stands_before_the_head() -> None:
    head = np.transpose([[1, 0, 1], [0, 1, 1]])
    model = model_with({"lm_head.weight": head}, vocab_size=3, hidden_size=2, norm_epsilon=1e-5)
    trace = run(model, [0], edits=assign("layers.0.output", [3, 4], 0, 0))
    close(trace["logits"].data[0, 0], [0.84852780, 1.13137040, 1.97989820])
    without = run(model, [0], edits=assign("final_norm.output", [3, 4], 0, 0))
    close(without["logits"].data[0, 0], [3, 4, 7])


def test_d11_softmax_has_exponentials_above_and_below() -> None:
    trace = run(model_with(hidden_size=2, vocab_size=3), [0], edits=assign("logits", [1, 2, 3], 0, 0))
    close(trace["probabilities"].data[0, 0], [0.09003057, 0.24472847, 0.66524096])


@pytest.mark.parametrize("size", [4, 16, 64, 256])
def test_e01_the_root_of_d_keeps_the_spread_of_scores(size: int) -> None:
    """q·k of unit normals spreads by √D and (q/√D)·k = (q·k)/√D spreads by 1."""
    q, k = np.random.default_rng(size).normal(size=(2, 300, size))

    def program(scope: Scope, config: ModelConfig) -> None:
        queries = scope.constant("queries", ("query", "head_feature"), q)
        keys = scope.constant("keys", ("key", "head_feature"), k)
        root = scope.constant("root", (), np.sqrt(size))
        equation = "query head_feature, key head_feature -> query key"
        dot = scope.record("dot", contract(equation, queries, keys))
        scope.record("dot_scaled", dot / root)
        scope.record("query_scaled", contract(equation, queries / root, keys))

    trace = run(presets.load("cats"), [12], program=program)
    assert trace["dot"].data.std() == pytest.approx(np.sqrt(size), rel=0.05)
    assert trace["dot_scaled"].data.std() == pytest.approx(1.0, rel=0.05)
    np.testing.assert_allclose(trace["query_scaled"].data, trace["dot_scaled"].data, rtol=0, atol=1e-12)


def test_e01_unscaled_scores_concentrate() -> None:
    model = model_with(hidden_size=64)
    scaled = run(model, [0, 1, 2], edits=assign(f"{ATTENTION}.dot", [16, 8, 0], 0, 0, 2))
    close(scaled[f"{ATTENTION}.scores"].data[0, 0, 2], [2, 1, 0])
    close(scaled[f"{ATTENTION}.weights"].data[0, 0, 2], [0.66524096, 0.24472847, 0.09003057])
    unscaled = run(model, [0, 1, 2], edits=assign(f"{ATTENTION}.scores", [16, 8, 0], 0, 0, 2))
    close(unscaled[f"{ATTENTION}.weights"].data[0, 0, 2], [0.99966454, 0.00033535, 0.00000011])


def test_e02_values_are_not_rotated() -> None:
    edits = [
        *assign(f"{ATTENTION}.v", [[1, 0, 0, 0], [0, 1, 0, 0]], 0),
        *assign(f"{ATTENTION}.weights", [0.25, 0.75], 0, 0, 1),
    ]
    trace = run(model_with(hidden_size=4), [0, 1], edits=edits)
    close(trace[f"{ATTENTION}.head_output"].data[0, 0, 1], [0.25, 0.75, 0, 0])


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_e03_heads_are_split_by_reshape_and_transpose(name: str) -> None:
    edits = assign(f"{ATTENTION}.{name}", np.arange(12).reshape(3, 4), 0)
    trace = run(model_with(hidden_size=4, heads=2), [0, 1, 2], edits=edits)
    close(trace[f"{ATTENTION}.{name}_heads"].data[0], [
        [[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]],
    ])


def test_e03_heads_are_merged_the_same_way_back() -> None:
    heads = [[[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]]]
    edits = assign(f"{ATTENTION}.head_output", heads, 0)
    trace = run(model_with(hidden_size=4, heads=2), [0, 1, 2], edits=edits)
    close(trace[f"{ATTENTION}.merged"].data[0], np.arange(12).reshape(3, 4))


@pytest.mark.parametrize("matrix", ["q", "k", "v", "o"])
def test_e04_a_projection_is_a_row_times_a_matrix(matrix: str) -> None:
    model = model_with({f"{ATTENTION}.W{matrix}": [[1, 2], [3, 4]]}, hidden_size=2)
    source, outcome = (
        (f"{ATTENTION}.merged", f"{ATTENTION}.output") if matrix == "o"
        else ("layers.0.norm1.output", f"{ATTENTION}.{matrix}")
    )
    trace = run(model, [0], edits=assign(source, [1, 10], 0, 0))
    close(trace[outcome].data[0, 0], [31, 42])


def test_e04_the_head_holds_a_row_per_candidate() -> None:
    model = model_with({"lm_head.weight": [[1, 2], [3, 4]]}, vocab_size=2, hidden_size=2)
    trace = run(model, [0], edits=assign("final_norm.output", [1, 10], 0, 0))
    close(trace["logits"].data[0, 0], [21, 43])


def test_e11_the_mask_is_added_before_softmax() -> None:
    edits = assign(f"{ATTENTION}.scores", [1, 2, 3], 0, 0, 1)
    trace = run(model_with(hidden_size=4), [0, 1, 2], edits=edits)
    assert trace[f"{ATTENTION}.masked_scores"].data[0, 0, 1].tolist() == [1, 2, -inf]
    close(trace[f"{ATTENTION}.weights"].data[0, 0, 1], [0.26894142, 0.73105858, 0])


@pytest.mark.parametrize(("placement", "expected"), [
    ("pre", [-1.68327084, 1.10557639, 3.89442361, 6.68327084]),
    ("post", [-1.34164019, -0.4472134, 0.4472134, 1.34164019]),
])
def test_e09_the_norm_before_or_after_the_sublayer(placement: str, expected: list[float]) -> None:
    """f(u) = 2u as an MLP, relu(u) − relu(−u) doubled; attention adds nothing to x = [1, 2, 3, 4]."""
    identity = np.eye(4)
    ours = {
        f"{ATTENTION}.Wo": np.zeros((4, 4)), "layers.0.mlp.W_up": np.hstack([identity, -identity]),
        "layers.0.mlp.W_down": 2 * np.vstack([identity, -identity]),
    }
    zeros = {f"{norm}.bias": np.zeros(4) for norm in ("layers.0.norm1", "layers.0.norm2", "final_norm")}
    model = model_with({**ours, **zeros}, hidden_size=4, mlp_size=8, norm="layernorm", norm_epsilon=1e-5,
                       norm_placement=placement)
    stream = "layers.0.residual1" if placement == "pre" else "layers.0.norm1.output"
    trace = run(model, [0], edits=assign(stream, [1, 2, 3, 4], 0, 0))
    close(trace["layers.0.output"].data[0, 0], expected)
