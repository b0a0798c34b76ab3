"""The glossary's page: the terms of all lessons, to be searched."""

from __future__ import annotations

import streamlit as st

from ui import lesson
from ui.layout import Glossary, section
from ui.navigation import GLOSSARY
from ui.state import current


def show() -> None:
    """Draw the glossary."""
    lesson.begin()
    with st.container(key="prose"):
        st.title(current().say("glossary"), anchor=False)
        st.markdown(current().say("glossary_lead"))
    lesson.below(GLOSSARY, (section(None, Glossary()),))
