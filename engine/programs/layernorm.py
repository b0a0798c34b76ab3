"""LayerNorm beside RMSNorm on the same vectors, which can be shifted and stretched."""

from __future__ import annotations

import numpy as np

from engine.blocks import layer_norm, rms_norm
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.programs.parts import own_or, stream_into

# leans to one side: a normal distribution would not
LOPSIDED = (1.0, 1.0, 2.0, 8.0)


def program(scope: Scope, config: ModelConfig) -> None:
    """Both norms of stretch · x + shift for the stream x into every layer, and of a vector of the reader's own.

    Weight and bias are the layer's first norm's; where the model has none, 1 and 0. Source: second
    article, 4.2 step 1; Ba et al. 2016; Zhang & Sennrich 2019.
    """
    inside, width = scope.at("layernorm"), config.hidden_size
    stretch = inside.constant("stretch", (), np.array(1.0))
    shift = inside.constant("shift", (), np.array(0.0))
    for layer in range(config.layers):
        here = scope.at(f"layers.{layer}.layernorm")
        stretched = here.record("stretched", stream_into(scope, config, layer) * stretch)
        x = here.record("x", stretched + shift)
        weight = own_or(scope, f"layers.{layer}.norm1.weight", here, "weight", 1.0, width)
        bias = own_or(scope, f"layers.{layer}.norm1.bias", here, "bias", 0.0, width)
        _both(scope, here, x, weight, bias)
    own = inside.at("own")
    vector = own.constant("x", ("entry",), np.array(LOPSIDED))
    neutral = (
        own.constant(name, ("entry",), np.full(len(LOPSIDED), fill)) for name, fill in (("weight", 1.0), ("bias", 0.0))
    )
    _both(scope, own, vector, *neutral)


def _both(scope: Scope, here: Scope, x: Value, weight: Value, bias: Value) -> None:
    epsilon = scope.find("norm_epsilon")
    layer_norm(here.at("layer_norm"), weight, bias, epsilon, x)
    rms_norm(here.at("rms_norm"), weight, epsilon, x)
    shape_of(here.at("before"), x)
    shape_of(here.at("after"), scope.find(f"{here.prefix}layer_norm.normalized"))


def shape_of(scope: Scope, x: Value) -> None:
    """Mean, variance and skewness mean((x − mean)³) / variance^1.5 over the last axis.

    Skewness is 0 for what is symmetric, as a normal distribution is, and stays the same under
    x → a·x + b with a > 0.
    """
    axis = x.axes[-1]
    mean = scope.record("mean", scope.builder.apply("mean", x, axis=axis))
    centered = scope.record("centered", x - mean)
    variance = scope.record("variance", scope.builder.apply("mean_square", centered, axis=axis))
    third = scope.record("third_moment", scope.builder.apply("mean_cube", centered, axis=axis))
    scope.record("skewness", scope.builder.apply("skewness", third, variance))
