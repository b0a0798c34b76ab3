"""Reverse-mode gradients over a recorded run, as tensors that explain themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from engine.backward import gradients
from engine.errors import EditError
from engine.overlays import SparseOverlay
from engine.plan import GRADIENT, Builder, Node, Plan
from engine.recording import Recording, TensorMap, checked_index
from engine.trace import Trace
from engine.types import Array


@dataclass(frozen=True, eq=False)
class BackwardPlan:
    """A forward plan with the backward steps behind it."""

    plan: Plan
    start: int
    seed: int
    gradients: Mapping[str, int]


def gradient(trace: Trace, name: str, index: Sequence[int]) -> TensorMap:
    """Return ∂ trace[name][index] / ∂ (each tensor upstream), name → Tensor of that tensor's shape.

    Covers every parameter and every named tensor that the cell depends on. Gradients are total
    over all paths; at an overridden cell the gradient stops. `explain` takes the result.
    Raises `EditError` for an unknown name or an index outside the tensor.
    """
    if name not in trace:
        raise EditError("unknown_name", f"there is no tensor {name}", name=name)
    target = trace[name]
    where = checked_index(target, index)
    forward = trace.recording
    backward = backward_plan(forward.plan, target.slot, trace.model.dtype.str)
    seed = np.zeros(target.shape, dtype=trace.model.dtype)
    seed[where] = 1.0
    values: list[Any] = [*forward.values, *[None] * (len(backward.plan.nodes) - backward.start)]
    for node in backward.plan.nodes[backward.start:]:
        if node.constant is not None:
            values[node.slot] = kept(forward, node) if node.operation == "kept" else node.constant
    values[backward.seed] = seed
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for slot, kernel, inputs in backward.plan.steps:
            if slot < backward.start:
                continue
            for number in inputs:
                if number in forward.plan.deferred or isinstance(values[number], SparseOverlay):
                    values[number] = forward.data(number)
            values[slot] = kernel(*[values[number] for number in inputs])
    return TensorMap(replace(forward, plan=backward.plan, values=values), backward.gradients)


def kept(forward: Recording, node: Node) -> Array:
    """What of a tensor's gradient goes on upstream: 1, or 0 at the cells that an edit has set."""
    mask = forward.mask(node.attributes["of"])
    assert node.constant is not None
    return node.constant if mask is None else (~mask).astype(node.constant.dtype)


@lru_cache(maxsize=64)
def backward_plan(plan: Plan, target: int, dtype: str) -> BackwardPlan:
    """Append to `plan` the steps that carry a seed at `target` back to everything upstream of it."""
    builder = Builder(plan, np.dtype(dtype))
    # a lesson may have recorded gradients of its own
    prefix = GRADIENT if f"{GRADIENT}seed" not in plan.names else "slope."
    found = gradients(builder, builder.value(target), prefix=prefix)
    slots = {name: value.node.slot for name, value in found.items()}
    return BackwardPlan(builder.finish(plan.deferred), len(plan.nodes), builder.names[f"{prefix}seed"], slots)
