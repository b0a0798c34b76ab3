"""Driving the app in a browser: a server of one's own, and a reader who looks at cells by their reference."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, TimeoutError

from engine.edits import Given
from formats import edits as edit_links
from glassbox import known_browser

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
LESSONS = (
    "overview", "embedding", "layer", "rmsnorm", "qkv", "rope", "scores", "values", "residual", "mlp",
    "layers", "final_norm", "lm_head",
)
# every page that has an address of its own
PAGES = tuple(re.sub(r"^\d+_", "", path.stem) for path in sorted((ROOT / "pages").glob("*.py")))
OTHER_LESSONS = (
    "tokens", "positions", "layernorm", "gelu", "dropout", "block", "choosing", "generating",
    "linear", "attention_linear", "why_residuals", "why_sqrt", "why_layers", "switchboard",
)
LATER_LESSONS = (
    "system", "data", "loss", "backward", "optimizer", "training",
    "heads", "remove", "patch", "lens", "wrote", "raise_logit",
)
LANGUAGES = ("en", "zh")


def by_turns(lessons: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each lesson with one of the languages: both everywhere take minutes, and words are compared without a browser."""
    return [(lesson, LANGUAGES[number % 2]) for number, lesson in enumerate(lessons)]


ATTENTION = "layers.0.attention"
# what is waited for takes tens of milliseconds; this is for a machine with many other things to do
PATIENCE_MILLISECONDS = 40_000
SERVER_START_SECONDS = 60
LIST_TRIES, LIST_MILLISECONDS = 5, 5000


# ---- the server

def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def is_healthy(url: str) -> bool:
    try:
        with urlopen(f"{url}/_stcore/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


class Server:
    """`streamlit run app.py` on a port of its own, with its log in `build/`."""

    def __init__(self, name: str, port: int | None = None) -> None:
        self.port = port or free_port()
        self.url = f"http://localhost:{self.port}"
        self.log = BUILD / f"streamlit-{name}.log"
        self._read = 0

    def start(self) -> None:
        self.log.parent.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port),
                   "--server.headless", "true"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        self._read = 0
        deadline = time.monotonic() + SERVER_START_SECONDS
        while not is_healthy(self.url):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The server did not start:\n{self.log.read_text()}")
            time.sleep(0.1)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def new_log(self) -> str:
        """What the log says since the last call."""
        text = self.log.read_text(errors="replace")
        new, self._read = text[self._read:], len(text)
        return new


@contextmanager
def running_server(name: str) -> Iterator[Server]:
    server = Server(name)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def browser_path() -> str | None:
    """The executable to start; None stands for the browser that Playwright brings along."""
    found = known_browser()
    if found is None:
        raise RuntimeError("No Chromium: install one, or name one in GLASSBOX_BROWSER (a path, or 'playwright').")
    return None if found == "playwright" else found


# ---- the page

class Complaints:
    """Errors and warnings of a page: on the console, and exceptions that nobody caught."""

    def __init__(self, page: Page, url: str) -> None:
        self.messages: list[str] = []
        # Streamlit's client looks for its server below the address that was opened before it looks at
        # the root. Opened at a lesson's own address it therefore asks for /scores/_stcore/health and
        # /scores/_stcore/host-config, and the browser reports both 404s. Nothing else is forgiven.
        self.probes = {
            f"{url}/{page}/_stcore/{name}" for page in PAGES for name in ("health", "host-config")
        }
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.messages.append(f"uncaught: {error}"))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        is_probe = message.location["url"] in self.probes and "404" in message.text
        if not is_probe:
            self.messages.append(f"{message.type}: {message.text} ({message.location['url']})")


class Reader:
    """One visitor with a browser context of their own."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        self.page = context.new_page()
        self.complaints = Complaints(self.page, url)

    # -- coming and going

    def open(self, lesson: str = "overview", /, **query: str) -> None:
        """Open a lesson's address, in English unless the query says otherwise."""
        self.visit(address(lesson, **query))

    def visit(self, path: str) -> None:
        """Open a path with its query string as it is written."""
        self.page.goto(f"{self.url}{path}")
        self.wait_until_drawn()

    def wait_until_drawn(self, has: str | None = None) -> None:
        """Wait until the script has run and the board shows live cells (and the cell `has`)."""
        self.page.wait_for_function(
            """(has) => document.querySelector(".stApp")?.dataset.testScriptState === "notRunning"
              && document.querySelector(".gb-strip .gb-token")
              && document.querySelector(`.gb-board td${has}[data-value]`)""",
            arg=f'[data-ref="{has}"]' if has else "",
        )

    def go(self, lesson: str, has: str) -> None:
        """Go to a lesson by the navigation; `has` is a cell of that lesson."""
        suffix = "" if lesson == "overview" else lesson
        self.page.click(f'[data-testid="stSidebarNav"] a[href="{self.url}/{suffix}"]')
        self.arrive(lesson, has)

    def arrive(self, lesson: str, has: str) -> None:
        """Wait for a lesson that something else has asked for."""
        path = "/" if lesson == "overview" else f"/{lesson}"
        self.page.wait_for_function("(path) => location.pathname === path", arg=path)
        self.wait_until_drawn(has)

    @property
    def query(self) -> dict[str, str]:
        """The parameters in the address bar."""
        return {key: values[-1] for key, values in parse_qs(urlsplit(self.page.url).query).items()}

    @property
    def edits(self) -> dict[str, Given]:
        """Reference → value of the edits in the address bar."""
        return {
            f"{edit.name}[{','.join(map(str, edit.index))}]": edit.value
            for edit in edit_links.decode(self.query.get("edits", ""))
        }

    def wait_for_edits(self, edits: Mapping[str, Given]) -> None:
        """Wait until the address bar, which follows after a short pause, holds exactly these edits."""
        self._poll(lambda: self.edits == edits)
        assert self.edits == edits

    def wait_for_query(self, query: dict[str, str]) -> None:
        self._poll(lambda: self.query == query)
        assert self.query == query

    def _poll(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_MILLISECONDS / 1000
        while not is_so() and time.monotonic() < deadline:
            self.page.wait_for_timeout(20)

    def wait_for_address(self, *, has: str = "", lacks: str = "") -> None:
        self.page.wait_for_function(
            "([has, lacks]) => location.search.includes(has) && !(lacks && location.search.includes(lacks))",
            arg=[has, lacks],
        )

    # -- cells

    def cell(self, reference: str) -> Locator:
        """The cell; the first of them where a tensor stands on the page more than once."""
        return self.page.locator(f'td[data-ref="{reference}"]').first

    def number(self, reference: str) -> float:
        """The cell's number at full precision."""
        value = self.cell(reference).get_attribute("data-value")
        assert value is not None, f"{reference} has no value"
        return float(value)

    def text(self, reference: str) -> str:
        """What the cell shows."""
        return self.cell(reference).inner_text()

    def numbers(self, prefix: str = "") -> dict[str, float]:
        """Reference → number of all cells on the page whose reference begins with `prefix`."""
        found: dict[str, str] = self.page.evaluate(
            """(prefix) => Object.fromEntries([...document.querySelectorAll("td[data-ref]")]
              .filter((td) => td.dataset.ref.startsWith(prefix)).map((td) => [td.dataset.ref, td.dataset.value]))""",
            prefix,
        )
        return {reference: float(value) for reference, value in found.items()}

    def marked(self, css_class: str) -> set[str]:
        """References of the cells with a class."""
        return set(self.page.evaluate(
            "(name) => [...document.querySelectorAll(`td.${name}`)].map((td) => td.dataset.ref)", css_class
        ))

    def wait_for_number(self, reference: str, value: float, tolerance: float = 0.0) -> None:
        """Wait until Python has answered with this number in the cell."""
        self.page.wait_for_function(
            """([reference, value, tolerance]) => {
              const td = document.querySelector(`td[data-ref="${reference}"]`);
              if (!td || td.matches(".gb-pending")) return false;
              const number = Number(td.dataset.value);
              return number === Number(value) || Math.abs(number - Number(value)) <= tolerance;
            }""",
            arg=[reference, repr(value).replace("inf", "Infinity"), tolerance],
        )

    def wait_for_change(self, reference: str, before: float) -> None:
        """Wait until Python has answered with another number than `before` in the cell."""
        self.page.wait_for_function(
            """([reference, before]) => {
              const td = document.querySelector(`td[data-ref="${reference}"]`);
              return td && !td.matches(".gb-pending") && Number(td.dataset.value) !== before;
            }""",
            arg=[reference, before],
        )

    def wait_until_answered(self) -> None:
        """Wait until no cell shows a number that Python has not confirmed."""
        self.page.wait_for_function("!document.querySelector('.gb-pending')")

    # -- doing

    def select(self, reference: str) -> None:
        """Click a cell and wait for its explanation."""
        self.cell(reference).click()
        self.wait_for_selection(reference)

    def wait_for_selection(self, reference: str) -> None:
        name, _, index = reference.removesuffix("]").partition("[")
        cell = urlencode({"cell": f"{name}~{index.replace(',', '.')}"})
        self.page.wait_for_function("(end) => location.search.endsWith(end)", arg=cell)

    def start_typing(self, reference: str) -> Locator:
        """Open the cell's field by a double click."""
        self.cell(reference).dblclick()
        return self.page.locator(".gb-cell-field")

    def type(self, reference: str, text: str) -> None:
        """Double click a cell, replace what stands in the field, and press Enter."""
        field = self.start_typing(reference)
        field.fill(text)
        field.press("Enter")

    def edit(self, reference: str, value: float) -> None:
        """Type a number into a cell and wait for the answer."""
        self.type(reference, "-inf" if value == float("-inf") else repr(value))
        self.wait_for_number(reference, value)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def focus(self, reference: str) -> None:
        self.cell(reference).focus()

    def leave_everything(self) -> None:
        """Take the focus away from every grid, field and control."""
        self.page.evaluate("document.activeElement?.blur()")

    def write_sentence(self, text: str) -> None:
        """Open the sentence's field if it is not open, type, and press Enter."""
        form = self.in_strip(".gb-sentence-form")
        if not form.count():
            self.in_strip(".gb-strip-sentence button").click()
        field = form.locator("input")
        field.fill(text)
        field.press("Enter")

    def choose(self, name: str, option: str, typed: str = "") -> None:
        """Choose an option of one of Streamlit's lists, both by their labels; `typed` narrows a long list."""
        box = self.page.get_by_role("combobox", name=name, exact=True)
        choice = self.page.get_by_role("option", name=option, exact=True)
        for _ in range(LIST_TRIES):
            # Streamlit folds an open list away when the answer to an earlier choice comes in
            self.wait_until_drawn()
            if typed:
                box.click()
                box.press("Control+a")
                box.press_sequentially(typed)
            else:
                box.press("ArrowDown")
            try:
                return choice.click(timeout=LIST_MILLISECONDS)
            except TimeoutError:
                box.press("Escape")
        raise AssertionError(f"{name} never offered {option}")

    # -- reading the strip and the panel

    def in_strip(self, selector: str) -> Locator:
        return self.page.locator(f".gb-strip {selector}")

    @property
    def tokens(self) -> list[str]:
        return [" ".join(text.split()) for text in self.in_strip(".gb-token").all_inner_texts()]

    def wait_for_tokens(self, *tokens: str) -> None:
        """Wait for a sentence, each token as `text id`."""
        self.page.wait_for_function(
            """(tokens) => JSON.stringify([...document.querySelectorAll(".gb-strip .gb-token")]
              .map((chip) => chip.textContent.trim().replace(/\\s+/g, " "))) === JSON.stringify(tokens)""",
            arg=list(tokens),
        )
        self.wait_until_drawn()

    def formula(self) -> str:
        return " ".join(self.page.inner_text(".gb-formula").split())

    def wait_for_text(self, selector: str, pattern: str) -> str:
        """Wait until an element's text fits a pattern; return the text."""
        self.page.wait_for_function(
            "([selector, pattern]) => new RegExp(pattern).test(document.querySelector(selector)?.innerText ?? '')",
            arg=[selector, pattern],
        )
        return self.page.inner_text(selector)

    def message(self) -> str | None:
        """The message above the board, if there is one."""
        shown = self.page.locator(".gb-message:visible")
        return " ".join(shown.inner_text().split()) if shown.count() else None


def address(lesson: str = "overview", /, **query: str) -> str:
    """Path and query of a lesson; in English unless `lang` says otherwise."""
    path = "/" if lesson == "overview" else f"/{lesson}"
    return f"{path}?{urlencode({'lang': 'en', **query})}"


def printed(value: float) -> str:
    """A number as the article prints it: four decimals and a true minus."""
    text = f"{value:.4f}"
    return text.lstrip("-").replace("-", "−") if float(text) == 0 else text.replace("-", "−")


def lesson_title(lesson: str, language: str) -> str:
    """The title in the head of a lesson's file."""
    source = (ROOT / "assets" / "lessons" / language / f"{lesson}.md").read_text(encoding="utf-8")
    found = re.search(r"^title: (.+)$", source, re.MULTILINE)
    assert found is not None
    return found[1].strip()


def label(key: str, language: str) -> str:
    """The word for a key in a language, read without the app's own code."""
    source = (ROOT / "assets" / "messages" / f"{language}.po").read_text(encoding="utf-8")
    found = re.search(rf'^msgid "{re.escape(key)}"\nmsgstr ("(?:[^"\\]|\\.)*")$', source, re.MULTILINE)
    assert found is not None, key
    return str(json.loads(found[1]))


Json = dict[str, Any]
