"""How a table is stored is one line of its model, and changes no row.

The museum's artists come to three tables of one model: copy-on-write and merge-on-read,
each partitioned by nationality, and merge-on-read with a bucket index. Trino reads copies
of the lake's files on S3 (moto's server).
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hudi import HudiReadOptions

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.tables import open_table
from lab.stack.trino_server import Trino
from tests.conftest import NewLake
from tests.support.aws import Aws
from tests.support.project import (
    MOMA,
    PROJECT,
    replace_once,
    write_rejected_rows,
    write_topics,
)
from tests.support.records import START_MS, Record, flattened, record
from tests.support.small_project import SOURCES, small_project

pytestmark = pytest.mark.thorough

TOPIC = "demo.datalake.artists"
MODEL = """
{{{{ config(unique_key='artist_id', {settings}) }}}}

{{{{ current_rows(ref('stg_artists')) }}}}
"""
BUCKETS = "'hoodie.index.type': 'BUCKET', 'hoodie.bucket.index.num.buckets': '2'"
STORAGE = {
    "artists": "partition_by='nationality'",
    "merged": "partition_by='nationality', tblproperties={'type': 'mor'}",
    "bucketed": f"tblproperties={{'type': 'mor', {BUCKETS}}}",
}
MERGE_ON_READ = ("merged", "bucketed")
NAMES = ("artist_id", "name", "nationality")
PAGE = (PROJECT / "docs/storage.md").read_text()
AS_OF, CHANGED = re.findall(r"^```sql\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
# Settings that cannot work, with what is said of them.
WRONG = {
    "partition_by='birth_year'": "setting 'partition_by' is birth_year, which is int",
    "partition_by='nation'": "setting 'partition_by' is nation, which is no column",
    "partition_by='artist_id'": "is artist_id; it is the name of one column",
    "partition_by=['nationality', 'gender']": "it is the name of one column",
    "tblproperties={'type': 'merge'}": "'type' is 'merge'; supported: cow, mor",
    f"partition_by='nationality', tblproperties={{{BUCKETS}}}": (
        "'hoodie.index.type' is 'BUCKET': with 'partition_by' only GLOBAL_SIMPLE"
    ),
    "tblproperties={'hoodie.index.type': 'BUCKET'}": (
        "needs the table property 'hoodie.bucket.index.num.buckets'"
    ),
}


def artist(
    lsn: int, op: str, key: int, nationality: str | None = None, **row: Any
) -> Record:
    """An artist's change; a delete brings the key and nothing else."""
    if op != "d":
        row = {"name": f"Artist {key}", "nationality": nationality} | row
    at = START_MS + 1000 * lsn
    value = flattened(op, {"artist_id": key} | row, lsn, at, table="artists")
    return record({"artist_id": key}, value, lsn, topic=TOPIC)


class Museum:
    """A lake of the project with these tables."""

    def __init__(self, new_lake: NewLake, folder: Path) -> None:
        small_project(folder)
        write_topics(folder, {TOPIC: "artists"})
        self.lake = new_lake(project=folder)
        self.models = folder / "models"
        for file in self.models.rglob("*.sql"):
            file.unlink()
        sources = SOURCES.replace("cdc_events", "artists")
        (self.models / "staging/_sources.yml").write_text(sources)
        self.text = (MOMA / "models/staging/stg_artists.sql").read_text()
        self.staging = self.models / "staging/stg_artists.sql"
        self.staging.write_text(self.text)
        replace_once(self.staging, "        'death_year': 'int',\n", "")
        for name, settings in STORAGE.items():
            self.store(name, settings)
        history = (MOMA / "models/silver/artists_history.sql").read_text()
        (self.models / "silver/artists_history.sql").write_text(
            history.replace("cdc_lakehouse.", "")
        )
        write_rejected_rows(self.models)

    def store(self, name: str, settings: str) -> None:
        """Have a model with these settings."""
        (self.models / f"silver/{name}.sql").write_text(MODEL.format(settings=settings))

    def build(self, *events: Record) -> None:
        """Bring events to silver."""
        self.lake.land(events)
        assert self.lake.ingest().code == 0
        self.manifest = Path(self.lake.dbt("run")["target"], "manifest.json")

    def messages(self, names: str) -> dict[str, str]:
        """What ``dbt run`` reports of each of some models, which must fail."""
        nodes = self.lake.try_dbt("run", "-s", names)["nodes"]
        # The others are dbt's hooks.
        found = {name: node for name, node in nodes.items() if node["kind"] == "model"}
        assert {node["status"] for node in found.values()} == {"error"}
        return {name: node["message"] for name, node in found.items()}

    def base_names(self, table: str) -> dict[int, str | None]:
        """The names in a merge-on-read table without its logs, as ``_ro`` has them."""
        options = HudiReadOptions(
            projection=["artist_id", "name"],
            hudi_options={"hoodie.read.use.read_optimized.mode": "true"},
        )
        opened = open_table(str(self.lake.tables.path(f"silver.{table}")))
        return {
            row["artist_id"]: row["name"]
            for batch in opened.read(options)
            for row in batch.to_pylist()
        }

    def same_rows(self) -> list[list[str]]:
        """The rows of every table as Spark sees them, which are the same."""
        found = [
            self.lake.sql(
                "select artist_id, nationality, name, is_deleted,"
                f" source_position, carried_columns from silver.{table}"
                " order by artist_id"
            )
            for table in STORAGE
        ]
        assert found[0] == found[1] == found[2]
        return found[0]

    def live(self) -> list[list[Any]]:
        """What the live rows of the copy-on-write table have."""
        rows = self.lake.rows("silver.artists")
        live = [[row[name] for name in NAMES] for row in rows if not row["is_deleted"]]
        return sorted(live, key=lambda row: row[0])

    def nationalities(self) -> list[list[str]]:
        """Where each artist is."""
        return [row[:2] for row in self.same_rows()]


@pytest.fixture(scope="module")
def museum(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Museum:
    """Five artists in every table."""
    museum = Museum(new_lake, tmp_path_factory.mktemp("storage") / "project")
    museum.build(
        artist(1, "c", 1, "American"),
        artist(2, "c", 2, "French"),
        artist(3, "c", 3, None),
        artist(4, "c", 4, "Bosnian/Herzegovinian = 100 %"),
        artist(5, "c", 5, "American"),
    )
    return museum


def test_first_build_is_equal(museum: Museum) -> None:
    assert len(museum.same_rows()) == 5
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
        artist(14, "u", 5, "American", name="Renamed"),
    )
    assert museum.nationalities() == [
        *(["1", "French"], ["2", "None"], ["3", "Polish"]),
        *(["4", "Bosnian/Herzegovinian = 100 %"], ["5", "American"]),
    ]
    moved = museum.lake.sql(
        "select _hoodie_partition_path from silver.merged"
        " where artist_id < 3 order by artist_id"
    )
    assert moved == [["nationality=French"], ["nationality=__HIVE_DEFAULT_PARTITION__"]]


def test_logs_are_merged_when_read_and_by_compaction(museum: Museum) -> None:
    """``_ro`` is old until then; ``_rt``, and Spark, never are."""
    lake = museum.lake
    for name in MERGE_ON_READ:
        assert museum.base_names(name)[5] == "Artist 5", name
        # What ``hudi`` 0.5.0 cannot do: a timestamp within a list of a log.
        with pytest.raises(UserError, match="column 'carried_columns'"):
            lake.rows(f"silver.{name}")
    lake.dbt("run-operation", "compact")
    museum.same_rows()
    rows = lake.rows("silver.artists")
    names = {row["artist_id"]: row["name"] for row in rows}
    for name in MERGE_ON_READ:
        assert museum.base_names(name) == names, name
        found = [
            {column: row[column] for column in rows[0]}
            for row in lake.rows(f"silver.{name}")
        ]
        assert sorted(found, key=repr) == rows, name


def test_trino_reads_what_is_compacted(museum: Museum, aws: Aws, trino: Trino) -> None:
    """It leaves the logs of merge-on-read out, by whatever name, until a compaction.

    Of the past it is asked as docs/storage.md does.
    """

    def in_trino(table: str) -> list[list[Any]]:
        columns = ", ".join(NAMES)
        where = "where not is_deleted order by artist_id"
        found = trino.rows(f"select {columns} from {table} {where}")
        # What Trino's connector makes of a null in a partition column.
        return [[None if value == r"\N" else value for value in row] for row in found]

    before = museum.live()
    museum.build(artist(15, "u", 5, "American", name="Again"))
    after = museum.live()
    for state, merged in (("logged", before), ("compacted", after)):
        if state == "compacted":
            museum.lake.dbt("run-operation", "compact")
        aws.serve(museum.lake.tables, museum.manifest, state)
        assert in_trino(f"{state}_silver.artists") == after
        for suffix in ("", "_ro", "_rt"):
            assert in_trino(f"{state}_silver.merged{suffix}") == merged, (state, suffix)

    def asked(statement: str, lsn: int) -> list[list[Any]]:
        time = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(seconds=lsn)
        text = statement.replace("lake_", "compacted_")
        return trino.rows(text.replace("2026-01-31 12:00:00", f"{time:%Y-%m-%d %H:%M:%S}"))

    assert asked(AS_OF, 14) == before
    assert asked(AS_OF, 15) == after
    [deleted, *_] = [row for row in asked(CHANGED, 5) if row[0] == 2]
    assert deleted[1:3] == ["c", "French"] and deleted[4] is not None
    assert {row[0] for row in asked(CHANGED, 5)} == {1, 2, 3, 5}
    assert {row[0] for row in asked(CHANGED, 14)} == {5}
    assert asked(CHANGED, 15) == []


def test_late_events_a_new_column_clustering_and_a_full_refresh(museum: Museum) -> None:
    """A full refresh also where something has Spark overwrite single partitions."""
    for name in ("artists", "merged"):
        done = f"op => 'scheduleAndExecute', table => 'silver.{name}'"
        museum.lake.sql(f"call run_clustering({done})")
    museum.same_rows()
    museum.staging.write_text(museum.text)
    museum.build(
        artist(21, "u", 1, "American", death_year=1950),
        artist(22, "c", 2, "French", death_year=1951),
        artist(10, "u", 3, "Danish"),
        artist(23, "d", 4),
    )
    assert museum.nationalities() == [
        *(["1", "American"], ["2", "French"], ["3", "Polish"], ["4", "None"]),
        ["5", "American"],
    ]
    [year] = museum.lake.sql("select death_year from silver.merged where artist_id = 1")
    assert year == ["1950"]
    before = museum.same_rows()
    museum.lake.sql("set spark.sql.sources.partitionOverwriteMode = dynamic")
    museum.lake.dbt("run", "--full-refresh")
    museum.lake.sql("set spark.sql.sources.partitionOverwriteMode = static")
    assert museum.same_rows() == before


def test_storage_that_cannot_work_is_an_error(museum: Museum) -> None:
    for number, settings in enumerate(WRONG):
        museum.store(f"wrong_{number}", settings)
    said = museum.messages("wrong_*")
    for number, expected in enumerate(WRONG.values()):
        assert expected in said[f"wrong_{number}"]


def test_storage_of_a_table_that_is_there_cannot_change(museum: Museum) -> None:
    museum.store("artists", STORAGE["merged"])
    reported = museum.messages("artists")["artists"]
    assert "silver.artists is stored as: cow, partition nationality" in reported
    assert "; the model says: mor, partition nationality" in reported
    assert "dbt run-operation drop_table --args '{table: silver.artists}'" in reported
