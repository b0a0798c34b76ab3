"""Activation functions and their slopes, cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, pi, sqrt
from typing import Any

import numpy as np

from engine.elementwise import each, scaled, times, unary
from engine.plan import Node, Value
from engine.rows import Groups, Operation, same_axes
from engine.types import Array, Index

ROOT_TWO_OVER_PI = sqrt(2.0 / pi)
CUBIC = 0.044715
_ERF = np.frompyfunc(erf, 1, 1)


def gelu_tanh(x: Any) -> Any:
    """x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))). Source: second article, 3.2; GPT-2."""
    return 0.5 * x * (1.0 + np.tanh(ROOT_TWO_OVER_PI * (x + CUBIC * x**3)))


def gelu_tanh_slope(x: Any) -> Any:
    """The derivative of `gelu_tanh`."""
    tanh = np.tanh(ROOT_TWO_OVER_PI * (x + CUBIC * x**3))
    inner = ROOT_TWO_OVER_PI * (1.0 + 3.0 * CUBIC * x**2)
    return 0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh**2) * inner


def normal_cdf(x: Any) -> Any:
    """Φ(x) = (1 + erf(x/√2)) / 2."""
    scaled_x = np.asarray(x) / sqrt(2.0)
    return 0.5 * (1.0 + np.asarray(_ERF(scaled_x), dtype=scaled_x.dtype))


def normal_density(x: Any) -> Any:
    """φ(x) = exp(−x²/2) / √(2π), the derivative of `normal_cdf`."""
    return np.exp(-0.5 * np.square(x)) / sqrt(2.0 * pi)


def gelu_erf(x: Any) -> Any:
    """x · Φ(x). Source: Hendrycks & Gimpel 2016."""
    return x * normal_cdf(x)


def gelu_erf_slope(x: Any) -> Any:
    """Φ(x) + x · φ(x)."""
    return normal_cdf(x) + x * normal_density(x)


def relu_squared(x: Any) -> Any:
    """max(0, x)². Source: So et al. 2021; nanochat."""
    return np.square(np.maximum(x, 0))


def _row(function: Callable[[Any], Any], slope: str) -> Operation:
    return Operation(unary(function), each(function), times(lambda x, y: x.builder.apply(slope, x)))


def _cap_build(function: Callable[[Any, float], Any]) -> Any:
    def build(operation: str, slot: int, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
        (x,) = inputs
        cap = float(attributes["cap"])

        def kernel(array: Array) -> Array:
            return np.asarray(function(array, cap))
        return Node(slot, operation, (x.slot,), x.axes, x.shape, (same_axes(x),),
                    attributes={"cap": cap}, kernel=kernel)
    return build


def soft_cap(x: Any, cap: float) -> Any:
    """cap · tanh(x / cap): keeps the sign, never beyond ±cap."""
    return cap * np.tanh(x / cap)


def soft_cap_slope(x: Any, cap: float) -> Any:
    """1 − tanh²(x / cap)."""
    return 1.0 - np.tanh(x / cap) ** 2


def _capped(function: Callable[[Any, float], Any]) -> Callable[[Node, Index, Groups], float]:
    return lambda node, index, groups: float(function(np.float64(groups[0][0]), node.attributes["cap"]))


def _cap_gradient(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    return upstream * upstream.builder.apply("soft_cap_slope", inputs[0], cap=output.node.attributes["cap"])


def _cap_bend(upstream: Value, output: Value, inputs: tuple[Value, ...], which: int) -> Value:
    """∂(1 − t²)/∂x = −2/cap · t · (1 − t²) with t = tanh(x / cap)."""
    cap = output.node.attributes["cap"]
    tanh = upstream.builder.apply("tanh", scaled(inputs[0], 1.0 / cap))
    return upstream * (scaled(tanh, -2.0 / cap) * output)


def _relu_squared_slope(x: Value, y: Value) -> Value:
    return scaled(x.builder.apply("relu", x), 2.0)


def _gelu_erf_bend(x: Value, y: Value) -> Value:
    """φ(x) · (2 − x²), the second derivative of `gelu_erf`."""
    density = x.builder.apply("normal_density", x)
    return scaled(density, 2.0) - density * x * x


def _gelu_tanh_bend(x: Value, y: Value) -> Value:
    """(1 − t²) · (u′ + x · (u″/2 − t · u′²)) with t = tanh u, u = √(2/π) · (x + 0.044715 x³)."""
    apply, square = x.builder.apply, x * x
    one = x.builder.leaf("constant", None, x.axes, x.shape, np.ones(x.shape))
    u = scaled(x + scaled(square * x, CUBIC), ROOT_TWO_OVER_PI)
    rise = scaled(one + scaled(square, 3.0 * CUBIC), ROOT_TWO_OVER_PI)
    half_bend = scaled(x, 3.0 * CUBIC * ROOT_TWO_OVER_PI)
    return apply("soft_cap_slope", u, cap=1.0) * (rise + x * (half_bend - apply("tanh", u) * rise * rise))


def _tanh_slope(x: Value, y: Value) -> Value:
    return x.builder.apply("soft_cap_slope", x, cap=1.0)


ROWS: dict[str, Operation] = {
    "tanh": Operation(unary(np.tanh), each(np.tanh), times(_tanh_slope)),
    "normal_cdf": _row(normal_cdf, "normal_density"),
    # φ′(x) = −x · φ(x)
    "normal_density": Operation(
        unary(normal_density), each(normal_density), times(lambda x, y: scaled(x * y, -1.0))
    ),
    "gelu_tanh": _row(gelu_tanh, "gelu_tanh_slope"),
    "gelu_tanh_slope": Operation(unary(gelu_tanh_slope), each(gelu_tanh_slope), times(_gelu_tanh_bend)),
    "gelu_erf": _row(gelu_erf, "gelu_erf_slope"),
    "gelu_erf_slope": Operation(unary(gelu_erf_slope), each(gelu_erf_slope), times(_gelu_erf_bend)),
    "relu_squared": Operation(unary(relu_squared), each(relu_squared), times(_relu_squared_slope)),
    "soft_cap": Operation(_cap_build(soft_cap), _capped(soft_cap), _cap_gradient),
    "soft_cap_slope": Operation(_cap_build(soft_cap_slope), _capped(soft_cap_slope), _cap_bend),
}
