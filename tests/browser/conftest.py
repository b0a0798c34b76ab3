"""A server, a browser and readers; every test fails on anything that the console or the server complains of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

pytest.register_assert_rewrite("tests.browser.readable")

from tests.browser.support import (  # noqa: E402
    PATIENCE_MILLISECONDS,
    Reader,
    Server,
    browser_path,
    running_server,
)

expect.set_options(timeout=PATIENCE_MILLISECONDS)

Visit = Callable[..., Reader]
Contexts = Callable[[dict[str, Any]], BrowserContext]
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


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> Contexts:
    """Browser contexts by their options, used again by later tests: Streamlit's scripts stay in their caches."""
    known: dict[str, BrowserContext] = {}

    def of(options: dict[str, Any]) -> BrowserContext:
        key = repr(sorted(options.items()))
        if key not in known:
            known[key] = browser.new_context(**options)
        return known[key]
    return of


@pytest.fixture
def visit(contexts: Contexts, server: Server) -> Iterator[Visit]:
    """Makes readers, each with a page of their own; takes the options of `Browser.new_context`."""
    readers: list[Reader] = []
    server.new_log()

    def make(url: str = server.url, **options: Any) -> Reader:
        # Streamlit's language of the page does not matter, ours is in the address; a fixed locale
        # keeps the default the same on every machine
        reader = Reader(contexts({"viewport": VIEWPORT, "locale": "en-GB", **options}), url)
        readers.append(reader)
        return reader

    yield make
    exceptions = sum(reader.page.locator('[data-testid="stException"]').count() for reader in readers)
    complaints = [message for reader in readers for message in reader.complaints.messages]
    for reader in readers:
        reader.page.close()
        reader.context.clear_cookies()
    assert complaints == []
    assert exceptions == 0
    assert "Traceback" not in server.new_log()


@pytest.fixture
def reader(visit: Visit) -> Reader:
    """One reader at a wide screen."""
    return visit()
