"""The lake's tables as a reader sees them that is not Spark, and when it saw them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hudi import HudiTable

from cdc_lakehouse.storage.tables import list_folder, open_table

Row = dict[str, Any]


def find_table(lake: Path | str, name: str) -> HudiTable | None:
    """``<layer>.<table>`` of a lake; None where there is no such table.

    Args:
        lake: its folder, or its ``s3://`` URL.
        name: the table's, with its layer.
    """
    layer, _, table = name.partition(".")
    place = find_place(lake, [layer], table)
    return None if place is None else table_at(lake, place)


def table_at(lake: Path | str, place: str) -> HudiTable:
    """The table at a place of a lake (see ``find_place``)."""
    return open_table(f"{lake if isinstance(lake, str) else lake.absolute()}/{place}")


def find_place(lake: Path | str, schemas: Sequence[str], table: str) -> str | None:
    """Where a table is in a lake; None where it is not written yet.

    Args:
        lake: its folder, or its ``s3://`` URL.
        schemas: whose folder it may be in, the first one first.
        table: its name.
    """
    for schema in schemas:
        place = f"warehouse/{schema}.db/{table}"
        properties = f"{place}/.hoodie/hoodie.properties"
        if isinstance(lake, str):
            is_there = bool(list_folder(f"{lake}/{properties}"))
        else:
            is_there = (lake / properties).exists()
        if is_there:
            return place
    return None


def table_names(lake: Path | str, layer: str) -> list[str]:
    """The names of the tables of a layer, in their order."""
    folder = f"warehouse/{layer}.db/"
    if isinstance(lake, str):
        return list_folder(f"{lake}/{folder}")
    return sorted(path.name for path in (lake / folder).glob("*/"))


def written_at(table: HudiTable, *, is_whole: bool = False) -> datetime | None:
    """When the newest commit of a table began, by Hudi's timeline; None before the first.

    Args:
        is_whole: only commits that wrote all rows anew, as gold's do. A new column is a
            commit of its own, before any row has it.
    """
    timeline = table.get_timeline()
    commits = timeline.get_completed_replacecommits()
    if not is_whole:
        commits = [*commits, *timeline.get_completed_commits()]
    if not commits:
        return None
    newest = max(commit.epoch_mills for commit in commits)
    return datetime.fromtimestamp(newest / 1000, UTC)
