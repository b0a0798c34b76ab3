"""Training runs: what one depends on, a few that readers share, and how a reader goes through one."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any

from engine import Edit, Model, Trace, run
from engine.config import ModelConfig
from engine.course import STARTS, Course
from engine.edits import among
from engine.trace import forward_plan
from engine.training import Setting
from ui import runs
from ui.applicability import applies
from ui.controls import MOST_TRAINED
from ui.switches import Switches

if TYPE_CHECKING:
    from ui.state import State

LESSON = "training"
# of the server's time at once, so that nobody waits for a run
SLICE_SECONDS = 0.04
# of a run that goes on by itself, so that one can watch it even where another reader has been there before
STEPS_AT_ONCE = 20
# between two pictures of a run that goes on
PICTURE_SECONDS = 1.0
# milliseconds until the board asks for more of a run, or for its picture
SOON, LATER = 60, 350
# runs that are kept, for all readers together; up to 8 MB each
MOST_COURSES = 32


@dataclass(frozen=True)
class Terms:
    """What a training run depends on; `start` is the seed of random weights, 0 for the model's own."""

    preset: str
    seed: int
    switches: Switches
    start: int
    ids: tuple[int, ...]
    target: int
    optimizer: str
    edits: tuple[Edit, ...]

    @property
    def model(self) -> Model:
        """The model that it starts from, before edits."""
        return runs.model(self.preset, self.seed, self.switches, self.start)


@lru_cache(maxsize=MOST_COURSES)
def shared(terms: Terms) -> Course:
    """The run of these terms, as far as any reader has taken it."""
    targets = runs.targets(terms.preset, terms.seed, terms.ids, terms.target)
    return Course(terms.model, [list(terms.ids)], [list(targets)], Setting(terms.optimizer, clips=True), terms.edits)


@dataclass
class Walk:
    """One reader's way through a run: whether it goes on by itself, and the step that was looked at last."""

    running: bool = False
    # the end of the run, and the step that is looked at, as the chart shows them; and since when
    picture: tuple[int, int] | None = None
    pictured: float = 0.0
    # the run while it goes on: with more readers than runs are shared, each would begin again at every portion
    held: Course | None = None
    _terms: Terms | None = None
    _seen: tuple[object, ...] = ()
    _trace: Trace | None = field(default=None, repr=False)

    def course(self, terms: Terms) -> Course:
        """The run of these terms; one that the shared ones have let go starts again, and comes to the same.

        Under other terms it stops going on by itself.
        """
        if self._terms != terms:
            self._terms, self.running, self.picture, self.held = terms, False, None, None
        return self.held or shared(terms)

    def trace(self, course: Course, step: int, baseline: Trace) -> Trace:
        """The model after so many steps, run as the baseline is run, with what its optimizer remembers."""
        around = baseline.circumstances
        seen = (self._terms, step, around)
        if self._trace is None or self._seen != seen:
            checkpoint = course.at(step)
            self._seen, self._trace = seen, run(
                checkpoint.model, baseline.ids, edits=among(course.held, baseline), program=around.program,
                targets=around.targets, moments=checkpoint.moments,
            )
        return self._trace


# ---- what a reader's state says of it

def is_here(state: State) -> bool:
    """Whether the page shows a training run."""
    return state.lesson == LESSON and applies(LESSON, state.model.config)


def start(state: State) -> int:
    """The seed of the random weights that the page starts from; 0 for the model's own."""
    return int(state.control("start")) if state.lesson == LESSON else 0


def terms(state: State) -> Terms:
    """What the reader's run depends on."""
    choices, ids, kind = state.choices, state.ids, str(state.control("optimizer"))
    edits = among(state.edits, _names(state.model.config, len(ids), state.model.dtype.str, kind))
    return Terms(choices.preset, choices.seed, choices.switches, start(state), ids, state.target, kind, edits)


def _names(config: ModelConfig, length: int, dtype: str, optimizer: str) -> Container[str]:
    """The tensors of a run."""
    return forward_plan(config, (1, length), dtype, Setting(optimizer, clips=True).program, False, 0).names


def course(state: State) -> Course:
    """The reader's run."""
    return state.walk.course(terms(state))


def trained(state: State) -> int:
    """How far the reader has taken the run."""
    return int(state.control("trained"))


def step(state: State) -> int:
    """The step that the page shows: the one that was asked for, as soon as the run has got there; 0 on other pages."""
    if not is_here(state) or not trained(state):
        return 0
    asked, end = int(state.control("time")), min(trained(state), course(state).reached)
    return end if asked < 0 else min(asked, end)


def trace(state: State) -> Trace:
    """The run of the model at the step that the page shows."""
    return state.walk.trace(course(state), step(state), state.baseline)


def is_behind(state: State) -> bool:
    """Whether the run goes on by itself, or has still to get to where the reader wants it."""
    if not is_here(state):
        return False
    now = course(state)
    return state.walk.running or (now.reached < trained(state) and not now.ended)


def _place(state: State) -> tuple[int, int]:
    """Where the run ends so far, and where the reader looks."""
    return min(trained(state), course(state).reached), step(state)


def picture(state: State) -> tuple[int, int]:
    """What the chart shows of them. It follows after a moment: drawing it takes a browser longer than all the rest."""
    walk = state.walk
    if walk.picture is None:
        walk.picture, walk.pictured = _place(state), monotonic()
    return walk.picture


def go_on(state: State) -> None:
    """Take the run on for a moment."""
    if not is_here(state):
        return
    now, walk = course(state), state.walk
    if not walk.running or monotonic() > walk.pictured + PICTURE_SECONDS:
        walk.picture = None
    if not walk.running:
        now.advance(trained(state), SLICE_SECONDS)
    else:
        goal = min(trained(state) + STEPS_AT_ONCE, MOST_TRAINED)
        now.advance(goal, SLICE_SECONDS)
        state.set_control("trained", max(trained(state), min(goal, now.reached)))
        walk.running = trained(state) < MOST_TRAINED and not (now.ended and trained(state) == now.reached)
    walk.held = now if is_behind(state) else None


def live(state: State) -> dict[str, Any]:
    """What the board has to know: after how many milliseconds to ask for more, and where its slider stands."""
    if not is_here(state):
        return {}
    place, walk = _place(state), state.walk
    more = SOON if is_behind(state) else LATER if walk.picture not in (None, place) else None
    end, now = place
    return {"more": more, "dials": {"time": {"value": now, "high": end}}}


def take(state: State, steps: int) -> None:
    """Take the run to so many steps from its start, and look at the last."""
    state.walk.running = False
    state.set_control("trained", min(max(steps, 0), MOST_TRAINED))
    state.set_control("time", -1)
    go_on(state)


def set_running(state: State, running: bool) -> None:
    """Let the run go on by itself, or stop it where it is."""
    state.set_control("time", -1)
    state.walk.held = course(state)
    state.walk.running = running
    go_on(state)


def follow(state: State, before: Sequence[Edit]) -> None:
    """After other edits were put in force: another start is another run, so the page goes back to it."""
    if not (is_here(state) and trained(state)):
        return
    if state.control("time") != 0 and _starts(state, before) != _starts(state, state.edits):
        state.set_control("time", 0)
        state.message = ("info", state.say("training_rewound"))
    go_on(state)


def _starts(state: State, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits that decide what the run starts from."""
    return tuple(edit for edit in among(edits, state.baseline) if state.baseline[edit.name].node.operation in STARTS)
