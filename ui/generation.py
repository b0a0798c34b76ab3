"""The loop that continues a reader's text: each turn computed once, and shared by all who see the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine import Edit, Model, programs
from engine.edits import among
from engine.generation import Reading, head_multiplications, largest_difference, read, remember, window_of
from engine.trace import Past, forward_plan
from ui import runs
from ui.switches import Switches

LESSON = "generating"
# what the cache of the turns may hold: about 16 kB each
MOST_TURNS = 512


@dataclass(frozen=True)
class Setting:
    """What a continuation depends on: the model, the reader's sentence, and the edits in force."""

    preset: str
    seed: int
    switches: Switches
    prompt: tuple[int, ...]
    edits: tuple[Edit, ...]

    @property
    def model(self) -> Model:
        """The model that continues."""
        return runs.model(self.preset, self.seed, self.switches)


@dataclass(frozen=True, eq=False)
class Turn:
    """One turn of the loop: the text that was read, the token that was drawn, and what reading took both ways.

    `positions` are the places that had to be computed with a cache, `window` all that the model read;
    multiplications are those of the pass with a cache, of the one without, and of the head at one position.
    """

    text: tuple[int, ...]
    token: int
    u: float
    probability: float
    window: range
    positions: range
    rebuilt: bool
    cached: int
    full: int
    head: int
    difference: float
    past: Past


def turns(setting: Setting, count: int) -> Iterator[Turn]:
    """The first `count` turns."""
    return (turn(setting, number) for number in range(count))


@lru_cache(maxsize=MOST_TURNS)
def turn(setting: Setting, number: int) -> Turn:
    """The turn that draws token `number` of the continuation, counted from 0.

    The full pass decides what is drawn, as the board shows it; the pass with a cache is held against it.
    """
    before = turn(setting, number - 1) if number else None
    text = setting.prompt if before is None else (*before.text, before.token)
    program = programs.of(LESSON)
    full = read(setting.model, text, None, known(setting, program), program)
    cached = read(setting.model, text, before.past if before else None, known(setting, None))
    token, u, probability = _drawn(full, number)
    return Turn(
        text, token, u, probability, window_of(setting.model, len(text)), cached.positions,
        cached.rebuilt and setting.model.config.causal, cached.multiplications, full.multiplications,
        head_multiplications(full.trace.recording.plan), largest_difference(cached, full), remember(cached.trace),
    )


def known(setting: Setting, program: programs.Program | None) -> tuple[Edit, ...]:
    """The edits of tensors that such a pass computes; the others wait for their own page."""
    model = setting.model
    return among(setting.edits, forward_plan(model.config, (1, 1), model.dtype.str, program, False, 0).names)


def _drawn(reading: Reading, number: int) -> tuple[int, float, float]:
    """The token of that step, the number that drew it, and how likely it was."""
    trace = reading.trace
    token, u = trace["generating.drawn"].number((0, number)), trace["generating.u"].number((number,))
    # an edit may put an id at several ranks, or draw one that stands at none
    ranks = np.flatnonzero(trace["choosing.order"].data[0] == token)
    return int(token), u, float(trace["choosing.probabilities"].take(ranks).sum())


def text_after(setting: Setting, steps: int) -> tuple[int, ...]:
    """The sentence with the tokens of so many steps behind it."""
    return turn(setting, steps).text if steps else setting.prompt


def window(setting: Setting, steps: int) -> tuple[int, ...]:
    """What the model reads of that text."""
    text = text_after(setting, steps)
    return text[window_of(setting.model, len(text)).start:]


def reused(setting: Setting, steps: int) -> int:
    """How many of these positions a cache would have from earlier steps."""
    if not steps:
        return 0
    now = turn(setting, steps)
    return now.positions.start - now.window.start


def longest(model: Model, prompt: int, steps: int) -> int:
    """How many positions a board may have after so many steps."""
    return len(window_of(model, prompt + steps))
