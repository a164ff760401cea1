"""The parts of a stack: servers that outlive the process that started them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import requests

from cdc_lakehouse.errors import TransientError, UserError
from lab.stack import jars

HOST = "127.0.0.1"
LOGGING = Path(__file__).with_name("log4j2.properties")

# Quick to start and small: the first compiler only, the collector without threads.
JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    f"-Dlog4j2.configurationFile={LOGGING}",
)
# What a line of a log has that says why a server ended.
CAUSES = ("ERROR", "FATAL", "Exception", "Caused by", "could not bind")


def java_command(heap: str, *words: str, class_path: str = f"{jars.KAFKA}/*") -> list[str]:
    """A command that runs a class, by default of Kafka's jars."""
    return [jars.find_java(), f"-Xmx{heap}", *JVM_OPTIONS, "-cp", class_path, *words]


def run_java(
    *words: str, class_path: str = f"{jars.KAFKA}/*"
) -> subprocess.CompletedProcess[str]:
    """Run a tool, by default of Kafka's jars, to its end."""
    command = java_command("128m", *words, class_path=class_path)
    return subprocess.run(command, capture_output=True, text=True)


def wait_until(
    is_done: Callable[[], bool], timeout: float, what: str, pause: float = 0.1
) -> None:
    """Wait for something to come true.

    Raises:
        TransientError: it did not within ``timeout`` seconds; the message says ``what``.
    """
    deadline = time.monotonic() + timeout
    while not is_done():
        if time.monotonic() > deadline:
            raise TransientError(f"timed out after {timeout:.0f} s: {what}")
        time.sleep(pause)


def answers(url: str) -> bool:
    """Whether a server says yes to a GET."""
    with suppress(requests.RequestException):
        return requests.get(url, timeout=5).ok
    return False


class Part:
    """One server of a stack, by whomever it was started.

    Args:
        folder: keeps ``<name>.pid`` and ``logs/<name>.log``; the server works in it.
        name: of the server.
        port: where it listens, on 127.0.0.1 only; 0 where nobody has to know.
        command: what starts it, given the word that marks it.
        environment: variables beside this process's own.
    """

    STOP: ClassVar = signal.SIGTERM

    def __init__(
        self,
        folder: Path,
        name: str,
        port: int,
        command: Callable[[str], Sequence[str]],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.name = name
        self.port = port
        self.environment = environment or {}
        self.pid_file = self.folder / f"{name}.pid"
        self.log = self.folder / "logs" / f"{name}.log"
        # On its command line, so that another process that got the number of a dead
        # one is never taken for it.
        self.mark = f"-Dcdc-lakehouse={self.pid_file}"
        self._command = command
        self._log_begin = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it detached, unless it runs, without waiting until it is ready."""
        if self.pid() is not None:
            return
        command = self._command(self.mark)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._log_begin = log.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **self.environment},
                start_new_session=True,  # Ctrl-C is the caller's
                **self._run_as(),
            )
        self.pid_file.write_text(str(self._process.pid))

    def is_ready(self) -> bool:
        """Whether it can be used: here, whether it listens."""
        with socket.socket() as client:
            return client.connect_ex((HOST, self.port)) == 0

    def wait_until_ready(self, timeout: float = 120) -> None:
        """Wait until it can be used.

        Raises:
            UserError: it ended; the message has the reason.
            TransientError: it takes longer than ``timeout`` seconds.
        """

        def is_ready() -> bool:
            self.require_alive()
            return self.is_ready()

        wait_until(is_ready, timeout, f"the {self.name} is not ready (see {self.log})")

    def pid(self) -> int | None:
        """Its process, if it runs."""
        if self._process is not None and self._process.poll() is None:
            return self._process.pid
        try:
            pid = int(self.pid_file.read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if self.mark.encode() in words else None

    def stop(self) -> bool:
        """End it; with SIGKILL where it does not end by itself.

        Returns:
            Whether it ended by itself.
        """
        ended = self._signal(self.STOP, timeout=60)
        if not ended:
            self.kill()
        return ended

    def kill(self) -> None:
        """End it as a crash does."""
        self._signal(signal.SIGKILL, timeout=10)

    def said(self) -> str:
        """What it logged since it was started here."""
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode("utf-8", errors="replace")

    def require_alive(self) -> None:
        """Raise the reason, as its log has it, if it ended.

        Raises:
            UserError: it did.
        """
        if self.pid() is None:
            lines = [line for line in self.said().splitlines() if line.strip()]
            causes = [line for line in lines if any(word in line for word in CAUSES)]
            said = "\n  ".join(causes[-3:] or lines[-3:])
            raise UserError(f"the {self.name} ended (see {self.log}):\n  {said}")

    def _signal(self, number: signal.Signals, timeout: float) -> bool:
        pid = self.pid()
        if pid is None:
            return True
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        with suppress(TransientError):
            wait_until(lambda: self.pid() is None, timeout, "", 0.05)
            return True
        return False

    def _run_as(self) -> dict[str, Any]:
        """The user whose process it is, as ``Popen`` takes it; this one's by default."""
        return {}
