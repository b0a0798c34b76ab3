"""Random queries and keys of growing size: what their scores do to softmax, divided by nothing, √D or D."""

from __future__ import annotations

import numpy as np

from engine.blocks import contract, softmax
from engine.bounds import SEEDS
from engine.config import ModelConfig
from engine.plan import Scope, Value

SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
QUERIES = KEYS = 16
UNDIVIDED, BY_ROOT, BY_SIZE = DIVISIONS = ("undivided", "by_root", "by_size")


def program(scope: Scope, config: ModelConfig) -> None:
    """Scores q · k, softmax over the keys, and three measures of them, for D = 4 … 512.

    q and k are independent standard normal numbers [16,D], drawn from one seed. Sources: "From scores
    to reading weights"; Vaswani et al. 2017, section 3.2.1.
    """
    inside = scope.at("why_sqrt")
    seed = inside.constant("seed", (), np.array(0.0), SEEDS)
    for size in SIZES:
        measure_size(inside.at(f"D{size}"), seed, size)


def measure_size(scope: Scope, seed: Value, size: int) -> None:
    """q · k [query,key] for heads of one size D, as it is, over √D, and over D."""
    q, k = (
        scope.record(name, scope.builder.apply(
            "normal", seed, axes=(f"sample_{word}", "head_feature"), shape=(count, size), stream=(size, number),
        ))
        for number, (name, word, count) in enumerate((("q", "query", QUERIES), ("k", "key", KEYS)))
    )
    dot = scope.record("dot", contract(
        "sample_query head_feature, sample_key head_feature -> sample_query sample_key", q, k
    ))
    divisors = {
        BY_ROOT: scope.constant("sqrt_head_size", (), np.sqrt(size)),
        BY_SIZE: scope.constant("head_size", (), np.array(size)),
    }
    for division in DIVISIONS:
        inside = scope.at(division)
        scores = inside.record("scores", dot / divisors[division] if division in divisors else dot.copy())
        measure(inside, scores)


def measure(scope: Scope, scores: Value) -> None:
    """Spread of the scores; entropy of the weights and softmax's slope w(1 − w), means over the queries.

    Of each row the largest slope counts: the most that one weight moves with its own score.
    """
    apply = scope.builder.apply
    scope.record("spread", apply("deviation", scores))
    weights = softmax(scope, "weights", scores, "sample_key")
    entropies = scope.record("entropies", apply("entropy", weights, axis="sample_key"))
    scope.record("entropy", apply("mean", entropies, axis="sample_query"))
    slopes = scope.record("slopes", weights - weights * weights)
    steepest = scope.record("steepest", apply("largest", slopes, axis="sample_key"))
    scope.record("slope", apply("mean", steepest, axis="sample_query"))
