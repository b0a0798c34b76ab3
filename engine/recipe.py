"""What the layers of one pass share: norm, rotation, scale, mask, and how a branch joins the stream."""

from __future__ import annotations

import numpy as np

from engine.blocks import layer_norm, rms_norm
from engine.config import ModelConfig
from engine.plan import Scope, Value


class Recipe:
    """The choices of a configuration as values and small steps that every layer uses."""

    def __init__(self, scope: Scope, config: ModelConfig, batch: int, length: int, training: bool,
                 past: int) -> None:
        self.config = config
        self.training = training
        self.cache_shape = (batch, config.heads, past, config.head_size)
        self.epsilon = scope.constant("norm_epsilon", (), np.array(config.norm_epsilon))
        if config.positions == "rope":
            self.cosines, self.sines = rotations(scope.at("rope"), config, length, past)
        self.sqrt_head_size = scope.constant("sqrt_head_size", (), np.sqrt(config.head_size))
        future = np.triu(np.ones((length, past + length), dtype=bool), past + 1)
        self.causal_mask = scope.constant("causal_mask", ("query", "key"), np.where(future, -np.inf, 0.0))

    def norm(self, scope: Scope, x: Value) -> Value:
        """The normalisation that the configuration chose; without one, x as it is."""
        width = (self.config.hidden_size,)
        if self.config.norm == "none":
            return x
        weight = scope.parameter("weight", ("feature",), width)
        if self.config.norm == "rmsnorm":
            return rms_norm(scope, weight, self.epsilon, x)
        bias = scope.parameter("bias", ("feature",), width)
        return layer_norm(scope, weight, bias, self.epsilon, x)

    def prepare(self, scope: Scope, letter: str, x: Value) -> Value:
        """Queries or keys ready to be matched: rotated and normalised where the configuration says so."""
        rotated = scope.record(f"{letter}_rotated", self.rotate(x)) if self.config.positions == "rope" else x
        if not self.config.qk_norm:
            return rotated
        return rms_norm(scope.at(f"{letter}_norm"), None, self.epsilon, rotated)

    def rotate(self, x: Value) -> Value:
        """a' = a·cos − b·sin, b' = a·sin + b·cos for every pair (a, b). Source: "RoPE"."""
        return x.builder.apply("rotate", x, self.cosines, self.sines, pairing=self.config.rope_pairing)

    def remember(self, scope: Scope, letter: str, x: Value) -> Value:
        """Keys or values of all positions so far: what earlier steps kept, then the new ones."""
        if self.cache_shape[2] == 0:
            return x
        kept = scope.builder.leaf("cache", f"{scope.prefix}{letter}_cache", x.axes, self.cache_shape)
        return scope.record(f"{letter}_all", scope.builder.apply("concatenate", kept, x, axis="key"))

    def join(self, stream: Value, branch: Value) -> Value:
        """stream + branch, or the branch alone where residuals are switched off."""
        return stream + branch if self.config.residual else branch.copy()

    def activate(self, x: Value) -> Value:
        """activation(x), or x itself where the configuration has none."""
        return x.copy() if self.config.activation == "none" else x.builder.apply(self.config.activation, x)

    def drop(self, scope: Scope, x: Value) -> Value:
        """x · mask in training, the mask 0 with probability p and 1/(1−p) otherwise; else x.

        Source: second article, 4.2 step 5; Srivastava et al. 2014.
        """
        if not (self.training and self.config.dropout):
            return x
        mask = scope.builder.leaf(
            "dropout_mask", f"{scope.prefix}dropout_mask", x.axes, x.shape, attributes={"p": self.config.dropout}
        )
        return scope.record("dropped", x * mask)


def rotations(scope: Scope, config: ModelConfig, length: int, past: int) -> tuple[Value, Value]:
    """cos and sin of angle = (position + offset) · frequency [T,D/2], frequency_i = ±base^(−2i/D).

    Source: "RoPE"; Su et al. 2021 for frequencies beyond the first.
    """
    half = config.head_size // 2
    positions = scope.constant("positions", ("position",), np.arange(past, past + length))
    exponents = -2.0 * np.arange(half) / config.head_size
    signed = config.rope_direction * config.rope_base ** exponents
    frequencies = scope.constant("frequencies", ("pair",), signed)
    offset = scope.constant("offset", (), np.array(0.0))
    shifted = scope.record("shifted", positions + offset)
    angles = scope.record("angles", shifted * frequencies)
    cosines = scope.record("cosines", scope.builder.apply("cosine", angles))
    return cosines, scope.record("sines", scope.builder.apply("sine", angles))
