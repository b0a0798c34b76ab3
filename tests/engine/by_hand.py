"""A forward pass in plain NumPy, written apart from the engine, in which parts can be left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import erf, sqrt

import numpy as np

from engine import ModelConfig
from tests.engine.support import Array

# what was computed ("weights", "head", "hidden", "attention" or "mlp"), its layer and numbers → the numbers changed;
# "stream" is what stands before that layer, or behind the last
Change = Callable[[str, int, Array], Array]


def forward(config: ModelConfig, parameters: Mapping[str, Array], ids: Sequence[int],
            change: Change = lambda what, layer, array: array,
            masked: Callable[[int, int, int, int], bool] = lambda layer, head, query, key: False) -> Array:
    """Logits [T,V] of one sentence; `masked` says which scores are −∞ beside the future's."""
    T, H, D = len(ids), config.heads, config.head_size

    def norm(x: Array, name: str) -> Array:
        if config.norm == "none":
            return x
        weight = parameters[f"{name}.weight"]
        if config.norm == "rmsnorm":
            return np.array([row / sqrt(float(np.mean(row * row)) + config.norm_epsilon) * weight for row in x])
        return np.array([
            (row - row.mean()) / sqrt(float(row.var()) + config.norm_epsilon) * weight + parameters[f"{name}.bias"]
            for row in x
        ])

    def linear(x: Array, matrix: str, bias: str) -> Array:
        return x @ parameters[matrix] + (parameters[bias] if config.bias else 0.0)

    def turned(vector: Array, position: int) -> Array:
        if config.positions != "rope":
            return vector
        result = vector.copy()
        for pair in range(D // 2):
            angle = config.rope_direction * position * config.rope_base ** (-2 * pair / D)
            a, b = (2 * pair, 2 * pair + 1) if config.rope_pairing == "interleaved" else (pair, pair + D // 2)
            result[a] = vector[a] * np.cos(angle) - vector[b] * np.sin(angle)
            result[b] = vector[a] * np.sin(angle) + vector[b] * np.cos(angle)
        return result

    def activate(x: Array) -> Array:
        if config.activation == "relu":
            return np.maximum(x, 0.0)
        if config.activation == "gelu_erf":
            return np.vectorize(lambda number: number * 0.5 * (1 + erf(number / sqrt(2))))(x)
        assert config.activation == "gelu_tanh"
        return 0.5 * x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def attention(x: Array, layer: int) -> Array:
        name = f"layers.{layer}.attention"
        q, k, v = (linear(x, f"{name}.W{letter}", f"{name}.b{letter}") for letter in "qkv")
        weights, outputs = np.zeros((H, T, T)), np.zeros((H, T, D))
        for head in range(H):
            part = slice(head * D, (head + 1) * D)
            for query in range(T):
                read = [
                    key for key in range(T)
                    if (key <= query or not config.causal) and not masked(layer, head, query, key)
                ]
                scores = np.array([
                    turned(q[query, part], query) @ turned(k[key, part], key) for key in read
                ]) / (sqrt(D) if config.scale_scores else 1.0)
                if read:
                    weights[head, query, read] = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        weights = change("weights", layer, weights)
        for head in range(H):
            outputs[head] = weights[head] @ v[:, head * D:(head + 1) * D]
        outputs = change("head", layer, outputs)
        merged = np.concatenate(list(outputs), axis=-1)
        return change("attention", layer, linear(merged, f"{name}.Wo", f"{name}.bo"))

    def mlp(x: Array, layer: int) -> Array:
        name = f"layers.{layer}.mlp"
        hidden = change("hidden", layer, activate(linear(x, f"{name}.W_up", f"{name}.b_up")))
        return change("mlp", layer, linear(hidden, f"{name}.W_down", f"{name}.b_down"))

    x = parameters["embedding.weight"][list(ids)].copy()
    if config.positions == "learned":
        x += parameters["position_embedding.weight"][:T]
    x = change("stream", 0, x)
    for layer in range(config.layers):
        name, kept = f"layers.{layer}", 1.0 if config.residual else 0.0
        if config.norm_placement == "post":
            x = norm(kept * x + attention(x, layer), f"{name}.norm1")
            x = norm(kept * x + mlp(x, layer), f"{name}.norm2")
        else:
            x = kept * x + attention(norm(x, f"{name}.norm1"), layer)
            x = kept * x + mlp(norm(x, f"{name}.norm2"), layer)
        x = change("stream", layer + 1, x)
    table = parameters["embedding.weight" if config.tied_head else "lm_head.weight"]
    return np.asarray(norm(x, "final_norm") @ table.T)
