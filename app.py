"""Glassbox: start here. Page setup, language, navigation and the strip; nothing else."""

from __future__ import annotations

import streamlit as st

from ui import address, board, navigation, process, settings, style

st.set_page_config(page_title="Glassbox", page_icon="assets/images/icon.svg", layout="wide")
state = address.start()
navigation.logo(state)
style.apply(state.choices.language, state.choices.presenting)
page = st.navigation(navigation.pages(state), position=navigation.position(state), expanded=True)
navigation.arrive(state, page)
settings.show(state)
board.strip(state)
page.run()
process.settle()
