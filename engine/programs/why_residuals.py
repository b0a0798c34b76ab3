"""Ten layers, forward and backward, without residual, with it, and with residual and norm."""

from __future__ import annotations

import numpy as np

from engine.blocks import contract, rms_norm
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.types import Array

DEPTH, WIDTH = 10, 4
LAYERS = range(1, DEPTH + 1)
PLAIN, RESIDUAL, NORMED = PATHS = ("plain", "residual", "normed")
INPUT = (0.5, -0.3, -0.5, -0.2)
# what L adds up of the last layer's output: a vector of length 1
DIRECTION = (0.5, 0.5, 0.5, 0.5)


def program(scope: Scope, config: ModelConfig) -> None:
    """L = direction · x_out of layer 10, and ∂L/∂x for what enters each layer, x_out = f(x) or x + f(x).

    f(x) = GELU(x · W), W [4,4] = gain · W_drawn. On the third path f reads x / rms(x), as a sublayer
    with a norm before it does. All three paths have the same weights. Source: second article, 3.5.
    """
    inside = scope.at("why_residuals")
    x = inside.constant("input", ("unit",), np.array(INPUT))
    gain = inside.constant("gain", (), np.array(1.0))
    direction = inside.constant("direction", ("unit",), np.array(DIRECTION))
    epsilon = inside.constant("norm_epsilon", (), np.array(1e-6))
    weights = [
        layer_weight(inside.at(str(number)), gain, drawn) for number, drawn in zip(LAYERS, _drawn(), strict=True)
    ]
    for path in PATHS:
        layers = [
            Layer(inside.at(f"{path}.{number}"), path, weight, epsilon)
            for number, weight in zip(LAYERS, weights, strict=True)
        ]
        stream, arriving = x, direction
        for layer in layers:
            stream = layer.forward(stream)
        inside.at(path).record("L", contract("unit, unit -> ", stream, direction))
        for layer in reversed(layers):
            arriving = layer.backward(arriving)


def layer_weight(scope: Scope, gain: Value, drawn: Array) -> Value:
    """W = gain · W_drawn, [unit,unit]."""
    return scope.record("W", scope.constant("W_drawn", ("unit", "unit"), drawn) * gain)


class Layer:
    """One layer of a path: what it computes, and how a gradient passes back through it."""

    def __init__(self, scope: Scope, path: str, weight: Value, epsilon: Value) -> None:
        self.scope = scope
        self.path = path
        self.weight = weight
        self.epsilon = epsilon

    def forward(self, x: Value) -> Value:
        """f(x), x + f(x) or x + f(norm(x)), [unit] → [unit]."""
        self.read = rms_norm(self.scope, None, self.epsilon, x) if self.path == NORMED else x
        self.h = self.scope.record("h", self.read @ self.weight)
        activated = x.builder.apply("gelu_tanh", self.h)
        if self.path == PLAIN:
            return self.scope.record("x_out", activated)
        return self.scope.record("x_out", x + self.scope.record("f", activated))

    def backward(self, arriving: Value) -> Value:
        """∂L/∂x = ∂L/∂out · 1 + ∂L/∂out · ∂f/∂x; without a residual the second term alone, [unit] → [unit].

        Source: second article, 3.5; He et al. 2016, "Identity mappings in deep residual networks".
        """
        slope = self.scope.record("slope", arriving.builder.apply("gelu_tanh_slope", self.h))
        at_h = self.scope.record("gradient_h", arriving * slope)
        through = at_h.builder.apply("contract", at_h, self.weight, equation="out, in out -> in", axes=("unit",))
        if self.path == NORMED:
            through = self.through_norm(self.scope.record("gradient_n", through))
        if self.path == PLAIN:
            gradient = self.scope.record("gradient", through)
        else:
            gradient = self.scope.record("gradient", arriving + self.scope.record("through", through))
        self.scope.record("gradient_size", gradient.builder.apply("length", gradient, axis="unit"))
        return gradient

    def through_norm(self, upstream: Value) -> Value:
        """(u − n · mean(u · n)) / rms, u the gradient of n = x / rms(x): a longer x gives the same n.

        Source: Zhang & Sennrich 2019, section 4.2.
        """
        products = self.scope.record("products", upstream * self.read)
        overlap = self.scope.record("overlap", upstream.builder.apply("mean", products, axis="unit"))
        along = self.scope.record("along", self.read * overlap)
        across = self.scope.record("across", upstream - along)
        return across / self.scope.find(f"{self.scope.prefix}rms")


def _drawn() -> Array:
    """Normal numbers [layer,unit,unit] of spread 1/√4, so that with gain 1 a layer neither swells nor shrinks much."""
    drawn = np.random.default_rng(0).standard_normal((DEPTH, WIDTH, WIDTH))
    return np.asarray(np.round(drawn / np.sqrt(WIDTH), 2))
