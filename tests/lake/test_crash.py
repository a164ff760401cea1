"""A process that is killed at any point: the same command, run again, completes its work.

Ingest and build run once on a small lake (one topic, one silver table of few columns, one
gold table), undisturbed, and what a kill would leave is recorded before every statement of
dbt and before every change that Hudi or a checkpoint makes on the disk. See
``tests.support.crash_images`` for why the copies are what a kill leaves. After each
recorded kill the command runs again without help, and the tables must equal the
undisturbed ones.

Here, a selection: each step of a commit once. ``tests/servers/test_crash_everywhere.py``
takes every state that was recorded, and a column that is added. Processes that are really
killed are those of ``tests/servers/test_live.py``.
"""

import shutil
from collections.abc import Iterator

import pytest

from tests.support.crash_images import COMPLETED, END, STATES, SmallLake, small_lake
from tests.support.lake import SparkProcess


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
def small(
    spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SmallLake]:
    """Ingests and builds of a small lake, recorded."""
    folder = tmp_path_factory.mktemp("crash")
    lake = small_lake(spark, folder, builds=2)
    yield lake
    lake.builds[0].lake.remove()


def test_recording_has_every_step_of_every_commit(small: SmallLake) -> None:
    """And the work has an image before it and one after it."""
    for work in (*small.ingests, *small.builds):
        before, after = work.images[0].instants, work.images[-1].instants
        assert work.images[-1].point == END
        assert {*before.values(), *after.values()} == {COMPLETED}
        assert after.keys() > before.keys()
        for instant in after.keys() - before.keys():
            assert {each.instants.get(instant) for each in work.images} >= {None, *STATES}


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
