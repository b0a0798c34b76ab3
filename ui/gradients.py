"""What the explanation panel adds about gradients: where they come back from, and a difference to check them by."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf
from typing import Any

from engine import Cell, Mean, Tensor, Trace
from engine.differences import TARGET, Difference, five_point
from engine.plan import GRADIENT
from engine.types import Index
from ui import naming
from ui.operands import finite
from ui.state import State
from ui.text import joined, listed, short

# gradient and difference agree if they are no further apart than this many times what the difference may be off
CERTAINTY = 4.0
# steps of softmax: what is set by hand there no longer cancels the row's largest number, which is held fixed
_SOFTMAX = (".shifted", ".exp", ".sum")


@dataclass(frozen=True)
class Check:
    """A recorded gradient and the difference beside it; no difference where the cell cannot be varied."""

    recorded: float
    difference: Difference | None
    value: float

    @property
    def gap(self) -> float:
        """How far the two are apart."""
        return 0.0 if self.difference is None else abs(self.recorded - self.difference.slope)

    @property
    def agrees(self) -> bool:
        """Whether they are the same but for rounding."""
        return self.difference is None or self.gap <= CERTAINTY * self.difference.uncertain


def facts(state: State, tensor: Tensor, index: Index, check: Check | None) -> list[dict[str, Any]]:
    """Numbers with their labels: what came by way of each consumer, and the check."""
    found = [] if naming.differentiated(str(tensor.name)) is None else _ways(state, tensor, index)
    if check is None or check.difference is None:
        return found
    variable, gradient = _pair(tensor)
    step = short(float(f"{check.difference.step:.1e}"))
    return [
        *found,
        {**_fact(state.say("check_recorded"), check.recorded, exact=True), "index": list(index),
         "tensor": gradient if tensor.name == variable else variable},
        _fact(state.say("check_difference", step=step), check.difference.slope, exact=True),
        _fact(state.say("check_gap"), check.gap),
    ]


def _fact(label: str, value: float, exact: bool = False) -> dict[str, Any]:
    return {"label": label, "value": finite(value), "exact": exact}


def _ways(state: State, tensor: Tensor, index: Index) -> list[dict[str, Any]]:
    """What came by way of each consumer, where there are several."""
    ways, numbers = tensor.node.attributes["ways"], tensor.recording
    return [
        _fact(state.say("fact_way", name=naming.long_name(consumer(tensor, slot))), numbers.number(part, index))
        for slot, part in ways if len(ways) > 1
    ]


def consumer(tensor: Tensor, slot: int) -> str:
    """The name of a step that reads a tensor; of one without a name, that of the first behind it that has one."""
    nodes = tensor.recording.plan.nodes
    node = nodes[slot]
    while node.name is None:
        node = next(later for later in nodes[node.slot + 1:] if node.slot in later.inputs)
    return node.name


def _pair(tensor: Tensor) -> tuple[str, str]:
    """The names of a tensor and of its gradient, whichever of the two is given."""
    variable = naming.differentiated(str(tensor.name)) or str(tensor.name)
    return variable, f"{GRADIENT}{variable}"


def checked(trace: Trace, name: str, index: Index) -> Check | None:
    """The check of a cell of a tensor, or of its gradient; None where no gradient of the loss is recorded."""
    variable, gradient = _pair(trace[name])
    if gradient not in trace or naming.goal(trace[gradient]) != TARGET:
        return None
    return Check(trace[gradient].number(index), five_point(trace, variable, index), trace[variable].number(index))


def words(state: State, cell: Cell) -> str:
    """What a gradient is, what its tensor goes into, and whether the cell was set by hand."""
    tensor = cell.tensor
    variable, goal = str(naming.differentiated(str(tensor.name))), naming.goal(tensor)
    ways = tensor.node.attributes["ways"]
    consumers = [naming.long_name(consumer(tensor, slot)) for slot, _ in ways]
    told = {"goal": goal, "name": naming.long_name(variable)}
    kind = "start" if consumers == [told["name"]] else "one" if len(ways) == 1 else "many"
    said = [
        state.say("explain_gradient", **told),
        state.say(f"explain_gradient_{kind}", **told, consumers=listed(state.choices.language, consumers)),
    ]
    recording = tensor.recording
    slot = recording.plan.names[variable]
    if recording.is_overridden(slot) and recording.covers(slot, cell.index):
        said.append(state.say("explain_gradient_set"))
    return joined(state.choices.language, said)


def doubts(state: State, check: Check | None) -> str:
    """Why gradient and difference are not the same, or why there is no difference; nothing where all is well."""
    if check is None or (check.difference is not None and check.agrees):
        return ""
    if check.difference is None:
        return state.say("check_infinite") if isinf(check.value) else ""
    if check.difference.kink is not None:
        return state.say("check_kink", name=naming.long_name(check.difference.kink))
    held = any(isinstance(edit.value, Mean) or edit.name.endswith(_SOFTMAX) for edit in state.active(state.edits))
    return state.say("check_edited" if held else "check_bent")
