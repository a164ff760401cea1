"""Work on a small lake that ends at some point, is run again, and must come to the same."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cdc_lakehouse.storage.tables import open_table, read_columns
from tests.support.crash_images import COMPLETED, END, STATES, Image, Images
from tests.support.lake import Lake, SparkProcess
from tests.support.records import UNAVAILABLE, Record, flattened, record
from tests.support.small_project import (
    COLUMNS,
    MORE_COLUMNS,
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
    """Work that was done undisturbed, and recorded."""

    lake: Lake  # what it was done on
    images: Images  # what a kill would have left of it
    rerun: Callable[[], object]  # does it, with an assertion that it succeeds
    layers: tuple[str, ...]  # those whose tables it writes
    expected: Content  # their content after it

    def check_rerun(self) -> None:
        """Run it, on what is in the lake's place now, and compare."""
        self.rerun()
        assert content(self.lake, *self.layers) == self.expected

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
        before, after = images[0].instants, images[-1].instants
        assert images[-1].point == END
        assert {*before.values(), *after.values()} == {COMPLETED}
        assert after.keys() > before.keys()
        for instant in after.keys() - before.keys():
            assert {image.instants.get(instant) for image in images} >= {None, *STATES}


def _record(
    lake: Lake, folder: Path, rerun: Callable[[], object], *layers: str, ask: list[Any]
) -> Work:
    lake.release()  # it starts without a metastore open, as a new process does
    answer = lake.spark.ask("record", str(folder), *ask)
    assert answer.get("success", answer.get("code") == 0), answer
    return Work(lake, Images(folder), rerun, layers, content(lake, *layers))


def record_ingest(lake: Lake, folder: Path) -> Work:
    """Ingest what has landed in the lake, and keep what a kill would leave of it."""
    arguments = ["files", str(lake.landing), "--topics", str(lake.topics)]
    return _record(
        lake, folder, partial(_ingest, lake), "bronze", ask=["ingest", [arguments]]
    )


def record_build(lake: Lake, folder: Path, columns: dict[str, str]) -> Work:
    """Build its small project with some columns, and keep what a kill would leave of it."""
    # One statement after the other: then it is the same at each run which one is next.
    run = ("run", "--threads", "1")

    def rerun() -> None:
        set_columns(lake.project, columns)
        lake.dbt(*run)

    set_columns(lake.project, columns)
    layers = ("bronze", "silver", "gold")
    return _record(lake, folder, rerun, *layers, ask=["dbt", [run, str(lake.project)]])


@dataclass(frozen=True)
class SmallLake:
    """Ingests and builds of one silver table and one of gold, recorded."""

    ingests: list[Work]  # of the first and of the second batch; the third is not recorded
    # the first, an increment, and one after a column was added to the model, as far as
    # asked for
    builds: list[Work]


def small_lake(spark: SparkProcess, folder: Path, *, builds: int) -> SmallLake:
    """Make one, below a folder."""
    project = small_project(folder / "project")
    add_gold(project)
    lake = spark.new_lake(project=project)
    small = SmallLake([], [])
    for number, columns in enumerate((COLUMNS, COLUMNS, MORE_COLUMNS)[:builds]):
        lake.land(BATCHES[number])
        if number < 2:
            small.ingests.append(record_ingest(lake, folder / f"ingest-{number}"))
        else:
            _ingest(lake)
        small.builds.append(record_build(lake, folder / f"build-{number}", columns))
    return small


def _ingest(lake: Lake) -> None:
    done = lake.ingest()
    assert done.code == 0, done.err
