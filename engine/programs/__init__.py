"""Computations that lessons add behind a forward pass: the engine's operations on shown inputs.

A program is a function of a scope and the configuration. The *Cats sit on* lessons share one; every
other lesson that computes something has its own, in the module of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from engine.config import ModelConfig
from engine.plan import Scope
from engine.programs import (
    attention_linear,
    block,
    choosing,
    dropout,
    gelu,
    generating,
    layernorm,
    linear,
    positions,
    why_layers,
    why_residuals,
    why_sqrt,
)
from engine.programs.walkthrough import lessons

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
})


def of(lesson: str) -> Program:
    """The program of a lesson's page."""
    return OWN.get(lesson, lessons)


def everywhere() -> tuple[Program, ...]:
    """Every program that a page may add."""
    return tuple(dict.fromkeys([lessons, *OWN.values()]))
