"""The Hudi tables of a lake's folder, read without Spark."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cdc_lakehouse.storage.tables import open_table, read_columns
from cdc_lakehouse.storage.timeline import INSTANT
from tests.support.project import PROJECT
from tests.support.records import Row

# A small lake's warehouse, as a Spark of ours wrote it.
SMALL_LAKE = PROJECT / "tests/support/lakes/hudi-1.2.0.tar.xz"

# What a completed commit is called on a timeline of table version 6.
COMMITS = (".commit", ".replacecommit", ".deltacommit")


@dataclass
class Tables:
    """The tables below a folder's ``warehouse``, each named ``<layer>.<table>``."""

    folder: Path

    def path(self, table: str) -> Path:
        """Where a table is."""
        layer, _, name = table.partition(".")
        return self.folder / "warehouse" / f"{layer}.db" / name

    def rows(self, table: str) -> list[Row]:
        """A table's rows, always in the same order."""
        found: list[Row] = read_columns(open_table(str(self.path(table)))).to_pylist()
        return sorted(found, key=repr)

    def values_in_files(self, table: str, column: str) -> set[Any]:
        """The values of a column that any file of a table holds, of whichever version."""
        return {
            value
            for file in self.path(table).rglob("*.parquet")
            for value in pq.read_table(file, columns=[column])[column].to_pylist()
        }

    def file_groups(self, table: str) -> set[str]:
        """The ids of a table's file groups."""
        slices = open_table(str(self.path(table))).get_file_slices()
        return {each.file_id for each in slices}

    def count_scratch_rows(self) -> int:
        """How many rows of scratch views the lake still holds."""
        files = self.path("staging.scratch").rglob("*.parquet")
        return sum(pq.read_metadata(file).num_rows for file in files)

    def names(self) -> list[str]:
        """Every table."""
        return sorted(
            f"{folder.parent.parent.name.removesuffix('.db')}.{folder.parent.name}"
            for folder in (self.folder / "warehouse").glob("*.db/*/.hoodie")
        )

    def instants(self) -> dict[str, list[str]]:
        """The completed commits on the timeline of every table."""
        return {
            table: sorted(
                file.name
                for file in (self.path(table) / ".hoodie").rglob("*")
                if file.suffix in COMMITS
            )
            for table in self.names()
        }

    def commit_later(self, table: str, hours: int, kind: str = "commit") -> None:
        """Add a commit without rows after a table's newest."""
        timeline = self.path(table) / ".hoodie"
        newest = max(self.instants()[table])
        instant = datetime.strptime(f"{newest[:17]}000", INSTANT)
        content = json.loads((timeline / newest).read_text())
        content |= {"partitionToWriteStats": {}, "operationType": "UPSERT"}
        content.pop("partitionToReplaceFileIds", None)
        later = f"{instant + timedelta(hours=hours):{INSTANT}}"[:17]
        (timeline / f"{later}.{kind}").write_text(json.dumps(content))

    def properties(self, table: str) -> dict[str, str]:
        """A table's ``hoodie.properties``."""
        text = (self.path(table) / ".hoodie" / "hoodie.properties").read_text()
        pairs = [line.partition("=") for line in text.splitlines() if "=" in line]
        return {name: value for name, _, value in pairs}
