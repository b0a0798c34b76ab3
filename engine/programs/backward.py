"""What the lesson on backpropagation computes: the loss, and its gradient by everything that has a part in it."""

from __future__ import annotations

from engine.backward import gradients
from engine.config import ModelConfig
from engine.loss import cross_entropy
from engine.plan import Scope


def program(scope: Scope, config: ModelConfig) -> None:
    """`gradient.NAME` = ∂loss/∂NAME for every tensor upstream of the loss, constants included."""
    gradients(scope.builder, cross_entropy(scope, config))
