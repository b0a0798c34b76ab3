"""What a reader searches for on the lesson on raising a logit: shared between readers, bounded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from engine import Edit
from engine.search import Found, Outcome, smallest_edit
from ui import runs
from ui.switches import Switches


@dataclass(frozen=True)
class Quest:
    """What a search depends on: the model, the sentence, the edits in force, and the token that should win."""

    preset: str
    seed: int
    switches: Switches
    ids: tuple[int, ...]
    edits: tuple[Edit, ...]
    token: int

    @property
    def outcome(self) -> Outcome:
        """What the search comes to; computed once for all readers who ask the same."""
        return _outcome(self)

    def with_found(self, found: Found) -> tuple[Edit, ...]:
        """The edits that were in force, and the one that was found."""
        return (*(edit for edit in self.edits if edit.key != found.edit.key), found.edit)

    def covers(self, edits: tuple[Edit, ...]) -> bool:
        """Whether these edits are those of the search, or those with one that it found."""
        return edits == self.edits or any(edits == self.with_found(found) for found in self.outcome.found)

    def under(self, edits: tuple[Edit, ...]) -> Quest:
        """The same search under other edits."""
        return replace(self, edits=edits)


@lru_cache(maxsize=64)
def _outcome(quest: Quest) -> Outcome:
    model = runs.model(quest.preset, quest.seed, quest.switches)
    return smallest_edit(model, [list(quest.ids)], quest.token, quest.edits)
