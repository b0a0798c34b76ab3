"""The controls that belong to one lesson: what each may be, and how an address writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType

from engine.bounds import LARGEST_SEED
from engine.optimizers import ADAMW
from engine.optimizers import KINDS as OPTIMIZERS
from engine.patching import KINDS
from engine.programs.generating import MOST_STEPS
from formats.edits import MOST_TOKENS
from ui.layout import EVERYWHERE, STATIONS

# no vocabulary reaches that far
LARGEST_ID = 999_999
# what the lesson on heads sets a head to
REMOVED_TO = ("zero", "mean")
# steps that a training run may take, and those that it takes at a click
MOST_TRAINED = 500
STRIDES = ("1", "10", "50")
# nor does any preset have as many layers
MOST_LAYERS = 99
# windows further apart would leave most of a text out
LARGEST_STRIDE = 64

Value = int | float | str
Controls = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Control:
    """A number between `low` and `high`, or a text of at most `high` characters; of the default's kind.

    A text may be one of a few `words` instead.
    """

    default: Value
    low: float = 0
    high: float = 0
    words: tuple[str, ...] = ()

    def read(self, text: str) -> Value:
        """The value that a text stands for. Raises `ValueError` for one that the control cannot have."""
        if self.words:
            if text not in self.words:
                raise ValueError(f"{text} is not one of {self.words}")
            return text
        if isinstance(self.default, str):
            if len(text) > self.high:
                raise ValueError(f"{len(text)} characters; at most {self.high}")
            text.encode()  # half a surrogate pair is no text
            return text
        number = type(self.default)(text)
        if not isfinite(number) or not self.low <= number <= self.high:
            raise ValueError(f"{text} is outside {self.low}…{self.high}")
        return number


# name in the address → the control; names are unique over all lessons
CONTROLS: Mapping[str, Control] = MappingProxyType({
    # lesson 14: what merges are learned on, how many of them, and what they are applied to
    "corpus": Control(
        "low low lower lowest\nnew new newer newest\n今天好，今天天气真好。天真，真气人，天气好。", high=600,
    ),
    "merges": Control(0, high=60),
    "sample": Control("slowest 今天 今晚 😀", high=200),
    # lessons that look inside: the token that is asked about, the one it is held against, and where; −1 leaves
    # the choice to the model and takes the last position
    "token": Control(-1, -1, LARGEST_ID), "rival": Control(-1, -1, LARGEST_ID), "position": Control(-1, -1, LARGEST_ID),
    # lesson 34: what a head is set to, one after the other
    "removed_to": Control(REMOVED_TO[0], words=REMOVED_TO),
    # lesson 29: the text that windows are cut from, how long they are, how far apart, how many make a batch, the
    # seed of their order, and the batch that is looked at; nothing, or 0, stands for the preset's own
    "dataset": Control("", high=600), "block": Control(0, high=MOST_TOKENS),
    "block_stride": Control(0, high=LARGEST_STRIDE), "batch_size": Control(2, 1, 6), "shuffle": Control(0, high=999),
    "batch": Control(0, high=LARGEST_ID),
    # lesson 36: the other sentence, where there is none the lesson proposes one; what is carried, and from where,
    # the layer counted from 1 with 0 before the first; −1 is a layer and a position where there is something to see
    "other": Control("", high=600), "carried": Control(KINDS[0], words=KINDS),
    "carried_layer": Control(-1, -1, MOST_LAYERS), "carried_position": Control(-1, -1, LARGEST_ID),
    # lessons on training: the token that should follow the sentence; −1 is the preset's own
    "target": Control(-1, -1, LARGEST_ID),
    # lesson 31: where on the way back the reader looks; nothing stands for everywhere in a small model
    "station": Control("", words=("", EVERYWHERE, *STATIONS)),
    # lessons 32 and 33: the parameter whose step is followed, and in which row; nothing, or −1, stands for one
    # that tells something
    "parameter": Control("", high=60), "row": Control(-1, -1, LARGEST_ID),
    # lesson 33: the optimizer, the seed of random weights to start from (0: the model's own), how far the run has
    # come, at which of its steps the reader looks (−1: at the last), and how many a click makes
    "optimizer": Control(ADAMW, words=OPTIMIZERS), "start": Control(0, high=LARGEST_SEED),
    "trained": Control(0, high=MOST_TRAINED), "time": Control(-1, -1, MOST_TRAINED),
    "stride": Control(STRIDES[1], words=STRIDES),
    # lesson 21: how many tokens the loop has appended
    "steps": Control(0, high=MOST_STEPS),
})

# controls that the board has a slider for
ON_BOARD = frozenset({"time"})
# lessons whose reader chooses the position, too
PLACED = frozenset({"lens", "wrote"})


def settled(controls: Mapping[str, Value]) -> Controls:
    """The controls that differ from their defaults, by name."""
    return tuple(sorted((name, value) for name, value in controls.items() if value != CONTROLS[name].default))
