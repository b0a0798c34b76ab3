"""The lessons in reading order, their pages, and the ways between them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from ui import prose
from ui.state import State

LESSONS = (
    "overview", "embedding", "layer", "rmsnorm", "qkv", "rope", "scores", "values", "residual", "mlp",
    "layers", "final_norm", "lm_head",
)


def pages(state: State) -> dict[str, list[Any]]:
    """One `st.Page` a lesson under its heading, titled in the reader's language; the first is the root."""
    made = [
        st.Page(
            f"pages/{number:02}_{name}.py", url_path=name, default=number == 1,
            title=f"{number} {prose.read(name, state.choices.language).title}",
        )
        for number, name in enumerate(LESSONS, start=1)
    ]
    st.session_state["glassbox_pages"] = dict(zip(LESSONS, made, strict=True))
    return {state.say("lessons_cats"): made}


def page(lesson: str) -> Any:
    """The page of a lesson."""
    return st.session_state["glassbox_pages"][lesson]


def neighbours(lesson: str, language: str) -> dict[str, Any]:
    """The previous and the next lesson, for the strip and the arrow keys."""
    place = LESSONS.index(lesson)
    return {
        "previous": _way(LESSONS[place - 1], language) if place else None,
        "next": _way(LESSONS[place + 1], language) if place + 1 < len(LESSONS) else None,
    }


def _way(lesson: str, language: str) -> dict[str, str]:
    return {"lesson": lesson, "title": prose.read(lesson, language).title}
