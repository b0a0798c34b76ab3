"""The logit lens: the final norm and the head, which the last layer is read with, applied to earlier ones."""

from __future__ import annotations

from engine.blocks import head, softmax
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.programs.parts import norm, stream_into
from engine.programs.question import Question


def program(scope: Scope, config: ModelConfig, question: Question) -> None:
    """probabilities = softmax(head(final_norm(x))) [B,T,V] for the stream x after the embedding and each layer.

    Of each: the leading id and its probability, and the chosen token's probability and rank, [B,T]; from
    stage to stage the ranks that it climbs. After the last layer these are the model's own. Source:
    nostalgebraist 2020, "interpreting GPT: the logit lens".
    """
    rank = look(scope, scope.at("lens.embedding"), config, stream_into(scope, config, 0), question)
    for layer in range(config.layers):
        here, before = scope.at(f"layers.{layer}.lens"), rank
        if layer == config.layers - 1:
            rank = standing(here, scope.find("logits"), scope.find("probabilities"), question)
        else:
            rank = look(scope, here, config, scope.find(f"layers.{layer}.output"), question)
        here.record("climb", before - rank)


def look(scope: Scope, here: Scope, config: ModelConfig, stream: Value, question: Question) -> Value:
    """Read a stream [B,T,C] as if it were the last layer's; returns the chosen token's rank [B,T]."""
    normed = norm(scope, here.at("norm"), config, "final_norm", stream)
    read = head(here, normed, scope.find("lm_head.weight"), config.logit_soft_cap)
    return standing(here, read, softmax(here, "probabilities", read, "vocabulary"), question)


def standing(here: Scope, logits: Value, probabilities: Value, question: Question) -> Value:
    """Who leads and how the chosen token stands, [B,T] each; returns its rank."""
    apply, token = here.builder.apply, question.token
    here.record("leading", apply("leader", logits))
    here.record("leading_probability", apply("largest", probabilities, axis="vocabulary"))
    here.record("token_probability", apply("take", probabilities, axis="vocabulary", index=token))
    return here.record("rank", apply("rank", logits, token=token))
