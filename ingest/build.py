"""What follows a batch: a report of what it wrote, and a build."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from cdc_lakehouse import metrics
from cdc_lakehouse.command import StopRequest
from cdc_lakehouse.errors import DONE, UserError
from cdc_lakehouse.storage import built
from cdc_lakehouse.storage.built import Built
from cdc_lakehouse.storage.marks import MARKER_TABLE
from cdc_lakehouse.storage.place import lake_root
from ingest.batches import Batches

if TYPE_CHECKING:
    from cdc_lakehouse.dbt.runner import Project
    from ingest.glue import Glue

# Options by which a command selects by itself; the short ones may hold their value.
SELECTING = ("--select", "--models", "--selector", "--exclude")
SELECTING_SHORT = ("-s", "-m")
# Seconds from a failed build to the next try.
FIRST_PAUSE = 10.0
LONGEST_PAUSE = 300.0
# Seconds that a stream's next batch waits for a build, at most.
LONGEST_WAIT = 10.0
SECONDS_BETWEEN_LOOKS = 0.05


class Build:
    """Runs one dbt command, again and again, and has Glue know of what it changed.

    Args:
        command: as it is typed after ``dbt``.
        glue: where the tables are registered after it, or None.

    Attributes:
        arguments: the command's words.
        failure: what to say of a build that failed.
        selects: whether the command selects nodes itself.
        is_whole: whether the last one built all, which the first of a day does.

    Raises:
        UserError: a quote in the command is not closed.
    """

    def __init__(self, command: str, *, retries: bool, glue: Glue | None = None) -> None:
        try:
            self.arguments = shlex.split(command)
        except ValueError as error:
            raise UserError(f"--then-build {command!r}: {error}") from error
        self.selects = any(
            word.partition("=")[0] in SELECTING or word.startswith(SELECTING_SHORT)
            for word in self.arguments
        )
        self.is_whole = False
        self.failure = "the build failed"
        if retries:
            self.failure += "; it is tried again"
        self._retries = retries
        self._glue = glue
        self._project: Project | None = None
        self._import = Lock()
        self._parse: Thread | None = None
        self._session: Any = None
        # Of the last one that succeeded; never of a command that selects by itself.
        self._built: Built | None = None

    def parse_ahead(self) -> None:
        """Import dbt and parse the project in a thread, while Spark starts: seconds."""
        self._parse = Thread(target=lambda: self._imported_project().parse(), daemon=True)
        self._parse.start()

    def open_ahead(self, session: Any) -> None:
        """Open the metastore in a thread, where the build will, while bronze is written."""
        self._session = session
        project = self._imported_project()
        if not (self.selects or project.refreshes()):
            self._built = built.read(session, lake_root())
        project.open_metastore(session)

    def _imported_project(self) -> Project:
        with self._import:
            if self._project is None:
                # Not above: it imports dbt, which takes as long as Java to start.
                from cdc_lakehouse.dbt.runner import Project

                self._project = Project(self.arguments)
            return self._project

    def run(self, batch_of: Callable[[str], int]) -> int:
        """Run it; log each model and what failed, say on stdout how long it took.

        What reads nothing new is left out, unless the command selects by itself, the
        project has changed, or a day has begun since.

        Args:
            batch_of: the last ``ingest_batch`` of a bronze table.

        Returns:
            An exit code: 75 where something holds a lock that the build needs; that of
            `cdc-lakehouse glue` where not every table could be registered.
        """
        start = time.monotonic()
        self.is_whole = False
        if self._parse is not None:
            self._parse.join()
        project = self._imported_project()
        project.parse_changed()
        batches = {table: batch_of(table) for table in project.bronze_tables}
        now = Built(project.checksum, f"{datetime.now(UTC):%Y-%m-%d}", batches)
        lacking = self._built.lacks(now) if self._built and project.checksum else None
        if lacking == set():
            print("nothing new to build", flush=True)
            return DONE
        if lacking is None or MARKER_TABLE in lacking:
            code = project.run([])
        else:
            tables = [f"source:bronze.{table}+" for table in sorted(lacking)]
            code = project.run(["--select", *tables])
        self.is_whole = code == DONE and lacking is None and not self.selects
        seconds = time.monotonic() - start
        metrics.build_seconds.observe(seconds)
        metrics.builds.labels("succeeded" if code == DONE else "failed").inc()
        if code == DONE:
            metrics.last_success.set_to_current_time()
        said = "built" if code == DONE else self.failure
        print(f"{said} ({seconds:.1f} s)", flush=True)
        if code == DONE and self._glue is not None:
            code = self._glue.register(project.manifest_file)
        if code == DONE and not self.selects:
            self._built = now
            built.keep(self._session, lake_root(), now)
        if self._retries:
            project.make_copy()
        return code

    def drop_old_bronze_days(self) -> None:
        """Drop what the project keeps no longer; log what goes, or that it failed."""
        self._imported_project().drop_old_bronze_days()
        if self._built is not None:  # which each command that writes removes
            built.keep(self._session, lake_root(), self._built)


class FollowUp:
    """What follows a batch: report what it wrote, and build where that is asked for.

    A build that failed is tried again with the next batch, and by itself after 10 s, then
    twice as long each time, up to five minutes.

    Args:
        batches: what writes bronze.
        build: the build, or None.
        continuous: whether the ingest goes on and on.
        stop: whether it is to end.

    Attributes:
        code: the exit code of the last build.
    """

    def __init__(
        self,
        batches: Batches,
        build: Build | None,
        *,
        continuous: bool,
        stop: StopRequest | None = None,
    ) -> None:
        self._batches = batches
        self._stop = stop
        self._build = build
        self._is_continuous = continuous
        self.code = DONE
        # A run that was cut short may have left events in bronze that no build has seen.
        self._is_due = True
        self._pause = FIRST_PAUSE
        self._retry_at = math.inf
        self._building = Lock()

    def wait_for_build(self) -> None:
        """Wait until the batches that have ended are built, ten seconds at most.

        A once-only ingest does not wait. A batch that runs beside a build delays gold
        (docs/decisions/0032-batches-wait-for-the-build.md).
        """
        if self._build is None or not self._is_continuous:
            return
        end = time.monotonic() + LONGEST_WAIT
        while self._batches.has_ended() or self._building.locked():
            if self._stop or time.monotonic() > end:
                return
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def build_if_due(self) -> None:
        """Build if a batch has written events since the last call, or a retry is due."""
        with self._building:
            self._build_if_due()

    def _build_if_due(self) -> None:
        came = False
        for written in self._batches.ended():
            came = came or written > 0
            if self._is_continuous:
                print(f"wrote {written} events", flush=True)
            self._is_due = self._is_due or written > 0
        is_retry = self._is_continuous and time.monotonic() >= self._retry_at
        # After a stop request only what has just come is built.
        wants = came if self._stop else self._is_due or is_retry
        if self._build is None or not wants:
            return
        self._is_due = False
        self.code = self._build.run(lambda table: self._batches.bronze.mark(table).batch)
        if self._build.is_whole and not self._stop:
            with self._batches.writing:
                self._build.drop_old_bronze_days()
        if self.code == DONE:
            self._pause, self._retry_at = FIRST_PAUSE, math.inf
        else:
            self._retry_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
