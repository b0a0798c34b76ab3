"""What the lesson on loss computes: surprise, the uniform guess beside it, and how the loss follows the logits."""

from __future__ import annotations

import numpy as np

from engine.backward import gradients
from engine.bounds import Bounds
from engine.config import ModelConfig
from engine.loss import cross_entropy
from engine.plan import Scope

# points of the curve −ln p, close together where it is steep
LEAST, POINTS = 1e-4, 121
# no vocabulary is that large
MOST_TOKENS = 999_999


def program(scope: Scope, config: ModelConfig) -> None:
    """loss; ln V, the loss of a uniform guess; e^loss, the perplexity; Σ −ln p and e^(−Σ), what p multiply to.

    `loss.error` = p − 1 at the target and p elsewhere [B,T,V]; divided by the number of positions it is
    `gradient.logits`, which backpropagation through softmax and logarithm gives. Source: Bridle 1990.
    """
    inside, apply = scope.at("loss"), scope.builder.apply
    loss = cross_entropy(scope, config)
    counts = Bounds(1, MOST_TOKENS, whole=True)
    size = inside.constant("vocabulary_size", (), np.array(float(config.vocab_size)), counts)
    inside.record("uniform", apply("log", size))
    inside.record("perplexity", apply("exp", loss))
    surprise, targets = scope.find("loss.per_position"), scope.find("targets")
    together = inside.record("together", apply("collapse", surprise, kept=()))
    inside.record("product", apply("exp", apply("scale", together, factor=-1.0)))
    _curve(inside)
    ones = scope.builder.leaf("constant", None, targets.axes, targets.shape, np.ones(targets.shape))
    wanted = inside.record("wanted", apply("unpick", ones, targets, size=config.vocab_size))
    inside.record("error", scope.find("probabilities") - wanted)
    gradients(scope.builder, loss, back_to=scope.find("logits"))


def _curve(inside: Scope) -> None:
    """−ln p over (0, 1], for the picture."""
    curve = inside.at("curve")
    shares = curve.constant("p", ("point",), np.geomspace(LEAST, 1.0, POINTS))
    curve.record("surprise", shares.builder.apply("scale", shares.builder.apply("log", shares), factor=-1.0))
