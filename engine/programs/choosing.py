"""From the logits of the last position to a token: rank, temperature, top-k, top-p, and twenty draws."""

from __future__ import annotations

import numpy as np

from engine.blocks import softmax
from engine.bounds import SEEDS, Bounds
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.programs.walkthrough import last_position

SEED = 123
DRAWS = 20
# ranks that a board shows one by one; the others are added up
LEADING = 10


def program(scope: Scope, config: ModelConfig) -> None:
    """probabilities = top-p(softmax(top-k(logits / T))), renormalised; then draws by the running sum.

    Everything stands in order of rank [batch, rank]. `engine.sampling` computes the same for
    generation. Source: second article, 4.1 steps 9 and 10; Holtzman et al. 2020 for top-p.
    """
    inside = scope.at("choosing")
    order, tempered = rank(scope, inside)
    probabilities = filtered(inside, config, tempered)
    seed = inside.constant("seed", (), np.array(float(SEED)), SEEDS)
    drawn = draw(inside, probabilities, order, seed, DRAWS)
    inside.record("counts", scope.builder.apply("count", drawn, order))
    others = inside.at("others")
    for name in ("shares", "kept_p", "probabilities", "counts") if config.vocab_size > LEADING else ():
        others.record(name, scope.builder.apply("sum_from", scope.find(f"choosing.{name}"), first=LEADING))


def rank(scope: Scope, inside: Scope) -> tuple[Value, Value]:
    """The ids by falling logit, and (logit − largest) / T in that order.

    The largest is taken away first, which no probability notices, so that a tiny T cannot run over.
    """
    apply = scope.builder.apply
    logits = inside.record("logits", last_position(scope.find("logits")))
    order = inside.record("order", apply("order", logits))
    ranked = inside.record("ranked", apply("gather", logits, order))
    largest = inside.record("largest", apply("take", ranked, axis="rank", index=0))
    shifted = inside.record("shifted", ranked - largest)
    temperature = inside.constant("temperature", (), np.array(1.0), Bounds(0, 1000))
    return order, inside.record("tempered", apply("temper", shifted, temperature))


def filtered(inside: Scope, config: ModelConfig, tempered: Value) -> Value:
    """The probabilities that top-k and then top-p leave."""
    apply, size = inside.builder.apply, config.vocab_size
    k = inside.constant("top_k", (), np.array(float(size)), Bounds(1, size, whole=True))
    p = inside.constant("top_p", (), np.array(1.0), Bounds(0, 1, above=True))
    kept_k = inside.record("kept_k", apply("keep_top_k", tempered, k, fill=-np.inf))
    shares = softmax(inside, "shares", kept_k, "rank")
    before = inside.record("mass_before", apply("running_sum", shares, own=False, back=False))
    kept_p = inside.record("kept_p", apply("keep_top_p", shares, before, p))
    total = inside.record("kept_mass", apply("sum", kept_p, axis="rank"))
    return inside.record("probabilities", apply("share", kept_p, total))


def draw(inside: Scope, probabilities: Value, order: Value, seed: Value, count: int) -> Value:
    """Ids [batch, draw]: for each number u between 0 and 1 the first rank whose running sum exceeds it."""
    apply = inside.builder.apply
    running = inside.record("running_sum", apply("running_sum", probabilities, own=True, back=False))
    u = inside.record("u", apply("uniform", seed, axes=("draw",), shape=(count,), first=0))
    return inside.record("drawn", apply("draw", running, order, u))
