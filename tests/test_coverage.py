"""`docs/coverage.md` holds: its lessons, tensors, notes and tests exist, and the words it speaks of stand there."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache

import pytest

from tests.test_layout import ROOT
from ui import runs
from ui.navigation import LESSONS
from ui.prose import read
from ui.text import LANGUAGES, catalogue

TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
LINK = re.compile(r"\[([^\[\]]+)\]\(#[^)\s]+\)")

# place (a lesson, or a note on its board) → pairs of words, English and Chinese
WORDS: dict[str, list[list[str]]] = tomllib.loads(
    (ROOT / "tests" / "coverage_words.toml").read_text(encoding="utf-8")
)
PRESETS = ("cats", "today")


def rows() -> Iterator[list[str]]:
    """The cells of every row of the tables, without their heads."""
    lines = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8").splitlines()
    for place, line in enumerate(lines):
        is_head = place + 1 < len(lines) and lines[place + 1].startswith("|---")
        if line.startswith("|") and not line.startswith("|---") and not is_head:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def named(cell: str) -> list[str]:
    """The lessons that a cell names."""
    return re.findall(r"\*\*(.+?)\*\*", cell)


@lru_cache(maxsize=64)
def functions(path: str) -> frozenset[str]:
    """The names of a test module's functions, those of its classes included."""
    source = (ROOT / "tests" / path).read_text(encoding="utf-8")
    return frozenset(node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))


@lru_cache(maxsize=64)
def said(place: str, language: str) -> str:
    """The prose of a lesson, or a note."""
    if place.startswith("note_"):
        return catalogue(language)[place]
    return LINK.sub(r"\1", "\n".join(read(place, language).parts.values()))


def exists(name: str, lessons: list[str]) -> bool:
    """Whether a lesson of these says, computes or is read with what is named."""
    if name.startswith("note_"):
        return name in catalogue("en")
    return any(name in runs.article(preset, lesson) for lesson in lessons for preset in PRESETS)


def test_every_row_names_a_lesson_and_a_test() -> None:
    for row in rows():
        assert len(row) == 3, row
        assert named(row[1]), row
        assert "*words*" in row[2] or "*figures*" in row[2] or TEST.search(row[2]), row


def test_lessons_are_the_lessons() -> None:
    assert {lesson for row in rows() for lesson in named(row[1])} == set(LESSONS)


def test_every_test_exists() -> None:
    text = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    found = TEST.findall(text)
    assert len({*found}) > 60
    # nothing in the last column but what was looked up
    for row in rows():
        assert re.fullmatch(r"(\*words\*|\*figures\*)?(, )?(\*words\*)?(, )?(`[\w/]+\.py::\w+`(, )?)*", row[2]), row
    assert [f"{path}::{name}" for path, name in found if name not in functions(path)] == []


def test_tensors_and_notes_exist() -> None:
    for row in rows():
        for name in re.findall(r"`([^`]+)`", row[1]):
            assert exists(name, named(row[1])), row


def test_words_of_a_row_are_looked_for() -> None:
    for row in rows():
        if "*words*" in row[2]:
            places = [*named(row[1]), *re.findall(r"`(note_\w+)`", row[1])]
            assert [place for place in places if place not in WORDS] == [], row
    assert {place for place in WORDS if place.startswith("note_")} <= {
        note for row in rows() for note in re.findall(r"`(note_\w+)`", row[1])
    }


@pytest.mark.parametrize("place", WORDS)
def test_words_of_the_articles_are_in_the_lessons(place: str) -> None:
    for number, language in enumerate(LANGUAGES):
        text = said(place, language)
        assert [words[number] for words in WORDS[place] if words[number] not in text] == []
