"""What is linear and what is not: two tests on the reader's numbers, and three layers in a row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.blocks import softmax
from engine.config import ModelConfig
from engine.plan import Scope, Value

ENTRY = ("entry",)
MATRIX = ("entry", "entry")
# where the first number of x is moved to, to see what comes out along a straight line
ADDED = np.round(np.arange(-4.0, 4.01, 0.1), 1)


def program(scope: Scope, config: ModelConfig) -> None:
    """f(a + b) against f(a) + f(b), f(k·a) against k·f(a); three layers against the one that they equal.

    Source: second article, 3.1; a and b begin with its 2 and −3, k is its 3.
    """
    inside = scope.at("linear")
    two_tests(inside)
    three_layers(inside.at("layers"))


def two_tests(scope: Scope) -> None:
    """Both tests of linearity for a matrix, a matrix with a bias, ReLU, GELU and softmax, each [3] → [3]."""
    a = scope.constant("a", ENTRY, np.array([2.0, -1.0, 0.5]))
    b = scope.constant("b", ENTRY, np.array([-3.0, 2.0, 1.0]))
    k = scope.constant("k", (), np.array(3.0))
    inputs = {
        "of_a": a, "of_b": b, "of_sum": scope.record("sum", a + b), "of_scaled": scope.record("scaled", a * k),
    }
    matrix = scope.constant("W", MATRIX, np.array([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0], [-0.5, 1.0, 1.0]]))
    bias = scope.constant("bias", ENTRY, np.array([1.0, -0.5, 2.0]))
    functions: dict[str, Callable[[Scope, str, Value], Value]] = {
        "matrix": lambda inside, name, x: inside.record(name, x @ matrix),
        "affine": lambda inside, name, x: inside.record(name, scope.builder.apply("affine", x, matrix, bias)),
        "relu": lambda inside, name, x: inside.record(name, scope.builder.apply("relu", x)),
        "gelu": lambda inside, name, x: inside.record(name, scope.builder.apply("gelu_erf", x)),
        "softmax": lambda inside, name, x: softmax(inside, name, x, "entry"),
    }
    for name, function in functions.items():
        inside = scope.at(name)
        outputs = {label: function(inside, label, x) for label, x in inputs.items()}
        sum_of_outputs = inside.record("sum_of_outputs", outputs["of_a"] + outputs["of_b"])
        compare(inside, "sum_difference", outputs["of_sum"], sum_of_outputs)
        scaled_output = inside.record("scaled_output", outputs["of_a"] * k)
        compare(inside, "scaled_difference", outputs["of_scaled"], scaled_output)


def compare(scope: Scope, name: str, left: Value, right: Value) -> Value:
    """left − right, 0 where they agree to rounding."""
    return scope.record(name, scope.builder.apply("difference", left, right))


def three_layers(scope: Scope) -> None:
    """((x·W₁ + b₁)·W₂ + b₂)·W₃ + b₃ = x·(W₁·W₂·W₃) + constant, unless an activation stands between.

    Also for a line of inputs [81,3], in which only the first number of x differs.
    """
    layers = Layers(scope)
    x = scope.constant("x", ENTRY, np.array([-0.5, -1.5, -1.5]))
    stacked, merged = layers.stacked(scope, x), layers.merged(scope, x)
    compare(scope, "difference", stacked, merged)

    line = scope.at("line")
    added = line.constant("added", ("point",), ADDED)
    moved = line.record("moved", added * line.constant("direction", ENTRY, np.array([1.0, 0.0, 0.0])))
    inputs = line.record("inputs", moved + x)
    layers.stacked(line, inputs)
    layers.merged(line, inputs)


class Layers:
    """Weights and biases of three layers, what may stand between them, and the one layer that they equal."""

    def __init__(self, scope: Scope) -> None:
        weights = (
            [[-1.0, 1.0, 1.0], [0.5, -1.0, -1.0], [0.5, 0.5, -1.0]],
            [[-1.0, -0.5, 1.0], [-1.0, 0.5, 0.5], [1.0, 0.5, -0.5]],
            [[1.0, 1.0, -1.0], [-1.0, 0.5, 0.5], [-0.5, 1.0, 0.5]],
        )
        biases = ([0.5, -0.5, 0.0], [-0.5, -0.5, 0.0], [-1.0, 1.0, -1.0])
        self.weights = [
            scope.constant(f"W{number}", MATRIX, np.array(weight)) for number, weight in enumerate(weights, start=1)
        ]
        self.biases = [
            scope.constant(f"b{number}", ENTRY, np.array(bias)) for number, bias in enumerate(biases, start=1)
        ]
        self.shares = {name: scope.constant(name, (), np.array(0.0)) for name in ("relu", "gelu")}
        first, second, third = self.weights
        self.matrix = scope.record("W_total", scope.record("W12", first @ second) @ third)
        halfway = scope.record("b12", scope.builder.apply("affine", self.biases[0], second, self.biases[1]))
        self.constant = scope.record("constant", scope.builder.apply("affine", halfway, third, self.biases[2]))

    def stacked(self, scope: Scope, x: Value) -> Value:
        """The three layers one after another, with the chosen activations between them."""
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True), start=1):
            x = scope.record(f"z{number}", scope.builder.apply("affine", x, weight, bias))
            if number < len(self.weights):
                x = self.between(scope.at(f"after{number}"), x)
        return x

    def between(self, scope: Scope, z: Value) -> Value:
        """z + share · (activation(z) − z) for ReLU, then for GELU: share 0 leaves z, 1 puts the activation in."""
        for name, operation in (("relu", "relu"), ("gelu", "gelu_erf")):
            bent = scope.record(name, scope.builder.apply(operation, z))
            change = scope.record(f"{name}_change", bent - z)
            z = scope.record(f"{name}_output", z + scope.record(f"{name}_share", change * self.shares[name]))
        return z

    def merged(self, scope: Scope, x: Value) -> Value:
        """The one layer: x · W_total + constant."""
        return scope.record("merged", scope.builder.apply("affine", x, self.matrix, self.constant))
