"""Glassbox: start here. Page setup, language, navigation and the strip; nothing else."""

from __future__ import annotations

import streamlit as st

from ui import address, board, navigation, process, settings, style

st.set_page_config(page_title="Glassbox", page_icon="assets/images/icon.svg", layout="wide")
state = address.start()
st.logo("assets/images/logo.svg", icon_image="assets/images/icon.svg", size="large")
style.apply()
page = st.navigation(navigation.pages(state), position="sidebar", expanded=True)
settings.show(state)
board.strip(state)
page.run()
process.settle()
