"""A process that is killed anywhere: every state of the disk.

``tests/lake/test_crash.py`` says how, and takes a selection. Here a rerun starts from
every state that was recorded on the small lake; images that differ in nothing that a rerun
reads are one state.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_lakehouse.storage.tables import open_table
from ingest.bronze import COMMITS_A_CLUSTERING
from ingest.landing import LEDGER_FILES
from lab.benchmarks.settings import table_properties
from tests.conftest import NewLake
from tests.lake.test_crash import IN_FLIGHT, REQUESTED, creation_of
from tests.support.commands import run
from tests.support.crash_images import (
    BATCHES,
    SmallLake,
    content,
    event,
    record_ingest,
    small_lake,
)
from tests.support.lake import SparkProcess
from tests.support.scenario import order
from tests.support.small_project import TOPICS, small_project

# Up to a minute a group of reruns, where others use the machine too.
pytestmark = pytest.mark.timeout(900)

# Hudi records a new column in a commit of its own, which comes before the merge's.
ADDED = r"^sql insert into silver.orders"


@pytest.fixture(scope="module")
def small(
    spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SmallLake]:
    """Ingests and builds of a small lake, recorded."""
    lake = small_lake(spark, tmp_path_factory.mktemp("crash"), builds=3)
    yield lake
    lake.builds[0].lake.remove()


@pytest.mark.parametrize("number", [0, 1])
def test_ingest_is_completed_after_a_kill_anywhere(small: SmallLake, number: int) -> None:
    work = small.ingests[number]
    assert not work.failures(work.states)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [0, 1, 2])
def test_build_is_completed_after_a_kill_anywhere(small: SmallLake, number: int) -> None:
    """But where no build succeeds by itself, as test_crash.py shows."""
    work = small.builds[number]
    known = [
        image
        for table in (("silver.orders", "gold.by_customer") if number == 0 else ())
        for image in work.between(creation_of(table), r"^sql ")
    ]
    assert not work.failures(image for image in work.states if image not in known)


def test_new_column_is_added_after_a_kill(small: SmallLake) -> None:
    """While it was added, in the increment that adds it, and in the build before."""
    killed, work = small.builds[1:]
    assert not work.failures(work.at(REQUESTED, ADDED, IN_FLIGHT))
    (image,) = killed.at(IN_FLIGHT)
    killed.restore(image)
    work.rerun()


@pytest.mark.parametrize("command", ["ingest", "dbt"])
def test_unfinished_metastore_is_replaced(
    small: SmallLake, new_lake: NewLake, tmp_path: Path, command: str
) -> None:
    lake = new_lake(small.ingests[0].lake.topics)
    lake.land(BATCHES[0])
    assert lake.ingest().code == 0
    lake.release()
    # What a kill leaves that comes while Derby creates its database.
    (lake.root / "metastore" / "seg0").mkdir(parents=True)
    if command == "ingest":
        # The worker gives the ingest a session with the catalogue, as --then-build does.
        assert lake.ingest().code == 0
        assert lake.sql("show databases")
    else:
        lake.dbt("run", "-s", "stg_orders", project=small_project(tmp_path / "project"))
    assert (lake.root / "metastore" / "service.properties").exists()


def test_ingest_runs_while_another_process_has_the_metastore(
    small: SmallLake, new_lake: NewLake
) -> None:
    """It reads a table, too: without a checkpoint it must find out what bronze holds."""
    lake = new_lake(small.ingests[0].lake.topics)
    lake.land(BATCHES[0])
    assert lake.ingest().code == 0
    lake.land(BATCHES[1])
    shutil.rmtree(lake.root / "checkpoints")
    assert lake.sql("show databases")  # the embedded metastore takes one process
    ingest = ("ingest", "files", str(lake.landing), "--topics", str(lake.topics))
    run(sys.executable, "-m", *ingest, env=lake.environment())
    assert content(lake, "bronze") == small.ingests[1].expected


# What a live pipeline leaves that commits all day, for months.

GOLD = "gold.revenue_by_category"


def test_many_small_batches_leave_few_files(spark: SparkProcess, tmp_path: Path) -> None:
    """In table and ledger; a kill while files are made one loses and repeats nothing."""
    (tmp_path / "topics.toml").write_text(TOPICS)
    lake = spark.new_lake(tmp_path / "topics.toml")
    # With the one that created the table.
    files = [
        lake.land([event(100 + batch, "c", 100 + batch)])
        for batch in range(COMMITS_A_CLUSTERING - 2)
    ]
    assert lake.ingest(str(lake.landing), "--max-bytes", "1").code == 0
    lake.land(BATCHES[1])
    work = record_ingest(lake, tmp_path / "clustering")
    table = open_table(str(lake.tables.path("bronze.cdc_events")))
    assert len(table.get_file_slices()) < 3

    files[0].unlink()
    lake.land([event(200, "c", 200)])
    lake.land([event(201, "c", 201)])
    assert lake.ingest(str(lake.landing), "--max-bytes", "1").code == 0
    ledger = sorted((lake.root / "checkpoints" / "landing").glob("*.json"))
    assert len(ledger) < LEDGER_FILES
    remembered = {
        json.loads(text)["path"]
        for file in ledger
        for text in file.read_text().splitlines()
    }
    assert f"file:{files[1]}" in remembered
    assert f"file:{files[0]}" not in remembered
    assert lake.ingest(str(lake.landing)).counts == (0, 0, 0, 0)

    images = work.at(
        r"^create .*cdc_events/.hoodie/\d+\.replacecommit\.requested",
        r"^create .*cdc_events/.hoodie/\d+\.replacecommit\.inflight",
        r"^(create|rename) .*cdc_events/.hoodie/\d+\.replacecommit($|\.[^ri])",
    )
    failures = work.failures(images)
    lake.remove()
    assert not failures


def test_versions_and_commits_of_a_table_are_bounded(new_lake: NewLake) -> None:
    lake = new_lake()
    lake.build([order("c", 1, 100, 1)], "-s", f"+{GOLD.partition('.')[2]}")
    ours = table_properties()
    most = int(ours["hoodie.keep.max.commits"])
    for count in range(1, most + 15):
        row = f"'Tea', 'Tea', {count}, 1.00, 1.0000, 1.0, 1"
        lake.sql(f"insert overwrite table {GOLD} select {row}")
    table = lake.tables.path(GOLD)
    versions = sum(1 for _ in table.glob("*.parquet"))
    kept = int(ours["hoodie.clean.commits.retained"])
    assert kept <= versions <= kept + int(ours["hoodie.clean.trigger.max.commits"]) + 2
    assert sum(1 for _ in (table / ".hoodie").glob("*.replacecommit")) <= most
    [found] = lake.rows(GOLD)
    assert (found["category_name"], found["count_products"]) == ("Tea", most + 14)
