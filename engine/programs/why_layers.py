"""The model once more without its activation: the same parameters, but every MLP is one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.blocks import softmax
from engine.bounds import Bounds
from engine.config import ModelConfig
from engine.forward import lm_head, transformer
from engine.plan import Scope, Value
from engine.programs.parts import stream_into
from engine.recipe import Recipe
from engine.types import Array


class Beside(Scope):
    """A scope in which the model's modules read the model's own leaves and record under names of their own."""

    def at(self, name: str) -> Beside:
        """The scope of a submodule."""
        return Beside(self.builder, f"{self.prefix}{name}.")

    def parameter(self, name: str, axes: Sequence[str], shape: Sequence[int]) -> Value:
        """The model's parameter."""
        return self.find(self._own(name))

    def constant(self, name: str, axes: Sequence[str], array: Array, bounds: Bounds | None = None) -> Value:
        """The model's constant."""
        return self.find(self._own(name))

    def _own(self, name: str) -> str:
        return f"{self.prefix}{name}".partition(".")[2]


def program(scope: Scope, config: ModelConfig) -> None:
    """Logits [B,T,V] of the model with activation(h) = h, and the single matrix W_up · W_down of every MLP.

    Source: second article, 3.1 and 3.4: without an activation the two matrices are one.
    """
    without = Beside(scope.builder, "why_layers.")
    batch, length = scope.find("input_ids").shape
    recipe = Recipe(without, replace(config, activation="none"), batch, length, training=False, past=0)
    stream = transformer(without, recipe, stream_into(scope, config, 0))
    logits = lm_head(without, recipe, recipe.norm(without.at("final_norm"), stream))
    softmax(without, "probabilities", logits, "vocabulary")
    for layer in range(config.layers):
        one_matrix(without.at(f"layers.{layer}.mlp"), config)


def one_matrix(scope: Beside, config: ModelConfig) -> None:
    """one_matrix = x · (W_up · W_down), with biases + b_up · W_down + b_down: the MLP without its activation."""
    x = scope.builder.value(scope.find(f"{scope.prefix}up").node.inputs[0])
    down = scope.parameter("W_down", (), ())
    matrix = scope.record("W_up_down", scope.parameter("W_up", (), ()) @ down)
    if not config.bias:
        scope.record("one_matrix", x @ matrix)
        return
    b_up, b_down = (scope.parameter(name, (), ()) for name in ("b_up", "b_down"))
    bias = scope.record("b_up_down", scope.builder.apply("affine", b_up, down, b_down))
    scope.record("one_matrix", scope.builder.apply("affine", x, matrix, bias))
