"""Many students at once: real sessions on loopback, each editing a cell of its own every two seconds."""

from __future__ import annotations

import asyncio
import time
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.server import APP, Server, serve
from benchmarks.student import Event, Tab
from benchmarks.timing import load, median, milliseconds, percentile, table
from engine import Edit, Trace, presets, programs, run

SECONDS_BETWEEN_EDITS = 2.0
OPENED_AT_ONCE = 4
MATRICES = ("Wq", "Wk")


@dataclass
class Student:
    """One session, the cell that it edits, and what it was answered."""

    number: int
    tab: Tab
    latencies: list[float] = field(default_factory=list)
    answers: list[tuple[float, Event]] = field(default_factory=list)

    @property
    def cell(self) -> tuple[str, tuple[int, int]]:
        matrix = MATRICES[self.number % 2]
        return f"layers.0.attention.{matrix}", (self.number // 2 % 4, self.number // 8 % 2)

    async def select(self) -> None:
        name, index = self.cell
        await self.tab.send({"type": "select", "tensor": name, "index": index, "trail": "start"})

    async def work(self, start: float, end: float) -> None:
        """Edit at set times; where a late answer delays the next edit, the delay counts as waiting."""
        name, index = self.cell
        due, edits = start, 0
        while due < end:
            await asyncio.sleep(max(0.0, due - perf_counter()))
            asked, edits = perf_counter(), edits + 1
            value = self.number / 1000 + edits / 100 + 0.0001  # no two students ever set the same
            answer = await self.tab.send({"type": "edit", "tensor": name, "index": index, "value": value,
                                          "gesture": edits})
            self.latencies.append(answer.seconds + asked - due)
            self.answers.append((value, answer.board))
            due += SECONDS_BETWEEN_EDITS

    def check(self) -> None:
        """Every number that this student was sent must be that of their own edit, bit for bit."""
        cats = presets.load("cats")
        for value, board in self.answers:
            edits = (Edit(*self.cell, value),)
            trace = run(cats, presets.SENTENCES["cats"], edits=edits, program=programs.lessons)
            for candidate in board["strip"]["candidates"]:
                if candidate["logit"] != trace["logits"].data[0, -1, candidate["id"]]:
                    raise AssertionError(f"student {self.number}: a logit of another edit: {candidate}")
            for key, sent in board["values"].items():
                numbers = np.frombuffer(b64decode(sent), dtype="<f8")
                if not np.array_equal(numbers, list(grid_numbers(self.tab.frame["grids"][key], trace))):
                    raise AssertionError(f"student {self.number}: grid {key} is not that of {edits}")


def grid_numbers(grid: dict[str, Any], trace: Trace) -> Iterator[float]:
    """The numbers of a grid, row by row, read from a trace by the addresses that the browser has."""
    if "cells" in grid:
        yield from (float(trace[name].data[tuple(index)]) for name, index in grid["cells"])
        return
    for row in grid["row_index"] or [None]:
        for column in grid["column_index"] or [None]:
            index = (*grid["base"], *(part for part in (row, column) if part is not None))
            yield float(trace[grid["tensor"]].data[index])


async def measure(lesson: str, students: int, seconds: float) -> None:
    """Print how long students wait for the board's answer, and what they cost the server."""
    with serve(APP) as server:
        first = Student(0, await Tab.open(server.port, lesson))  # the server's own warming up
        await first.select()
        await first.work(perf_counter(), perf_counter() + 1)
        before = server.memory()
        tabs = await _open(server, lesson, students)
        present = [Student(number, tab) for number, tab in enumerate(tabs, 1)]
        opened = server.memory()
        for student in present:
            await student.select()
        cpu, own, start = server.cpu_seconds(), time.process_time(), perf_counter()
        spread = SECONDS_BETWEEN_EDITS / students
        await asyncio.gather(*(
            student.work(start + place * spread, start + seconds) for place, student in enumerate(present)
        ))
        elapsed = perf_counter() - start
        cpu, own = server.cpu_seconds() - cpu, time.process_time() - own
        after, busy = server.memory(), load()
        for student in (first, *present):
            await student.tab.close()
    for student in present:
        student.check()
    latencies = [seconds for student in present for seconds in student.latencies]
    waits = (median(latencies), percentile(latencies, 95), max(latencies))
    table(f"{students} students, lesson {lesson}, an edit each {SECONDS_BETWEEN_EDITS:g} s, {elapsed:.0f} s",
          ("figure",), [
              ("answer p50 / p95 / worst, ms", " / ".join(map(milliseconds, waits))),
              ("edits answered, each checked against its own engine run", len(latencies)),
              ("edits a second", f"{len(latencies) / elapsed:.1f}"),
              ("server CPU, share of one core", f"{cpu / elapsed:.0%}"),
              ("server CPU per edit, ms", milliseconds(cpu / len(latencies))),
              ("memory a student after opening, MB", f"{(opened - before) / students / 1e6:.2f}"),
              ("memory a student after the edits, MB", f"{(after - before) / students / 1e6:.2f}"),
              ("(the students' own CPU, share of one core)", f"{own / elapsed:.0%}"),
              ("(machine at the end)", busy),
          ])


async def _open(server: Server, lesson: str, students: int) -> list[Tab]:
    gate = asyncio.Semaphore(OPENED_AT_ONCE)

    async def enter() -> Tab:
        async with gate:
            return await Tab.open(server.port, lesson)
    return list(await asyncio.gather(*(enter() for _ in range(students))))
