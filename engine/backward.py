"""Reverse-mode differentiation of a plan: the steps that carry a gradient back, as steps like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.operations import OPERATIONS
from engine.plan import GRADIENT, Builder, Node, Value

# values that are given; the gradient of what comes of constants alone changes nothing that is trained
_GIVEN = frozenset({"constant", "kept", "moment", "step", "cache", "dropout_mask"})


def gradients(builder: Builder, target: Value, of_constants: bool = True, back_to: Value | None = None,
              prefix: str = GRADIENT) -> dict[str, Value]:
    """Append ∂ (Σ seed · target) / ∂ (each tensor upstream), name → `gradient.NAME` of that tensor's shape.

    `gradient.seed` is a constant, 1 at every cell of the target. A gradient is the sum over all consumers
    of its tensor of ∂consumer/∂tensor times the consumer's own gradient; the attribute `ways` holds a pair
    of slots for each: the consumer, and what came by way of it; `goal` is the target's name. Where a value
    was set by hand, nothing passes further upstream. Without `of_constants`, what no parameter has a part
    in is left out; so is what stands before `back_to`. Source: Rumelhart, Hinton & Williams 1986.
    """
    seed = builder.filled("constant", f"{prefix}seed", target.axes, target.shape, 1.0)
    parts: dict[int, list[tuple[int, Value]]] = {target.node.slot: [(target.node.slot, seed)]}
    wanted = None if of_constants else _made_of_parameters(builder)
    first = 0 if back_to is None else back_to.node.slot
    found: dict[int, Value] = {}
    for slot in range(target.node.slot, first - 1, -1):
        node = builder.nodes[slot]
        if slot not in parts or not (wanted is None or slot in wanted):
            continue
        arrived = parts.pop(slot)
        total = _added(builder, [value for _, value in arrived])
        if node.name is not None:
            told = {
                "ways": tuple((consumer, value.node.slot) for consumer, value in arrived), "goal": target.node.name,
            }
            total = found[slot] = _named(builder, f"{prefix}{node.name}", total, told)
        for number, value in _passed_on(builder, node, total):
            parts.setdefault(number, []).append((slot, value))
    firsts = {name: found.get(slot) for name, slot in builder.names.items()}
    return {name: value for name, value in firsts.items() if value is not None}


def _made_of_parameters(builder: Builder) -> frozenset[int]:
    wanted: set[int] = set()
    for node in builder.nodes:
        if node.operation == "parameter" or not wanted.isdisjoint(node.inputs):
            wanted.add(node.slot)
    return frozenset(wanted)


def _added(builder: Builder, parts: Sequence[Value]) -> Value:
    return parts[0] if len(parts) == 1 else builder.apply("total", *parts)


def _named(builder: Builder, name: str, value: Value, told: Mapping[str, object]) -> Value:
    """Name a gradient; one that came through unchanged is a copy, for it has a name or another's place."""
    node = value.node
    is_shared = node.name is not None or node.operation in ("pass", *_GIVEN, "parameter")
    own = builder.apply("copy", value) if is_shared else value
    named = builder.name(name, own)
    builder.nodes[named.node.slot] = replace(named.node, attributes={**named.node.attributes, **told})
    return builder.value(named.node.slot)


def _passed_on(builder: Builder, node: Node, upstream: Value) -> list[tuple[int, Value]]:
    """What a step hands back to each of its inputs: input's slot, part of its gradient."""
    if node.kernel is None:
        return []
    output = builder.value(node.slot)
    inputs = tuple(builder.value(number) for number in node.inputs)
    going_on = upstream if node.name is None else builder.apply("pass", upstream, _kept(builder, node))
    derivative = OPERATIONS[node.operation].derivative
    handed = (
        (value.node.slot, derivative(going_on, output, inputs, which)) for which, value in enumerate(inputs)
        if value.node.operation != "ids"
    )
    return [(slot, part) for slot, part in handed if part is not None]


def _kept(builder: Builder, node: Node) -> Value:
    """1 at every cell of a tensor; a run puts 0 where an edit has set the cell by hand."""
    return builder.filled("kept", None, node.axes, node.shape, 1.0, {"of": node.slot})
