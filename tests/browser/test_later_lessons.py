"""The lessons on training and on looking inside open, in either language by turns, and can be read by everybody."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Visit
from tests.browser.readable import LOOKS, assert_readable, wait_for_parts
from tests.browser.support import LATER_LESSONS, by_turns, lesson_title


@pytest.mark.parametrize(("lesson", "language"), by_turns(LATER_LESSONS))
def test_lesson(visit: Visit, lesson: str, language: str) -> None:
    reader = visit(color_scheme="light")
    reader.open(lesson, lang=language)
    assert reader.page.inner_text("h1") == lesson_title(lesson, language)
    wait_for_parts(reader)
    assert_readable(reader, f"{lesson}-{language}", LOOKS[language])
