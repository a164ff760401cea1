"""A dbt plugin: one embedded build a lake, and a second one is told who is at work.

The embedded metastore (Derby) takes one process. Without this, a second `dbt build` ends
in a Java trace that names nobody. dbt loads every module on its path whose name starts
with ``dbt_`` and instantiates what it lists under ``plugins``.
"""

from contextlib import ExitStack
from pathlib import Path

from dbt.flags import get_flags
from dbt.plugins import dbtPlugin

from lake.errors import UserError
from lake.lock import only_one
from lake.metastore import remove_half_made
from lake.place import lake_root

# The commands that reach the metastore.
CONNECTING = {"build", "run", "test", "seed", "show", "source", "snapshot", "compile"}
CONNECTING |= {"run-operation", "freshness", "generate", "docs", "retry"}
BUILDING = {"build", "run"}

_held = ExitStack()
_is_held = False


class SingleBuild(dbtPlugin):
    """Takes the lake's lock for as long as this process lives."""

    def initialize(self) -> None:
        """Take the lock, once a process; refuse if another process has it.

        Refuse, too, to build a lake that holds nothing, and to document one that holds
        no tables of dbt's.
        """
        global _is_held
        flags = get_flags()
        embedded = getattr(flags, "TARGET", None) in (None, "embedded")
        command = getattr(flags, "WHICH", None)
        if not embedded or command not in CONNECTING:
            return
        try:
            lake = lake_root()
        except UserError as error:
            raise RuntimeError(str(error)) from error
        if command in BUILDING and not _has(lake, "bronze"):
            raise RuntimeError(
                f"nothing has been ingested into {lake} (LAKE_ROOT): run python -m"
                " ingest first"
            )
        if command == "generate" and not _has(lake, "silver"):
            raise RuntimeError(
                f"nothing has been built in {lake} (LAKE_ROOT): run dbt build first"
            )
        if _is_held:
            return
        try:
            _held.enter_context(only_one(lake, "dbt build"))
        except UserError as error:
            raise RuntimeError(str(error)) from error
        _is_held = True
        remove_half_made()


def _has(lake: str, layer: str) -> bool:
    return "://" in lake or (Path(lake) / f"warehouse/{layer}.db").exists()


plugins = [SingleBuild]
