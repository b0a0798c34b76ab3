"""What every test of the user interface starts from."""

from __future__ import annotations

import runpy

import pytest
from streamlit.runtime.scriptrunner import script_runner


@pytest.fixture(autouse=True)
def warm_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on which `st.navigation` has run before.

    AppTest forgets that at each run, and takes the folder `pages` for Streamlit's older kind of pages.
    """
    monkeypatch.setattr(script_runner, "_mpa_v1", runpy.run_path)
