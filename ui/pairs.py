"""The other sentence of the lesson that compares two: the reader's, or one that the lesson proposes."""

from __future__ import annotations

from operator import ne
from typing import TYPE_CHECKING

from engine import GlassboxError, InputError, Model, presets
from ui import runs

if TYPE_CHECKING:
    from ui.state import State

LESSON = "patch"


def other(state: State) -> tuple[int, ...]:
    """The ids of the other sentence.

    Raises `InputError` for one that the model cannot read, or of another length than this sentence.
    """
    own, ids = _own(state), _read(state, text(state))
    if len(ids) != len(own):
        raise InputError("other_length", f"{len(ids)} tokens beside {len(own)}", count=len(ids), own=len(own))
    return ids


def beside(state: State) -> tuple[int, ...]:
    """The ids of the other sentence, whose leading token is a natural rival; nothing where a lesson has none."""
    if state.lesson != LESSON:
        return ()
    try:
        return other(state)
    except GlassboxError:
        return ()


def text(state: State) -> str:
    """The other sentence as the reader typed it, or the one that the lesson proposes."""
    return str(state.control("other")) or proposed(state)


def proposed(state: State) -> str:
    """One of the preset's other sentences, if it differs in one token; else this one with another word in front."""
    own, tokenizer = _own(state), _model(state).tokenizer
    assert tokenizer is not None
    for sentence in presets.OTHERS[state.choices.preset]:
        ids = _read(state, sentence)
        if len(ids) == len(own) and sum(map(ne, ids, own)) == 1:
            return tokenizer.decode(list(ids))
    first = next(token for token in tokenizer.words if token != own[0])
    return tokenizer.decode([first, *own[1:]])


def _model(state: State) -> Model:
    choices = state.choices
    return runs.model(choices.preset, choices.seed, choices.switches)


def _own(state: State) -> tuple[int, ...]:
    return _read(state, state.choices.text)


def _read(state: State, sentence: str) -> tuple[int, ...]:
    choices = state.choices
    return runs.prompt(choices.preset, choices.seed, choices.switches, sentence)
