"""Models, baselines and plans that readers share; nothing here is ever changed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from engine import InputError, Model, Trace, presets, programs, run
from engine.course import Course
from engine.edits import Carried, Edit, by_slot
from engine.memory import BoundedCache
from engine.plan import Plan
from engine.programs.question import Question
from engine.sampling import leading
from engine.trace import Circumstances, check_length, forward_plan, read_ids
from engine.training import Setting, random_model
from engine.types import Array
from engine.variants import variant
from formats.edits import MOST_TOKENS
from ui.switches import Switches

# with gradients and 32 positions of a trained model a baseline takes 4.6 MB
MOST_BASELINE_BYTES = 160_000_000
_BASELINES: BoundedCache[Trace] = BoundedCache(MOST_BASELINE_BYTES)


@lru_cache(maxsize=64)
def model(preset: str, seed: int, switches: Switches, start: int = 0) -> Model:
    """A preset with the reader's choices of seed and architecture, or its shape with random weights of seed `start`.

    Raises `ConfigError` if the choices do not fit.
    """
    own = presets.load(preset, seed)
    switched = variant(own, **dict(switches)) if switches else own
    return random_model(switched, start) if start else switched


def read_sentence(model: Model, text: str) -> tuple[int, ...]:
    """The ids of a sentence of 1 to 32 tokens. Raises `InputError`, naming what is wrong."""
    assert model.tokenizer is not None
    ids = tuple(model.tokenizer.encode(text))
    _check_count(ids)
    return ids


def _check_count(ids: tuple[int, ...]) -> None:
    if len(ids) > MOST_TOKENS:
        raise InputError("too_long", f"{len(ids)} tokens; at most {MOST_TOKENS} fit",
                         count=len(ids), most=MOST_TOKENS)


@lru_cache(maxsize=256)
def prompt(preset: str, seed: int, switches: Switches, text: str) -> tuple[int, ...]:
    """The ids of a reader's sentence. Raises `InputError` as `read_sentence` does."""
    return read_sentence(model(preset, seed, switches), text)


def baseline(preset: str, seed: int, switches: Switches, ids: tuple[int, ...], lesson: str,
             question: Question | None = None, target: int = -1, start: int = 0) -> Trace:
    """The unedited trace of a sentence, with what the lesson adds.

    Without a question it is about the leading token; `target` is the token behind the sentence, for lessons
    that compare with it; `start` the seed of random weights, 0 for the model's own.
    """
    if programs.asks(lesson) and question is None:
        question = asked(preset, seed, switches, ids)
    wanted = targets(preset, seed, ids, target) if lesson in programs.SUPERVISED else None
    return _baseline(preset, seed, switches, ids, programs.of(lesson, question), wanted, start)


def targets(preset: str, seed: int, ids: tuple[int, ...], target: int = -1) -> tuple[int, ...]:
    """The tokens that come next at every position; behind the last one `target`, or the preset's own."""
    size = presets.load(preset, seed).config.vocab_size
    return (*ids[1:], target if 0 <= target < size else presets.TARGETS[preset])


@lru_cache(maxsize=256)
def asked(preset: str, seed: int, switches: Switches, ids: tuple[int, ...], token: int = -1, rival: int = -1,
          position: int = -1, beside: tuple[int, ...] = ()) -> Question:
    """The tokens that a lesson asks about; −1, or an id that there is none of, leaves the choice to the unedited model.

    Its choice is the token that leads at the position, and for the rival the best of the others; a token that
    the preset names beside others is held against the next of these. Where a lesson has a sentence `beside` this
    one that leads to another token, that is the rival.
    """
    def logits(of: tuple[int, ...]) -> Array:
        return _baseline(preset, seed, switches, of, programs.of("overview"))["logits"].row(0, position % len(of))
    row = logits(ids)
    best = leading(row, 2)
    chosen = token if 0 <= token < len(row) else best[0]
    if 0 <= rival < len(row) and rival != chosen:
        return Question(chosen, rival)
    named, theirs = presets.CANDIDATES[preset], leading(logits(beside), 1) if beside else []
    others = (other for other in (*theirs, *(named if chosen in named else ()), *best) if other != chosen)
    return Question(chosen, next(others, chosen))


def _baseline(preset: str, seed: int, switches: Switches, ids: tuple[int, ...],
              program: programs.Program, wanted: tuple[int, ...] | None = None, start: int = 0) -> Trace:
    def make() -> Trace:
        trace = run(
            model(preset, seed, switches, start), [list(ids)], program=program,
            targets=None if wanted is None else [list(wanted)],
        )
        trace.freeze()
        return trace
    return _BASELINES.get((preset, seed, switches, ids, program, wanted, start), make)


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


def check_carried(here: Model, edit: Edit) -> None:
    """Raise `InputError` for an edit to cells of a sentence that the model cannot read."""
    if isinstance(edit.value, Carried):
        _check_count(edit.value.ids)
        check_length(here.config, read_ids(here, [list(edit.value.ids)]).shape[1])


def article(preset: str = "cats", lesson: str = "overview") -> Trace:
    """The unedited trace of an article's example, which the prose quotes."""
    tokenizer = presets.load(preset).tokenizer
    assert tokenizer is not None
    return baseline(preset, 1, (), tuple(tokenizer.encode(presets.SENTENCES[preset])), lesson)


def beside(example: Trace) -> Trace:
    """The run on the other sentence of a preset, beside the one on its own, with what the lesson adds there."""
    preset = next(name for name in presets.NAMES if presets.load(name) is example.model)
    return run(example.model, presets.OTHERS[preset][0], program=example.circumstances.program)


def later(example: Trace, steps: int) -> Trace:
    """An example's run after so many steps of training, as its lesson's page makes them where nothing was changed."""
    return _later(example.model, tuple(example.ids[0].tolist()), example.circumstances, steps)


@lru_cache(maxsize=8)
def _later(of: Model, ids: tuple[int, ...], around: Circumstances, steps: int) -> Trace:
    assert around.targets is not None
    course = Course(of, [list(ids)], around.targets, Setting(clips=True))
    course.advance(steps)
    there = course.at(steps)
    return run(there.model, [list(ids)], targets=around.targets, program=around.program, moments=there.moments)


def sizes(trace: Trace) -> dict[str, int]:
    """The letters of the article: B, T, C, H, D, F, V, N."""
    config = trace.model.config
    batch, length = trace.ids.shape
    return {
        "B": batch, "T": length, "C": config.hidden_size, "H": config.heads, "D": config.head_size,
        "F": config.mlp_size, "V": config.vocab_size, "N": config.layers,
    }
