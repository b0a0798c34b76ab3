"""Which parameter's step a lesson follows, in which of its rows, and by which optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine import programs
from engine.plan import GRADIENT
from engine.programs.question import Question
from ui import runs

if TYPE_CHECKING:
    from ui.state import State

OWN = -1


def parameter(state: State) -> str:
    """The parameter that is followed; where the model has none of the reader's name, that of the logits."""
    choices, asked = state.choices, str(state.control("parameter"))
    config = runs.model(choices.preset, choices.seed, choices.switches).config
    return asked if asked in config.parameter_shapes() else config.head_table


def question(state: State) -> Question:
    """What the lesson's program is built for."""
    return Question(parameter=parameter(state), optimizer=str(state.control("optimizer")))


def row(state: State) -> int:
    """The row of the parameter that is followed step by step; 0 where it has no rows, or the lesson follows none."""
    if state.lesson not in programs.STEPPING:
        return 0
    shape, asked = state.baseline[parameter(state)].shape, int(state.control("row"))
    if len(shape) == 1:
        return 0
    return asked if 0 <= asked < shape[0] else usual_row(state)


def usual_row(state: State) -> int:
    """The row that tells most: the target's in the head, the last token's in an embedding, else by its gradient."""
    name = parameter(state)
    config, targets = state.model.config, state.baseline.circumstances.targets
    assert targets is not None
    if name == config.head_table:
        return targets[0][-1]
    if name == "embedding.weight":
        return state.ids[-1]
    if name == "position_embedding.weight":
        return len(state.ids) - 1
    gradient = state.baseline[f"{GRADIENT}{name}"].data
    return int(np.argmax(np.linalg.norm(gradient, axis=1)))
