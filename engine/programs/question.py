"""What a lesson asks about: its program is built for a token and a rival, or for one parameter's step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.config import ModelConfig
from engine.optimizers import ADAMW
from engine.plan import Scope
from engine.tokenizer import check_id


@dataclass(frozen=True)
class Question:
    """The token whose logit is looked into, and the token that it is held against.

    Or the parameter whose step is followed, all of them where it is empty, and the optimizer that makes it.
    """

    token: int = 0
    rival: int = 0
    parameter: str = ""
    optimizer: str = ADAMW

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameter in question; none where all of them are."""
        return (self.parameter,) if self.parameter else ()


@dataclass(frozen=True)
class Asking:
    """A program that depends on a question, as it is for one of them; a tensor has one name in all of them."""

    compute: Callable[[Scope, ModelConfig, Question], None]
    question: Question = Question()

    def __call__(self, scope: Scope, config: ModelConfig) -> None:
        """Add the computation for the question; raises `InputError` for a token that is not in the vocabulary."""
        for token in (self.question.token, self.question.rival):
            check_id(token, config.vocab_size)
        self.compute(scope, config, self.question)

    def about(self, question: Question) -> Asking:
        """The same program for another question."""
        return replace(self, question=question)
