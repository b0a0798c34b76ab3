"""Processor time of an edit: the app's own Python alone, and the server's process over a websocket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

from benchmarks import lessons
from benchmarks.server import APP, NAIVE_PAGE, Server, serve
from benchmarks.student import Answer, Tab
from benchmarks.timing import Samples, interleaved, median, milliseconds, spread, table
from ui import address, explanation, live
from ui.state import Choices, State

EDITS, BLOCK = 200, 25
NAIVE_EDITS, NAIVE_BLOCK = 40, 5
WARM_UPS = 5


@dataclass
class Costs:
    """What edits of one page cost, block by block."""

    server: Server
    edit: Callable[[], Awaitable[Answer]]
    edits: int
    block: int
    cpu: float = 0.0
    answers: Samples = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)

    async def warm_up(self) -> None:
        for _ in range(WARM_UPS):
            await self.edit()

    async def measure_block(self) -> None:
        """One block of edits, unless all are done."""
        if len(self.answers) >= self.edits:
            return
        before = self.server.cpu_seconds()
        for _ in range(self.block):
            answer = await self.edit()
            self.answers.append(answer.seconds)
            self.sizes.append(answer.size)
        self.cpu += self.server.cpu_seconds() - before

    @property
    def cpu_per_edit(self) -> float:
        return self.cpu / len(self.answers)


def own_code(lesson: str, seconds: float) -> None:
    """Print the part of an edit that is the app's own Python, without Streamlit around it."""
    state = lessons.edited(State(Choices()))
    built, numbers = lessons.board_of(lesson, state), count(2)
    samples = interleaved({
        "apply the event (edit and run)": lambda: lessons.report(state, lessons.edit(next(numbers))),
        "build the answer": lambda: live.build(state, built, {}),
        "  of it: the explanation": lambda: explanation.explanation(state, *lessons.CELL),
        "  of it: the address": lambda: address.address(state),
    }, seconds / 4)
    table(f"The app's own Python in an edit, lesson {lesson}", ("p5 ms", "median ms", "p95 ms", "runs"), [
        (name, *map(milliseconds, spread(times)), len(times))
        for name, times in samples.items()
    ])


async def over_a_websocket(plain: str, charted: str) -> None:
    """Print what edits cost one after the other, in blocks that alternate between three pages."""
    with serve(APP) as app, serve(NAIVE_PAGE) as naive:
        boards = [await Tab.open(app.port, page) for page in (plain, charted)]
        for board in boards:
            await board.send(lessons.SELECT)
        shown = ",".join(lessons.tensors(plain, State(Choices())))
        page = await Tab.open(naive.port, "", f"tensors={shown}")
        numbers = count(1)

        def editor(tab: Tab) -> Callable[[], Awaitable[Answer]]:
            return lambda: tab.send(lessons.edit(next(numbers)))
        pages = {
            f"board, {plain}": Costs(app, editor(boards[0]), EDITS, BLOCK),
            f"board and chart, {charted}": Costs(app, editor(boards[1]), EDITS, BLOCK),
            "naive page": Costs(naive, lambda: page.slide(lessons.edit(next(numbers))["value"]),
                                NAIVE_EDITS, NAIVE_BLOCK),
        }
        for costs in pages.values():
            await costs.warm_up()
        for _ in range(EDITS // BLOCK):
            for costs in pages.values():
                await costs.measure_block()
        for tab in (*boards, page):
            await tab.close()
    base = pages[f"board, {plain}"].cpu_per_edit
    table("An edit over a websocket, one student, one edit after the other",
          ("CPU ms", "÷ board", "answer p5 ms", "p50 ms", "p95 ms", "bytes down", "edits"), [
              (name, milliseconds(costs.cpu_per_edit), f"{costs.cpu_per_edit / base:.1f}",
               *map(milliseconds, spread(costs.answers)), f"{median(costs.sizes):.0f}", len(costs.answers))
              for name, costs in pages.items()
          ])
