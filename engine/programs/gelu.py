"""ReLU, GELU and ReLU² with their slopes: as curves, at a reader's own x, and on a model's hidden units."""

from __future__ import annotations

import numpy as np

from engine.activations import CUBIC, ROOT_TWO_OVER_PI
from engine.config import ModelConfig
from engine.elementwise import scaled
from engine.plan import Scope, Value

# what the article prints for GELU at −3 … 3: rounded to two decimals, and off by more at both ends
PRINTED = (-0.01, -0.05, -0.16, 0.0, 0.84, 1.95, 2.99)
REACH, STEP = 4.0, 0.1


def program(scope: Scope, config: ModelConfig) -> None:
    """The functions at −3 … 3, along a curve, at one x step by step, and what each lets through of every layer.

    Source: second article, 3.2 and 4.2 steps 2 to 4.
    """
    inside = scope.at("gelu")
    table = inside.at("table")
    every(table, table.constant("x", ("entry",), np.arange(-3.0, 4.0)))
    printed = table.constant("printed", ("entry",), np.array(PRINTED))
    table.record("difference", printed - scope.find("gelu.table.gelu_tanh"))
    curve = inside.at("curve")
    every(curve, curve.constant("x", ("point",), np.round(np.arange(-REACH, REACH + STEP / 2, STEP), 1)))
    own = inside.at("own")
    x = own.constant("x", (), np.array(-1.0))
    every(own, x)
    _by_steps(own.at("steps"), x)
    for layer in range(config.layers):
        _units(scope, scope.at(f"layers.{layer}.gelu"), layer, config)


def every(scope: Scope, x: Value) -> None:
    """Each function of x, and its derivative."""
    apply = scope.builder.apply
    relu = scope.record("relu", apply("relu", x))
    scope.record("relu_slope", apply("positive", x))
    for name in ("gelu_tanh", "gelu_erf"):
        scope.record(name, apply(name, x))
        scope.record(f"{name}_slope", apply(f"{name}_slope", x))
    scope.record("relu_squared", apply("relu_squared", x))
    scope.record("relu_squared_slope", scaled(relu, 2.0))


def _by_steps(scope: Scope, x: Value) -> None:
    """The article's formula piece by piece, x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))); and x · Φ(x)."""
    apply = scope.builder.apply
    half, one = scope.constant("half", (), np.array(0.5)), scope.constant("one", (), np.array(1.0))
    cubic = scope.constant("cubic", (), np.array(CUBIC))
    root = scope.constant("root", (), np.array(ROOT_TWO_OVER_PI))
    square = scope.record("square", x * x)
    cube = scope.record("cube", square * x)
    bent = scope.record("bent", x + scope.record("small", cubic * cube))
    tanh = scope.record("tanh", apply("tanh", scope.record("inner", root * bent)))
    kept = scope.record("kept", half * scope.record("raised", one + tanh))
    scope.record("gelu", x * kept)
    scope.record("product", x * scope.record("normal_cdf", apply("normal_cdf", x)))


def _units(scope: Scope, here: Scope, layer: int, config: ModelConfig) -> None:
    """Of every hidden unit: at how many positions ReLU lets it through, and its gradient under ReLU and GELU.

    The gradient is that of the sum of all outputs of the MLP, by the unit's own bias: the slope at
    each position times the sum of the unit's row of W_down, added up over positions. A unit that
    ReLU cuts at every position gets exactly 0, so training cannot move it.
    """
    apply = scope.builder.apply
    up, matrix = scope.find(f"layers.{layer}.mlp.up"), scope.find(f"layers.{layer}.mlp.W_down")
    reach = here.record("reach", apply("sum", matrix, axis="feature"))
    for name, slope in (("relu", "positive"), ("gelu", "gelu_tanh_slope")):
        slopes = here.record(f"{name}_slope", apply(slope, up))
        here.record(f"{name}_gradient", reach * here.record(f"{name}_slopes", apply("sum", slopes, axis="position")))
    passes = scope.find(f"{here.prefix}relu_slopes")
    alive = here.record("alive", apply("positive", passes))
    living = here.record("living", apply("sum", alive, axis="hidden"))
    units = here.constant("units", (), np.array(float(config.mlp_size)))
    here.record("dead", units - living)
