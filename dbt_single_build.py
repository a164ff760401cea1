"""A dbt plugin: opens the session that dbt works in, and one embedded build at a time.

The session has the settings of ``lake.settings``, or is the one that is there; dbt-spark's
``method: session`` then takes it. The embedded metastore (Derby) takes one process: without
this, a second `dbt build` ends in a Java trace that names nobody. dbt loads every module on
its path whose name starts with ``dbt_`` and instantiates what it lists under ``plugins``.
"""

import atexit
import os
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from dbt.events.types import CommandCompleted
from dbt.flags import get_flags
from dbt.plugins import dbtPlugin
from dbt_common.events.base_types import EventLevel, EventMsg
from dbt_common.events.event_manager_client import add_callback_to_manager
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note

from lake.errors import UserError
from lake.folders import require_room
from lake.lock import only_one, only_one_anywhere
from lake.metastore import prepare
from lake.place import lake_root
from lake.session import is_given, spark_session

# The commands that reach the metastore.
CONNECTING = {"build", "run", "test", "seed", "show", "source", "snapshot", "compile"}
CONNECTING |= {"run-operation", "freshness", "generate", "docs", "retry"}
BUILDING = {"build", "run"}
# Those that write tables; on a cluster, others may run beside them.
WRITING = {*BUILDING, "seed", "snapshot", "retry", "run-operation"}
# The operations that write what the ingest writes, or may.
WRITING_BRONZE = {"erase_key", "drop_bronze_day", "remove_versions"}

_held = ExitStack()
_names: set[str] = set()


class SingleBuild(dbtPlugin):
    """Takes the lake's lock for as long as this process lives, and opens the session."""

    def initialize(self) -> None:
        """Prepare what the target of a command needs, if it connects to Spark."""
        flags = get_flags()
        target = getattr(flags, "TARGET", None) or os.environ.get("LAKE_TARGET", "embedded")
        command = getattr(flags, "WHICH", None)
        if command not in CONNECTING:
            return
        if target == "embedded":
            _prepare_embedded(command)
            add_callback_to_manager(_warn_of_full_disk)
            _hold(command, getattr(flags, "MACRO", None))
        elif target in ("cluster", "emr"):
            if not is_given():
                raise UserError(
                    f"the target `{target}` has no Spark here: run it with spark-submit"
                    " (docs/cluster.md)"
                )
            _hold(command, getattr(flags, "MACRO", None))


def _prepare_embedded(command: str) -> None:
    """Take the lake's lock on this machine.

    Refuse, too, to build a lake that holds nothing, and to document one that holds no
    tables of dbt's.
    """
    lake = lake_root()
    if command in BUILDING and not _has(lake, "bronze"):
        raise UserError(
            f"nothing has been ingested into {lake} (LAKE_ROOT): run python -m ingest first"
        )
    if command == "generate" and not _has(lake, "silver"):
        raise UserError(
            f"nothing has been built in {lake} (LAKE_ROOT): run dbt build first"
        )
    require_room(lake)
    _enter("dbt build", only_one(lake, "dbt build"))
    prepare()


def _warn_of_full_disk(event: EventMsg) -> None:
    """Where a command failed: what Derby says of a full disk is that it cannot write."""
    ended: Any = event  # protobuf messages, whose fields have no types
    if ended.info.name == CommandCompleted.__name__ and not ended.data.success:
        try:
            require_room(lake_root())
        except UserError as error:
            fire_event(Note(msg=str(error)), level=EventLevel.WARN)


def _hold(command: str, operation: str | None) -> None:
    """Open the session, and take the locks that other machines ask for."""
    session, lake = spark_session(), lake_root()
    names = ["dbt build"] if command in WRITING else []
    if operation in WRITING_BRONZE:
        _enter("ingest", only_one(lake, "ingest"))
        names.append("ingest")
    for name in names:
        _enter(f"{name}, anywhere", only_one_anywhere(session, lake, name))


def _enter(name: str, lock: AbstractContextManager[None]) -> None:
    """Take a lock, once a process, which has it until it ends."""
    if name not in _names:
        _held.enter_context(lock)
        _names.add(name)


def release() -> None:
    """Let go of all locks."""
    _held.close()
    _names.clear()


# Before Spark ends: the others need not wait until a provider notices.
atexit.register(release)


def _has(lake: str, layer: str) -> bool:
    return "://" in lake or (Path(lake) / f"warehouse/{layer}.db").exists()


plugins = [SingleBuild]
