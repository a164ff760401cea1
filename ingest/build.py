"""`dbt` in the process and the session of the ingest, so that no JVM starts twice."""

from __future__ import annotations

import dataclasses
import logging
import math
import pickle
import shlex
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import click
from click.core import ParameterSource
from dbt.artifacts.resources.types import NodeType
from dbt.artifacts.schemas.results import NodeStatus
from dbt.cli.flags import args_to_context
from dbt.cli.main import cli, dbtRunner
from dbt.contracts.files import FilePath
from dbt.contracts.graph.manifest import Manifest
from dbt.events.types import NodeFinished
from dbt_common.events.base_types import EventMsg

import dbt_single_build
from ingest import metrics
from ingest.batches import Batches
from ingest.status import rows_of_newest_commit
from lake.command import StopRequest
from lake.errors import DONE, FAILED, UserError
from lake.mark import MARKER_TABLE
from lake.place import lake_root

# Options by which a command selects by itself; the short ones may hold their value.
SELECTING = ("--select", "--models", "--selector", "--exclude")
SELECTING_SHORT = ("-s", "-m")
# Seconds from a failed build to the next try.
FIRST_PAUSE = 10.0
LONGEST_PAUSE = 300.0
BAD = (NodeStatus.Error, NodeStatus.Fail, NodeStatus.RuntimeErr)
GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
PROFILES = ("--profiles-dir", "profiles")
QUIET = ("--log-level", "none", "--log-level-file", "info")
OUR_TABLES = ("cdc_merge", "cdc_history", "atomic_overwrite")
LOGGER = logging.getLogger("ingest")


class ParsedProject:
    """The project as dbt has parsed it, until one of its files changes.

    dbt takes a few tenths of a second to parse it, even where nothing has changed.
    """

    def __init__(self) -> None:
        self._pickled = b""
        self._copy: Manifest | None = None
        self._times: dict[Path, float | None] = {}
        self._asked_at = 0.0
        dbt_single_build.keep_parsed = self._keep

    def manifest(self) -> Manifest | None:
        """A copy of its own for each run, which changes it; None where dbt has to parse."""
        self._asked_at = time.time()
        if not self._pickled or any(
            _changed_at(path) != changed for path, changed in self._times.items()
        ):
            return None
        if self._copy is None:
            self.make_copy()
        copy, self._copy = self._copy, None
        return copy

    def make_copy(self) -> None:
        """Make the next run's copy ahead, which takes a fifth of a second."""
        if self._pickled:
            self._copy = Manifest(**pickle.loads(self._pickled))

    def _keep(self, manifest: Manifest) -> None:
        places = set()
        for path in (file.path for file in manifest.files.values()):
            if isinstance(path, FilePath):
                root, file = Path(path.project_root), Path(path.full_path)
                # A file that is added or removed changes its folder's time.
                folders = [folder for folder in file.parents if root in folder.parents]
                places |= {root / "dbt_project.yml", file, *folders}
        self._times = {place: _changed_at(place) for place in places}
        # What has changed meanwhile may have been read before or after.
        is_settled = all(each and each < self._asked_at for each in self._times.values())
        # By its fields: a manifest forgets one of them when it is pickled (dbt-core 1.11).
        content = {
            each.name: getattr(manifest, each.name)
            for each in dataclasses.fields(Manifest)
            if not each.name.startswith("_")
        }
        self._pickled = pickle.dumps(content) if is_settled else b""
        self._copy = None


def _changed_at(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


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
        self.arguments = [*words, *PROFILES]
        self.selects = any(
            word.partition("=")[0] in SELECTING or word.startswith(SELECTING_SHORT)
            for word in words
        )
        self.failure = "the build failed"
        if retries:
            self.failure += "; it is tried again"
        self._retries = retries
        self._project = ParsedProject()
        self._parse: Thread | None = None
        # What came before this process is not known, nor what a failed build has left.
        self._is_up_to_date = False

    def parse_ahead(self) -> None:
        """Parse the project in a thread, which takes seconds, while Spark starts."""
        self._parse = Thread(target=self._parse_project, daemon=True)
        self._parse.start()

    def open_ahead(self, session: Any) -> None:
        """Open the metastore in a thread, where the build will, while bronze is written."""
        try:
            target = _options_of_parse(self.arguments).get("target")
        except (click.ClickException, click.exceptions.Exit):
            return  # the build says so
        dbt_single_build.open_ahead(session, target)

    def _parse_project(self) -> None:
        with suppress(Exception):  # whatever it is, the build meets it, too, and says so
            runner = dbtRunner(manifest=self._project.manifest(), callbacks=[_show])
            runner.invoke([*QUIET, "parse", *PROFILES], **_options_of_parse(self.arguments))
            self._project.make_copy()

    def run(self, tables: Collection[str]) -> int:
        """Run it; log each model and what failed, say on stdout how long it took.

        Args:
            tables: the bronze tables that brought something since the last run. Where
                everything else is up to date, and the command selects nothing itself,
            only what reads them is built.

        Returns:
            An exit code: 75 where something holds a lock that the build needs.
        """
        start = time.monotonic()
        selection = (
            ["--select", *(f"source:bronze.{table}+" for table in sorted(tables))]
            if self._is_up_to_date and not self.selects and MARKER_TABLE not in tables
            else []
        )
        if self._parse is not None:
            self._parse.join()
        runner = dbtRunner(manifest=self._project.manifest(), callbacks=[_show])
        outcome = runner.invoke([*QUIET, *self.arguments, *selection])
        if outcome.exception is not None:
            LOGGER.error("dbt: %s", outcome.exception)
        for node in getattr(outcome.result, "results", None) or []:
            if node.status in BAD:
                name = node.node.name
                LOGGER.error("dbt: %s: %s", name, node.message, extra={"model": name})
        seconds = time.monotonic() - start
        self._is_up_to_date = outcome.success
        metrics.build_seconds.observe(seconds)
        metrics.builds.labels("succeeded" if outcome.success else "failed").inc()
        if outcome.success:
            metrics.last_success.set_to_current_time()
        said = "built" if outcome.success else self.failure
        print(f"{said} ({seconds:.1f} s)", flush=True)
        if self._retries:
            self._project.make_copy()
        return DONE if outcome.success else _code_of(outcome.exception)


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
        self._tables: set[str] = set()
        # A run that was cut short may have left events in bronze that no build has seen.
        self._is_due = True
        self._pause = FIRST_PAUSE
        self._retry_at = math.inf

    def build_if_due(self) -> None:
        """Build if a batch has written events since the last call, or a retry is due."""
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
        self.code = self._build.run(tables)
        if self.code == DONE:
            self._pause, self._retry_at = FIRST_PAUSE, math.inf
        else:
            self._retry_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)


def _options_of_parse(arguments: list[str]) -> dict[str, Any]:
    """The options that a dbt command is given, by words or variables, and `parse` has."""
    known = {parameter.name for parameter in cli.commands["parse"].params}
    options: dict[str, Any] = {}
    context: click.Context | None = args_to_context(arguments)
    while context is not None:
        for name, value in context.params.items():
            if context.get_parameter_source(name) in GIVEN and name in known:
                options[name] = value
        context = context.parent
    return options


def _code_of(error: BaseException | None) -> int:
    """The exit code of a build that ended with an error: dbt wraps those of its plugins."""
    while error is not None:
        if isinstance(error, UserError):
            return error.exit_code
        error = error.__cause__ or error.__context__
    return FAILED


def _show(event: EventMsg) -> None:
    """Log what dbt warns of, and each model that is built."""
    # Protobuf messages, whose fields have no types.
    info: Any = event.info
    if info.level == "warn":
        LOGGER.warning("dbt: %s", info.msg)
    elif info.name == NodeFinished.__name__:
        data: Any = event
        _show_model(data.data.node_info, data.data.run_result)


def _show_model(node: Any, result: Any) -> None:
    if node.resource_type != NodeType.Model or result.status != NodeStatus.Success:
        return
    name = f"{node.node_relation.schema}.{node.node_relation.alias}"
    rows = None
    if node.materialized in OUR_TABLES:
        # What writes nothing says so to dbt; Spark does not tell it of what is written.
        is_written = dict(result.adapter_response).get("rows_affected") != 0
        rows = rows_of_newest_commit(lake_root(), name) if is_written else 0
    if rows is not None:
        metrics.rows_changed.labels(name).inc(rows)
    LOGGER.info(
        "%s: %s%.1f s",
        name,
        "" if rows is None else f"{rows:,} rows, ",
        result.execution_time,
        extra={"model": name, "rows": rows, "seconds": result.execution_time},
    )
