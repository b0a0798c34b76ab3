"""Models, baselines and plans that readers share; nothing here is ever changed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from engine import InputError, Model, Trace, presets, programs, run
from engine.edits import Edit, by_slot
from engine.plan import Plan
from engine.trace import forward_plan
from engine.variants import variant
from ui.switches import Switches

MOST_TOKENS = 32


@lru_cache(maxsize=64)
def model(preset: str, seed: int, switches: Switches) -> Model:
    """A preset with the reader's choices of seed and architecture. Raises `ConfigError` if they do not fit."""
    own = presets.load(preset, seed)
    return variant(own, **dict(switches)) if switches else own


def read_sentence(model: Model, text: str) -> tuple[int, ...]:
    """The ids of a sentence of 1 to 32 tokens. Raises `InputError`, naming what is wrong."""
    assert model.tokenizer is not None
    ids = tuple(model.tokenizer.encode(text))
    if len(ids) > MOST_TOKENS:
        raise InputError("too_long", f"{len(ids)} tokens; at most {MOST_TOKENS} fit",
                         count=len(ids), most=MOST_TOKENS)
    return ids


@lru_cache(maxsize=256)
def prompt(preset: str, seed: int, switches: Switches, text: str) -> tuple[int, ...]:
    """The ids of a reader's sentence. Raises `InputError` as `read_sentence` does."""
    return read_sentence(model(preset, seed, switches), text)


def baseline(preset: str, seed: int, switches: Switches, ids: tuple[int, ...], lesson: str) -> Trace:
    """The unedited trace of a sentence, with what the lesson adds."""
    return _baseline(preset, seed, switches, ids, programs.of(lesson))


@lru_cache(maxsize=128)
def _baseline(preset: str, seed: int, switches: Switches, ids: tuple[int, ...],
              program: programs.Program) -> Trace:
    trace = run(model(preset, seed, switches), [list(ids)], program=program)
    trace.freeze()
    return trace


@lru_cache(maxsize=64)
def filled_rows(of: Model, table: str) -> tuple[int, ...]:
    """The rows of a table over the vocabulary that are not all zero."""
    return tuple(np.flatnonzero(of.parameters[table].any(axis=1)).tolist())


def plans(of: Model, length: int) -> Iterator[Plan]:
    """What each page computes for a sentence of that length; the *Cats sit on* pages first."""
    for program in programs.everywhere():
        yield forward_plan(of.config, (1, length), of.dtype.str, program, False, 0)


def check_elsewhere(here: Model, own: Model, length: int, edit: Edit) -> None:
    """Check an edit that this page's run does not know: of another lesson's tensor, or another architecture's.

    Raises `EditError` for one that no page knows, or whose index is outside.
    """
    known = next((plan for plan in (*plans(here, length), *plans(own, length)) if edit.name in plan.names), None)
    by_slot(known or next(plans(here, length)), [edit])


def article(preset: str = "cats", lesson: str = "overview") -> Trace:
    """The unedited trace of an article's example, which the prose quotes."""
    tokenizer = presets.load(preset).tokenizer
    assert tokenizer is not None
    return baseline(preset, 1, (), tuple(tokenizer.encode(presets.SENTENCES[preset])), lesson)


def sizes(trace: Trace) -> dict[str, int]:
    """The letters of the article: B, T, C, H, D, F, V, N."""
    config = trace.model.config
    batch, length = trace.ids.shape
    return {
        "B": batch, "T": length, "C": config.hidden_size, "H": config.heads, "D": config.head_size,
        "F": config.mlp_size, "V": config.vocab_size, "N": config.layers,
    }
