"""Generating text: forward, choose, append, repeat; with a key-value cache or by computing all anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from types import MappingProxyType

import numpy as np

from engine.edits import Edit
from engine.model import Model
from engine.plan import Plan
from engine.sampling import Choice, choose, draw
from engine.trace import Inputs, Past, Trace, read_ids, run

PRODUCTS = frozenset({"matmul", "contract", "affine"})


@dataclass(frozen=True, eq=False)
class Step:
    """One round: the trace that gave the logits, how the token was chosen, and what it cost.

    `positions` are the places in the whole text that the trace computed; with a cache, the keys
    and values of earlier places were made by the steps whose `positions` hold them.
    `rebuilt` says that the window slid and the cache was computed anew.
    """

    trace: Trace
    choice: Choice
    token: int
    positions: range
    multiplications: int
    rebuilt: bool


def generate(model: Model, inputs: Inputs, count: int, *, temperature: float = 1.0,
             top_k: int | None = None, top_p: float | None = None, seed: int = 0, cached: bool = True,
             edits: Sequence[Edit] = ()) -> Iterator[Step]:
    """Yield `count` steps that append one token each to ids [1,T].

    Beyond the positions that a model has, its window slides: it reads the last `max_positions`
    tokens at positions 0, 1, …, and a cache is computed anew; a model without that bound goes on.
    Source: forward walkthrough, inference flow; second article, step 10.
    """
    text = [int(token) for token in read_ids(model, inputs)[0]]
    generator = np.random.default_rng(seed)
    past: Past | None = None
    for _ in range(count):
        window = len(text) if model.config.max_positions is None else min(len(text), model.config.max_positions)
        slid = window < len(text)
        # without a causal mask earlier positions read later ones, so nothing of them can be kept
        usable = cached and model.config.causal and not slid
        known = past.length if past is not None and usable else 0
        fresh = text[len(text) - window + known:]
        trace = run(model, [fresh], edits=edits, past=past if known else None)
        choice = choose(trace["logits"].data[0, -1], temperature, top_k, top_p)
        token = draw(choice, generator)
        places = range(len(text) - len(fresh), len(text))
        yield Step(trace, choice, token, places, multiplications(trace.recording.plan), slid and cached)
        past = remember(trace)
        text.append(token)


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


@lru_cache(maxsize=256)
def multiplications(plan: Plan) -> int:
    """How many products of two numbers the plan's matrix and dot products take."""
    return sum(prod(node.shape) * prod(node.summed) for node in plan.nodes if node.operation in PRODUCTS)
