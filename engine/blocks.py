"""Norms, softmax and head arrangements: the parts that layers and lessons are built from."""

from __future__ import annotations

from engine.plan import Scope, Value


def rms_norm(scope: Scope, weight: Value | None, epsilon: Value, x: Value) -> Value:
    """output = x / √(mean(x²) + ε) · weight over the last axis, usually the C features of a position.

    ε stands under the root and no mean is subtracted. Source: "Final Norm"; Zhang & Sennrich 2019.
    """
    mean_square = scope.record("mean_square", scope.builder.apply("mean_square", x, axis=x.axes[-1]))
    rms = scope.record("rms", scope.builder.apply("root", mean_square, epsilon))
    if weight is None:
        return scope.record("output", x / rms)
    normalized = scope.record("normalized", x / rms)
    return scope.record("output", normalized * weight)


def layer_norm(scope: Scope, weight: Value, bias: Value, epsilon: Value, x: Value) -> Value:
    """output = (x − mean) / √(variance + ε) · weight + bias over the last axis, usually a position's C features.

    The variance divides by C, not C − 1; ε stands under the root. Source: Ba et al. 2016.
    """
    mean = scope.record("mean", scope.builder.apply("mean", x, axis=x.axes[-1]))
    centered = scope.record("centered", x - mean)
    variance = scope.record("variance", scope.builder.apply("mean_square", centered, axis=x.axes[-1]))
    std = scope.record("std", scope.builder.apply("root", variance, epsilon))
    normalized = scope.record("normalized", centered / std)
    return scope.record("output", scope.builder.apply("scale_shift", normalized, weight, bias))


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


def head(scope: Scope, x: Value, weight: Value, cap: float | None) -> Value:
    """logits[…,v] = x[…] · weight[v], […,C] → […,V], recorded as `logits`; with a cap, cap · tanh(logits / cap).

    What the cap is applied to is recorded as `logits.uncapped`. Source: "LM Head".
    """
    places = " ".join(x.axes[:-1])
    logits = contract(f"{places} feature, vocabulary feature -> {places} vocabulary", x, weight)
    if cap is None:
        return scope.record("logits", logits)
    uncapped = scope.record("logits.uncapped", logits)
    return scope.record("logits", x.builder.apply("soft_cap", uncapped, cap=cap))


def contract(equation: str, left: Value, right: Value) -> Value:
    """Multiply where axis names agree and add over the names that the result leaves out."""
    return left.builder.apply("contract", left, right, equation=equation)
