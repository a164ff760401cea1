"""Hudi's timelines, read as files: the commits of a table, and what each says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError
from pyarrow import fs

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.files import file_system
from cdc_lakehouse.storage.marks import MARK

INSTANT = "%Y%m%d%H%M%S%f"
# What a completed write is called, by its kind.
COMMITS = (".commit", ".replacecommit", ".deltacommit")


def tables(files: fs.FileSystem, folder: str) -> list[str]:
    """The tables of a schema's folder, by name."""
    selector = fs.FileSelector(folder, allow_not_found=True)
    return sorted(
        info.base_name
        for info in files.get_file_info(selector)
        if info.type == fs.FileType.Directory
    )


def rows_of_newest_commit(root: str, table: str) -> int | None:
    """The rows that a table's newest commit inserted, updated or deleted.

    Args:
        root: the lake.
        table: ``<schema>.<table>``.

    Returns:
        None where that cannot be read.
    """
    schema, _, name = table.partition(".")
    try:
        files, place = file_system(root)
        newest = newest_commit(files, f"{place}/warehouse/{schema}.db/{name}")
    except (OSError, UserError, BotoCoreError):
        return None
    return None if newest is None else newest[1]


def newest_commit(files: fs.FileSystem, table: str) -> tuple[datetime, int] | None:
    """The time of the newest commit, and the rows that it changed."""
    name = newest_instant(files, table)
    if name is None:
        return None
    with content(files, f"{table}/.hoodie/{name}") as text:
        rows = sum(
            stat[kind]
            for stats in json.loads(text)["partitionToWriteStats"].values()
            for stat in stats
            for kind in ("numInserts", "numUpdateWrites", "numDeletes")
        )
        return time_of(name), rows


def newest_instant(files: fs.FileSystem, table: str) -> str | None:
    """The name of the newest commit's file; None before the first."""
    selector = fs.FileSelector(f"{table}/.hoodie", allow_not_found=True)
    names = (info.base_name for info in files.get_file_info(selector))
    return max((name for name in names if name.endswith(COMMITS)), default=None)


def time_of(name: str) -> datetime:
    """When the commit of a file's name began."""
    instant = name.partition(".")[0]
    return datetime.strptime(f"{instant}000", INSTANT).replace(tzinfo=UTC)


def bronze_commits(files: fs.FileSystem, table: str) -> list[str]:
    """A bronze table's completed commits by the ingest, the newest first."""
    selector = fs.FileSelector(f"{table}/.hoodie", allow_not_found=True)
    paths = [info.path for info in files.get_file_info(selector)]
    return sorted((path for path in paths if path.endswith(".commit")), reverse=True)


def mark_of(files: fs.FileSystem, path: str) -> dict[str, Any] | None:
    """The mark in a commit of bronze (``marks.Mark``), None where it has none."""
    with content(files, path) as found:
        text = json.loads(found)["extraMetadata"].get(MARK)
        return None if text is None else json.loads(text)


@contextmanager
def content(files: fs.FileSystem, path: str) -> Iterator[str]:
    """A file's text for the block, which may find that it is not as it was written.

    Raises:
        UserError: it is not; a power cut may leave less.
    """
    try:
        with files.open_input_file(path) as file:
            found = file.read()
        yield found.decode()
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is damaged ({error}): restore it from a backup, or the whole table"
        ) from error
