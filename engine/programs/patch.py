"""The number that patching is about: how far the logit of a token is above that of its rival."""

from __future__ import annotations

from engine.config import ModelConfig
from engine.plan import Scope
from engine.programs.question import Question
from engine.programs.walkthrough import last_position


def program(scope: Scope, config: ModelConfig, question: Question) -> None:
    """difference[b] = logits[b,T−1,token] − logits[b,T−1,rival], [B]. Source: Heimersheim and Nanda 2024."""
    inside, apply = scope.at("patch"), scope.builder.apply
    logits = scope.find("logits")
    # of a large vocabulary nothing longer than a row of logits is made
    token, rival = (
        inside.record(name, last_position(apply("take", logits, axis="vocabulary", index=index)))
        for name, index in (("token_logit", question.token), ("rival_logit", question.rival))
    )
    inside.record("difference", token - rival)
