"""Both flows around the model at once: one step of training on the sentence, and the token that continues it."""

from __future__ import annotations

import numpy as np

from engine.backward import gradients
from engine.config import ModelConfig
from engine.loss import cross_entropy
from engine.optimizers import SGD, Optimizer, clipped
from engine.plan import Scope
from engine.programs import generating
from engine.training import SCOPE


def program(scope: Scope, config: ModelConfig) -> None:
    """Loss, gradients, their joint length, a step of SGD for the head's table; and the draw that continues the text.

    The sentence as `system.prompt` [B,T] and with the next token behind it as `system.text` [B,T+1].
    A run needs `targets`. Source: "LLM System", the picture of both flows.
    """
    training(scope, config)
    inference(scope, config)


def training(scope: Scope, config: ModelConfig) -> None:
    """loss, `gradient.NAME` of all that parameters have a part in, and the head's table one step on."""
    loss = cross_entropy(scope, config)
    found = gradients(scope.builder, loss, scope.constant("gradient.seed", (), np.array(1.0)), of_constants=False)
    inside = scope.at(SCOPE)
    clipped(inside, {name: found[name] for name in config.parameter_shapes() if name in found}, ())
    table = scope.find("lm_head.weight")
    Optimizer(inside, SGD, inside).step(table, found[str(table.node.name)])


def inference(scope: Scope, config: ModelConfig) -> None:
    """The next token, drawn as the loop draws it, and the text that the loop goes on with."""
    generating.program(scope, config)
    inside, apply = scope.at("system"), scope.builder.apply
    prompt = inside.record("prompt", scope.find("input_ids").copy())
    drawn = apply("take", scope.find("generating.drawn"), axis="step", index=0)
    behind = apply("expand", drawn, number=1, axis="position", size=1)
    inside.record("text", apply("concatenate", prompt, behind, axis="position"))
