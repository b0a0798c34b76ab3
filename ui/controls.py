"""The controls that belong to one lesson: what each may be, and how an address writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType

from engine.programs.generating import MOST_STEPS

Value = int | float | str
Controls = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Control:
    """A number between `low` and `high`, or a text of at most `high` characters; of the default's kind."""

    default: Value
    low: float = 0
    high: float = 0

    def read(self, text: str) -> Value:
        """The value that a text stands for. Raises `ValueError` for one that the control cannot have."""
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
    # lesson 21: how many tokens the loop has appended
    "steps": Control(0, high=MOST_STEPS),
})


def settled(controls: Mapping[str, Value]) -> Controls:
    """The controls that differ from their defaults, by name."""
    return tuple(sorted((name, value) for name, value in controls.items() if value != CONTROLS[name].default))
