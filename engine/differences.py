"""The slope of the loss by one cell, from runs with that cell a little changed: no derivative is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite

import numpy as np

from engine.edits import Edit, among
from engine.loss import supervised
from engine.recording import Recording
from engine.trace import Trace, run
from engine.types import Array, Index

TARGET = "loss"
# the first step, as a share of the cell or of 1; a later one is shorter, where the loss bends too fast for it
FIRST_STEP = 2e-4
SHRINK = 8.0
MOST_STEPS = 5
# what the last digits of the loss are uncertain by, in units of the smallest step between two numbers
NOISE = 4.0
# where the slope jumps or bends
_KINKED = frozenset({"relu", "relu_squared"})


@dataclass(frozen=True)
class Difference:
    """(8 (f₊₁ − f₋₁) − (f₊₂ − f₋₂)) / 12h, with f the loss at x ± h and x ± 2h.

    `uncertain` is about how far the slope may be off, judged by the same with 2h; `kink` names what
    crosses a kink however short the step is. Source: Abramowitz & Stegun, 25.3.6.
    """

    slope: float
    step: float
    uncertain: float
    kink: str | None = None


def five_point(trace: Trace, name: str, index: Index) -> Difference | None:
    """∂ loss / ∂ (one cell of a parameter, a constant or an activation), by six runs for each step that is tried.

    None where there is nothing to vary: a cell of −∞, or one that a step would take out of the range of
    its numbers, token ids, or what a run to the loss does not have.
    Raises `InputError` for a trace without targets.
    """
    around = trace.circumstances
    forward = partial(run, trace.model, trace.ids, program=supervised, targets=around.targets,
                      training=around.training, seed=around.seed)
    ahead = forward()
    if name not in ahead or ahead[name].op == "ids":
        return None
    base = forward(edits=among(trace.edits, ahead), base=ahead)
    value = base[name].number(index)
    furthest = abs(value) + 4 * _first_step(value)
    if not np.isfinite(base.model.dtype.type(furthest)):
        return None
    # of those at a kink, the shortest step
    return min(reversed([*_tried(base, name, index, value)]), key=lambda found: found.uncertain)


def _first_step(value: float) -> float:
    return FIRST_STEP * max(1.0, abs(value))


def _tried(base: Trace, name: str, index: Index, value: float) -> Iterator[Difference]:
    """Differences with shorter and shorter steps, until rounding is all that there is left to lose to."""
    step = _first_step(value)
    for number in range(MOST_STEPS):
        found, is_rounding = _with_step(base, name, index, value, step / SHRINK**number)
        yield found
        if is_rounding:
            return


def _with_step(base: Trace, name: str, index: Index, value: float, step: float) -> tuple[Difference, bool]:
    around = base.circumstances
    runs = {
        times: run(base.model, base.ids, edits=(*base.edits, Edit(name, index, value + times * step)), base=base,
                   program=around.program, targets=around.targets, training=around.training, seed=around.seed)
        for times in (-4, -2, -1, 1, 2, 4)
    }
    losses = {times: trace[TARGET].number(()) for times, trace in runs.items()}
    slope, coarse = (_slope(losses, times) / step for times in (1, 2))
    rounding = NOISE * float(np.finfo(base.model.dtype).eps) * max(map(abs, losses.values())) / step
    # half the step leaves a sixteenth of what the loss bends
    left = abs(slope - coarse) / 15
    kink = next((found for trace in runs.values() for found in _crossed(base.recording, trace.recording)), None)
    uncertain = inf if kink or not isfinite(left) else left + rounding
    return Difference(slope, step, uncertain, kink), left <= rounding and kink is None


def _slope(losses: Mapping[int, float], times: int) -> float:
    near, far = (losses[reach] - losses[-reach] for reach in (times, 2 * times))
    return (8 * near - far) / (12 * times)


def _crossed(before: Recording, after: Recording) -> Iterator[str]:
    """What has a cell on one side of a kink in one run and on the other side in the other."""
    for node in before.plan.nodes:
        if node.operation in _KINKED and not before.shares(node.inputs[0], after):
            sides: list[Array] = [np.asarray(each.values[node.inputs[0]]) > 0 for each in (before, after)]
            if (sides[0] != sides[1]).any():
                yield str(before.plan.nodes[node.inputs[0]].name)
