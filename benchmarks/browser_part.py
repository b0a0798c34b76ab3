"""Edits as a reader sees them: from the key press to the painted number, in a real Chromium."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from benchmarks.timing import median, milliseconds, spread, table

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

EDITS, BLOCK = 60, 10
VIEWS = 5
LONGEST_HOLD = 4.0  # seconds
STEP = 0.01
REPEATS_PER_SECOND = 30
PAUSE_MILLISECONDS = 80
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
VIEWPORT = {"width": 1440, "height": 900}
PROBE = (Path(__file__).parent / "probe.js").read_text(encoding="utf-8")
STAGES = ("sent", "received", "changed", "painted")
WORK = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration", "TaskDuration")  # of the main thread
WATCHED, PLACE = "layers.0.attention.weights", (0, 0, 2, 1)


def measure(seconds: float) -> None:
    """Print the browser's figures, or why there are none."""
    for package in ("streamlit", "playwright", "plotly"):
        if find_spec(package) is None:
            print(f"\n({package} is not installed: the browser's part is left out; pip install {package})")
            return
    with chromium() as browser:
        if browser is not None:
            _measure(browser, seconds)


@contextmanager
def chromium() -> Iterator[Browser | None]:
    """The Chromium of $CHROMIUM or of this system, else Playwright's own; None, with a line, without."""
    from playwright.sync_api import Error, sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except Error as error:
            print(f"\n(no Chromium: the browser's part is left out; {str(error).splitlines()[0]})")
            yield None
            return
        print(f"Chromium {browser.version}")
        yield browser
        browser.close()


@dataclass
class Subject:
    """A page under measurement: how to reach it, its slider, and the cell that is watched on it."""

    name: str
    url: str
    slider: str
    cell: dict[str, Any]
    tolerance: float
    arrival: dict[str, int]
    preset: str = "cats"
    parameter: str = "layers.0.attention.Wq"
    stages: list[dict[str, float]] = field(default_factory=list)
    work: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WORK, 0.0))
    sizes: list[float] = field(default_factory=list)
    steps: int = 0
    received: int = 0

    def open(self, browser: Browser) -> Page:
        """The page with its slider in focus, settled and watched."""
        page = browser.new_context(viewport=VIEWPORT, locale="en-US").new_page()  # type: ignore[arg-type]
        page.add_init_script(PROBE)
        page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        page.goto(self.url)
        for selector in (*self.arrival, self.slider):
            page.wait_for_selector(selector, state="attached")
        page.wait_for_timeout(3000)
        page.locator(self.slider).last.focus()
        page.evaluate("cell => benchmark.watch(cell)", self.cell)
        return page

    def _count(self, frame: str | bytes) -> None:
        self.received += len(frame)

    def edit(self, page: Page, expected: float) -> None:
        """Press the key once and wait for the number that must follow from it."""
        before = self.received
        page.keyboard.press("ArrowRight")
        self.stages.append(page.evaluate("([a, b]) => benchmark.painted(a, b)", [expected, self.tolerance]))
        page.wait_for_timeout(PAUSE_MILLISECONDS)
        self.sizes.append(self.received - before)

    def block(self, page: Page) -> None:
        """Some edits, one after the other, and what they cost the page's main thread."""
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = _metrics(devtools)
        for _ in range(BLOCK):
            self.steps += 1
            self.edit(page, self.expected())
        after = _metrics(devtools)
        for name in WORK:
            self.work[name] += after[name] - before[name]
        devtools.detach()

    def expected(self) -> float:
        """What the watched cell must hold after the slider has gone its steps from where the parameter was."""
        from engine import Edit, presets, run

        model, cell = presets.load(self.preset), (0, 1)
        start = float(model.parameters[self.parameter][cell])
        edits = (Edit(self.parameter, cell, round(start + self.steps * STEP, 2)),)
        return float(run(model, presets.SENTENCES[self.preset], edits=edits)[WATCHED].data[PLACE])

    def forget(self) -> None:
        self.stages.clear()
        self.sizes.clear()
        self.work = dict.fromkeys(WORK, 0.0)

    def times(self, stage: str = "painted") -> list[float]:
        return [times[stage] / 1000 for times in self.stages]


def _metrics(devtools: CDPSession) -> dict[str, float]:
    """Seconds of processor time that the page's main thread has spent, by kind."""
    return {metric["name"]: metric["value"] for metric in devtools.send("Performance.getMetrics")["metrics"]}


def _board(url: str, lesson: str, has_chart: bool, preset: str = "cats",
           parameter: str = "layers.0.attention.Wq") -> Subject:
    arrival = {".gb-board td[data-value]": 1} | ({".js-plotly-plot .trace": 1} if has_chart else {})
    reference = f"{WATCHED}[{','.join(map(str, PLACE))}]"
    query = urlencode({"lang": "en", "preset": preset, "cell": f"{parameter}~0.1"})
    return Subject(
        f"board, {lesson}" if preset == "cats" else f"board, {lesson}, {preset}",
        f"{url}/{lesson}?{query}", ".gb-dock input[type=range]",
        {"selector": f'td[data-ref="{reference}"]', "place": 0, "count": 1}, 1e-12, arrival,
        preset, parameter,
    )


def _naive(url: str, tensors: tuple[str, ...]) -> Subject:
    return Subject(
        "naive page", f"{url}/?{urlencode({'tensors': ','.join(tensors)})}", '[data-testid="stSlider"] input',
        {"selector": f".st-key-{WATCHED.replace('.', '-')} .heatmap-label", "place": 7, "count": 9}, 6e-5,
        {".js-plotly-plot .heatmap-label": len(tensors)},
    )


def _measure(browser: Browser, seconds: float) -> None:
    from benchmarks import lessons
    from benchmarks.server import APP, NAIVE_PAGE, serve
    from ui.state import Choices, State

    plain, charted = lessons.heaviest()
    shown = lessons.tensors(plain, State(Choices()))
    with serve(APP) as app, serve(NAIVE_PAGE) as naive:
        subjects = [
            _board(app.url, plain, has_chart=False), _naive(naive.url, shown),
            # 50257 words; a parameter of two decimals, as the slider steps
            _board(app.url, "scores", has_chart=False, preset="today", parameter="layers.0.attention.Wk"),
        ]
        pages = [subject.open(browser) for subject in subjects]
        _edits(subjects, pages, seconds)
        for page in pages:
            page.context.close()
        views = [subjects[0], _board(app.url, charted, has_chart=True), subjects[1]]
        _first_views(browser, views)


def _edits(subjects: list[Subject], pages: list[Page], seconds: float) -> None:
    """Single edits in blocks that alternate between the pages; then a held key on each."""
    for number in range(EDITS // BLOCK + 1):
        for subject, page in zip(subjects, pages, strict=True):
            page.bring_to_front()
            subject.block(page)
            if number == 0:  # a warming up
                subject.forget()
    base = median(subjects[0].times())
    table("From a key press to the painted change of a cell downstream, alternating",
          ("p5 ms", "p50 ms", "p95 ms", "÷ board", "bytes down", "edits"), [
              (subject.name, *map(milliseconds, spread(subject.times())),
               f"{median(subject.times()) / base:.1f}", f"{median(subject.sizes):.0f}", len(subject.stages))
              for subject in subjects
          ])
    table("  the stages of these edits, medians since the key press, ms", STAGES, [
        (subject.name, *(milliseconds(median(subject.times(stage))) for stage in STAGES))
        for subject in subjects
    ])
    table("  processor time of the page's main thread per edit, ms", ("script", "style", "layout", "all"), [
        (subject.name, *(milliseconds(subject.work[name] / len(subject.stages)) for name in WORK))
        for subject in subjects
    ])
    held = min(seconds / 4, LONGEST_HOLD)
    table(f"An arrow key held, {REPEATS_PER_SECOND} repeats a second",
          ("painted values a second", "settled ms after release", "steps"), [
              (subject.name, *_hold(page, subject, held))
              for subject, page in zip(subjects, pages, strict=True)
          ])


def _hold(page: Page, subject: Subject, seconds: float) -> tuple[str, str, int]:
    """Hold the key; the last painted number must be that of the slider's last step."""
    page.bring_to_front()
    page.evaluate("benchmark.forget()")
    steps = int(seconds * REPEATS_PER_SECOND)
    start = time.perf_counter()
    for number in range(steps):
        time.sleep(max(0.0, start + number / REPEATS_PER_SECOND - time.perf_counter()))
        page.keyboard.down("ArrowLeft")
    page.keyboard.up("ArrowLeft")
    page.wait_for_timeout(3000)
    subject.steps -= steps
    held, expected = page.evaluate("benchmark.held()"), subject.expected()
    if abs(held["value"] - expected) > subject.tolerance:
        raise AssertionError(f"{subject.name}: {held['value']} was painted last, not {expected}")
    return f"{held['rate']:.1f}", milliseconds(held["settled"] / 1000), steps


def _first_views(browser: Browser, subjects: list[Subject]) -> None:
    """The first sight of pages in a browser that has cached nothing, from a server that is warm."""
    times: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    for number in range(VIEWS + 1):
        for subject in subjects:
            context = browser.new_context(viewport=VIEWPORT, locale="en-US")  # type: ignore[arg-type]
            page = context.new_page()
            page.add_init_script(f"{PROBE};benchmark.arrive({json.dumps(subject.arrival)})")
            page.goto(subject.url)
            page.wait_for_function("benchmark.arrivedAt() !== null", polling=100)
            if number:  # the first round warms the server
                times[subject.name].append(page.evaluate("benchmark.arrivedAt()") / 1000)
            context.close()
    table("First view, empty browser cache, warm server: from navigation to the painted board (and chart)",
          ("best ms", "median ms", "worst ms", "views"), [
              (name, *map(milliseconds, (min(samples), median(samples), max(samples))), len(samples))
              for name, samples in times.items()
          ])
