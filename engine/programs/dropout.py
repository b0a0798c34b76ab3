"""Dropout behind the last layer's MLP: a mask from a seed, its scaling, and the mean over many masks."""

from __future__ import annotations

import numpy as np

from engine.bounds import SEEDS, Bounds
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.programs.walkthrough import last_position

# where a model has no dropout of its own
USUAL = 0.1
MASKS = 250
# at p = 1 nothing is left to scale up
LARGEST_SHARE = 0.99


def program(scope: Scope, config: ModelConfig) -> None:
    """h_final = h_att + output · mask, the mask 0 with probability p and 1/(1 − p) otherwise.

    The mask comes from numbers between 0 and 1 that a seed draws: below p means dropped. Many more
    masks for the last position show that the mean stays. Source: second article, 4.2 step 5;
    Srivastava et al. 2014.
    """
    inside, last = scope.at("dropout"), f"layers.{config.layers - 1}"
    output = scope.find(f"{last}.mlp.output")
    p = inside.constant("p", (), np.array(config.dropout or USUAL), Bounds(0, LARGEST_SHARE))
    seed = inside.constant("seed", (), np.array(1.0), SEEDS)
    share = inside.record("share_kept", inside.constant("one", (), np.array(1.0)) - p)
    draws = inside.record("draws", scope.builder.apply(
        "uniform", seed, axes=output.axes, shape=output.shape, first=0,
    ))
    mask = _mask(inside, draws, p, share)
    dropped = inside.record("dropped", output * mask)
    stream = _stream_to_add(scope, config, last)
    if stream is None:
        inside.record("h_final", dropped.copy())
    else:
        inside.record("h_final", inside.record("h_att", stream.copy()) + dropped)
    _many(scope, inside.at("many"), last_position(output), seed, p, share, draws.node.shape)


def _mask(scope: Scope, draws: Value, p: Value, share: Value) -> Value:
    kept = scope.record("kept", scope.builder.apply("at_least", draws, p))
    return scope.record("mask", kept / share)


def _stream_to_add(scope: Scope, config: ModelConfig, layer: str) -> Value | None:
    """What the MLP's output is added to; nothing where residuals are switched off."""
    if not config.residual:
        return None
    normed_first = config.norm_placement == "post" and config.norm != "none"
    return scope.find(f"{layer}.norm1.output" if normed_first else f"{layer}.residual1")


def _many(scope: Scope, inside: Scope, output: Value, seed: Value, p: Value, share: Value,
          before: tuple[int, ...]) -> None:
    """The mean of output · mask over many masks for the last position, from the draws after the first mask's."""
    width = output.shape[-1]
    draws = inside.record("draws", scope.builder.apply(
        "uniform", seed, axes=("mask", "feature"), shape=(MASKS, width), first=int(np.prod(before)),
    ))
    mask = _mask(inside, draws, p, share)
    mean_mask = inside.record("mean_mask", scope.builder.apply("mean", mask, axis="mask"))
    inside.record("mean_dropped", output * mean_mask)
