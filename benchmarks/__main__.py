"""`python -m benchmarks [engine] [browser] [server]`: print figures, side by side, of one run."""

from __future__ import annotations

import argparse
import platform
import signal
import sys
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from benchmarks import timing

PARTS = ("engine", "browser", "server")
MOST_STUDENTS = 300
MOST_SECONDS = 600.0


def bounded(kind: type, low: float, high: float) -> object:
    """A parser of numbers between two bounds, for argparse."""
    def parse(text: str) -> float:
        number: float = kind(text)
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text} is outside {low:g}…{high:g}")
        return number
    return parse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--students", type=bounded(int, 1, MOST_STUDENTS), default=50, metavar="N",  # type: ignore[arg-type]
                        help=f"simulated students at once, at most {MOST_STUDENTS} (default 50)")
    parser.add_argument("--seconds", type=bounded(float, 1, MOST_SECONDS), default=15.0, metavar="S",  # type: ignore[arg-type]
                        help="length of each timed stretch (default 15)")
    chosen = parser.parse_args()
    unknown = [part for part in chosen.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return chosen


def installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def main() -> None:
    """Run the chosen parts, one after the other, with the machine's load beside each."""
    chosen = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # servers and browsers end with this process
    packages = ("streamlit", "uvloop", "torch", "playwright", "websockets")
    print(f"Python {platform.python_version()}, NumPy {np.__version__},", ", ".join(map(installed, packages)))
    for part in chosen.parts or PARTS:
        print(f"\n==== {part} · {timing.load()}")
        if part == "engine":
            from benchmarks import engine_part

            engine_part.measure(chosen.seconds)
        elif part == "browser":
            from benchmarks import browser_part

            browser_part.measure(chosen.seconds)
        else:
            from benchmarks import server_part

            server_part.measure(chosen.students, chosen.seconds)
        print(f"\n---- {part} done · {timing.load()}")


if __name__ == "__main__":
    main()
