"""Computations that lessons add behind a forward pass: the engine's operations on shown inputs.

A program is a function of a scope and the configuration. The *Cats sit on* lessons share one; every
other lesson that computes something has its own, in the module of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from engine.config import ModelConfig
from engine.loss import supervised
from engine.optimizers import KINDS
from engine.plan import Scope
from engine.programs import (
    attention_linear,
    backward,
    block,
    choosing,
    dropout,
    gelu,
    generating,
    heads,
    layernorm,
    lens,
    linear,
    loss,
    optimizer,
    patch,
    positions,
    raise_logit,
    system,
    training,
    why_layers,
    why_residuals,
    why_sqrt,
    wrote,
)
from engine.programs.question import Asking, Question
from engine.programs.walkthrough import lessons
from engine.training import Setting

Program = Callable[[Scope, ModelConfig], None]

# lesson → what its page computes beside the model; a lesson that is not here shares `lessons`
OWN: Mapping[str, Program] = MappingProxyType({
    "positions": positions.program,
    "layernorm": layernorm.program,
    "gelu": gelu.program,
    "dropout": dropout.program,
    "block": block.program,
    "choosing": choosing.program,
    "generating": generating.program,
    "linear": linear.program,
    "attention_linear": attention_linear.program,
    "why_residuals": why_residuals.program,
    "why_sqrt": why_sqrt.program,
    "why_layers": why_layers.program,
    "data": supervised,
    "loss": loss.program,
    "backward": backward.program,
    "heads": heads.program,
    "patch": Asking(patch.program),
    "lens": Asking(lens.program),
    "wrote": Asking(wrote.program),
    "raise_logit": Asking(raise_logit.program),
    "system": system.program,
    "optimizer": Asking(optimizer.program),
    "training": Asking(training.program),
})


def of(lesson: str, question: Question | None = None) -> Program:
    """The program of a lesson's page; one that asks about a token is built for the question."""
    program = OWN.get(lesson, lessons)
    return program.about(question) if question is not None and isinstance(program, Asking) else program


# lessons that compare the predictions with the tokens that come next
SUPERVISED = frozenset({"system", "data", "loss", "backward", "optimizer", "training"})

# lessons that follow one parameter's step
STEPPING = frozenset({"optimizer", "training"})
# what a training run computes, by its optimizer
_RUNS = tuple(Setting(kind, clips=True).program for kind in KINDS)


def asks(lesson: str) -> bool:
    """Whether what the lesson's page computes depends on a question."""
    return isinstance(of(lesson), Asking)


def everywhere() -> tuple[Program, ...]:
    """Every program that a page may add; of training the steps of a run, which have all that its page has."""
    own = (program for lesson, program in OWN.items() if lesson != "training")
    return tuple(dict.fromkeys([lessons, *own, *_RUNS]))
