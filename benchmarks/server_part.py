"""The server without a browser: processor time of an edit, and a class of simulated students."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path


def measure(students: int, seconds: float) -> None:
    """Print the server's figures, or why there are none."""
    if not Path("/proc/self/stat").exists():
        print("\n(no /proc on this system: the server's part is left out)")
        return
    for package in ("streamlit", "websockets"):
        if find_spec(package) is None:
            print(f"\n({package} is not installed: the server's part is left out; pip install {package})")
            return
    from benchmarks import classroom, costs, lessons

    plain, charted = lessons.heaviest()
    costs.own_code(plain, seconds)
    asyncio.run(costs.over_a_websocket(plain, charted))
    asyncio.run(classroom.measure(plain, students, seconds))
