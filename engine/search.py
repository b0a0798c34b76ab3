"""The smallest change of a single parameter cell, among those tried, that lets a token lead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, copysign, floor, inf

import numpy as np

from engine.edits import Edit, among
from engine.gradient import gradient
from engine.model import Model
from engine.sampling import leading
from engine.tokenizer import check_id
from engine.trace import Inputs, Trace, run
from engine.types import Array, Index

# a token leads when its logit is that much larger than any other
MARGIN = 0.001
# the tokens ahead that are followed to first order; another one may take over
RIVALS = 3
# cells of each parameter that are verified, fewer where a run is long, and runs that one of them may take
CELLS, CELLS_LARGE = 8, 2
RUNS = 16
# the first change that is tried is that part of the estimate, for a lead may come early and go again
FIRST_STEP = 4
# a longer step has to close that share of what the lead lacks, or else the second such step ends the way
PROGRESS = 0.05
# how exactly the smallest change is found, as a share of it
TOLERANCE = 0.001
# no larger change is tried
LARGEST = 100.0


@dataclass(frozen=True)
class Found:
    """A cell, and the smallest change of it for which runs gave the token the lead.

    `estimate` is the change that the slopes alone asked for; `lead` is what the token is ahead of
    `runner_up` by, after the change.
    """

    name: str
    index: Index
    before: float
    after: float
    estimate: float
    lead: float
    runner_up: int
    runs: int

    @property
    def change(self) -> float:
        """What is added to the cell."""
        return self.after - self.before

    @property
    def edit(self) -> Edit:
        """The change as an edit."""
        return Edit(self.name, self.index, self.after)


@dataclass(frozen=True)
class Outcome:
    """What a search came to: before it the token had `lead` (behind: negative) over `leader`.

    `found` holds the smallest change of each parameter that has one, the smallest of all first;
    `failed` the parameters whose tried cells did not do it, `flat` those without any slope.
    """

    token: int
    leader: int
    lead: float
    found: tuple[Found, ...] = ()
    failed: tuple[str, ...] = ()
    flat: tuple[str, ...] = ()
    cells: int = 0
    sloped: int = 0
    verified: int = 0
    runs: int = 0

    @property
    def leads(self) -> bool:
        """Whether the token needs no change: of equal logits the lower id counts as larger."""
        return self.lead > 0 or (self.lead == 0 and self.token < self.leader)


@dataclass(frozen=True)
class Steepest:
    """The cell of a parameter with the largest slope, and how many of its cells have any."""

    name: str
    index: Index
    slope: float
    sloped: int
    cells: int


def steepest(trace: Trace) -> tuple[Steepest, ...]:
    """The largest |`gradient.NAME`| of every parameter, the largest of all first; a trace that records gradients."""
    found = []
    for name in trace.model.parameters:
        slopes = trace[f"gradient.{name}"].data
        place = int(np.argmax(np.abs(slopes)))
        index = tuple(int(part) for part in np.unravel_index(place, slopes.shape))
        found.append(Steepest(name, index, float(slopes[index]), int(np.count_nonzero(slopes)), slopes.size))
    return tuple(sorted(found, key=lambda one: -abs(one.slope)))


def standing(logits: Array, token: int) -> Outcome:
    """How far the token's logit is ahead of the best other of logits [V], and which one that is."""
    others = np.array(logits)
    others[token] = -inf
    leader = int(np.argmax(others))
    return Outcome(token, leader, float(logits[token] - others[leader]))


def smallest_edit(model: Model, inputs: Inputs, token: int, edits: Sequence[Edit] = ()) -> Outcome:
    """Search for the smallest change of one parameter cell that gives `token` the lead at the last position.

    The change comes on top of `edits`; those of tensors that a plain run does not have are left out.
    To first order a change Δ moves a lead by slope · Δ, so a cell needs gap / slope. The `CELLS` cells
    of each parameter that need least are verified by runs, some `RUNS` each: a bracket, then secants,
    the way that the slope points. A cell without a slope is not tried, nor is the way against a slope.
    Raises `InputError` and `EditError` as `run` does, and `InputError` for a token that is not in the
    vocabulary. Source: Dowell & Jarratt 1971, "A modified regula falsi method", for the secants.
    """
    check_id(token, model.config.vocab_size)
    around = run(model, inputs)
    plain = run(model, inputs, edits=among(edits, around), base=around)
    logits = _last_logits(plain)
    now = standing(logits, token)
    if now.leads:
        return now
    found, failed, flat = [], [], []
    sloped = verified = runs = 0
    for name, (places, estimates, count) in _estimates(plain, token, logits).items():
        sloped += count
        if not count:
            flat.append(name)
            continue
        best: Found | None = None
        for place, estimate in zip(places, estimates, strict=True):
            index = tuple(int(part) for part in np.unravel_index(place, plain[name].shape))
            probe = _Probe(plain, now, name, index)
            best = probe.smallest(float(estimate), LARGEST if best is None else abs(best.change)) or best
            verified, runs = verified + 1, runs + probe.runs
        if best is None:
            failed.append(name)
        else:
            found.append(best)
    cells = sum(array.size for array in model.parameters.values())
    in_order = tuple(sorted(found, key=lambda one: abs(one.change)))
    return replace(now, found=in_order, failed=tuple(failed), flat=tuple(flat), cells=cells, sloped=sloped,
                   verified=verified, runs=runs)


def _last_logits(trace: Trace) -> Array:
    return trace["logits"].row(0, trace.ids.shape[1] - 1)


def _estimates(trace: Trace, token: int, logits: Array) -> Mapping[str, tuple[Array, Array, int]]:
    """For each parameter the cells that need least, what each needs, and how many have a slope."""
    last = trace.ids.shape[1] - 1
    ahead = _ahead(logits, token)
    needs = np.array([MARGIN - (logits[token] - logits[other]) for other in ahead])
    own, *theirs = (gradient(trace, "logits", (0, last, which)) for which in (token, *ahead))
    most = CELLS_LARGE if trace["logits"].is_deferred else CELLS
    found = {}
    for name in trace.model.parameters:
        slopes = np.array([(own[name].data - other[name].data).ravel() for other in theirs])
        places = np.flatnonzero(slopes.any(axis=0))
        together, leader = (first_order(needs[:count], slopes[:count, places]) for count in (len(needs), 1))
        # where the slopes say that another would take over, the gap to the leader has to do
        changes = np.where(np.isfinite(together), together, leader)
        order = np.lexsort((np.abs(changes), np.isinf(together)))[:most]
        possible = order[np.isfinite(changes[order])]
        found[name] = (places[possible], changes[possible], len(places))
    return found


def _ahead(logits: Array, token: int) -> list[int]:
    """The best others, at most `RIVALS` of them."""
    others = np.array(logits)
    others[token] = -inf
    return leading(others, min(RIVALS, len(others) - 1))


def first_order(needs: Array, slopes: Array) -> Array:
    """The smallest Δ [cell] with slopes[rival,cell] · Δ ≥ needs[rival] for every rival; ±∞ where there is none.

    A need below 0 belongs to a rival that is behind and must stay there.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [_smallest(needs[:, None], sign * slopes) for sign in (1.0, -1.0)]
    up, down = sides
    return np.where(up <= down, up, -down)


def _smallest(needs: Array, slopes: Array) -> Array:
    """The smallest x ≥ 0 with slopes · x ≥ needs in every row; ∞ where there is none."""
    bound = needs / slopes
    least = np.where(needs > 0, np.where(slopes > 0, bound, inf), 0.0).max(axis=0)
    most = np.where((needs <= 0) & (slopes < 0), bound, inf).min(axis=0)
    return np.asarray(np.where(least <= most, least, inf))


class _Probe:
    """Runs with one cell changed."""

    def __init__(self, trace: Trace, now: Outcome, name: str, index: Index) -> None:
        self.trace, self.now, self.name, self.index = trace, now, name, index
        self.before = trace[name].number(index)
        key = Edit(name, index, 0.0).key
        self.others = tuple(edit for edit in trace.edits if edit.key != key)
        self.runs = 0

    def at(self, value: float) -> Outcome:
        """How the token stands with that value in the cell."""
        self.runs += 1
        edit = Edit(self.name, self.index, value)
        changed = run(self.trace.model, self.trace.ids, edits=(*self.others, edit), base=self.trace)
        return standing(_last_logits(changed), self.now.token)

    def smallest(self, estimate: float, limit: float) -> Found | None:
        """The smallest change with that sign that is enough; None where none below `limit` was found."""
        bracket = self._bracket(estimate, limit)
        if bracket is None:
            return None
        change = self._narrowed(*bracket)
        after = self._rounded(change)
        then = self.at(after)
        if not then.lead >= MARGIN:  # NaN is no lead
            after = self.before + change
            then = self.at(after)
        found = Found(self.name, self.index, self.before, after, estimate, then.lead, then.leader, self.runs)
        return found if abs(found.change) < limit else None

    def _bracket(self, estimate: float, limit: float) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """A change that is too small and one that is enough, each with what the lead lacks or has."""
        too_small, slow = (0.0, self.now.lead - MARGIN), 0
        size = min(abs(estimate), limit) / FIRST_STEP
        while self.runs < RUNS:
            change = copysign(size, estimate)
            beyond = self._beyond(change)
            if beyond >= 0:
                return too_small, (change, beyond)
            slow += not beyond > (1 - PROGRESS) * too_small[1]
            if size >= limit or slow == 2 or not beyond > -inf:
                return None
            too_small = (change, beyond)
            size = min(2 * size, limit)
        return None

    def _beyond(self, change: float) -> float:
        """What the lead has more than it needs, with the cell changed by that."""
        return self.at(self.before + change).lead - MARGIN

    def _narrowed(self, low: tuple[float, float], high: tuple[float, float]) -> float:
        """The smallest change of the bracket that is enough, by secants that lose weight where they stand still."""
        weight = low[1]
        while abs(high[0] - low[0]) > TOLERANCE * abs(high[0]) and self.runs < RUNS:
            step = (high[0] - low[0]) * weight / (weight - high[1])
            # a little towards the side that is enough, so that this side moves, too
            change = low[0] + step + 0.25 * TOLERANCE * (high[0] - low[0])
            beyond = self._beyond(change)
            if beyond >= 0:
                high, weight = (change, beyond), weight / 2
            else:
                low, weight = (change, beyond), beyond
        return high[0]

    def _rounded(self, change: float) -> float:
        """The value with the fewest decimals that is beyond the change by no more than the tolerance."""
        exact = self.before + change
        outward = ceil if change > 0 else floor
        for digits in range(12):
            value = outward(exact * 10.0**digits) / 10.0**digits
            if abs(value - exact) <= 2 * TOLERANCE * abs(change):
                return value
        return exact
