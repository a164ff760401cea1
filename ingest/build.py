"""`dbt` in the process and the session of the ingest, so that no JVM starts twice."""

from __future__ import annotations

import shlex
import sys
import time

from dbt.artifacts.schemas.results import NodeStatus
from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg

FAILED = (NodeStatus.Error, NodeStatus.Fail, NodeStatus.RuntimeErr)


class Build:
    """Runs one dbt command, again and again.

    Attributes:
        arguments: the command as it is typed after ``dbt``.
    """

    def __init__(self, command: str) -> None:
        self.arguments = [*shlex.split(command), "--profiles-dir", "profiles"]
        self._runner = dbtRunner(callbacks=[_show_trouble])

    def run(self) -> bool:
        """Run it; say on stderr what failed, on stdout how long it took."""
        start = time.monotonic()
        outcome = self._runner.invoke(["--quiet", *self.arguments])
        if outcome.exception is not None:
            print(f"ingest: dbt: {outcome.exception}", file=sys.stderr)
        for node in getattr(outcome.result, "results", None) or []:
            if node.status in FAILED:
                print(f"ingest: dbt: {node.node.name}: {node.message}", file=sys.stderr)
        seconds = time.monotonic() - start
        said = "built" if outcome.success else "the build failed; the next batch retries it"
        print(f"{said} ({seconds:.1f} s)", flush=True)
        return outcome.success


def _show_trouble(event: EventMsg) -> None:
    if event.info.level == "warn":
        print(f"ingest: dbt: {event.info.msg}", file=sys.stderr)  # type: ignore[attr-defined]
