"""Measuring side by side: interleaved rounds, percentiles, and a table that lines up."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import numpy as np

MOST_ROUNDS = 3000
FEWEST_ROUNDS = 5
Samples = list[float]  # seconds


def interleaved(candidates: Mapping[str, Callable[[], object]], seconds: float,
                most_rounds: int = MOST_ROUNDS) -> dict[str, Samples]:
    """Seconds of every call, by candidate; each round runs all of them, starting at another one."""
    calls = list(candidates.items())
    for _, call in calls:
        call()
    samples: dict[str, Samples] = {name: [] for name in candidates}
    end = perf_counter() + seconds
    for number in range(most_rounds):
        if number >= FEWEST_ROUNDS and perf_counter() > end:
            break
        first = number % len(calls)
        for name, call in calls[first:] + calls[:first]:
            start = perf_counter()
            call()
            samples[name].append(perf_counter() - start)
    return samples


def percentile(samples: Sequence[float], share: float) -> float:
    """The value that `share` percent of the samples do not exceed; NaN of none."""
    return float(np.percentile(samples, share)) if samples else float("nan")


def median(samples: Sequence[float]) -> float:
    return percentile(samples, 50)


def spread(samples: Sequence[float]) -> tuple[float, float, float]:
    """p5, which a busy machine disturbs least, median and p95."""
    return percentile(samples, 5), median(samples), percentile(samples, 95)


def milliseconds(seconds: float) -> str:
    """Three digits that count: `0.164`, `44.1`, `1420`."""
    value = seconds * 1000
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their headings: the first column to the left, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in (("", *columns), *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    print(f"\n{title}")
    for label, *numbers in cells:
        padded = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
        print("  " + "  ".join((label.ljust(widths[0]), *padded)).rstrip())


def compare(title: str, samples: Mapping[str, Samples], against: str) -> None:
    """Print p5, median, p95 and the ratio of the medians to those of the candidate `against`."""
    base = median(samples[against])
    table(title, ("p5 ms", "median ms", "p95 ms", f"÷ {against}", "runs"), [
        (name, *map(milliseconds, spread(times)),
         f"{median(times) / base:.2f}", len(times))
        for name, times in samples.items()
    ])


def load() -> str:
    """How busy the machine is: figures of a busy one say little."""
    cores = os.cpu_count() or 1
    if not hasattr(os, "getloadavg"):
        return f"{cores} cores"
    recent = os.getloadavg()[0]
    remark = "  (busy: figures will be pessimistic)" if recent > cores / 2 else ""
    return f"load {recent:.2f} on {cores} cores{remark}"
