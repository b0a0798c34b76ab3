"""Words in the prose that light up a tensor: the same in both languages, and each on its lesson's board."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.ui.support import ROOT, addresses, framed, reader
from ui.frame import Frame
from ui.naming import differentiated, short_name
from ui.navigation import LESSONS
from ui.prose import read
from ui.text import LANGUAGES

EVERY_LESSON = pytest.mark.parametrize("lesson", LESSONS)
WORD = re.compile(r"\[((?:[^\[\]]|\{\{.*?\}\})+)\]\(#([^)\s]+)\)")
WITH_WORDS = (
    "overview", "embedding", "layer", "rmsnorm", "qkv", "rope", "scores", "values", "residual", "mlp", "layers",
    "final_norm", "lm_head", "choosing", "generating",
)


def source(lesson: str, language: str) -> str:
    return (ROOT / "assets" / "lessons" / language / f"{lesson}.md").read_text(encoding="utf-8")


def words(lesson: str, language: str) -> list[tuple[str, str]]:
    """The words of a lesson with what they point to."""
    return WORD.findall(source(lesson, language))


def shown(frame: Frame) -> Iterator[str]:
    """The tensors of the cells that stand on a board."""
    for section in frame.data["layout"]:
        for item in section["items"]:
            blocks = [block["cells"] for block in item.get("blocks", ())]
            keys = [item["grid"]] if item["type"] == "grid" else [*item.get("grids", ()), *blocks]
            for key in filter(None, keys):
                yield from {name for name, _ in addresses(frame.data["grids"][key])}


def is_named(tensor: str, name: str, frame: Frame) -> bool:
    """Whether a word with that target means the tensor, as `assets/board/words.js` has it."""
    if tensor == name:
        return True
    variable = differentiated(tensor)
    inner = short_name(tensor) if variable is None else f"gradient.{short_name(variable)}"
    return name == "input" if tensor == frame.data["input"] else name == inner


@EVERY_LESSON
def test_both_languages_point_to_the_same_tensors(lesson: str) -> None:
    english, chinese = ({target for _, target in words(lesson, language)} for language in LANGUAGES)
    assert english == chinese


@EVERY_LESSON
def test_every_word_is_on_the_board(lesson: str) -> None:
    """On the board of the example that the prose quotes, which is *Cats sit on* where the head names no other."""
    frame = framed(lesson, reader(lesson, preset=read(lesson, "en").preset or "cats"))
    tensors = set(shown(frame))
    for _, target in words(lesson, "en"):
        for name in target.split(","):
            assert any(is_named(tensor, name, frame) for tensor in tensors), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_walkthrough_has_words_that_light_up(language: str) -> None:
    assert [lesson for lesson in WITH_WORDS if not 3 <= len(words(lesson, language)) <= 10] == []


@pytest.mark.parametrize("language", LANGUAGES)
@EVERY_LESSON
def test_words_stand_in_running_text(lesson: str, language: str) -> None:
    """Not in titles and leads, nor in code, where Markdown has no links; and they survive the filling in."""
    prose = read(lesson, language)
    assert not WORD.search(prose.title + prose.lead)
    assert not [code for part in prose.parts.values() for code in re.findall(r"```.*?```", part, re.DOTALL)
                if WORD.search(code)]
    assert sum(len(WORD.findall(part)) for part in prose.parts.values()) == len(words(lesson, language))
