"""The look of the page and the board: one style sheet for both."""

from __future__ import annotations

from functools import lru_cache

import streamlit as st

from ui.text import ASSETS


@lru_cache(maxsize=4)
def _sheet(language: str, presenting: bool) -> str:
    sheets = [ASSETS / "styles" / "page.css", ASSETS / "styles" / "cards.css", ASSETS / "board" / "board.css"]
    quotes = ASSETS / "styles" / f"quotes.{language}.css"
    if quotes.exists():
        sheets.append(quotes)
    if presenting:
        sheets.append(ASSETS / "styles" / "presenting.css")
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def apply(language: str, presenting: bool) -> None:
    """Put the style sheet in place."""
    st.html(f"<style>{_sheet(language, presenting)}</style>")
