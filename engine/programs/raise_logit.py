"""What would raise this logit: how much it follows every parameter, to first order."""

from __future__ import annotations

import numpy as np

from engine.backward import gradients
from engine.bounds import Bounds
from engine.config import ModelConfig
from engine.plan import Scope
from engine.programs.question import Question
from engine.programs.walkthrough import last_position


def program(scope: Scope, config: ModelConfig, question: Question) -> None:
    """goal = logit[token] − against · logit[rival] of the last position [B], and ∂goal/∂NAME everywhere.

    `gradient.NAME` stands for every parameter and every tensor that parameters have a part in. With
    against = 0 the goal is the token's logit alone, with 1 its `lead` over the rival. Source: Simonyan,
    Vedaldi & Zisserman 2014, "Deep inside convolutional networks", on the gradient of a class's score.
    """
    inside, apply = scope.at("raise_logit"), scope.builder.apply
    logits = last_position(scope.find("logits"))
    wanted = inside.record("token_logit", apply("take", logits, axis="vocabulary", index=question.token))
    rival = inside.record("rival_logit", apply("take", logits, axis="vocabulary", index=question.rival))
    inside.record("lead", wanted - rival)
    against = inside.constant("against", (), np.array(0.0), Bounds(0, 1))
    goal = inside.record("goal", wanted - inside.record("held_against", rival * against))
    gradients(scope.builder, goal, of_constants=False)
