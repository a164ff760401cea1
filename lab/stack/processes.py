"""Java programs that outlive the one that started them, found again by pid."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import requests

from cdc_lakehouse.errors import TransientError, UserError
from lab.stack import jars

LOGGING = Path(__file__).with_name("log4j2.properties")

# Quick to start and small: the first compiler only, the collector without threads.
JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    f"-Dlog4j2.configurationFile={LOGGING}",
)


def java_command(heap: str, *words: str, class_path: str = f"{jars.KAFKA}/*") -> list[str]:
    """A command that runs a class, by default of Kafka's jars."""
    return [jars.find_java(), f"-Xmx{heap}", *JVM_OPTIONS, "-cp", class_path, *words]


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


class JavaProcess:
    """One JVM of a folder, by whomever it was started.

    Args:
        folder: keeps ``<name>.pid`` and ``logs/<name>.log``.
        name: of the program.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.folder = folder.absolute()
        self.pid_file = self.folder / f"{name}.pid"
        self.log = self.folder / "logs" / f"{name}.log"
        # On its command line, so that another process that got the number of a dead
        # one is never taken for it.
        self.mark = f"-Dcdc-lakehouse={self.pid_file}"
        self._log_begin = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        heap: str,
        *words: str,
        class_path: str = f"{jars.KAFKA}/*",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the class and arguments that ``words`` say, detached, logging to a file.

        Args:
            heap: Java's limit.
            words: its options, the class and its arguments.
            class_path: where the class is.
            environment: variables beside this process's own.
        """
        command = java_command(heap, self.mark, *words, class_path=class_path)
        self.launch(command, environment)

    def launch(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start a command, whose words include ``mark``, as ``start`` does."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._log_begin = log.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # Ctrl-C is the caller's
            )
        self.pid_file.write_text(str(self._process.pid))

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

    def stop(self, timeout: float = 30) -> bool:
        """End it; with SIGKILL where it does not end by itself.

        Returns:
            Whether it ended by itself.
        """
        ended = self._signal(signal.SIGTERM, timeout)
        if not ended:
            self.kill()
        self.pid_file.unlink(missing_ok=True)
        return ended

    def kill(self) -> None:
        """End it as a crash does."""
        self._signal(signal.SIGKILL, timeout=10)

    def _signal(self, number: signal.Signals, timeout: float) -> bool:
        pid = self.pid()
        if pid is None:
            return True
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + timeout
        while self.pid() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def said(self) -> str:
        """What it logged since it was started here."""
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode("utf-8", errors="replace")

    def wait_until_answers(self, url: str, timeout: float) -> None:
        """Wait until its server says yes to a GET of ``url``.

        Raises:
            UserError: it ended; the message has the reason.
            TransientError: it takes longer than ``timeout`` seconds.
        """

        def answers() -> bool:
            self.require_alive()
            try:
                return requests.get(url, timeout=5).ok
            except requests.RequestException:
                return False

        wait_until(answers, timeout, f"the {self.name} is not ready")

    def require_alive(self) -> None:
        """Raise the reason, as its log has it, if it ended.

        Raises:
            UserError: it did.
        """
        if self.pid() is None:
            lines = [line for line in self.said().splitlines() if line.strip()]
            causes = [
                line
                for line in lines
                if "ERROR" in line or "Exception" in line or line.startswith("Caused by")
            ]
            said = "\n  ".join(causes[-3:] or lines[-3:])
            raise UserError(f"the {self.name} ended (see {self.log}):\n  {said}")
