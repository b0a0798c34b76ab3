"""A training run that can be looked at at any step: a few checkpoints are kept, all others are replayed."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from threading import Lock
from time import monotonic
from types import MappingProxyType

from engine.edits import Edit, among
from engine.errors import ConfigError
from engine.model import Model
from engine.plan import Plan
from engine.trace import Inputs, Moments, forward_plan, read_ids, run
from engine.training import Checkpoint, Setting, after, start, step, train
from engine.types import Array

MOST_CHECKPOINTS = 16
# of the stretch between two of them that was replayed last
REPLAYED = 4
# what a step hands on to the next
STARTS = ("parameter", "moment")


class Course:
    """A run of `setting` on one batch, and what it came to at each step so far.

    Edits of parameters, and of what the optimizer remembers, decide what the run starts from; all others
    hold at every step. Of the checkpoints at most 16 stay, evenly spaced: when there are more, every
    second one goes. Steps are counted from 0, where nothing has been learnt. `losses` and `chances`, the
    probability of the last target of the first sentence, have an entry for every step up to `reached`.
    Threads may share a course.
    """

    def __init__(self, model: Model, ids: Inputs, targets: Inputs, setting: Setting,
                 edits: Sequence[Edit] = ()) -> None:
        plan = forward_plan(model.config, _shape(model, ids), model.dtype.str, setting.program, False, 0)
        known = among(edits, plan.names)
        self.ids, self.targets, self.setting = ids, targets, setting
        self.held = tuple(edit for edit in known if not _is_start(plan, edit))
        first = _first(model, ids, targets, setting, [edit for edit in known if _is_start(plan, edit)])
        self.losses: list[float] = []
        self.chances: list[float] = []
        self.ended = False
        self._kept: tuple[Checkpoint, ...] = (first,)
        self._spacing = 1
        self._next = first
        self._replayed: tuple[Checkpoint, ...] = ()
        self._lock = Lock()
        self.advance(0)

    @property
    def reached(self) -> int:
        """The last step whose loss is known."""
        return len(self.losses) - 1

    @property
    def kept(self) -> tuple[int, ...]:
        """The steps whose checkpoints are kept."""
        return tuple(checkpoint.step for checkpoint in self._kept)

    def advance(self, goal: int, seconds: float = inf) -> None:
        """Go on to step `goal`, for so long at most.

        Where another thread is at it, that one goes on, and nobody waits. A run ends (`ended`) where a
        number is finite no more.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            deadline = monotonic() + seconds
            while self.reached < goal and not self.ended:
                self._advance()
                if monotonic() >= deadline:
                    break
        finally:
            self._lock.release()

    def _advance(self) -> None:
        """The loss of the next step, and the checkpoint that it leads to."""
        here = self._next
        trace = step(here, self.ids, self.targets, self.setting, edits=self.held)
        loss = trace["loss"].number(())
        try:
            self._next = after(trace, self.setting.kind)
        except ConfigError:  # the parameters ran over
            self.ended = True
        self.ended |= not isfinite(loss)
        if here.step % self._spacing == 0 and here is not self._kept[0]:
            self._keep(here)
        self.chances.append(float(trace["loss.target_probability"].data[0, -1]))
        self.losses.append(loss)

    def _keep(self, checkpoint: Checkpoint) -> None:
        """One more checkpoint; the tuple is replaced as a whole, so that whoever reads it has no need to wait."""
        kept = (*self._kept, checkpoint)
        if len(kept) > MOST_CHECKPOINTS:
            self._spacing *= 2
            kept = tuple(each for each in kept if each.step % self._spacing == 0)
        self._kept = kept

    def at(self, number: int) -> Checkpoint:
        """The model after so many steps, at most `reached`, and what its optimizer remembers."""
        if number == self._next.step:
            return self._next
        base = max((each for each in self._kept if each.step <= number), key=_step_of)
        stretch = max(self._spacing // REPLAYED, 1)
        # whoever looks at one step will look at the next, or at the one before
        passed = {each.step: each for each in self._replayed if 0 <= each.step - base.step < self._spacing}
        found = max((base, *(each for each in passed.values() if each.step <= number)), key=_step_of)
        missing = number - found.step
        for _, following in train(found, self.ids, self.targets, self.setting, missing, edits=self.held):
            found = following
            passed[found.step] = found
        self._replayed = tuple(each for each in passed.values() if each.step % stretch == 0 or each is found)
        return found


def _step_of(checkpoint: Checkpoint) -> int:
    return checkpoint.step


def _shape(model: Model, ids: Inputs) -> tuple[int, int]:
    batch, length = read_ids(model, ids).shape
    return batch, length


def _is_start(plan: Plan, edit: Edit) -> bool:
    return plan.nodes[plan.names[edit.name]].operation in STARTS


def _first(model: Model, ids: Inputs, targets: Inputs, setting: Setting, edits: Sequence[Edit]) -> Checkpoint:
    """What the run starts from, the edits made for good."""
    if not edits:
        return start(model)
    trace = run(model, ids, targets=targets, program=setting.program, edits=edits)
    parameters: dict[str, Array] = {name: trace[name].data for name in model.parameters}
    remembered = {name: tensor.data for name, tensor in trace.items() if tensor.node.operation == "moment"}
    return Checkpoint(Model(model.config, parameters, model.tokenizer), Moments(0, MappingProxyType(remembered)))
