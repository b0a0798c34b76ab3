"""The forward pass of a GPT, as the article's pseudocode has it: token ids in, logits out.

Every function takes values and returns values; what it records is an entry of the trace. Sizes:
B batch, T positions, C features, H heads, D = C/H, F hidden units, V vocabulary, N layers.
"""

from __future__ import annotations

import numpy as np

from engine.config import ModelConfig
from engine.plan import Scope, Value


def gpt(scope: Scope, config: ModelConfig, batch: int, length: int) -> Value:
    """Return the logits [B,T,V] of ids [B,T]. Source: "Forward: structure and data flow of a GPT"."""
    hidden_states = embed(scope, config, batch, length)
    recipe = Recipe(scope, config, length)
    stream = transformer(scope, recipe, hidden_states)
    normed = recipe.norm(scope.at("final_norm"), stream)
    logits = scope.record("logits", lm_head(scope.at("lm_head"), config, normed))
    softmax(scope, "probabilities", logits, "vocabulary")
    return logits


def embed(scope: Scope, config: ModelConfig, batch: int, length: int) -> Value:
    """embedding.output[b,t] = embedding.weight[id(b,t)], [B,T,C]. Source: "Token Embedding"."""
    ids = scope.builder.leaf("ids", "input_ids", ("batch", "position"), (batch, length))
    table = scope.parameter(
        "embedding.weight", ("vocabulary", "feature"), (config.vocab_size, config.hidden_size)
    )
    return scope.record("embedding.output", scope.builder.apply("lookup", table, ids))


def transformer(scope: Scope, recipe: Recipe, stream: Value) -> Value:
    """x = layer(x) for each of N layers, [B,T,C] → [B,T,C]. Source: "Multi-layer structure"."""
    for number in range(recipe.config.layers):
        stream = layer(scope.at(f"layers.{number}"), recipe, stream)
    return stream


def layer(scope: Scope, recipe: Recipe, x: Value) -> Value:
    """r = x + attention(norm1(x)); y = r + mlp(norm2(r)), [B,T,C]. Source: `layer_forward`."""
    attended = attention(scope.at("attention"), recipe, recipe.norm(scope.at("norm1"), x))
    r = scope.record("residual1", x + attended)
    processed = mlp(scope.at("mlp"), recipe.config, recipe.norm(scope.at("norm2"), r))
    return scope.record("output", r + processed)


def attention(scope: Scope, recipe: Recipe, x: Value) -> Value:
    """output = merge(softmax(q·k / √D + mask) · v) · Wo, [B,T,C]. Source: "Self-Attention" 1 to 4."""
    width = recipe.config.hidden_size
    square = (("feature", "feature"), (width, width))
    q = scope.record("q", x @ scope.parameter("Wq", *square))
    q_heads = scope.record("q_heads", split_heads(q, recipe.config.heads, "query"))
    k = scope.record("k", x @ scope.parameter("Wk", *square))
    k_heads = scope.record("k_heads", split_heads(k, recipe.config.heads, "key"))
    v = scope.record("v", x @ scope.parameter("Wv", *square))
    v_heads = scope.record("v_heads", split_heads(v, recipe.config.heads, "key"))

    q_rotated = scope.record("q_rotated", recipe.rotate(q_heads))
    k_rotated = scope.record("k_rotated", recipe.rotate(k_heads))

    dot = scope.record("dot", contract(
        "batch head query head_feature, batch head key head_feature -> batch head query key",
        q_rotated, k_rotated,
    ))
    scores = scope.record("scores", dot / recipe.sqrt_head_size)
    masked_scores = scope.record("masked_scores", scores + recipe.causal_mask)
    weights = softmax(scope, "weights", masked_scores, "key")

    head_output = scope.record("head_output", contract(
        "batch head query key, batch head key head_feature -> batch head query head_feature",
        weights, v_heads,
    ))
    merged = scope.record("merged", merge_heads(head_output))
    return scope.record("output", merged @ scope.parameter("Wo", *square))


def mlp(scope: Scope, config: ModelConfig, x: Value) -> Value:
    """output = relu(x · W_up) · W_down at every position alone, [B,T,C]. Source: "MLP"."""
    C, F = config.hidden_size, config.mlp_size
    up = scope.record("up", x @ scope.parameter("W_up", ("feature", "hidden"), (C, F)))
    activation = scope.record("activation", scope.builder.apply("relu", up))
    return scope.record("output", activation @ scope.parameter("W_down", ("hidden", "feature"), (F, C)))


def lm_head(scope: Scope, config: ModelConfig, x: Value) -> Value:
    """logits[b,t,v] = x[b,t] · lm_head.weight[v], [B,T,V]. Source: "LM Head"."""
    weight = scope.parameter("weight", ("vocabulary", "feature"), (config.vocab_size, config.hidden_size))
    return contract("batch position feature, vocabulary feature -> batch position vocabulary", x, weight)


def rms_norm(scope: Scope, weight: Value, epsilon: Value, x: Value) -> Value:
    """output = x / √(mean(x²) + ε) · weight over the features of one position, [B,T,C].

    ε stands under the root and no mean is subtracted. Source: "Final Norm"; Zhang & Sennrich 2019.
    """
    mean_square = scope.record("mean_square", scope.builder.apply("mean_square", x, axis="feature"))
    rms = scope.record("rms", scope.builder.apply("root", mean_square, epsilon))
    normalized = scope.record("normalized", x / rms)
    return scope.record("output", normalized * weight)


def softmax(scope: Scope, name: str, x: Value, axis: str) -> Value:
    """softmax(x)ᵢ = exp(xᵢ − max x) / Σⱼ exp(xⱼ − max x) along one axis; its steps are recorded.

    A row in which everything is masked gives zeros. Source: "From scores to reading weights".
    """
    steps = scope.at(name)
    maximum = steps.record("max", scope.builder.apply("max", x, axis=axis))
    shifted = steps.record("shifted", x - maximum)
    exponential = steps.record("exp", scope.builder.apply("exp", shifted))
    total = steps.record("sum", scope.builder.apply("sum", exponential, axis=axis))
    return scope.record(name, scope.builder.apply("share", exponential, total))


def split_heads(x: Value, heads: int, sequence_axis: str) -> Value:
    """x[b,t,h·D+d] → [b,h,t,d]: reshape, then transpose, so that every head has all positions."""
    return x.builder.apply("split_heads", x, heads=heads, sequence_axis=sequence_axis)


def merge_heads(x: Value) -> Value:
    """x[b,h,t,d] → [b,t,h·D+d]: the heads' results side by side."""
    return x.builder.apply("merge_heads", x)


def contract(equation: str, left: Value, right: Value) -> Value:
    """Multiply where axis names agree and add over the names that the result leaves out."""
    return left.builder.apply("contract", left, right, equation=equation)


class Recipe:
    """What all layers of one pass share: norm, rotation, scale and mask."""

    def __init__(self, scope: Scope, config: ModelConfig, length: int) -> None:
        self.config = config
        self.epsilon = scope.constant("norm_epsilon", (), np.array(config.norm_epsilon))
        self.cosines, self.sines = rotations(scope.at("rope"), config, length)
        self.sqrt_head_size = scope.constant("sqrt_head_size", (), np.sqrt(config.head_size))
        future = np.triu(np.ones((length, length), dtype=bool), 1)
        self.causal_mask = scope.constant("causal_mask", ("query", "key"), np.where(future, -np.inf, 0.0))

    def norm(self, scope: Scope, x: Value) -> Value:
        """The normalisation that the configuration chose."""
        weight = scope.parameter("weight", ("feature",), (self.config.hidden_size,))
        return rms_norm(scope, weight, self.epsilon, x)

    def rotate(self, x: Value) -> Value:
        """a' = a·cos − b·sin, b' = a·sin + b·cos for every pair (a, b). Source: "RoPE"."""
        return x.builder.apply("rotate", x, self.cosines, self.sines, pairing=self.config.rope_pairing)


def rotations(scope: Scope, config: ModelConfig, length: int) -> tuple[Value, Value]:
    """cos and sin of angle = (position + offset) · frequency [T,D/2], frequency_i = base^(−2i/D).

    Source: "RoPE"; Su et al. 2021 for frequencies beyond the first.
    """
    half = config.head_size // 2
    positions = scope.constant("positions", ("position",), np.arange(length))
    exponents = -2.0 * np.arange(half) / config.head_size
    frequencies = scope.constant("frequencies", ("pair",), config.rope_base ** exponents)
    offset = scope.constant("offset", (), np.array(0.0))
    shifted = scope.record("shifted", positions + offset)
    angles = scope.record("angles", shifted * frequencies)
    cosines = scope.record("cosines", scope.builder.apply("cosine", angles))
    return cosines, scope.record("sines", scope.builder.apply("sine", angles))
