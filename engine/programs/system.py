"""Both flows around the model at once: one step of training on the sentence, and the token that continues it."""

from __future__ import annotations

from engine.bounds import Bounds
from engine.config import ModelConfig
from engine.optimizers import SGD
from engine.plan import Scope
from engine.programs import generating
from engine.training import followed, make_steps


def program(scope: Scope, config: ModelConfig) -> None:
    """Loss, gradients, their joint length, a step of SGD for the head's table; and the draw that continues the text.

    The sentence stands in `system.prompt` [B,T], and with the next token behind it in `system.text`
    [B,T+1]. A run needs `targets`. Source: "LLM System", the picture of both flows.
    """
    table = str(scope.find("lm_head.weight").node.name)
    make_steps(scope, followed(scope, config, True, (table,)), SGD)
    generating.program(scope, config)
    inside, apply = scope.at("system"), scope.builder.apply
    ids = Bounds(0, config.vocab_size - 1, whole=True)
    prompt = inside.record("prompt", apply("copy", scope.find("input_ids"), dtype=scope.builder.dtype, bounds=ids))
    drawn = apply("take", scope.find("generating.drawn"), axis="step", index=0)
    behind = apply("expand", drawn, number=1, axis="position", size=1)
    inside.record("text", apply("concatenate", prompt, behind, axis="position", bounds=ids))
