"""A process that is killed anywhere: every state of the disk.

``tests/lake/test_crash.py`` says how, and takes a selection. Here a rerun starts from
every state that was recorded on the small lake; images that differ in nothing that a rerun
reads are one state.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import NewLake
from tests.lake.test_crash import IN_FLIGHT, REQUESTED, creation_of
from tests.support.crash_rerun import BATCHES, SmallLake, content, small_lake
from tests.support.lake import SparkProcess
from tests.support.project import PROJECT
from tests.support.small_project import small_project

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
    assert not work.failures(work.images.states)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [0, 1, 2])
def test_build_is_completed_after_a_kill_anywhere(small: SmallLake, number: int) -> None:
    """But where no build succeeds by itself, as test_crash.py shows."""
    images = small.builds[number].images
    known = [
        image
        for table in (("silver.orders", "gold.by_customer") if number == 0 else ())
        for image in images.between(creation_of(table), r"^sql ")
    ]
    failures = small.builds[number].failures(
        image for image in images.states if image not in known
    )
    assert not failures


def test_new_column_is_added_after_a_kill(small: SmallLake) -> None:
    """While it was added, in the increment that adds it, and in the build before."""
    killed, work = small.builds[1:]
    assert not work.failures(work.images.at(REQUESTED, ADDED, IN_FLIGHT))
    (image,) = killed.images.at(IN_FLIGHT)
    killed.images.restore(image, killed.lake)
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
    subprocess.run(
        [sys.executable, "-m", *ingest], cwd=PROJECT, env=lake.environment(), check=True
    )
    assert content(lake, "bronze") == small.ingests[1].expected
