"""A dbt plugin: opens the session that dbt works in, and one embedded build at a time.

The session has the settings of ``cdc_lakehouse.spark.settings``, or is the one that is
there; dbt-spark's ``method: session`` then takes it. The embedded metastore (Derby) takes
one process: without this, a second `dbt build` ends in a Java trace that names nobody. dbt
loads every module on its path whose name starts with ``dbt_`` (``dbt_cdc_lakehouse``) and
instantiates what it lists under ``plugins``.
"""

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import click
from dbt.contracts.graph.manifest import Manifest
from dbt.events.types import CommandCompleted
from dbt.flags import get_flags
from dbt.plugins.manager import dbt_hook, dbtPlugin
from dbt_common.events.base_types import EventLevel, EventMsg
from dbt_common.events.event_manager_client import add_callback_to_manager
from dbt_common.events.functions import fire_event, get_metadata_vars
from dbt_common.events.types import Note

from cdc_lakehouse.dbt.package import link_package
from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.spark.lock import exclusive_lock, only_one_anywhere, waited_lock
from cdc_lakehouse.spark.metastore import (
    is_prepared,
    metastore,
    metastore_root,
    prepare,
)
from cdc_lakehouse.spark.session import is_given, spark_session
from cdc_lakehouse.storage import built
from cdc_lakehouse.storage.clock import newest_commit, require_later
from cdc_lakehouse.storage.folders import require_room
from cdc_lakehouse.storage.place import lake_root

# The commands that read tables (of `docs generate`, dbt names the second word alone), and
# those that write some; on a cluster, those that read may run beside them.
READING = {"test", "show", "compile", "generate", "freshness", "snapshot-freshness"}
BUILDING = {"build", "run"}
WRITING = {*BUILDING, "seed", "snapshot", "clone", "retry", "run-operation"}
# The operations that write what the ingest writes, or may.
WRITING_BRONZE = {
    *("erase_key", "drop_bronze_day", "drop_old_bronze_days"),
    *("remove_versions", "run_statement"),
}

# Held while tables are written, also by a process that builds again and again.
UNDER_WAY = "build under way"

# This machine's locks, which end with the process, and those that all machines ask for.
_here = ExitStack()
_anywhere = ExitStack()
_names: set[str] = set()

# What a process that builds again wants to know of a project that has been parsed.
keep_parsed: Callable[[Manifest], None] | None = None


class SingleBuild(dbtPlugin):
    """Takes the lake's lock for as long as this process lives, and opens the session."""

    def initialize(self) -> None:
        """Prepare what the target of a command needs, if it is a session of Spark's.

        dbt loads this module for every project of its environment: those that do not use
        the package ``cdc_lakehouse`` are left alone.
        """
        flags = get_flags()
        command = getattr(flags, "WHICH", None)
        loaded = click.get_current_context().obj
        if not link_package(loaded["project"]) or command not in READING | WRITING:
            return
        profile = loaded["profile"]
        if getattr(profile.credentials, "method", None) != "session":
            return
        target = profile.target_name
        if target not in ("cluster", "emr"):
            _prepare_embedded(command)
            add_callback_to_manager(_warn_of_full_disk)
        elif not is_given():
            raise UserError(
                f"the target `{target}` has no Spark here: run it with spark-submit"
                " (docs/cluster.md)"
            )
        _hold(command, _operation(flags))

    @dbt_hook
    def get_manifest_artifacts(self, manifest: Manifest) -> dict[str, Any]:
        """Hand a parsed project on, before a run changes it."""
        if keep_parsed is not None:
            keep_parsed(manifest)
        return {}


def _operation(flags: Any) -> str:
    """The macro that a command runs, without its package; of `retry`, the run before it."""
    macro = getattr(flags, "MACRO", None)
    if flags.WHICH == "retry":
        folder = Path(flags.PROJECT_DIR) / (flags.STATE or flags.TARGET_PATH or "target")
        with suppress(OSError):  # dbt says so itself
            results = json.loads((folder / "run_results.json").read_text(encoding="utf-8"))
            macro = results["args"].get("macro")
    return (macro or "").rpartition(".")[2]


def _prepare_embedded(command: str) -> None:
    """Take the lake's lock on this machine.

    Refuse, too, to build a lake that holds nothing, and to document one that holds no
    tables of dbt's.
    """
    lake = lake_root()
    # For `ingest status`, as a project may build several lakes.
    get_metadata_vars()["LAKE_ROOT"] = str(Path(lake).absolute())
    if command in BUILDING and not _has(lake, "bronze"):
        raise UserError(
            f"nothing has been ingested into {lake} (LAKE_ROOT): run python -m ingest first"
        )
    if command == "generate" and not _has(lake, "silver"):
        raise UserError(
            f"nothing has been built in {lake} (LAKE_ROOT): run dbt build first"
        )
    require_room(lake)
    try:
        # Not again: a thread may be making the database since (open_ahead).
        is_first = _enter(_here, "dbt build", exclusive_lock(lake, "dbt build"))
    except TransientError:
        if command not in READING or "://" in metastore_root():
            raise
        _read_copy(lake)
        return
    if is_first:
        prepare()
    if command in WRITING and keep_parsed is None:
        _enter(_here, UNDER_WAY, waited_lock(lake, UNDER_WAY))


def _tell(message: str) -> None:
    fire_event(Note(msg=message), level=EventLevel.INFO)


def _read_copy(lake: str) -> None:
    """Read the catalogue beside a process that has it: from a copy, made between builds.

    Derby's database is of one process. What it has committed is in its log, which the copy
    has, too.

    Raises:
        TransientError: the database is being made.
    """
    with waited_lock(lake, UNDER_WAY, tell=_tell):
        if not is_prepared() or not metastore().exists():
            raise TransientError(
                f"{metastore()} is being made by another process: run it again"
            )
        folder = tempfile.mkdtemp(prefix="cdc-lakehouse-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        shutil.copytree(
            metastore(), f"{folder}/metastore", ignore=shutil.ignore_patterns("*.lck")
        )
    os.environ["LAKE_METASTORE"] = folder


def open_ahead(session: Any, target: str | None) -> None:
    """Open the metastore that a build of this process will need, unless another builds.

    In a thread: it takes a second or two, and nothing else waits for it.
    """
    if _target(target) != "embedded":
        return
    try:
        if _enter(_here, "dbt build", exclusive_lock(lake_root(), "dbt build")):
            prepare()
    except TransientError:
        return  # the build says so
    Thread(target=_open_metastore, args=[session], daemon=True).start()


def _open_metastore(session: Any) -> None:
    with suppress(Exception):  # whatever it is, the build's first statement meets it, too
        session._jsparkSession.sharedState().externalCatalog().databaseExists("default")


def _target(given: str | None) -> str:
    return given or os.environ.get("LAKE_TARGET", "embedded")


def _warn_of_full_disk(event: EventMsg) -> None:
    """Where a command failed: what Derby says of a full disk is that it cannot write."""
    ended: Any = event  # protobuf messages, whose fields have no types
    if ended.info.name == CommandCompleted.__name__ and not ended.data.success:
        try:
            require_room(lake_root())
        except UserError as error:
            fire_event(Note(msg=str(error)), level=EventLevel.WARN)


def _hold(command: str, operation: str) -> None:
    """Open the session, and take the locks that other machines ask for."""
    lake = lake_root()
    names = ["dbt build"] if command in WRITING else []
    if operation in WRITING_BRONZE:
        _enter(_here, "ingest", exclusive_lock(lake, "ingest"))
        names.append("ingest")
    session = spark_session()
    # Before Spark's own end: then others need not wait until a provider notices.
    atexit.unregister(_anywhere.close)
    atexit.register(_anywhere.close)
    for name in names:
        _enter(_anywhere, f"{name}, anywhere", only_one_anywhere(session, lake, name))
    if names:
        built.forget(session, lake)
        # Whoever writes bronze may have another clock.
        without = "" if operation in WRITING_BRONZE else "bronze"
        require_later(newest_commit(session, f"{lake}/warehouse", without=without))


def _enter(stack: ExitStack, name: str, lock: AbstractContextManager[None]) -> bool:
    """Take a lock, once a process, which has it until it ends; whether it is taken now."""
    if name in _names:
        return False
    stack.enter_context(lock)
    _names.add(name)
    return True


def hold_ingest() -> None:
    """Take the ingest's locks for held: the ingest, which has them, is this process."""
    _names.update(("ingest", "ingest, anywhere"))


def release() -> None:
    """Let go of all locks."""
    _anywhere.close()
    _here.close()
    _names.clear()


def _has(lake: str, layer: str) -> bool:
    return "://" in lake or (Path(lake) / f"warehouse/{layer}.db").exists()


plugins = [SingleBuild]
