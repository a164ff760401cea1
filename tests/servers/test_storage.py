"""How a table is stored is one line of its model, and changes no row.

The museum's artists come to three tables of one model: copy-on-write and merge-on-read,
each partitioned by nationality, and merge-on-read with a bucket index.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hudi import HudiReadOptions

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.tables import open_table
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import MOMA, write_rejected_rows
from tests.support.records import Record, flattened, record
from tests.support.small_project import small_project

TOPIC = "demo.datalake.artists"
SOURCES = """
sources:
  - name: bronze
    schema: bronze
    tables:
      - name: artists
      - name: rejected_events
"""
MODEL = """
{{{{ config(unique_key='constituent_id', {settings}) }}}}

{{{{ current_rows(ref('stg_artists')) }}}}
"""
BUCKETS = "'hoodie.index.type': 'BUCKET', 'hoodie.bucket.index.num.buckets': '2'"
STORAGE = {
    "artists": "partition_by='nationality'",
    "merged": "partition_by='nationality', tblproperties={'type': 'mor'}",
    "bucketed": f"tblproperties={{'type': 'mor', {BUCKETS}}}",
}
MERGE_ON_READ = ("merged", "bucketed")
COLUMN = "        'ulan': 'string',\n"


def artist(
    lsn: int, op: str, key: int, nationality: str | None = None, **row: Any
) -> Record:
    """An artist's change; a delete brings the key and nothing else."""
    if op != "d":
        row = {"display_name": f"Artist {key}", "nationality": nationality} | row
    value = flattened(op, {"constituent_id": key} | row, lsn, table="artists")
    return record({"constituent_id": key}, value, lsn, topic=TOPIC)


class Museum:
    """The project and its lake."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake = lake
        self.folder = small_project(folder)
        self.models = self.folder / "models"
        for layer in ("staging", "silver"):
            shutil.rmtree(self.models / layer)
            (self.models / layer).mkdir()
        (self.models / "staging" / "_sources.yml").write_text(SOURCES)
        staging = (MOMA / "models/staging/stg_artists.sql").read_text()
        assert COLUMN in staging
        self.staging = self.models / "staging" / "stg_artists.sql"
        self.staging.write_text(staging.replace(COLUMN, ""))
        for name, settings in STORAGE.items():
            self.store(name, settings)
        write_rejected_rows(self.models)

    def store(self, name: str, settings: str) -> None:
        """Have a model with these settings."""
        (self.models / "silver" / f"{name}.sql").write_text(MODEL.format(settings=settings))

    def build(self, *events: Record) -> None:
        """Bring events to silver."""
        self.lake.land(events)
        assert self.lake.ingest().code == 0
        self.lake.dbt("run", project=self.folder)

    def error(self, name: str) -> str:
        """What ``dbt run`` reports of a model, which must fail."""
        answer = self.lake.try_dbt("run", "-s", name, project=self.folder)
        assert not answer["success"]
        return json.dumps(answer["nodes"])

    def operate(self, operation: str, **arguments: str) -> None:
        """``dbt run-operation``, which must succeed."""
        said = ("--args", json.dumps(arguments)) if arguments else ()
        self.lake.dbt("run-operation", operation, *said, project=self.folder)

    def in_spark(self, table: str) -> list[list[str]]:
        """A table's rows as Spark sees them."""
        return self.lake.sql(
            "select constituent_id, display_name, nationality, is_deleted, source_position,"
            f" carried_columns from silver.{table} order by constituent_id"
        )

    def base_names(self, table: str) -> dict[int, str | None]:
        """The names in a merge-on-read table without its logs, as ``_ro`` has them."""
        options = HudiReadOptions(
            projection=["constituent_id", "display_name"],
            hudi_options={"hoodie.read.use.read_optimized.mode": "true"},
        )
        opened = open_table(str(self.lake.tables.path(f"silver.{table}")))
        return {
            row["constituent_id"]: row["display_name"]
            for batch in opened.read(options)
            for row in batch.to_pylist()
        }

    def assert_equal(self) -> None:
        """Every table has the rows of the copy-on-write one for Spark."""
        expected = self.in_spark("artists")
        for name in STORAGE:
            assert self.in_spark(name) == expected, name

    def nationalities(self) -> dict[int, str | None]:
        """Where each artist is, read without Spark."""
        rows = self.lake.rows("silver.artists")
        found = {row["constituent_id"]: row["nationality"] for row in rows}
        assert len(found) == len(rows)
        return found


@pytest.fixture(scope="module")
def museum(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Museum:
    """Five artists in every table."""
    folder = tmp_path_factory.mktemp("storage")
    topics = folder / "topics.toml"
    topics.write_text(f'[topics]\n"{TOPIC}" = "artists"\n')
    museum = Museum(new_lake(topics), folder / "project")
    museum.build(
        artist(1, "c", 1, "American"),
        artist(2, "c", 2, "French"),
        artist(3, "c", 3, None),
        artist(4, "c", 4, "Bosnian/Herzegovinian = 100 %"),
        artist(5, "c", 5, "American"),
    )
    return museum


def test_first_build_is_equal(museum: Museum) -> None:
    museum.assert_equal()
    for name in STORAGE:
        properties = museum.lake.tables.properties(f"silver.{name}")
        assert properties["hoodie.table.version"] == "6", name
        kind = "MERGE_ON_READ" if name in MERGE_ON_READ else "COPY_ON_WRITE"
        assert properties["hoodie.table.type"] == kind, name
    folders = museum.lake.tables.path("silver.artists").glob("nationality=*")
    assert {folder.name.partition("=")[2] for folder in folders} == {
        *("American", "French", "__HIVE_DEFAULT_PARTITION__"),
        "Bosnian%2FHerzegovinian %3D 100 %25",
    }


def test_rows_move_with_their_partition(museum: Museum) -> None:
    """Of a delete that brings the key only, too; no copy is left behind."""
    museum.build(
        artist(11, "u", 1, "French"),
        artist(12, "d", 2),
        artist(13, "u", 3, "Polish"),
        artist(14, "u", 5, "American", display_name="Renamed"),
    )
    museum.assert_equal()
    assert museum.nationalities() == {
        **{1: "French", 2: None, 3: "Polish", 4: "Bosnian/Herzegovinian = 100 %"},
        5: "American",
    }
    moved = museum.lake.sql(
        "select constituent_id, _hoodie_partition_path from silver.merged"
        " where constituent_id < 3 order by constituent_id"
    )
    assert moved == [
        ["1", "nationality=French"],
        ["2", "nationality=__HIVE_DEFAULT_PARTITION__"],
    ]


def test_logs_are_merged_when_read_and_by_compaction(museum: Museum) -> None:
    """``_ro`` is old until then; ``_rt``, and Spark, never are."""
    for name in MERGE_ON_READ:
        assert museum.base_names(name)[5] == "Artist 5", name
        # What ``hudi`` 0.5.0 cannot do: a timestamp within a list of a log.
        with pytest.raises(UserError, match="column 'carried_columns'"):
            museum.lake.rows(f"silver.{name}")
    museum.operate("compact")
    museum.assert_equal()
    rows = museum.lake.rows("silver.artists")
    for name in MERGE_ON_READ:
        assert museum.base_names(name) == {
            row["constituent_id"]: row["display_name"] for row in rows
        }, name
        found = [
            {column: row[column] for column in rows[0]}
            for row in museum.lake.rows(f"silver.{name}")
        ]
        assert sorted(found, key=repr) == rows, name


def test_clustering_changes_no_row(museum: Museum) -> None:
    for name in ("artists", "merged"):
        done = f"op => 'scheduleAndExecute', table => 'silver.{name}'"
        museum.lake.sql(f"call run_clustering({done})")
    museum.assert_equal()


def test_back_and_forth_with_a_new_column_and_a_late_event(museum: Museum) -> None:
    museum.staging.write_text((MOMA / "models/staging/stg_artists.sql").read_text())
    museum.build(
        artist(21, "u", 1, "American", ulan="500"),
        artist(22, "c", 2, "French", ulan="501"),
        artist(10, "u", 3, "Danish"),
        artist(23, "d", 4),
    )
    museum.assert_equal()
    assert museum.nationalities() == {
        **{1: "American", 2: "French", 3: "Polish", 4: None, 5: "American"}
    }
    (first, *_) = museum.lake.sql(
        "select ulan, nationality from silver.merged where constituent_id = 1"
    )
    assert first == ["500", "American"]


def test_full_refresh_gives_the_same(museum: Museum) -> None:
    """Also where something has set Spark to overwrite single partitions."""
    before = museum.in_spark("artists")
    museum.lake.sql("set spark.sql.sources.partitionOverwriteMode = dynamic")
    museum.lake.dbt("run", "--full-refresh", project=museum.folder)
    museum.lake.sql("set spark.sql.sources.partitionOverwriteMode = static")
    assert museum.in_spark("artists") == before
    museum.assert_equal()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("partition_by='begin_date'", "setting 'partition_by' is begin_date, which is int"),
        ("partition_by='nation'", "setting 'partition_by' is nation, which is no column"),
        (
            "partition_by='constituent_id'",
            "is constituent_id; it is the name of one column",
        ),
        ("partition_by=['nationality', 'gender']", "it is the name of one column"),
        ("tblproperties={'type': 'merge'}", "'type' is 'merge'; supported: cow, mor"),
        (
            f"partition_by='nationality', tblproperties={{{BUCKETS}}}",
            "'hoodie.index.type' is 'BUCKET': with 'partition_by' only GLOBAL_SIMPLE",
        ),
        (
            "tblproperties={'hoodie.index.type': 'BUCKET'}",
            "needs the table property 'hoodie.bucket.index.num.buckets'",
        ),
    ],
)
def test_storage_that_cannot_work_is_an_error(
    museum: Museum, settings: str, said: str
) -> None:
    museum.store("wrong", settings)
    assert said in museum.error("wrong")
    (museum.models / "silver" / "wrong.sql").unlink()


def test_storage_of_a_table_that_is_there_cannot_change(museum: Museum) -> None:
    museum.store("artists", STORAGE["merged"])
    reported = museum.error("artists")
    assert "silver.artists is stored as: cow, partition nationality" in reported
    assert "; the model says: mor, partition nationality" in reported
    assert "dbt run-operation drop_table --args '{table: silver.artists}'" in reported
