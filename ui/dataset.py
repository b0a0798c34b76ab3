"""The text of lesson 29 as ids, the windows that the reader's settings cut from it, and the batches that they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from engine import InputError, data, presets
from engine.types import Integers
from formats.edits import MOST_TOKENS
from ui import runs
from ui.state import State

LESSON = "data"


@dataclass(frozen=True)
class Cut:
    """A text of token `ids` with the settings that cut it: T, the stride, B and the seed of the order."""

    ids: tuple[int, ...]
    block: int
    stride: int
    size: int
    seed: int

    @cached_property
    def starts(self) -> range:
        """Where the windows begin, in the order of the text."""
        return data.windows(len(self.ids), self.block, self.stride)

    @cached_property
    def batches(self) -> list[tuple[int, ...]]:
        """The windows of every batch, in the order in which they are read."""
        return data.batches(data.shuffled(self.starts, self.seed), self.size)

    @property
    def left_over(self) -> int:
        """Tokens at the end that no window reaches, not even as its last target."""
        return len(self.ids) - (self.starts[-1] + self.block + 1 if self.starts else 0)

    def pairs(self, starts: tuple[int, ...]) -> tuple[Integers, Integers]:
        """Inputs and targets of a batch, [B,T] each."""
        return data.pairs(self.ids, starts, self.block)


def text(state: State) -> str:
    """The reader's text, or the preset's own."""
    return str(state.control("dataset")) or presets.TEXTS[state.choices.preset]


def cut(state: State) -> Cut:
    """What the settings make of the text. Raises `InputError` for one that the model's tokenizer cannot read."""
    tokenizer = state.model.tokenizer
    if tokenizer is None:
        raise InputError("no_tokenizer", "this model has no tokenizer")
    block = min(int(state.control("block")) or _usual_block(state), longest(state))
    return Cut(
        tuple(tokenizer.encode(text(state))), block, int(state.control("block_stride")) or block,
        int(state.control("batch_size")), int(state.control("shuffle")),
    )


def longest(state: State) -> int:
    """The most tokens that a window may have."""
    return min(MOST_TOKENS, state.model.config.max_positions or MOST_TOKENS)


def _usual_block(state: State) -> int:
    """As long as the preset's own sentence, which its text begins with."""
    choices = state.choices
    return len(runs.prompt(choices.preset, choices.seed, choices.switches, presets.SENTENCES[choices.preset]))


def looked_at(state: State, now: Cut) -> int:
    """The number of the batch on the page, counted from 0; there must be one."""
    return min(int(state.control("batch")), len(now.batches) - 1)


def put_on_board(state: State, inputs: tuple[int, ...], target: int) -> None:
    """Let a row of a batch be the reader's sentence, and its last target the token behind it."""
    tokenizer = state.model.tokenizer
    assert tokenizer is not None
    state.choose(text=tokenizer.decode(list(inputs)))
    state.set_control("target", target)
