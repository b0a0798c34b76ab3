"""Streamlit servers of the benchmark's own: on loopback, on a free port, ended when done with."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent
APP = ROOT / "app.py"
NAIVE_PAGE = ROOT / "benchmarks" / "naive_page.py"
HOST = "127.0.0.1"
PORTS = range(8700, 8800)
SECONDS_TO_START, SECONDS_TO_STOP = 40, 10
LONGEST_LOG = 3000


@dataclass(frozen=True)
class Server:
    """A running server: where it listens, and what its process has used."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def cpu_seconds(self) -> float:
        """Time on a processor so far, in user and kernel mode, of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Bytes of memory in use (resident)."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serve(script: Path) -> Iterator[Server]:
    """A server for one script, with the app's own configuration; ended on the way out."""
    port = _free_port()
    with TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit.web.cli", "run", str(script), "--server.port", str(port),
             "--server.address", HOST, "--logger.level", "error"],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=log,
        )
        try:
            _wait_until_healthy(process, port)
            yield Server(port, process.pid)
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace")[-LONGEST_LOG:])
            raise
        finally:
            process.terminate()
            try:
                process.wait(SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    for port in PORTS:
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port in {PORTS.start}…{PORTS.stop - 1}")


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError("the server ended at its start")
        try:
            with urlopen(f"http://{HOST}:{port}/_stcore/health", timeout=1) as answer:
                if answer.status == 200:
                    return
        except (URLError, OSError):
            pass
        time.sleep(0.1)
    raise RuntimeError(f"the server did not answer within {SECONDS_TO_START} s")

