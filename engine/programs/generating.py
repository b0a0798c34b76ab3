"""The draw that continues a text: what choosing computes, with a number u for every step of the loop."""

from __future__ import annotations

from engine.config import ModelConfig
from engine.plan import Scope
from engine.programs import choosing

# tokens that the loop may append
MOST_STEPS = 32


def program(scope: Scope, config: ModelConfig) -> None:
    """drawn[n] is the id that the n-th number of the seeded generator draws, [batch, step].

    The text after n steps was made with the first n numbers, so its next token is drawn[n].
    Source: forward walkthrough, inference flow; second article, 4.1 step 10.
    """
    choosing.program(scope, config)
    inside, apply = scope.at("generating"), scope.builder.apply
    seed, running, order = (scope.find(f"choosing.{name}") for name in ("seed", "running_sum", "order"))
    u = inside.record("u", apply("uniform", seed, axes=("step",), shape=(MOST_STEPS + 1,), first=0))
    inside.record("drawn", apply("draw", running, order, u))
