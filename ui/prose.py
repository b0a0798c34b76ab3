"""Lesson prose: Markdown blocks with the same ids in every language, numbers filled in from the trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType

import numpy as np

from engine import Trace
from ui import runs, text

PARTS = ("problem", "idea", "structure", "example", "try")
_PLACE = re.compile(r"\{\{([^{}|]+?)(?:\|(short|precise|percent))?\}\}")
_WHOSE = re.compile(r"(?:([a-z]+[0-9]*):)?(.+)")
_STEP = re.compile(r"step([0-9]+)")
_BLOCK = re.compile(r"^\[(\w+)\]$", re.MULTILINE)
_TENSOR = re.compile(r"^([\w.]+?)(?:\[([\d:,]*)\])?$")


_STYLES: Mapping[str | None, Callable[[float], str]] = MappingProxyType(
    {"short": text.short, "precise": text.precise, None: text.number},
)


@dataclass(frozen=True)
class Prose:
    """A lesson's words in one language: title, lead, and a block of Markdown for each part.

    `preset` is the example whose numbers they quote; None where they quote the lesson's own alone.
    `tasks_follow` is false where the tasks say themselves which model they need.
    """

    title: str
    lead: str
    preset: str | None
    tasks_follow: bool
    parts: Mapping[str, str]


@lru_cache(maxsize=256)
def title(lesson: str, language: str) -> str:
    """The title of a lesson."""
    return _source(lesson, language)[0]["title"]


@lru_cache(maxsize=128)
def read(lesson: str, language: str) -> Prose:
    """The prose of a lesson with its numbers filled in from the unedited trace of an article's example.

    The head's `preset` says which example; *Cats sit on* where it says nothing, `none` for a lesson
    that quotes only what it computes beside any model. `tasks: any` says that the tasks name their models.
    """
    fields, body = _source(lesson, language)
    quoted = fields.get("preset", "cats")
    preset = None if quoted == "none" else quoted
    pieces = _BLOCK.split(body)
    parts = {
        name: fill(content.strip(), runs.article(preset or "cats", lesson), language)
        for name, content in zip(pieces[1::2], pieces[2::2], strict=True)
    }
    return Prose(fields["title"], fields["lead"], preset, fields.get("tasks") != "any", MappingProxyType(parts))


def _source(lesson: str, language: str) -> tuple[dict[str, str], str]:
    source = (text.ASSETS / "lessons" / language / f"{lesson}.md").read_text(encoding="utf-8")
    _, head, body = source.split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.strip().splitlines()), body


def fill(markdown: str, trace: Trace, language: str) -> str:
    """Put numbers in the places `{{name[index]|format}}`.

    `{{today:name[index]}}` is of another preset's trace, `{{other:name[index]}}` of the other sentence's,
    `{{step100:name[index]}}` of the same one after a hundred steps of training.
    """
    def number(match: re.Match[str]) -> str:
        whose, place = _WHOSE.fullmatch(match[1].strip()).groups()  # type: ignore[union-attr]
        if whose == "other":
            return _number(runs.beside(trace), place, match[2], language)
        trained = _STEP.fullmatch(whose or "")
        if trained:
            return _number(runs.later(trace, int(trained[1])), place, match[2], language)
        return _number(runs.article(whose) if whose else trace, place, match[2], language)
    return _PLACE.sub(number, markdown)


def _number(trace: Trace, place: str, style: str | None, language: str) -> str:
    if place.startswith("config."):
        return str(runs.sizes(trace)[place.removeprefix("config.")])
    if place.startswith("zero_rows."):
        return str(int(np.sum(~trace[place.removeprefix("zero_rows.")].data.any(axis=1))))
    match = _TENSOR.match(place)
    if match is None:
        raise ValueError(f"no such place: {place}")
    parts = match[2].split(",") if match[2] else []
    index = tuple(slice(None) if part == ":" else int(part) for part in parts)
    data = np.asarray(trace[match[1]].data[index])
    show = _STYLES[style] if style != "percent" else partial(text.percent, language)
    if data.ndim == 0:
        return show(float(data))
    return f"[{', '.join(show(value) for value in data.tolist())}]"
