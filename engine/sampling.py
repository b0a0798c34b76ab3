"""Choosing the next token: temperature, top-k, top-p and the draw, each step kept for showing.

One rule for ties, everywhere: of equal logits the lower id counts as larger, so it is ranked first,
kept first and chosen first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.ranking import drawn_ranks
from engine.types import Array, Integers


@dataclass(frozen=True, eq=False)
class Choice:
    """What each filter did to the logits [V] of one position, and the probabilities that remain.

    `order` [V] ranks the ids; `kept_k` and `kept_p` [V] say which ids each filter left in.
    """

    logits: Array
    temperature: float
    scaled: Array
    order: Integers
    kept_k: Array
    kept_p: Array
    unfiltered: Array
    probabilities: Array


def choose(logits: Array, temperature: float = 1.0, top_k: int | None = None,
           top_p: float | None = None) -> Choice:
    """Return softmax(logits / temperature) over the ids that top-k and then top-p keep.

    Temperature 0 gives the largest logit probability 1. Top-p keeps ids while the mass before them
    is below p, so the one that crosses p stays, and at least one stays; p = 1 keeps all. Raises
    `InputError` for a negative temperature, top-k below 1 or top-p outside 0 < p ≤ 1.
    Source: second article, step 10; Holtzman et al. 2020 for top-p.
    """
    _check(temperature, top_k, top_p)
    numbers = np.asarray(logits, dtype=np.float64)
    order = np.argsort(-numbers, kind="stable")
    kept_k = np.zeros(len(numbers), dtype=bool)
    kept_k[order[:top_k]] = True
    kept_k &= numbers > -np.inf
    scaled = _scaled(numbers, temperature)
    unfiltered = _softmax(scaled)
    after_k = _softmax(np.where(kept_k, scaled, -np.inf))
    kept_p = kept_k.copy()
    if top_p is not None and top_p < 1:
        mass_before = np.concatenate([[0.0], np.cumsum(after_k[order])[:-1]])
        kept_p[order] = kept_k[order] & (mass_before < top_p)
    probabilities = _softmax(np.where(kept_p, scaled, -np.inf))
    return Choice(numbers, temperature, scaled, order, kept_k, kept_p, unfiltered, probabilities)


def leading(logits: Array, count: int) -> list[int]:
    """The ids of the largest logits [V] in order of rank, without sorting a large vocabulary."""
    left = np.where(np.isnan(logits), -np.inf, logits)
    found = []
    for _ in range(min(count, len(left))):
        # of equal numbers argmax gives the first
        found.append(int(np.argmax(left)))
        left[found[-1]] = -np.inf
    return found


def draw(choice: Choice, generator: np.random.Generator) -> int:
    """Draw an id with the choice's probabilities, by inverting their running sum in order of rank."""
    ranked = choice.probabilities[choice.order]
    return int(choice.order[drawn_ranks(np.cumsum(ranked), np.array([generator.random()]))[0]])


def _scaled(numbers: Array, temperature: float) -> Array:
    """(logits − max) / temperature, so that a tiny temperature cannot overflow; 0 leaves one id."""
    shifted = numbers - numbers.max()
    if temperature == 0:
        lone = np.full(len(numbers), -np.inf)
        lone[np.argmax(numbers)] = 0.0
        return lone
    with np.errstate(over="ignore"):
        return np.asarray(shifted / temperature)


def _softmax(numbers: Array) -> Array:
    exponential = np.exp(numbers - numbers.max())
    return np.asarray(exponential / exponential.sum())


def _check(temperature: float, top_k: int | None, top_p: float | None) -> None:
    if not 0 <= temperature < float("inf"):
        raise InputError("temperature", f"temperature must be 0 or more, not {temperature}", value=temperature)
    if top_k is not None and top_k < 1:
        raise InputError("top_k", f"top-k keeps at least one token, not {top_k}", value=top_k)
    if top_p is not None and not 0 < top_p <= 1:
        raise InputError("top_p", f"top-p must be in 0 < p ≤ 1, not {top_p}", value=top_p)
