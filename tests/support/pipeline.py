"""The ingest as a process that builds after each batch, on the topics of a stack."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from cdc_lakehouse.storage.tables import open_table, read_columns
from ingest.status import lake_status
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from tests.support.project import PROJECT
from tests.support.source import SILVER, TOPICS_FILE
from tests.support.tables import Tables

TABLES = [table for table, _ in SILVER.values()]
# With what `cdc-lakehouse resync` marks.
TOPICS = [f"demo.datalake.{table}" for table in (*TABLES, "complete_snapshots")]
VARIABLES = {"cdc_lakehouse_base_tables": True, "cdc_lakehouse_resync": True}


class Pipeline:
    """``python -m ingest kafka --then-build`` on every table of a stack's lake.

    Args:
        stack: the stack; its lake is the pipeline's.
        project: a copy of the project to run, or the project itself.
    """

    def __init__(self, stack: NorthwindStack, project: Path = PROJECT) -> None:
        self.stack = stack
        self.project = project
        self.lake = stack.root
        self.log = self.lake / "ingest.log"
        self.process: subprocess.Popen[bytes] | None = None
        # Of the current process: where its output begins, and the newest batch before it.
        self._log_begin = 0
        self._last_batch_before = 0

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LAKE_ROOT": str(self.lake),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.project),
        }

    def command(self, *arguments: str, build: str = "run") -> list[str]:
        return [
            *(sys.executable, "-m", "ingest", "kafka"),
            *("--bootstrap-servers", self.stack.bootstrap_servers),
            *("--topics", str(TOPICS_FILE), "--topic", *TOPICS),
            *("--then-build", f"{build} --vars '{json.dumps(VARIABLES)}'"),
            *arguments,
        ]

    def start(self) -> None:
        """Run it continuously; nothing where it runs already."""
        if not self.has_ended:
            return
        self._last_batch_before = lake_status(str(self.lake)).newest_batch
        with self.log.open("ab") as log:
            self._log_begin = log.tell()
            self.process = subprocess.Popen(
                self.command("--continuous"),
                cwd=self.project,
                env=self.environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> int:
        """End it as a service manager does; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=240)
        self.process = None
        return code

    def kill(self) -> None:
        """End it, and its Java, as a crash does."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def kill_during_build(self) -> bool:
        """End it as a crash does if a build is in flight; whether one was."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGSTOP)
        # Once it is stopped, it cannot end the build before it is killed.
        wait_until(lambda: self._state() == "T", 10, "the process does not stop", 0.01)
        if self.is_building:
            self.kill()
            return True
        os.killpg(self.process.pid, signal.SIGCONT)
        return False

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    @property
    def is_building(self) -> bool:
        """Whether the continuous run builds what a batch has brought."""
        return not self.has_ended and self._steps()[-1:] == ["wrote"]

    def run_once(self, build: str = "run") -> None:
        """Ingest and build everything that is committed in a process of its own.

        The continuous run must have ended.
        """
        self.stack.wait_until_caught_up(timeout=180)
        done = subprocess.run(
            self.command(build=build),
            cwd=self.project,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=540,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]

    def wait_until_built(self, timeout: float = 600) -> None:
        """Wait until everything that is committed has reached gold by the continuous run.

        That is: bronze has each topic up to its end, and a build has succeeded that began
        after the last of these batches.
        """
        self.stack.wait_until_caught_up(timeout=180)
        every_end = self.stack.topic_ends()
        ends = {f"{topic}/0": every_end[f"{topic}/0"] for topic in TOPICS}

        def is_in_bronze() -> bool:
            self._require_running()
            held = lake_status(str(self.lake)).offsets
            return all(held.get(place, -1) + 1 >= end for place, end in ends.items())

        def is_in_gold() -> bool:
            self._require_running()
            steps = self._steps()
            assert steps[-1:] != ["the build failed"], self.output()[-4000:]
            # A batch is printed a moment after it is committed.
            return steps.count("wrote") >= count and steps[-1:] == ["built"]

        wait_until(is_in_bronze, timeout, f"bronze lacks records; see {self.log}", 0.2)
        count = len([b for b in self._batches() if b > self._last_batch_before])
        wait_until(is_in_gold, timeout, f"no build has ended; see {self.log}", 0.2)

    def output(self) -> str:
        """What the current continuous run has printed so far."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode(errors="replace")

    def lose_checkpoint(self) -> None:
        """As when its disk is gone."""
        shutil.rmtree(self.lake / "checkpoints", ignore_errors=True)

    def _state(self) -> str:
        """The state of its process, as ``ps`` shows it."""
        assert self.process is not None
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(") ")[2][0]

    def _steps(self) -> list[str]:
        """What the current run has done, in order: "wrote" and "built", or its failure.

        A batch that brought no event is left out, as none is built for it.
        """
        steps = re.findall(
            r"^(wrote) [1-9]\d* events$|^(built|the build failed)\b",
            self.output(),
            re.MULTILINE,
        )
        return [wrote or built for wrote, built in steps]

    def _batches(self) -> set[int]:
        """The batches that brought events to bronze."""
        found: set[int] = set()
        for name in TABLES:
            table = open_table(str(Tables(self.lake).path(f"bronze.{name}")))
            found |= set(read_columns(table, ["ingest_batch"])["ingest_batch"].to_pylist())
        return found

    def _require_running(self) -> None:
        assert not self.has_ended, self.output()[-4000:]
