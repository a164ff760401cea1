"""A process that is killed at any point: the same command, run again, completes its work.

Ingest and build run once on a small lake (one topic, one silver table of few columns, one
gold table), undisturbed, and what a kill would leave is recorded before every statement of
dbt and before every change that Hudi or a checkpoint makes on the disk. See
``tests.support.crash_images`` for why the copies are what a kill leaves. After each
recorded kill the command runs again without help, and the tables must equal the
undisturbed ones.

CI takes a selection: each step of a commit once. ``make test-all`` and ``make nightly``
take every state that was recorded: images that differ in what a rerun may read.
Processes that are really killed are those of ``tests/servers/test_live.py``.
"""

import json
import shutil
import sys
from pathlib import Path

import pytest

from cdc_lakehouse.storage.tables import open_table
from ingest.bronze import COMMITS_A_CLUSTERING
from ingest.landing import LEDGER_FILES
from lab.benchmarks.settings import table_properties
from tests.conftest import NewLake
from tests.support.commands import run
from tests.support.crash_images import BATCHES, SmallLake, content, event, record_ingest
from tests.support.scenario import order
from tests.support.small_project import (
    COLUMNS,
    MORE_COLUMNS,
    TOPICS,
    add_gold,
    small_project,
)


def creation_of(table: str) -> str:
    """The first point at which a table has a folder of Hudi's and no properties yet."""
    return rf"^\w+ .*{table.replace('.', '.db/')}/\.hoodie/"


def commit_of(table: str) -> tuple[str, str, str, str]:
    """The points of a commit, as regular expressions.

    Its instant is requested, its files are written, it is complete, and what the model has
    read is recorded.
    """
    hoodie = f"{table.replace('.', '.db/')}/.hoodie"
    return (
        rf"^write .*{hoodie}/\d+\.\w+\.requested",
        rf"^(create|write) .*{hoodie}/.temp/",
        rf"^delete .*{hoodie}/.temp/",
        f"^sql alter table {table} set tblproperties",
    )


REQUESTED, IN_FLIGHT, COMMITTED, RECORDING = commit_of("silver.orders")


@pytest.fixture(scope="module")
def small(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """Two ingests and builds of a small lake, recorded."""
    folder = tmp_path_factory.mktemp("crash")
    project = small_project(folder / "project")
    add_gold(project)
    small = SmallLake(new_lake(project=project), folder)
    for _ in range(2):
        small.go_on(COLUMNS)
    return small


@pytest.fixture(scope="module")
def widened(small: SmallLake) -> SmallLake:
    """With an ingest and a build more, which adds a column to the model."""
    last = small.builds[-1]
    last.restore(last.images[-1])
    small.go_on(MORE_COLUMNS)
    return small


# Of each ingest and build the points at which it is killed.
INGESTS: list[tuple[str, ...]] = [
    (
        r"^create .*cdc_events/.hoodie/hoodie.properties$",
        r"^write .*cdc_events/.hoodie/hoodie.properties$",
        r"^create .*cdc_events/.hoodie/\d+\.commit\.requested",
        r"^write .*cdc_events/ingest_date.*parquet$",
        r"^create .*checkpoints/landing/.*part$",
    ),
    (
        r"^rename .*checkpoints/landing/",
        r"^write .*rejected_events/.hoodie/.*requested",
        r"^create .*cdc_events/.hoodie/.*requested",
        # Hudi 1.0.2 writes a commit in place.
        r"^(rename .*cdc_events/.hoodie/\d+\.commit\.|"
        r"write .*cdc_events/.hoodie/\d+\.commit$)",
    ),
]
BUILDS: list[tuple[str, ...]] = [
    (IN_FLIGHT, COMMITTED),
    (REQUESTED, IN_FLIGHT, COMMITTED, RECORDING, *commit_of("gold.by_customer")),
]


@pytest.mark.parametrize("number", [0, 1])
def test_ingest_and_build_are_completed_after_a_kill(number: int, small: SmallLake) -> None:
    ingest, build = small.ingests[number], small.builds[number]
    assert ingest.failures(ingest.at(*INGESTS[number])) == {}
    assert build.failures(build.at(*BUILDS[number])) == {}


def test_table_whose_creation_was_killed_is_created_once_its_folder_is_removed(
    small: SmallLake,
) -> None:
    """A kill may leave no hoodie.properties or an empty one, which stops every build."""
    work = small.builds[0]
    without, empty = work.at(
        creation_of("silver.orders"), r"^write .*silver.db/orders/.hoodie/hoodie.properties"
    )
    for image, error in [
        (without, "HoodieIOException: Could not load Hoodie properties"),
        (empty, "TableNotFoundException: Hoodie table not found"),
    ]:
        work.restore(image)
        with pytest.raises(AssertionError, match=error):
            work.check_rerun()
    shutil.rmtree(work.lake.tables.path("silver.orders"))
    work.check_rerun()


# Every state of the disk

# Hudi records a new column in a commit of its own, which comes before the merge's.
ADDED = r"^sql insert into silver.orders"


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 1])
def test_ingest_is_completed_after_a_kill_anywhere(small: SmallLake, number: int) -> None:
    work = small.ingests[number]
    assert not work.failures(work.states)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [0, 1, 2])
def test_build_is_completed_after_a_kill_anywhere(widened: SmallLake, number: int) -> None:
    """But where no build succeeds by itself, as is shown above."""
    work = widened.builds[number]
    known = [
        image
        for table in (("silver.orders", "gold.by_customer") if number == 0 else ())
        for image in work.between(creation_of(table), r"^sql ")
    ]
    assert not work.failures(image for image in work.states if image not in known)


@pytest.mark.thorough
def test_new_column_is_added_after_a_kill(widened: SmallLake) -> None:
    """While it was added, in the increment that adds it, and in the build before."""
    killed, work = widened.builds[1:]
    assert not work.failures(work.at(REQUESTED, ADDED, IN_FLIGHT))
    (image,) = killed.at(IN_FLIGHT)
    killed.restore(image)
    work.rerun()


@pytest.mark.thorough
def test_unfinished_metastore_is_replaced(
    small: SmallLake, new_lake: NewLake, tmp_path: Path
) -> None:
    """By a build, and by an ingest: the worker gives it a session with the catalogue."""
    lake = new_lake(small.lake.topics)
    lake.land(BATCHES[0])
    assert lake.ingest().code == 0
    metastore, project = lake.root / "metastore", small_project(tmp_path / "project")
    for is_build in (False, True):
        lake.release()
        shutil.rmtree(metastore, ignore_errors=True)
        # What a kill leaves that comes while Derby creates its database.
        (metastore / "seg0").mkdir(parents=True)
        if is_build:
            lake.dbt("run", "-s", "stg_orders", project=project)
        else:
            assert lake.ingest().code == 0
            assert lake.sql("show databases")
        assert (metastore / "service.properties").exists()


@pytest.mark.thorough
def test_ingest_runs_while_another_process_has_the_metastore(
    small: SmallLake, new_lake: NewLake
) -> None:
    """It reads a table, too: without a checkpoint it must find out what bronze holds."""
    lake = new_lake(small.lake.topics)
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


@pytest.mark.thorough
def test_many_small_batches_leave_few_files(new_lake: NewLake, tmp_path: Path) -> None:
    """In table and ledger; a kill while files are made one loses and repeats nothing."""
    (tmp_path / "topics.toml").write_text(TOPICS)
    lake = new_lake(tmp_path / "topics.toml")
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
    assert not work.failures(images)


@pytest.mark.thorough
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
