"""A command in a process of its own: its time, its CPU, and the memory that it takes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cdc_lakehouse.errors import UserError

SECONDS_BETWEEN_POLLS = 0.2
TICKS = os.sysconf("SC_CLK_TCK")
# In /proc: Java's or Python's name, and the most memory that it had.
MEMORY = re.compile(r"Name:\s+(java|python3?)\s.*VmHWM:\s+(\d+) kB", re.DOTALL)
RESIDENT = re.compile(r"VmRSS:\s+(\d+) kB")


class Watched(NamedTuple):
    """What a command took.

    Attributes:
        seconds: until it ended.
        cpu_seconds: of all its processes, but for the last fifth of a second.
        peaks: the highest resident memory of its Python and its Java, in MiB.
        said: what it printed.
    """

    seconds: float
    cpu_seconds: float
    peaks: Mapping[str, int]
    said: str


class Session:
    """The processes of a session, whose CPU and memory are read off /proc.

    Args:
        leader: the process that began it.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._cpu: dict[str, float] = {}
        self.peaks: Counter[str] = Counter()

    def cpu_seconds(self) -> float:
        """What its processes have taken so far, those that have ended too."""
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if os.getsid(int(folder.name)) != self._leader:
                    continue
                status = (folder / "status").read_text()
                # A process that has just ended says no memory; others do not count.
                if said := MEMORY.search(status):
                    name, peak = said.groups()
                    self.peaks[name] = max(self.peaks[name], int(peak) >> 10)
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                self._cpu[folder.name] = (int(fields[11]) + int(fields[12])) / TICKS
        return sum(self._cpu.values())


def resident_mib(process: int) -> int:
    """The memory that a process has now."""
    [kilobytes] = RESIDENT.findall(Path(f"/proc/{process}/status").read_text())
    return int(kilobytes) >> 10


def memory_text(mebibytes: Mapping[str, int]) -> str:
    """The memory of each program, as a text."""
    return ", ".join(f"{name} {size:,} MiB" for name, size in sorted(mebibytes.items()))


def watched(
    *command: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Watched:
    """Run a module of Python with arguments, and measure it.

    Raises:
        UserError: it failed; the message has what it printed.
    """
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    session = Session(process.pid)

    def watch() -> None:
        while process.poll() is None:
            session.cpu_seconds()
            time.sleep(SECONDS_BETWEEN_POLLS)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        said, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        raise
    watcher.join()
    seconds = time.monotonic() - start
    if process.returncode:
        raise UserError(f"{command[0]} ended with {process.returncode}: {said}")
    return Watched(seconds, session.cpu_seconds(), session.peaks, said)
