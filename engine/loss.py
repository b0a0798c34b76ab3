"""Cross-entropy: how surprised the model is by the tokens that really came next."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.config import ModelConfig
from engine.plan import Node, Scope, Value
from engine.rows import Groups, Operation
from engine.types import Array, Index


def cross_entropy(scope: Scope, config: ModelConfig) -> Value:
    """loss = mean over positions of −ln p(target), a scalar in nats; it needs a run with `targets` [B,T].

    −ln p(target) = ln Σᵥ exp(shiftedᵥ) − shifted(target), so that nothing runs over. Named steps:
    `loss.target_shifted`, `loss.log_sum`, `loss.per_position` [B,T], `loss.per_sequence` [B];
    `loss.target_probability` [B,T] stands beside them. Source: "LLM System", training flow.
    """
    builder = scope.builder
    shifted = scope.find("probabilities.shifted")
    axes, shape = shifted.axes[:-1], shifted.shape[:-1]
    targets = builder.leaf("ids", "targets", axes, shape)
    inside = scope.at("loss")
    at_target = inside.record("target_shifted", builder.apply("pick", shifted, targets))
    log_sum = inside.record("log_sum", builder.apply("log", scope.find("probabilities.sum")))
    inside.record("target_probability", builder.apply("pick", scope.find("probabilities"), targets))
    surprise = inside.record("per_position", log_sum - at_target)
    per_sequence = inside.record("per_sequence", builder.apply("mean", surprise, axis="position"))
    return scope.record("loss", builder.apply("mean", per_sequence, axis="batch"))


def supervised(scope: Scope, config: ModelConfig) -> None:
    """Record the loss behind a forward pass: the program of a run with targets that has no other."""
    cross_entropy(scope, config)


def _pick(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build x[b,t,target(b,t)]: [batch, position, vocabulary] → [batch, position]."""
    x, targets = inputs
    here = (("axis", 0), ("axis", 1))
    return Node(
        slot, operation, (x.slot, targets.slot), targets.axes, targets.shape, ((*here, ("target",)), here),
        attributes={"size": x.shape[-1]},
        kernel=lambda array, ids: np.take_along_axis(array, ids[..., None], axis=-1)[..., 0],
    )


def _unpick(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
    """Build zeros with the input at each position's target: what a `pick`'s gradient does."""
    x, targets = inputs
    here = (("axis", 0), ("axis", 1))

    def kernel(array: Array, ids: Array) -> Array:
        spread = np.zeros((*array.shape, attributes["size"]), dtype=array.dtype)
        np.put_along_axis(spread, ids[..., None], array[..., None], axis=-1)
        return spread
    return Node(
        slot, operation, (x.slot, targets.slot), (*x.axes, "vocabulary"), (*x.shape, attributes["size"]), (here, here),
        kernel=kernel,
    )


def _pick_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    if which == 1:
        return None
    return upstream.builder.apply("unpick", upstream, inputs[1], size=output.node.attributes["size"])


def _unpick_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value | None:
    return upstream.builder.apply("pick", upstream, inputs[1]) if which == 0 else None


def _unpicked(node: Node, index: Index, groups: Groups) -> float:
    return groups[0][0] if index[-1] == groups[1][0] else 0.0


ROWS: dict[str, Operation] = {
    "pick": Operation(_pick, lambda node, index, groups: groups[0][0], _pick_gradient),
    "unpick": Operation(_unpick, _unpicked, _unpick_gradient),
}
