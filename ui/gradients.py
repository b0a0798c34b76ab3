"""What the explanation panel adds about gradients: where they come back from, and a difference to check them by."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, isinf
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
# and within this where nothing is known of it
AT_A_KINK = 1e-8
# steps of softmax: what is set by hand there no longer cancels the row's largest number, which is held fixed
_SOFTMAX = (".shifted", ".exp", ".sum", "loss.log_sum", "loss.target_shifted")


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
        if self.difference is None:
            return True
        uncertain = self.difference.uncertain
        return self.gap <= (CERTAINTY * uncertain if isfinite(uncertain) else AT_A_KINK)


def facts(state: State, tensor: Tensor, index: Index, check: Check | None) -> list[dict[str, Any]]:
    """Numbers with their labels: what came by way of each consumer, and the check."""
    variable, gradient = _pair(tensor)
    found = [] if tensor.name == variable else [_own(state, variable, index), *_ways(state, tensor, index)]
    if check is None or check.difference is None:
        return found
    step = short(float(f"{check.difference.step:.1e}"))
    leads = {"tensor": gradient, "index": list(index)} if tensor.name == variable else {}
    return [
        *found,
        {**_fact(state.say("check_recorded"), check.recorded, exact=True), **leads},
        _fact(state.say("check_difference", step=step), check.difference.slope, exact=True),
        _fact(state.say("check_gap"), check.gap),
    ]


def _fact(label: str, value: float, exact: bool = False) -> dict[str, Any]:
    return {"label": label, "value": finite(value), "exact": exact}


def _own(state: State, variable: str, index: Index) -> dict[str, Any]:
    """The cell that a gradient belongs to."""
    tensor = state.trace[variable]
    title = naming.cell_title(state.model, state.ids, tensor, variable, index)
    return {**_fact(title, tensor.number(index)), "tensor": variable, "index": list(index)}


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
        state.say("gradient_words", **told),
        state.say(f"gradient_way_{kind}", **told, consumers=listed(state.choices.language, consumers)),
    ]
    recording = tensor.recording
    slot = recording.plan.names[variable]
    if recording.is_overridden(slot) and recording.covers(slot, cell.index):
        said.append(state.say("gradient_set"))
    return joined(state.choices.language, said)


def doubts(state: State, check: Check | None) -> str:
    """Why gradient and difference are not the same, or why there is no difference; nothing where all is well."""
    if check is None or (check.difference is not None and check.agrees):
        return ""
    if check.difference is None:
        return state.say("check_infinite") if isinf(check.value) else ""
    here = state.active(state.edits)
    if any(edit.name.startswith(GRADIENT) for edit in here):
        return state.say("check_set")
    if check.difference.kink is not None:
        return state.say("check_kink", name=naming.long_name(check.difference.kink))
    held = any(isinstance(edit.value, Mean) or edit.name.endswith(_SOFTMAX) for edit in here)
    return state.say("check_edited" if held else "check_bent")
