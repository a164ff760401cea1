"""The dbt project, run in the process and the session of the ingest: no JVM starts twice.

Importing dbt takes more than a second, so that only what builds imports this module.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import pickle
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from dbt.artifacts.resources.types import NodeType
from dbt.artifacts.schemas.results import NodeStatus
from dbt.cli.flags import args_to_context
from dbt.cli.main import cli, dbtRunner
from dbt.contracts.files import FilePath
from dbt.contracts.graph.manifest import Manifest
from dbt.events.types import (
    JinjaLogInfo,
    NodeFinished,
    RunningOperationCaughtError,
    RunningOperationUncaughtError,
)
from dbt_common.events.base_types import EventMsg

from cdc_lakehouse import metrics
from cdc_lakehouse.dbt import plugin
from cdc_lakehouse.dbt.package import profiles_option
from cdc_lakehouse.errors import DONE, FAILED, UserError
from cdc_lakehouse.serving.manifest import MANIFEST
from cdc_lakehouse.spark.lock import waited_lock
from cdc_lakehouse.storage.clock import note
from cdc_lakehouse.storage.place import lake_root
from cdc_lakehouse.storage.timeline import rows_of_newest_commit

BAD = (NodeStatus.Error, NodeStatus.Fail, NodeStatus.RuntimeErr)
GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
QUIET = ("--log-level", "none", "--log-level-file", "info")
FAILED_OPERATION = (RunningOperationCaughtError, RunningOperationUncaughtError)
OUR_TABLES = ("cdc_merge", "cdc_history", "atomic_overwrite")
LOGGER = logging.getLogger("ingest")


class Project:
    """The project as dbt has parsed it, until a file of it changes, and a command on it.

    dbt takes a few tenths of a second to parse it, even where nothing has changed.

    Args:
        words: the command as it is typed after ``dbt``.

    Attributes:
        checksum: of all that was parsed and of the command; empty where it cannot be.
        bronze_tables: the names of those that it declares.
    """

    def __init__(self, words: list[str]) -> None:
        self._arguments = [*words, *profiles_option(Path())]
        self._pickled = b""
        self._copy: Manifest | None = None
        self._times: dict[Path, float | None] = {}
        self._asked_at = 0.0
        self.checksum = ""
        self.bronze_tables: list[str] = []
        plugin.keep_parsed = self._keep

    def manifest(self) -> Manifest | None:
        """A copy of its own for each run, which changes it; None where dbt has to parse."""
        self._asked_at = time.time()
        if self._is_changed():
            return None
        if self._copy is None:
            self.make_copy()
        copy, self._copy = self._copy, None
        return copy

    def make_copy(self) -> None:
        """Make the next run's copy ahead, which takes a fifth of a second."""
        if self._pickled:
            self._copy = Manifest(**pickle.loads(self._pickled))

    def parse_changed(self) -> None:
        """Parse it again where a file has changed."""
        if self._is_changed():
            self.parse()

    def _is_changed(self) -> bool:
        return not self._pickled or any(
            _changed_at(path) != changed for path, changed in self._times.items()
        )

    def parse(self) -> None:
        """Parse it as the command will."""
        self.checksum = ""
        with suppress(Exception):  # whatever it is, the build meets it, too, and says so
            runner = dbtRunner(manifest=self.manifest(), callbacks=[_show])
            runner.invoke(
                [*QUIET, "parse", *profiles_option(Path())], **self._options_of_parse()
            )
            self.make_copy()

    def open_metastore(self, session: Any) -> None:
        """Open the metastore in a thread, where the command will."""
        plugin.open_ahead(session, self._options_of_parse().get("target"))

    @property
    def manifest_file(self) -> Path:
        """What dbt writes of the project with each run."""
        folder = self._options_of_parse().get("target_path")
        return Path(folder, MANIFEST.name) if folder else MANIFEST

    def run(self, selection: list[str]) -> int:
        """Run the command; log each model and what failed.

        Args:
            selection: further words of the command.

        Returns:
            An exit code: 75 where something holds a lock that the command needs.
        """
        return self._invoke([*self._arguments, *selection])

    def drop_old_bronze_days(self) -> None:
        """Drop the days of bronze that the project keeps no longer; log which.

        The caller holds the ingest's locks, and writes no bronze meanwhile.
        """
        plugin.hold_ingest()
        # What `target` says of the last run is of the build.
        words = ["--no-write-json", "run-operation", "cdc_lakehouse.drop_old_bronze_days"]
        self._invoke([*words, *profiles_option(Path())], **self._options_of_parse())

    def _invoke(self, words: list[str], **options: Any) -> int:
        runner = dbtRunner(manifest=self.manifest(), callbacks=[_show])
        with waited_lock(lake_root(), plugin.UNDER_WAY):
            outcome = runner.invoke([*QUIET, *words], **options)
        note()
        if outcome.exception is not None:
            LOGGER.error("dbt: %s", _line(outcome.exception))
        for node in getattr(outcome.result, "results", None) or []:
            if node.status in BAD:
                name = node.node.name
                message = _line(node.message)
                LOGGER.error("dbt: %s: %s", name, message, extra={"model": name})
        return DONE if outcome.success else _code_of(outcome.exception)

    def refreshes(self) -> bool:
        """Whether the command is a full refresh, by a word or a variable."""
        return bool(self._options().get("full_refresh"))

    def _options_of_parse(self) -> dict[str, Any]:
        """The options that the command is given and `parse` has."""
        known = {parameter.name for parameter in cli.commands["parse"].params}
        return {name: given for name, given in self._options().items() if name in known}

    def _options(self) -> dict[str, Any]:
        """The options that the command is given, by words or variables."""
        options: dict[str, Any] = {}
        try:
            context: click.Context | None = args_to_context(self._arguments)
        except (click.ClickException, click.exceptions.Exit):
            return {}  # the build says so
        while context is not None:
            for name, value in context.params.items():
                if context.get_parameter_source(name) in GIVEN:
                    options[name] = value
            context = context.parent
        return options

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
        files = {each.file_id: each.checksum.checksum for each in manifest.files.values()}
        parsed = (files, manifest.state_check.to_dict(), manifest.env_vars, self._arguments)
        text = json.dumps(parsed, sort_keys=True, default=str)
        self.checksum = hashlib.sha256(text.encode()).hexdigest()
        sources = manifest.sources.values()
        self.bronze_tables = [it.name for it in sources if it.source_name == "bronze"]


def _changed_at(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _code_of(error: BaseException | None) -> int:
    """The exit code of a build that ended with an error: dbt wraps those of its plugins."""
    while error is not None:
        if isinstance(error, UserError):
            return error.exit_code
        error = error.__cause__ or error.__context__
    return FAILED


def _line(message: object) -> str:
    """What dbt says in several lines, in one."""
    return " ".join(str(message).split())


def _show(event: EventMsg) -> None:
    """Log what dbt warns of, and each model that is built."""
    # Protobuf messages, whose fields have no types.
    info: Any = event.info
    if info.level == "warn":
        LOGGER.warning("dbt: %s", _line(info.msg))
    elif info.name == JinjaLogInfo.__name__:
        LOGGER.info("dbt: %s", _line(info.msg))
    elif info.name in {each.__name__ for each in FAILED_OPERATION}:
        LOGGER.error("dbt: %s", _line(info.msg))
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
