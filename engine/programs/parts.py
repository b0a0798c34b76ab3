"""Parts of the model applied to other vectors than its own, for lessons that compare."""

from __future__ import annotations

import numpy as np

from engine.blocks import layer_norm, rms_norm
from engine.config import ModelConfig
from engine.plan import Scope, Value


def norm(scope: Scope, inside: Scope, config: ModelConfig, module: str, x: Value) -> Value:
    """The model's own norm `module`, applied to x and recorded in `inside`; without one, x as it is."""
    if config.norm == "none":
        return x
    weight, epsilon = scope.find(f"{module}.weight"), scope.find("norm_epsilon")
    if config.norm == "rmsnorm":
        return rms_norm(inside, weight, epsilon, x)
    return layer_norm(inside, weight, scope.find(f"{module}.bias"), epsilon, x)


def project(scope: Scope, config: ModelConfig, x: Value, matrix: str, bias: str) -> Value:
    """x · W, or x · W + b, with a matrix and a bias of the model's own, by their full names."""
    weight = scope.find(matrix)
    return x.builder.apply("affine", x, weight, scope.find(bias)) if config.bias else x @ weight


def stream_into(scope: Scope, config: ModelConfig, layer: int) -> Value:
    """What enters a layer: the layer before's output, or the embedding with its positions."""
    return scope.find(config.stream_into(layer))


def own_or(scope: Scope, name: str, inside: Scope, constant: str, fill: float, width: int) -> Value:
    """The model's parameter of that name; where it has none, a constant that changes nothing."""
    if name in scope.builder.names:
        return scope.find(name)
    return inside.constant(constant, ("feature",), np.full(width, fill))
