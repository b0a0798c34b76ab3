"""Reverse-mode gradients over a recorded run, as tensors that explain themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from engine.errors import EditError
from engine.operations import OPERATIONS
from engine.overlays import SparseOverlay
from engine.plan import Builder, Node, Plan, Value
from engine.recording import Recording, TensorMap, checked_index
from engine.trace import Trace


@dataclass(frozen=True, eq=False)
class BackwardPlan:
    """A forward plan with the backward steps behind it."""

    plan: Plan
    start: int
    seed: int
    keeps: Mapping[int, int]
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
    overridden = frozenset({*forward.overrides, *forward.changes})
    backward = backward_plan(forward.plan, target.slot, overridden, trace.model.dtype.str)
    seed = np.zeros(target.shape, dtype=trace.model.dtype)
    seed[where] = 1.0
    values: list[Any] = [*forward.values, *[None] * (len(backward.plan.nodes) - backward.start)]
    for node in backward.plan.nodes[backward.start:]:
        if node.constant is not None:
            values[node.slot] = node.constant
    values[backward.seed] = seed
    for slot, leaf in backward.keeps.items():
        override = forward.override(slot)
        assert override is not None
        values[leaf] = (~override.covered).astype(seed.dtype)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for slot, kernel, inputs in backward.plan.steps:
            if slot < backward.start:
                continue
            for number in inputs:
                if number in forward.plan.deferred or isinstance(values[number], SparseOverlay):
                    values[number] = forward.data(number)
            values[slot] = kernel(*[values[number] for number in inputs])
    return TensorMap(Recording(backward.plan, values, forward.overrides, forward.changes), backward.gradients)


@lru_cache(maxsize=64)
def backward_plan(plan: Plan, target: int, overridden: frozenset[int], dtype: str) -> BackwardPlan:
    """Append to `plan` the steps that carry a seed at `target` back to everything upstream of it."""
    builder = Builder(plan, np.dtype(dtype))
    node = plan.nodes[target]
    seed = builder.leaf("constant", "gradient.seed", node.axes, node.shape)
    arrived: dict[int, list[Value]] = {target: [seed]}
    gradients: dict[str, int] = {}
    keeps: dict[int, int] = {}
    for slot in range(target, -1, -1):
        if slot not in arrived:
            continue
        current = plan.nodes[slot]
        total = _added(arrived.pop(slot))
        if current.name is not None:
            total = _named(builder, f"gradient.{current.name}", total)
            gradients[current.name] = total.node.slot
        _pass_on(builder, plan, slot, _kept(builder, current, total, overridden, keeps), arrived)
    first_names = ((name, str(plan.nodes[slot].name)) for name, slot in plan.names.items())
    in_order = {name: gradients[first] for name, first in first_names if first in gradients}
    return BackwardPlan(builder.finish(plan.deferred), len(plan.nodes), seed.node.slot, keeps, in_order)


def _kept(builder: Builder, node: Node, total: Value, overridden: frozenset[int], keeps: dict[int, int]) -> Value:
    """The part of a gradient that goes on upstream: all of it, or what no override covers."""
    if node.slot not in overridden:
        return total
    keep = builder.leaf("constant", None, node.axes, node.shape)
    keeps[node.slot] = keep.node.slot
    return total * keep


def _added(parts: Sequence[Value]) -> Value:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _named(builder: Builder, name: str, value: Value) -> Value:
    """Name a gradient; where its value already has a name (it passed through unchanged), copy it."""
    if value.node.name is None and value.node.operation not in ("parameter", "constant"):
        return builder.name(name, value)
    return builder.name(name, builder.apply("scale", value, factor=1.0))


def _pass_on(builder: Builder, plan: Plan, slot: int, upstream: Value,
             arrived: dict[int, list[Value]]) -> None:
    node = plan.nodes[slot]
    if node.kernel is None:
        return
    output = builder.value(slot)
    inputs = tuple(builder.value(number) for number in node.inputs)
    for which, number in enumerate(node.inputs):
        if plan.nodes[number].operation == "ids":
            continue
        part = OPERATIONS[node.operation].derivative(upstream, output, inputs, which)
        if part is not None:
            arrived.setdefault(number, []).append(part)
