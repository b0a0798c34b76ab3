#!/usr/bin/env python3
"""Set up and start Glassbox, or set up and pass its tests; needs nothing but Python.

    python3 glassbox.py              start the app (arguments after it go to `streamlit run`)
    python3 glassbox.py test         lint, types and every test (arguments after it go to pytest)

Both keep what they install in `.venv` beside this file, because many systems refuse to install
packages outside a virtual environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
OLDEST_PYTHON = (3, 11)
# the one without windows first: it is the same engine, and the tests take three quarters of the time
BROWSERS = (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
)


def main() -> int:
    """Set up what the chosen command needs and run it."""
    if sys.version_info < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        sys.exit(f"Glassbox needs Python {oldest} or newer; this is {sys.version.split()[0]}.")
    command, arguments = (sys.argv[1], sys.argv[2:]) if sys.argv[1:2] == ["test"] else ("start", sys.argv[1:])
    python = prepare("requirements.txt", *(["requirements-dev.txt"] if command == "test" else []))
    # products here are small: a second thread waits for a core that somebody else has, 12 ms in place of 0.1
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if command == "start":
        return run(python, "-m", "streamlit", "run", str(ROOT / "app.py"), *arguments)
    return check(python, arguments)


def prepare(*requirements: str) -> Path:
    """Make the virtual environment and install into it what is not there yet; return its Python."""
    python = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=False)
        if made.returncode:
            shutil.rmtree(ENVIRONMENT, ignore_errors=True)
            sys.exit("Python's venv module is missing. On Debian or Ubuntu: sudo apt-get install python3-venv")
    for name in requirements:
        digest = hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
        stamp = ENVIRONMENT / f"{name}.installed"
        if not stamp.exists() or stamp.read_text() != digest:
            print(f"Installing {name} …", flush=True)
            subprocess.run(
                [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(ROOT / name)],
                check=True,
            )
            stamp.write_text(digest)
    return python


def check(python: Path, arguments: list[str]) -> int:
    """Lint, types, tests; the first that fails decides."""
    os.environ["GLASSBOX_BROWSER"] = find_browser(python)
    steps = (
        ("-m", "ruff", "check", "."),
        ("-m", "mypy"),
        ("-m", "pytest", "-n", "auto", "--dist", "loadfile", *arguments),
    )
    return next((code for code in (run(python, *step) for step in steps) if code), 0)


def known_browser() -> str | None:
    """The browser that is named, or the first that is there."""
    return os.environ.get("GLASSBOX_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)


def find_browser(python: Path) -> str:
    """The path of a Chromium; where there is none, install one."""
    found = known_browser()
    if found:
        return found
    print("No Chromium found; installing one …", flush=True)
    if os.name == "posix" and shutil.which("apt-get") and os.geteuid() == 0:
        for step in (["update", "-qq"], ["install", "-y", "-qq", "chromium", "fonts-noto-cjk"]):
            subprocess.run(["apt-get", *step], check=False, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        installed = shutil.which("chromium")
        if installed:
            return installed
    if run(python, "-m", "playwright", "install", "chromium"):
        sys.exit("No browser could be installed. Install Chromium, or name one in GLASSBOX_BROWSER, and try again.")
    return "playwright"


def run(python: Path, *arguments: str) -> int:
    """Run the environment's Python in the project's folder; return its exit code."""
    try:
        return subprocess.run([str(python), *arguments], cwd=ROOT, check=False).returncode
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
