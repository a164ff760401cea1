"""`dbt` in the process and the session of the ingest, so that no JVM starts twice."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Collection
from typing import Any

from dbt.artifacts.schemas.results import NodeStatus
from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg

from lake.errors import UserError

# Options by which a command selects by itself; the short ones may hold their value.
SELECTING = ("--select", "--models", "--selector", "--exclude")
SELECTING_SHORT = ("-s", "-m")
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
            self.failure += "; the next batch retries it"
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
        said = "built" if outcome.success else self.failure
        print(f"{said} ({seconds:.1f} s)", flush=True)
        return outcome.success


def _show_trouble(event: EventMsg) -> None:
    info: Any = event.info  # a protobuf message, whose fields have no types
    if info.level == "warn":
        print(f"ingest: dbt: {info.msg}", file=sys.stderr)
