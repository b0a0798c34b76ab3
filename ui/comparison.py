"""The switched model beside the preset as it is, under the same edits: every tensor, and the prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from engine import Tensor, Trace, presets, programs, run
from engine.edits import among
from engine.plan import is_large
from engine.sampling import leading
from engine.types import Array, Index
from ui import naming, runs
from ui.board import view
from ui.state import State
from ui.view import vocabulary_rows

BOTH, HERE, BEFORE = "both", "here", "before"
RANKED = 3


@dataclass(frozen=True)
class Difference:
    """A tensor of one or both models: its largest |Δ| and that cell, where both have it."""

    name: str
    shape: str
    place: str
    largest: float | None = None
    where: str | None = None


@dataclass(frozen=True)
class Outcome:
    """A next token with its probability before the switches and after them."""

    token: int
    label: str
    before: float
    after: float


def unswitched(state: State) -> Trace:
    """The trace of the preset's own architecture under those of the reader's edits that it has a tensor for."""
    choices = state.choices
    own = runs.model(choices.preset, choices.seed, ())
    baseline = runs.baseline(choices.preset, choices.seed, (), state.ids, state.lesson)
    known = among(state.edits, baseline)
    if not known:
        return baseline
    return run(own, [list(state.ids)], edits=known, base=baseline, program=programs.of(state.lesson))


def differences(state: State, before: Trace) -> list[Difference]:
    """Every tensor of the two models in order of computation, without what lessons compute beside them."""
    now = state.trace
    return [_difference(state, name, before, now) for name in _names(before, now)]


def _difference(state: State, name: str, before: Trace, now: Trace) -> Difference:
    here = now[name] if name in now else before[name]
    shape = naming.shape_text(here)
    if name not in before or name not in now:
        return Difference(name, shape, HERE if name in now else BEFORE)
    largest, index = _largest(state, before[name], here)
    where = naming.cell_title(state.model, state.ids, here, name, index) if index is not None else None
    return Difference(name, shape, BOTH, largest, where)


def _names(before: Trace, now: Trace) -> Iterator[str]:
    """The names of both; those that only the first has stand where they stood."""
    ours, theirs = _own_names(now), _own_names(before)
    present, gone, last = set(ours), dict[str, list[str]](), ""
    for name in theirs:
        if name in present:
            last = name
        else:
            gone.setdefault(last, []).append(name)
    yield from gone.get("", [])
    for name in ours:
        yield name
        yield from gone.get(name, [])


def _own_names(trace: Trace) -> list[str]:
    """The model's own tensors: the forward pass ends with the probabilities, lessons add theirs behind."""
    names = trace.recording.plan.names
    return [name for name, slot in names.items() if slot <= names["probabilities"]]


def _largest(state: State, before: Tensor, now: Tensor) -> tuple[float | None, Index | None]:
    """The largest |Δ| among cells that are finite in both, and its cell; no cell where nothing differs.

    Where only −∞ came or went there is no Δ, and the cell is the first of these.
    """
    if before.recording.values[before.slot] is now.recording.values[now.slot] is not None:
        return 0.0, None
    flat = _shown(state, now)
    theirs, ours = (tensor.data.ravel() if flat is None else tensor.take(flat) for tensor in (before, now))
    finite = np.isfinite(theirs), np.isfinite(ours)
    both, one_sided = np.logical_and(*finite), np.logical_xor(*finite)
    sizes = np.abs(np.subtract(ours, theirs, where=both, out=np.zeros(len(ours))))
    place = int(np.argmax(sizes if sizes.any() else one_sided))
    cell = place if flat is None else int(flat[place])
    index = tuple(int(part) for part in np.unravel_index(cell, now.shape))
    if not sizes[place]:
        return (None, index) if one_sided.any() else (0.0 if both.any() else None, None)
    return float(sizes[place]), index


def _shown(state: State, tensor: Tensor) -> Array | None:
    """The flat indices to compare: all (None); of a large vocabulary the rows on the board, last position."""
    if not (tensor.is_deferred or is_large(tensor.node)):
        return None
    rows = sorted(vocabulary_rows(view(state), embedding=tensor.node.name == "embedding.weight"))
    chosen = {"vocabulary": rows, "position": [len(state.ids) - 1]}
    places = product(*(chosen.get(axis, range(size)) for axis, size in zip(tensor.axes, tensor.shape, strict=True)))
    return np.array([np.ravel_multi_index(place, tensor.shape) for place in places])


def outcomes(state: State, before: Trace) -> list[Outcome]:
    """The leading next tokens of both models and the preset's candidates, the likeliest of the switched first."""
    last, now = len(state.ids) - 1, state.trace
    theirs, ours = (trace["probabilities"].row(0, last) for trace in (before, now))
    named = presets.CANDIDATES[state.choices.preset]
    tokens = dict.fromkeys([*leading(ours, RANKED), *leading(theirs, RANKED), *named])
    found = [
        Outcome(token, naming.token_label(state.model, token), float(theirs[token]), float(ours[token]))
        for token in tokens
    ]
    return sorted(found, key=lambda outcome: -outcome.after)
