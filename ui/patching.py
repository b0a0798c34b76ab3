"""Two sentences, and what carrying an activation from one run into the other does; each effect computed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from engine import Edit, Trace, patching
from engine.patching import KINDS
from engine.programs.question import Question
from ui import pairs, runs
from ui.state import State
from ui.switches import Switches

# effects that are kept for all readers: a number each
MOST_EFFECTS = 8192

# layer and position
Place = tuple[int, int]


@dataclass(frozen=True)
class Setting:
    """What an effect depends on beside its place: both sentences, the question, and what is carried.

    Both runs are unedited, as the values that an edit carries are.
    """

    preset: str
    seed: int
    switches: Switches
    ids: tuple[int, ...]
    other: tuple[int, ...]
    question: Question
    kind: str
    head: int

    @property
    def here(self) -> Trace:
        """The run on this sentence."""
        return self._run(self.ids)

    @property
    def there(self) -> Trace:
        """The run on the other sentence."""
        return self._run(self.other)

    def _run(self, ids: tuple[int, ...]) -> Trace:
        return runs.baseline(self.preset, self.seed, self.switches, ids, pairs.LESSON, self.question)

    @property
    def layers(self) -> range:
        """The layers that can be carried from; the stream can before the first as well."""
        return patching.layers(self.here.model.config, self.kind)

    @property
    def places(self) -> tuple[Place, ...]:
        """Every layer with every position, in the order in which they are computed."""
        return tuple(product(self.layers, range(len(self.ids))))

    @property
    def differing(self) -> tuple[int, ...]:
        """The positions at which the sentences differ."""
        return tuple(place for place, (own, other) in enumerate(zip(self.ids, self.other, strict=True)) if own != other)

    @property
    def ends(self) -> tuple[float, float]:
        """The difference of logits in this sentence, and in the other."""
        return patching.difference(self.here), patching.difference(self.there)

    def edit(self, place: Place) -> Edit:
        """What carries a place over."""
        return patching.carry(self.here, self.other, self.kind, *place, self.head)

    def share(self, difference: float) -> float | None:
        """How far a difference of logits is on the way from this sentence's to the other's."""
        return patching.share(difference, *self.ends)


def setting(state: State) -> Setting:
    """What the reader has set. Raises `InputError` for an other sentence that does not fit."""
    choices, kind = state.choices, str(state.control("carried"))
    return Setting(
        choices.preset, choices.seed, choices.switches, state.ids, pairs.other(state), state.question, kind,
        min(choices.head, state.model.config.heads - 1) if kind == KINDS[-1] else 0,
    )


def chosen(state: State, now: Setting) -> Place:
    """The place that the reader looks at.

    By default after layer 1, or before a layer that is the only one, at the first position at which the
    sentences differ; but only the last one is read of what stands behind the last layer.
    """
    layer, position = int(state.control("carried_layer")), int(state.control("carried_position"))
    first, last = now.layers[0], now.layers[-1]
    layer = min(max(layer, first), last) if layer >= 0 else max(first, min(1, last - 1))
    if not 0 <= position < len(now.ids):
        differing = now.differing if now.differing and layer < last else (len(now.ids) - 1,)
        position = differing[0]
    return layer, position


@lru_cache(maxsize=MOST_EFFECTS)
def effect(now: Setting, place: Place) -> float:
    """The difference of logits in this sentence once that place is carried over."""
    return patching.patched(now.here, now.edit(place))


def effects(now: Setting) -> Iterator[tuple[Place, float]]:
    """The effect of every place, each as soon as it is computed."""
    return ((place, effect(now, place)) for place in now.places)
