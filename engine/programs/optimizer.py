"""What the lesson on the optimizer's step computes: one step of each kind, side by side, from the same gradient."""

from __future__ import annotations

from engine.config import ModelConfig
from engine.optimizers import KINDS
from engine.plan import Scope
from engine.programs.question import Question
from engine.training import followed, make_steps


def program(scope: Scope, config: ModelConfig, question: Question) -> None:
    """loss, its gradients, clipped; and `optimizer.KIND.NAME.updated` of the parameter in question, or of every one.

    The settings `optimizer.NAME` are shared by all kinds. A run needs `targets`.
    """
    make_steps(scope, followed(scope, config, True, question.parameters), *KINDS)
