"""What the lesson on a training run computes at each of its steps: the step of the optimizer that is chosen."""

from __future__ import annotations

from engine.config import ModelConfig
from engine.plan import Scope
from engine.programs.question import Question
from engine.training import followed, make_steps


def program(scope: Scope, config: ModelConfig, question: Question) -> None:
    """loss, its gradients, clipped; and `optimizer.KIND.NAME.updated` of the parameter in question, or of every one.

    A run repeats the step of all of them: `training.Setting.program`. It needs `targets`.
    """
    make_steps(scope, followed(scope, config, True, question.parameters), question.optimizer)
