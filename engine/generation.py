"""Generating text: forward, choose, append, repeat; with a key-value cache or by computing all anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from types import MappingProxyType

import numpy as np

from engine.edits import Edit
from engine.model import Model
from engine.plan import Node, Plan
from engine.sampling import Choice, choose, draw
from engine.trace import Inputs, Past, Program, Trace, forward_plan, read_ids, run
from engine.types import Array

PRODUCTS = frozenset({"matmul", "contract", "affine"})
HEAD = ("logits.uncapped", "logits")
# axes on which a cached run may hold only the positions that are new
GROWING_AXES = frozenset({"position", "query", "key"})


@dataclass(frozen=True, eq=False)
class Reading:
    """One forward pass of the loop: the trace that gave the logits, and what it took.

    `positions` are the places in the whole text that the trace computed; with a cache, the keys
    and values of earlier places were made by the passes whose `positions` hold them.
    `rebuilt` says that the window slid and the cache was computed anew.
    """

    trace: Trace
    positions: range
    rebuilt: bool

    @property
    def multiplications(self) -> int:
        """How many products of two numbers its matrix and dot products took."""
        return multiplications(self.trace.recording.plan)


@dataclass(frozen=True, eq=False)
class Step(Reading):
    """One round of the loop: a pass, how the next token was chosen, and the token."""

    choice: Choice
    token: int


def generate(model: Model, inputs: Inputs, count: int, *, temperature: float = 1.0,
             top_k: int | None = None, top_p: float | None = None, seed: int = 0, cached: bool = True,
             edits: Sequence[Edit] = ()) -> Iterator[Step]:
    """Yield `count` steps that append one token each to ids [1,T]. See `read` for the window and the cache.

    Source: forward walkthrough, inference flow; second article, step 10.
    """
    text = [int(token) for token in read_ids(model, inputs)[0]]
    generator = np.random.default_rng(seed)
    past: Past | None = None
    for _ in range(count):
        reading = read(model, text, past if cached else None, edits)
        choice = choose(next_logits(reading), temperature, top_k, top_p)
        token = draw(choice, generator)
        yield Step(reading.trace, reading.positions, reading.rebuilt, choice, token)
        past = remember(reading.trace)
        text.append(token)


def read(model: Model, text: Sequence[int], past: Past | None = None, edits: Sequence[Edit] = (),
         program: Program | None = None) -> Reading:
    """Return the forward pass that gives the logits after `text`; with `past`, only its new positions.

    Beyond the positions that a model has, its window slides: it reads the last `max_positions`
    tokens at positions 0, 1, …, and a cache is of no use; a model without that bound goes on. Edits
    speak of positions of what a full pass would read.
    """
    window = window_of(model, len(text))
    known = past.length if past is not None and _is_of_use(past, model, text, edits) else 0
    fresh = list(text[window.start + known:])
    here = _placed(edits, model, known, len(fresh)) if known else edits
    trace = run(model, [fresh], edits=here, past=past if known else None, program=program)
    slid = past is not None and window.start > 0
    return Reading(trace, range(window.start + known, len(text)), slid)


def next_logits(reading: Reading) -> Array:
    """The logits [V] for the token that comes next."""
    return reading.trace["logits"].row(0, len(reading.positions) - 1)


def window_of(model: Model, length: int) -> range:
    """The places of a text of that length which the model reads."""
    most = model.config.max_positions
    return range(0 if most is None else max(length - most, 0), length)


def _is_of_use(past: Past, model: Model, text: Sequence[int], edits: Sequence[Edit]) -> bool:
    """Whether what is kept of earlier positions is what a full pass would make of them again.

    Without a causal mask they read later ones; when the window slides they move; an edit that counts
    from the end means another position at every step; and one to a mean, or to another run's cells,
    speaks of all positions of a full pass.
    """
    slid = window_of(model, len(text)).start > 0
    from_end = any(
        edge is not None and edge < 0 for edit in edits for part in edit.index
        for edge in ((part.start, part.stop) if isinstance(part, slice) else (part,))
    )
    of_all = any(not isinstance(edit.value, float) for edit in edits)
    return model.config.causal and not (slid or from_end or of_all) and past.length < len(text)


def _placed(edits: Sequence[Edit], model: Model, known: int, fresh: int) -> tuple[Edit, ...]:
    """The edits of a full pass where they fall in a pass of its last `fresh` positions alone."""
    plan = forward_plan(model.config, (1, fresh), model.dtype.str, None, False, known)
    moved = (
        _moved(edit, plan.nodes[plan.names[edit.name]], known, fresh) if edit.name in plan.names else edit
        for edit in edits
    )
    return tuple(edit for edit in moved if edit is not None)


def _moved(edit: Edit, node: Node, known: int, fresh: int) -> Edit | None:
    """One edit, its positions counted from the first new one; None where it is about an earlier one."""
    if node.operation == "parameter":
        return edit
    index: list[int | slice] = []
    for part, axis, size in zip(edit.index, node.axes, node.shape, strict=False):
        if axis not in GROWING_AXES or size != fresh:
            index.append(part)
        elif isinstance(part, slice):
            places = [place - known for place in range(known + fresh)[part] if place >= known]
            if not places:
                return None
            index.append(slice(min(places), max(places) + 1, abs(part.step or 1)))
        elif part < known:
            return None
        else:
            index.append(part - known)
    return replace(edit, index=tuple(index))


def remember(trace: Trace) -> Past:
    """The keys and values of all positions that a trace knows, ready for the next step."""
    arrays = {}
    for layer in range(trace.model.config.layers):
        scope = f"layers.{layer}.attention"
        for letter in "kv":
            arrays[f"{scope}.{letter}_cache"] = trace[_held(trace, scope, letter)].data
    length = next(iter(arrays.values())).shape[2]
    return Past(length, MappingProxyType(arrays))


def _held(trace: Trace, scope: str, letter: str) -> str:
    """The name of the keys or values that attention read in this trace."""
    names = (f"{scope}.{letter}_all", f"{scope}.{letter}_norm.output", f"{scope}.{letter}_rotated")
    return next((name for name in names if name in trace), f"{scope}.{letter}_heads")


def largest_difference(cached: Reading, full: Reading) -> float:
    """max |Δ| of the logits [V] that two passes of one step give for the next token."""
    return float(np.max(np.abs(next_logits(cached) - next_logits(full))))


@lru_cache(maxsize=256)
def multiplications(plan: Plan) -> int:
    """How many products of two numbers the plan's matrix and dot products take."""
    return sum(map(_products, plan.nodes))


@lru_cache(maxsize=256)
def head_multiplications(plan: Plan) -> int:
    """How many of them the LM head takes for one position."""
    head = next(plan.nodes[plan.names[name]] for name in HEAD if name in plan.names)
    return _products(head) // (head.shape[0] * head.shape[1])


def _products(node: Node) -> int:
    return prod(node.shape) * prod(node.summed) if node.operation in PRODUCTS else 0
