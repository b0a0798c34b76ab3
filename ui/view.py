"""What a reader looks at, and where the cells of a grid are in a trace."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine import Trace
from engine.types import Array
from ui import runs
from ui.switches import Switches

Part = tuple[str, Array]


@dataclass(frozen=True)
class View:
    """What decides a frame, apart from the lesson: shared by every reader who sees the same."""

    language: str
    preset: str
    seed: int
    switches: Switches
    ids: tuple[int, ...]
    layer: int
    head: int
    rows: tuple[int, ...]
    lesson: str

    @property
    def baseline(self) -> Trace:
        """The unedited trace of the sentence."""
        return runs.baseline(self.preset, self.seed, self.switches, self.ids, self.lesson)


@dataclass(frozen=True)
class ResolvedGrid:
    """A grid's cells: for each tensor that it shows, the flat indices in row-major order."""

    key: str
    parts: tuple[Part, ...]

    def numbers(self, trace: Trace) -> Array:
        """The numbers of the grid in a trace, row-major."""
        return np.concatenate([trace[name].take(flat) for name, flat in self.parts])

    def covered(self, masks: Mapping[str, Array]) -> Array:
        """Which of the grid's cells the masks of its tensors cover, row-major."""
        return np.concatenate([
            np.take(masks[name], flat) if name in masks else np.zeros(len(flat), dtype=bool)
            for name, flat in self.parts
        ])

    def shares_arrays(self, trace: Trace, other: Trace) -> bool:
        """Whether both traces hold the very same arrays, so that nothing needs comparing."""
        return all(trace[name].shares(other[name]) for name, _ in self.parts)


def encode(numbers: Array) -> str:
    """Doubles as base64, exact and compact; −∞ included."""
    return b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode()
