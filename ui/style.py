"""The look of the page and the board: one style sheet for both."""

from __future__ import annotations

from functools import lru_cache

import streamlit as st

from ui.text import ASSETS


@lru_cache(maxsize=1)
def _sheet() -> str:
    sheets = (ASSETS / "styles" / "page.css", ASSETS / "board" / "board.css")
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def apply() -> None:
    """Put the style sheet in place."""
    st.html(f"<style>{_sheet()}</style>")
