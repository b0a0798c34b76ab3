"""What a preset's words mean in the reader's language: a second line under its tokens."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from ui.text import ASSETS


@lru_cache(maxsize=32)
def read(preset: str, language: str) -> Mapping[str, str]:
    """Word → meaning, from `assets/presets/PRESET.LANGUAGE.toml`; empty where a preset needs none."""
    file = ASSETS / "presets" / f"{preset}.{language}.toml"
    return MappingProxyType(tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {})


def under(preset: str, language: str, word: str) -> dict[str, str]:
    """The second line of a word, as the browser reads it beside the first; nothing where there is none."""
    meaning = read(preset, language).get(word)
    return {} if meaning is None else {"gloss": meaning}
