"""What the lesson on the whole GPT-2 block computes beside the model: the article's own softmax, carried out."""

from __future__ import annotations

import numpy as np

from engine.blocks import softmax
from engine.config import ModelConfig
from engine.plan import Scope

# the last row of the article's table of scores, and the weights that it supposes softmax to give
PRINTED_SCORES = (0.3, 0.8, 0.9, 1.2, 1.5)
PRINTED_WEIGHTS = (0.1, 0.2, 0.2, 0.25, 0.25)


def program(scope: Scope, config: ModelConfig) -> None:
    """softmax(printed scores) beside the printed weights [n], and what the print is off by.

    Source: second article, 4.1 steps 6 and 7.
    """
    inside = scope.at("block")
    scores = inside.constant("scores", ("score",), np.array(PRINTED_SCORES))
    weights = softmax(inside, "weights", scores, "score")
    printed = inside.constant("printed_weights", ("score",), np.array(PRINTED_WEIGHTS))
    inside.record("difference", printed - weights)
