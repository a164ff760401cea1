"""`dbt` in the process and the session of the ingest, so that no JVM starts twice."""

from __future__ import annotations

import math
import shlex
import sys
import time
from collections.abc import Collection
from typing import Any

from dbt.artifacts.schemas.results import NodeStatus
from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg

from ingest import metrics
from ingest.batches import Batches
from lake.command import StopRequest
from lake.errors import UserError

# Options by which a command selects by itself; the short ones may hold their value.
SELECTING = ("--select", "--models", "--selector", "--exclude")
SELECTING_SHORT = ("-s", "-m")
# Seconds from a failed build to the next try.
FIRST_PAUSE = 10.0
LONGEST_PAUSE = 300.0
FAILED = (NodeStatus.Error, NodeStatus.Fail, NodeStatus.RuntimeErr)


class Build:
    """Runs one dbt command, again and again.

    Attributes:
        arguments: the command as it is typed after ``dbt``.
        failure: what to say of a build that failed.
        selects: whether the command selects nodes itself.

    Raises:
        UserError: a quote in the command is not closed.
    """

    def __init__(self, command: str, *, retries: bool) -> None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise UserError(f"--then-build {command!r}: {error}") from error
        self.arguments = [*words, "--profiles-dir", "profiles"]
        self.selects = any(
            word.partition("=")[0] in SELECTING or word.startswith(SELECTING_SHORT)
            for word in words
        )
        self.failure = "the build failed"
        if retries:
            self.failure += "; it is tried again"
        self._runner = dbtRunner(callbacks=[_show_trouble])
        # What came before this process is not known, nor what a failed build has left.
        self._is_up_to_date = False

    def run(self, tables: Collection[str]) -> bool:
        """Run it; say on stderr what failed, on stdout how long it took.

        Args:
            tables: the bronze tables that brought something since the last run. Where
                everything else is up to date, and the command selects nothing itself,
            only what reads them is built.
        """
        start = time.monotonic()
        selection = (
            ["--select", *(f"source:bronze.{table}+" for table in sorted(tables))]
            if self._is_up_to_date and not self.selects
            else []
        )
        outcome = self._runner.invoke(
            ["--log-level", "none", "--log-level-file", "info", *self.arguments, *selection]
        )
        if outcome.exception is not None:
            print(f"ingest: dbt: {outcome.exception}", file=sys.stderr)
        for node in getattr(outcome.result, "results", None) or []:
            if node.status in FAILED:
                print(f"ingest: dbt: {node.node.name}: {node.message}", file=sys.stderr)
        seconds = time.monotonic() - start
        self._is_up_to_date = outcome.success
        metrics.build_seconds.observe(seconds)
        metrics.builds.labels("succeeded" if outcome.success else "failed").inc()
        if outcome.success:
            metrics.last_success.set_to_current_time()
        said = "built" if outcome.success else self.failure
        print(f"{said} ({seconds:.1f} s)", flush=True)
        return outcome.success


class FollowUp:
    """What is done between batches: say what came, and build where that is asked for.

    A build that failed is tried again with the next batch, and by itself after 10 s, then
    twice as long each time, up to five minutes.

    Args:
        batches: what writes bronze.
        command: the dbt command, or None.
        continuous: whether the ingest goes on and on.
        stop: whether it is to end.

    Attributes:
        succeeded: whether the last build did.
    """

    def __init__(
        self,
        batches: Batches,
        command: str | None,
        *,
        continuous: bool,
        stop: StopRequest | None = None,
    ) -> None:
        self._batches = batches
        self._stop = stop
        self._build = Build(command, retries=continuous) if command is not None else None
        self._is_continuous = continuous
        self.succeeded = True
        self._tables: set[str] = set()
        # A run that was cut short may have left events in bronze that no build has seen.
        self._is_due = True
        self._pause = FIRST_PAUSE
        self._retry_at = math.inf

    def look(self) -> None:
        """Build if a batch that ended since the last look brought something."""
        came = False
        for outcome in self._batches.ended():
            came = came or outcome.written > 0
            if self._is_continuous:
                print(f"wrote {outcome.written} events", flush=True)
            self._tables |= outcome.tables
            self._is_due = self._is_due or outcome.written > 0
        is_retry = self._is_continuous and time.monotonic() >= self._retry_at
        # After a stop request only what has just come is built.
        wants = came if self._stop else self._is_due or is_retry
        if self._build is None or not wants:
            return
        self._is_due = False
        tables, self._tables = self._tables, set()
        self.succeeded = self._build.run(tables)
        if self.succeeded:
            self._pause, self._retry_at = FIRST_PAUSE, math.inf
        else:
            self._retry_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)


def _show_trouble(event: EventMsg) -> None:
    info: Any = event.info  # a protobuf message, whose fields have no types
    if info.level == "warn":
        print(f"ingest: dbt: {info.msg}", file=sys.stderr)
