"""A server, a browser and readers; every test fails on anything that the console or the server complains of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.support import Reader, Server, browser_path, running_server

Visit = Callable[..., Reader]
VIEWPORT = {"width": 1440, "height": 900}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server for this worker."""
    with running_server(os.environ.get("PYTEST_XDIST_WORKER", "main")) as started:
        yield started


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    # Chromium has no sandbox for root, which is who runs tests in a container
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=browser_path(),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """Makes readers, each with a fresh context; takes the options of `Browser.new_context`."""
    readers: list[Reader] = []
    server.new_log()

    def make(url: str = server.url, **options: Any) -> Reader:
        # Streamlit's language of the page does not matter, ours is in the address; a fixed locale
        # keeps the default the same on every machine
        reader = Reader(browser.new_context(**{"viewport": VIEWPORT, "locale": "en-GB", **options}), url)
        readers.append(reader)
        return reader

    yield make
    exceptions = sum(reader.page.locator('[data-testid="stException"]').count() for reader in readers)
    complaints = [message for reader in readers for message in reader.complaints.messages]
    for reader in readers:
        reader.context.close()
    assert complaints == []
    assert exceptions == 0
    assert "Traceback" not in server.new_log()


@pytest.fixture
def reader(visit: Visit) -> Reader:
    """One reader at a wide screen."""
    return visit()
