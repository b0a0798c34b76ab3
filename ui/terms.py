"""The glossary's terms: both languages side by side, a sentence in each, and the lesson that explains them."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from typing import Any

from ui import navigation, prose, text


@lru_cache(maxsize=1)
def read() -> tuple[dict[str, str], ...]:
    """The terms in reading order, as `assets/glossary/terms.toml` has them."""
    with (text.ASSETS / "glossary" / "terms.toml").open("rb") as file:
        return tuple(tomllib.load(file)["term"])


def rows(language: str) -> list[dict[str, Any]]:
    """The terms with the explanation and the lesson's title and path in the reader's language."""
    return [
        {
            "en": term["en"], "zh": term["zh"], "words": term[f"explanation_{language}"],
            "lesson": term["lesson"], "title": prose.title(term["lesson"], language),
            # the first lesson is the root
            "path": "" if term["lesson"] == navigation.LESSONS[0] else term["lesson"],
        }
        for term in read()
    ]
