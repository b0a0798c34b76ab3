"""The lessons on training and on looking inside open, in either language by turns, and can be read by everybody."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.readable import LOOKS, assert_readable, wait_for_parts
from tests.browser.support import LATER_LESSONS, by_turns, lesson_title


@pytest.mark.parametrize(("lesson", "language"), by_turns(LATER_LESSONS))
def test_lesson(visit: Visit, lesson: str, language: str) -> None:
    reader = visit(color_scheme="light")
    reader.open(lesson, lang=language)
    expect(reader.page.locator("h1")).to_have_text(lesson_title(lesson, language), use_inner_text=True)
    wait_for_parts(reader)
    assert_readable(reader, f"{lesson}-{language}", LOOKS[language])
