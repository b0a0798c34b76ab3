"""The lessons in reading order, their pages, and the ways between them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import streamlit as st

from ui import courses, generation, prose
from ui.state import State

# heading → the lessons below it, in reading order
GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "lessons_cats": (
        "overview", "embedding", "layer", "rmsnorm", "qkv", "rope", "scores", "values", "residual", "mlp",
        "layers", "final_norm", "lm_head",
    ),
    "lessons_gpt2": (
        "tokens", "positions", "layernorm", "gelu", "dropout", "block", "choosing", "generating",
    ),
    "lessons_labs": (
        "linear", "attention_linear", "why_residuals", "why_sqrt", "why_layers", "switchboard",
    ),
    "lessons_training": ("system", "data", "loss", "backward", "optimizer", "training"),
    "lessons_inside": ("heads", "remove", "patch", "lens", "wrote", "raise_logit"),
})
LESSONS = tuple(lesson for lessons in GROUPS.values() for lesson in lessons)
GLOSSARY = "glossary"
PAGES = (*LESSONS, GLOSSARY)


def pages(state: State) -> dict[str, list[Any]]:
    """One `st.Page` a lesson under its heading, titled in the reader's language; the first is the root."""
    titles = {name: f"{number} {prose.title(name, state.choices.language)}" for number, name in enumerate(LESSONS, 1)}
    titles[GLOSSARY] = state.say("glossary")
    made = {
        name: st.Page(f"pages/{number:02}_{name}.py", url_path=name, default=number == 1, title=titles[name])
        for number, name in enumerate(PAGES, start=1)
    }
    st.session_state["glassbox_pages"] = made
    groups = {**GROUPS, "look_up": (GLOSSARY,)}
    return {state.say(heading): [made[name] for name in lessons] for heading, lessons in groups.items()}


def position(state: State) -> Literal["sidebar", "hidden"]:
    """Where the list of pages stands."""
    return "hidden" if state.choices.presenting or state.hides("lessons") else "sidebar"


def logo(state: State) -> None:
    """The app's sign, which leads to the first lesson; it goes where the list of pages goes."""
    if position(state) == "sidebar":
        st.logo("assets/images/logo.svg", icon_image="assets/images/icon.svg", size="large")


def arrive(state: State, chosen: Any) -> None:
    """Note which lesson the reader is on; its page decides what is computed beside the model."""
    state.lesson = next(name for name, made in st.session_state["glassbox_pages"].items() if made is chosen)
    if state.lesson != generation.LESSON:
        state.due = None
    if state.lesson != courses.LESSON:
        state.walk = courses.Walk()


def page(lesson: str) -> Any:
    """The page of a lesson."""
    return st.session_state["glassbox_pages"][lesson]


def neighbours(lesson: str, state: State) -> dict[str, Any]:
    """The previous and the next lesson, for the strip and the arrow keys."""
    if lesson not in LESSONS or state.hides("lessons"):
        return {"previous": None, "next": None}
    place, language = LESSONS.index(lesson), state.choices.language
    return {
        "previous": _way(LESSONS[place - 1], language) if place else None,
        "next": _way(LESSONS[place + 1], language) if place + 1 < len(LESSONS) else None,
    }


def _way(lesson: str, language: str) -> dict[str, str]:
    return {"lesson": lesson, "title": prose.title(lesson, language)}
