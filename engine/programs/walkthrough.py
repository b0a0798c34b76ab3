"""What the *Cats sit on* lessons compute beside the model, on any of their pages."""

from __future__ import annotations

import numpy as np

from engine.blocks import head, softmax
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.programs.parts import norm


def lessons(scope: Scope, config: ModelConfig) -> None:
    """Everything that these lessons compute, so that an edit of it lives on each of their pages."""
    row_sums(scope, config)
    softmax_demo(scope.at("softmax_demo"))
    contributions(scope, config)
    scaled_stream(scope, config)


def row_sums(scope: Scope, config: ModelConfig) -> None:
    """row_sums[b,h,q] = Σ over keys of weights[b,h,q,k]: 1, or 0 where everything is masked."""
    for layer in range(config.layers):
        attention = scope.at(f"layers.{layer}.attention")
        weights = scope.find(f"layers.{layer}.attention.weights")
        attention.record("row_sums", scope.builder.apply("sum", weights, axis="key"))


def softmax_demo(scope: Scope) -> None:
    """softmax(x) against softmax(factor · x). Source: "From scores to reading weights", problem 1."""
    small = scope.constant("small", ("score",), np.array([1.0, 2.0, 3.0]))
    large = scope.record("large", small * scope.constant("factor", (), np.array(10.0)))
    softmax(scope, "small_weights", small, "score")
    softmax(scope, "large_weights", large, "score")


def contributions(scope: Scope, config: ModelConfig) -> None:
    """contributions[v,c] = x[last,c] · lm_head.weight[v,c] of what the head reads. Source: "LM Head", ③."""
    normed = f"layers.{config.layers - 1}.output" if config.norm == "none" else "final_norm.output"
    features = last_position(scope.find(normed))
    weight = scope.find("lm_head.weight")
    first = features.builder.apply("take", features, axis="batch", index=0)
    scope.record("contributions", first * weight)


def scaled_stream(scope: Scope, config: ModelConfig) -> None:
    """Logits of factor · stream at the last position, with the final norm and without it.

    Source: "Final Norm": the scale of the stream reaches softmax unless the norm removes it.
    """
    scaled = scope.at("scaled")
    factor = scaled.constant("factor", (), np.array(1.0))
    stream = scaled.record("stream", last_position(scope.find(f"layers.{config.layers - 1}.output")) * factor)
    normed = norm(scope, scope.at("scaled.norm"), config, "final_norm", stream)
    for name, vector in (("with_norm", normed), ("without_norm", stream)):
        outcome = scaled.at(name)
        logits = head(outcome, vector, scope.find("lm_head.weight"), config.logit_soft_cap)
        softmax(outcome, "probabilities", logits, "vocabulary")


def last_position(x: Value) -> Value:
    """x[b,T−1,…]: the position whose row predicts the next token."""
    return x.builder.apply("take", x, axis="position", index=x.size("position") - 1)
