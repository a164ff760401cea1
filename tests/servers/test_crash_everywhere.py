"""A process that is killed anywhere: every state of the disk, and the models up to gold.

``tests/lake/test_crash.py`` says how, and takes a selection. Here a rerun starts from
every state that was recorded on the small lake, with those of Derby within a statement;
images that differ in nothing that a rerun reads are one state. Then the project's own
models, from an order to the revenue of its customer, from each step of each of their
commits.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import NewLake
from tests.lake.test_crash import IN_FLIGHT, REQUESTED, creation_of
from tests.support.crash_images import END, Image, shape
from tests.support.crash_rerun import (
    BATCHES,
    SmallLake,
    Work,
    content,
    kill_in_flight,
    record_build,
    small_lake,
)
from tests.support.lake import Lake, SparkProcess
from tests.support.project import PROJECT
from tests.support.stories import create, delete, records, update, with_offsets

# Up to a minute a group of reruns, where others use the machine too.
pytestmark = pytest.mark.timeout(900)

# Derby's own points of a build, at most; they are taken at equal distances.
DERBY_POINTS = 12
# Hudi records a new column in a commit of its own, which comes before the merge's.
ADDED = r"^sql insert into silver.orders"
MODELS = ("-s", "stg_orders", "orders", "order_items", "revenue_by_customer")
# From one point to another, the kills after which no build succeeds by itself
# (test_table_whose_creation_was_killed_is_created_once_its_folder_is_removed).
KNOWN_FAILURES: list[list[tuple[str, str]]] = [
    [(creation_of(table), r"^sql ") for table in ("silver.orders", "gold.by_customer")],
    [],
    [],
]
ITEMS = '[{"product_id": 11, "unit_price": 14, "quantity": %d, "discount": 0}]'
STORY = with_offsets(
    [
        [create(1), create(2, key=1, customer_id="BONAP"), create(3, key=2)],
        [update(4, order_items=ITEMS % 3), delete(5, key=1), create(6, key=3)],
    ]
)


@pytest.fixture(scope="module")
def small(
    spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SmallLake]:
    """Ingests and builds of a small lake, recorded, with Derby's writes."""
    folder = tmp_path_factory.mktemp("crash")
    lake = small_lake(spark, folder, builds=3, follows_derby=True)
    yield lake
    lake.builds[0].lake.remove()


@pytest.fixture(scope="module")
def gold(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> list[Work]:
    """A first build and an increment of the project's models, recorded."""
    folder = tmp_path_factory.mktemp("gold")
    builds = []
    for number, batch in enumerate(STORY):
        lake.land(records(batch, 1))
        done = lake.ingest()
        assert done.code == 0, done.err
        build = folder / f"build-{number}"
        builds.append(record_build(lake, build, PROJECT, *MODELS))
    return builds


def _known_failures(work: Work, number: int) -> list[Image]:
    known = [work.images.between(*points) for points in KNOWN_FAILURES[number]]
    assert all(known)
    return [image for images in known for image in images]


@pytest.mark.parametrize("number", [0, 1])
def test_ingest_is_completed_after_a_kill_anywhere(small: SmallLake, number: int) -> None:
    work = small.ingests[number]
    assert not work.failures(work.images.states)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [0, 1, 2])
def test_build_is_completed_after_a_kill_anywhere(small: SmallLake, number: int) -> None:
    work = small.builds[number]
    left_out = _known_failures(work, number)
    assert not work.failures(
        image
        for image in work.images.states
        if image.point != "derby" and image not in left_out
    )


def test_first_build_is_completed_after_a_kill_within_derby(small: SmallLake) -> None:
    work = small.builds[0]
    left_out = _known_failures(work, 0)
    images = [
        image
        for image in work.images.images
        if image.point == "derby" and image not in left_out
    ]
    assert images
    step = -(-len(images) // DERBY_POINTS)
    print(f"{len(images)} images of Derby, every {step}th is taken")
    assert not work.failures(images[::step])


def test_recorded_image_is_what_a_killed_build_leaves(
    small: SmallLake, tmp_path: Path
) -> None:
    work = small.builds[1]
    work.images.restore(work.images.images[0], work.lake)
    places = ["--target-path", str(tmp_path), "--log-path", str(tmp_path)]
    work.prepare()
    project = ["--project-dir", str(work.project), "--profiles-dir", "profiles"]
    arguments = ["dbt.cli.main", "--quiet", "run", *project, *places]
    left = kill_in_flight(work.lake, arguments, "silver.orders")
    assert shape(left) in {image.shape for image in work.images.images}
    work.check_rerun()


@pytest.mark.nightly
@pytest.mark.parametrize("number", [0, 1])
def test_models_up_to_gold_are_completed_after_a_kill(
    gold: list[Work], number: int
) -> None:
    work = gold[number]
    work.check_enumeration()
    assert {table for table, _ in work.images.committed()} == {
        *("silver.orders", "silver.order_items", "gold.revenue_by_customer")
    }
    assert not work.failures([*_steps(work), *work.images.at(END)])


def _steps(work: Work) -> Iterator[Image]:
    """Of each table's commit: requested, a file that is empty, all files, completed."""
    for table in ("silver.db/order_items", "gold.db/revenue_by_customer"):
        yield from work.images.at(
            rf"^create .*{table}/.hoodie/\d+\.(\w+\.)?inflight",
            rf"^write .*{table}/[^/]*\.parquet$",
            rf"^rename .*{table}/.hoodie/\d+\.(replace)?commit\.[0-9a-f]{{8}}-",
            rf"^delete .*{table}/.hoodie/.temp/",
        )


def test_increment_with_a_new_column_is_completed_after_a_kill(small: SmallLake) -> None:
    work = small.builds[2]
    images = work.images.at(ADDED, IN_FLIGHT)
    assert not work.failures(images)


def test_new_column_is_added_after_a_kill_while_it_was_added(small: SmallLake) -> None:
    work = small.builds[2]
    assert not work.failures(work.images.at(REQUESTED))


def test_new_column_is_added_after_a_kill_during_the_build_before(
    small: SmallLake,
) -> None:
    killed, work = small.builds[1:]
    (image,) = killed.images.at(IN_FLIGHT)
    killed.images.restore(image, killed.lake)
    work.prepare()
    work.rerun()


def test_recorded_image_is_what_a_killed_ingest_leaves(small: SmallLake) -> None:
    work = small.ingests[1]
    work.images.restore(work.images.images[0], work.lake)
    arguments = ["ingest", "files", str(work.lake.landing)]
    arguments += ["--topics", str(work.lake.topics)]
    left = kill_in_flight(work.lake, arguments, "bronze.cdc_events")
    assert shape(left) in {image.shape for image in work.images.images}
    work.check_rerun()


@pytest.mark.parametrize("command", ["ingest", "dbt"])
def test_unfinished_metastore_is_replaced(
    small: SmallLake, new_lake: NewLake, command: str
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
        small.builds[0].prepare()
        lake.dbt("run", "-s", "stg_orders", project=small.builds[0].project)
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
    subprocess.run(
        [
            *(sys.executable, "-m", "ingest", "files", str(lake.landing)),
            *("--topics", str(lake.topics)),
        ],
        cwd=PROJECT,
        env=lake.environment(),
        check=True,
    )
    assert content(lake, "bronze") == small.ingests[1].expected
