"""Artists and artworks as the example models them, as Spark, Trino and ``hudi`` see them.

Silver is built in a local lake, and its files are put to S3 (moto's server), where Glue and
Athena's engine find them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from trino.exceptions import TrinoQueryError

from examples.moma.source import KEYS, Collection
from tests.conftest import NewLake
from tests.support.aws import Aws
from tests.support.lake import Lake
from tests.support.project import MOMA, PROJECT
from tests.support.records import Row
from tests.support.trino_server import Trino

pytestmark = pytest.mark.timeout(900)

EDITS: dict[str, Row] = {"artists": {"end_date": 2026}, "artworks": {"medium": "Bronze"}}
# What Trino's connector makes of a null in a partition column.
NULL = r"\N"
AS_OF, CHANGED = re.findall(
    r"^```sql\n(.*?)^```",
    (PROJECT / "docs" / "storage.md").read_text(),
    re.DOTALL | re.MULTILINE,
)


class Museum:
    """The source, its lake, and copies of the lake's files on S3."""

    def __init__(self, lake: Lake, aws: Aws) -> None:
        self.lake = lake
        self.aws = aws
        self.source = Collection(seed=1929)
        self.manifest = Path()
        # By state: what the source had when it was copied.
        self.states: dict[str, dict[str, dict[int, Row]]] = {}
        # By state: when the source had that.
        self.times: dict[str, str] = {}

    def build(self) -> None:
        """Bring the source's changes to silver."""
        self.lake.land(self.source.taken())
        assert self.lake.ingest().code == 0
        done = self.lake.dbt("build", project=MOMA)
        self.manifest = Path(done["target"]) / "manifest.json"

    def copy(self, state: str) -> None:
        """Put the tables to S3 as they are now, and into Glue below the state's name."""
        self.states[state] = {
            table: {key: plain(row) for key, row in rows.items()}
            for table, rows in self.source.rows.items()
        }
        self.times[state] = f"{self.source.time:%Y-%m-%d %H:%M:%S}"
        self.aws.serve(self.lake.tables, self.manifest, state)

    def logs(self, state: str) -> list[str]:
        """The log files of the merge-on-read table in a state."""
        pages = self.aws.client("s3").get_paginator("list_objects_v2")
        found = pages.paginate(
            Bucket="lake", Prefix=f"{state}/warehouse/silver.db/artworks/nationality="
        )
        names = [each["Key"] for page in found for each in page.get("Contents", ())]
        return [name for name in names if ".log." in name]

    def in_spark(self, table: str) -> dict[int, Row]:
        """A table's live rows as Spark sees them now."""
        columns = ", ".join(self.columns(table))
        found = self.lake.sql(
            f"select to_json(struct({columns}), map('ignoreNullFields', 'false'))"
            f" from silver.{table} where not is_deleted"
        )
        return by_key(table, [json.loads(text) for (text,) in found])

    def without_spark(self, table: str) -> dict[int, Row]:
        """A table's live rows as ``hudi`` sees them now."""
        columns = self.columns(table)
        found = self.lake.rows(f"silver.{table}")
        return by_key(
            table,
            [
                {name: row[name] for name in columns}
                for row in found
                if not row["is_deleted"]
            ],
        )

    def columns(self, table: str) -> list[str]:
        """The columns that the source has."""
        return [*self.source.rows[table][1]]


def plain(row: Row) -> Row:
    """A row whose dates are text, as JSON has them."""
    return {
        name: value if value is None or isinstance(value, int) else str(value)
        for name, value in row.items()
    }


def by_key(table: str, rows: list[Row]) -> dict[int, Row]:
    """Rows by their key, of which each has one."""
    found = {row[KEYS[table]]: plain(row) for row in rows}
    assert len(found) == len(rows)
    return found


def in_trino(museum: Museum, trino: Trino, state: str, name: str) -> dict[int, Row]:
    """A table's live rows as Trino sees them."""
    table = name.partition("_")[0]
    columns = museum.columns(table)
    found = trino.rows(
        f"select {', '.join(columns)} from {state}_silver.{name} where not is_deleted"
    )
    rows = [dict(zip(columns, row, strict=True)) for row in found]
    for row in rows:
        row["nationality"] = None if row["nationality"] == NULL else row["nationality"]
    return by_key(table, rows)


@pytest.fixture(scope="module")
def museum(new_lake: NewLake, aws: Aws) -> Museum:
    """The collection's first rows, changes of all kinds, edits alone, and a compaction."""
    museum = Museum(new_lake(MOMA / "topics.toml"), aws)
    source = museum.source
    source.add("artists", 40)
    source.add("artworks", 400)
    museum.build()
    museum.copy("first")
    for table in KEYS:
        source.move(table, 1, "Moved")
        source.move(table, 2, None)
        source.delete(table, 3)
        source.change(table, 150)
    museum.build()
    museum.copy("changed")
    for table in KEYS:
        source.edit(table, 1, **EDITS[table])
        source.edit(table, 2, **EDITS[table])
    museum.build()
    museum.copy("edited")
    museum.lake.dbt("run-operation", "compact", project=MOMA)
    museum.copy("compacted")
    return museum


def test_silver_is_the_collection(museum: Museum) -> None:
    for table in KEYS:
        expected = museum.states["compacted"][table]
        assert expected[1]["nationality"] == "Moved"
        assert museum.in_spark(table) == expected, table
        assert museum.without_spark(table) == expected, table


@pytest.mark.parametrize("state", ["first", "changed", "edited", "compacted"])
def test_copy_on_write_is_current_in_trino(
    museum: Museum, trino: Trino, state: str
) -> None:
    assert in_trino(museum, trino, state, "artists") == museum.states[state]["artists"]


def test_edits_alone_go_to_logs(museum: Museum) -> None:
    """Rows that come or move are written to files, and those of their partition too."""
    assert not museum.logs("first")
    assert not museum.logs("changed")
    assert museum.logs("edited")


@pytest.mark.parametrize("name", ["artworks", "artworks_ro", "artworks_rt"])
@pytest.mark.parametrize(
    ("state", "seen"),
    [
        ("first", "first"),
        ("changed", "changed"),
        ("edited", "changed"),
        ("compacted", "compacted"),
    ],
)
def test_merge_on_read_in_trino(
    museum: Museum, trino: Trino, state: str, seen: str, name: str
) -> None:
    """Trino's connector leaves the logs out, by whatever name."""
    assert in_trino(museum, trino, state, name) == museum.states[seen]["artworks"]


def test_past_is_asked_for_in_trino(museum: Museum, trino: Trino) -> None:
    """The statements of docs/storage.md."""
    with pytest.raises(TrinoQueryError, match="does not support versioned tables"):
        trino.rows(
            "select * from compacted_silver.artists"
            " for timestamp as of timestamp '2026-01-31 12:00:00 UTC'"
        )
    for state in ("first", "changed", "compacted"):
        rows = trino.rows(at(museum, AS_OF, museum.times[state]))
        artists = museum.states[state]["artists"].values()
        names = ("constituent_id", "display_name", "nationality")
        assert rows == [[artist[name] for name in names] for artist in artists], state

    changed = trino.rows(at(museum, CHANGED, museum.times["first"]))
    before, after = (museum.states[state]["artists"] for state in ("first", "compacted"))
    assert {row[0] for row in changed} >= {
        key for key in {*before, *after} if before.get(key) != after.get(key)
    }
    [was, moved, *_] = [row for row in changed if row[0] == 1]
    assert [was[1:3], moved[1:3]] == [["c", before[1]["nationality"]], ["u", "Moved"]]
    assert was[4] == moved[3]
    # A row that was deleted: its only version, and when it ended.
    [deleted] = [row for row in changed if row[0] == 3]
    assert deleted[1] == "c"
    assert deleted[4] is not None
    assert trino.rows(at(museum, CHANGED, museum.times["compacted"])) == []
    [[live]] = trino.rows(
        "select count(*) from compacted_silver.artists_history where is_current"
    )
    assert live == len(after)


def at(museum: Museum, statement: str, time: str) -> str:
    """A statement of the page, on the last copy, at a time of the source."""
    return statement.replace("lake_", "compacted_").replace("2026-01-31 12:00:00", time)
