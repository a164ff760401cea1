"""Work on a small lake that ends at some point, is run again, and must come to the same."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cdc_lakehouse.storage.tables import open_table, read_columns
from tests.support.crash_images import END, Image, Images, Paths, unfinished
from tests.support.lake import Lake, SparkProcess
from tests.support.project import PROJECT
from tests.support.records import UNAVAILABLE, Record, flattened, record
from tests.support.small_project import (
    COLUMNS,
    MORE_COLUMNS,
    TOPICS,
    add_gold,
    set_columns,
    small_project,
)

# What says when and by which run a row arrived: it differs between two runs.
ARRIVAL = ("ingested_at", "ingest_batch", "ingest_date")
Content = dict[str, list[str]]


def event(offset: int, op: str, key: int, **row: Any) -> Record:
    row = {"order_id": key, "customer_id": "ALFKI", "customer": "{}"} | row
    return record({"order_id": key}, flattened(op, row, offset), offset)


# An ingest and a build each: creates; an update, a value that is unavailable, a delete, a
# create; and the same with a column more.
BATCHES: list[list[Record | str]] = [
    [event(1, "c", 1), event(2, "c", 2), event(3, "c", 3)],
    [
        event(4, "u", 1, customer_id="BONAP", customer=UNAVAILABLE),
        event(5, "d", 2, customer_id="", customer=None),
        event(6, "c", 4),
        "not JSON",
    ],
    [
        event(7, "u", 1, customer=UNAVAILABLE, priority=7),
        event(8, "u", 3, customer_id="CHOPS", priority=8),
        event(9, "c", 5, priority=9),
    ],
]


def content(lake: Lake, *layers: str) -> Content:
    """The columns and rows of all tables of some layers, without what arrival brings."""
    found = {}
    for table in lake.tables.names():
        if table.partition(".")[0] in layers:
            read = read_columns(open_table(str(lake.tables.path(table))))
            kept = read.select([c for c in read.column_names if c not in ARRIVAL])
            found[table] = [repr(kept.column_names), *sorted(map(repr, kept.to_pylist()))]
    return found


@dataclass(frozen=True)
class Work:
    """Work that was done undisturbed, and recorded.

    Attributes:
        name: says which.
        lake: what it was done on.
        project: dbt's, of a build.
        prepare: what comes before it, where the work of a lake follows each other.
        images: what a kill would have left of it.
        rerun: does it, with an assertion that it succeeds.
        layers: those whose tables it writes.
        expected: their content after it.
    """

    name: str
    lake: Lake
    project: Path
    images: Images
    prepare: Callable[[], object]
    rerun: Callable[[], object]
    layers: tuple[str, ...]
    expected: Content

    def check_rerun(self) -> None:
        """Run it, on what is in the lake's place now, and compare."""
        self.prepare()
        self.rerun()
        found = content(self.lake, *self.layers)
        assert found.keys() == self.expected.keys()
        for table, rows in self.expected.items():
            assert found[table] == rows, table

    def failures(self, images: Iterable[Image]) -> dict[str, str]:
        """Run it after a kill at each of some points; what went wrong, by the point."""
        found = {}
        for image in images:
            self.images.restore(image, self.lake)
            try:
                self.check_rerun()
            except Exception as error:  # whatever it is, the next image has its turn
                found[image.point] = f"{type(error).__name__}: {error}"[:2000]
        return found

    def check_enumeration(self) -> None:
        """Every commit has an image at each step, and the work one before and after it."""
        images = self.images.images
        assert images[-1].point == END
        assert not images[0].unfinished
        assert not images[-1].unfinished
        assert images[0].instants != images[-1].instants
        for instant in self.images.committed():
            states = {image.instants.get(instant) for image in images}
            assert states >= {None, "requested", "inflight", "completed"}, instant


def record_ingest(lake: Lake, folder: Path) -> Work:
    """Ingest what has landed in the lake, and keep what a kill would leave of it."""
    arguments = ["files", str(lake.landing), "--topics", str(lake.topics)]
    lake.release()  # it starts without a metastore open, as a new process does
    lake.spark.ask("record", str(folder), "ingest", [arguments], False)
    return Work(
        folder.name,
        lake,
        PROJECT,
        Images(folder),
        prepare=lambda: None,
        rerun=partial(_ingest, lake),
        layers=("bronze",),
        expected=content(lake, "bronze"),
    )


def record_build(
    lake: Lake,
    folder: Path,
    project: Path,
    *models: str,
    prepare: Callable[[], object] = lambda: None,
    follows_derby: bool = False,
) -> Work:
    """Build models, and keep what a kill would leave of it."""
    prepare()
    # One statement after the other: then it is the same at each run which one is next.
    run = ["run", "--threads", "1", *models]
    lake.release()
    arguments = [run, str(project)]
    answer = lake.spark.ask("record", str(folder), "dbt", arguments, follows_derby)
    assert answer["success"], answer
    layers = ("bronze", "silver", "gold")
    return Work(
        folder.name,
        lake,
        project,
        Images(folder),
        prepare=prepare,
        rerun=partial(lake.dbt, *run, project=project),
        layers=layers,
        expected=content(lake, *layers),
    )


@dataclass(frozen=True)
class SmallLake:
    """Ingests and builds of one silver table and one of gold, recorded.

    Attributes:
        ingests: of the first and of the second batch; the third is not recorded.
        builds: the first, an increment, and one after a column was added to the model, as
            far as asked for.
    """

    ingests: list[Work]
    builds: list[Work]


def small_lake(
    spark: SparkProcess, folder: Path, *, builds: int, follows_derby: bool
) -> SmallLake:
    """Make one, below a folder."""
    topics = folder / "topics.toml"
    topics.write_text(TOPICS)
    lake = spark.new_lake(topics)
    project = small_project(folder / "project")
    add_gold(project)
    small = SmallLake([], [])
    for number, columns in enumerate((COLUMNS, COLUMNS, MORE_COLUMNS)[:builds]):
        lake.land(BATCHES[number])
        if number < 2:
            small.ingests.append(record_ingest(lake, folder / f"ingest-{number}"))
        else:
            _ingest(lake)
        small.builds.append(
            record_build(
                lake,
                folder / f"build-{number}",
                project,
                prepare=partial(set_columns, project, columns),
                follows_derby=follows_derby,
            )
        )
    return small


def _ingest(lake: Lake) -> None:
    done = lake.ingest()
    assert done.code == 0, done.err


def kill_in_flight(lake: Lake, arguments: list[str], table: str) -> Paths:
    """Run a command in a process of its own, and kill it in the middle of a commit.

    Args:
        lake: what it works on.
        arguments: of ``python -m``.
        table: the table that is written.

    Returns:
        The files that it left in the lake, with an instant of the table in flight.
    """
    with (lake.root / "killed.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=PROJECT,
            env=lake.environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    timeline = f"warehouse/{table.replace('.', '.db/')}/.hoodie"
    folder = lake.root / timeline
    try:
        while process.poll() is None:
            names = [file.name for file in folder.glob("*")]
            if unfinished([f"{timeline}/{name}" for name in names]):
                # What goes on until the signal has come shows in what is left.
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.002)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL, (lake.root / "killed.log").read_text()
    left = _paths(lake)
    assert table in unfinished(left), "the kill came after the commit"
    return left


def _paths(lake: Lake) -> Paths:
    root = lake.root
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
