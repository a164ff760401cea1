"""The ingest as a process that builds after each batch, on the topics of a stack."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from connectors.stack.stack import Stack
from tests.support.project import PROJECT
from tests.support.source import SILVER, TOPICS_FILE

TOPICS = [f"demo.datalake.{table}" for table, _ in SILVER.values()]


class Pipeline:
    """``python -m ingest kafka --then-build`` on every table of a stack's lake.

    Args:
        stack: the stack; its lake is the pipeline's.
        project: a copy of the project to run, or the project itself.
    """

    def __init__(self, stack: Stack, project: Path = PROJECT) -> None:
        self.stack = stack
        self.project = project
        self.lake = stack.root
        self.log = self.lake / "ingest.log"
        self.process: subprocess.Popen[bytes] | None = None

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LAKE_ROOT": str(self.lake),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.project),
        }

    def command(
        self,
        *arguments: str,
        build: str = "run",
        variables: dict[str, Any] | None = None,
    ) -> list[str]:
        said = json.dumps({"base_tables": True, **(variables or {})})
        return [
            *(sys.executable, "-m", "ingest", "kafka"),
            *("--bootstrap-servers", self.stack.bootstrap_servers),
            *("--topics", str(TOPICS_FILE), "--topic", *TOPICS),
            *("--then-build", f"{build} --vars '{said}'"),
            *arguments,
        ]

    def start(self) -> None:
        """Run it continuously."""
        with self.log.open("ab") as log:
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

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def catch_up(self, build: str = "run", variables: dict[str, Any] | None = None) -> str:
        """Bring everything that is committed to gold, in a run of its own; what it said."""
        self.stack.wait_until_caught_up(timeout=180)
        done = subprocess.run(
            self.command(build=build, variables=variables),
            cwd=self.project,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=540,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said[-4000:]
        return said

    def said(self) -> str:
        """What the continuous runs have said so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def lose_checkpoint(self) -> None:
        """As when its disk is gone."""
        shutil.rmtree(self.lake / "checkpoints", ignore_errors=True)
