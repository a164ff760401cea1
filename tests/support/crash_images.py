"""Crash images: what a lake's folder holds wherever a kill could end the work on it.

A killed process leaves on the disk what it has given to the kernel, and nothing else: what
its memory held is lost, Derby's page cache and the buffers of open files too. So a copy
of the folder, taken while the process is stopped, is exactly what ``kill -9`` would leave
at that moment. ``crash_recorder`` takes the copies while the work is done once,
undisturbed; this module puts them back, runs the work again, and compares.
"""

import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cdc_lakehouse.storage.tables import open_table, read_columns
from tests.support.lake import Lake
from tests.support.records import UNAVAILABLE, Record, flattened, record
from tests.support.small_project import set_columns

_IN_PLACE = re.compile(r"^metastore/|/hoodie\.properties$")
_PASSING = re.compile(
    r"(?<!/\.hoodie)/$|\.crc$|\.tmp$|/_temporary/|\.[0-9a-f]{8}-[0-9a-f-]{27}$"
)
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
# The point at which the work was done.
END = "end"


@dataclass(frozen=True)
class Image:
    """What a kill at a point leaves."""

    point: str  # what the process was about to do
    # every file below the lake's folder and the SHA-256 of its content; a folder's path
    # ends with a slash
    files: dict[str, str] = field(repr=False)

    @cached_property
    def state(self) -> frozenset[tuple[str, str]]:
        """What a rerun may read of it.

        Left out: checksums, folders (but ``.hoodie``, which says that there is a table),
        and files under a name that they have only until they are complete. The content
        counts of what is changed in place (the metastore, a table's properties); of other
        files, whether it is empty.
        """
        return frozenset(
            (path, digest if _IN_PLACE.search(path) else str(digest == EMPTY))
            for path, digest in self.files.items()
            if not _PASSING.search(path)
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


class Work:
    """Work that was done undisturbed on a lake, while its images were taken.

    Args:
        lake: what it is done on.
        folder: keeps the images.
        rerun: does it, with an assertion that it succeeds.
        layers: those whose tables it writes.
        ask: what the Spark process calls, with its arguments.
    """

    def __init__(
        self, lake: Lake, folder: Path, rerun: Callable[[], object], layers: str, *ask: Any
    ) -> None:
        self.lake = lake
        self.folder = folder
        self.rerun = rerun
        self.layers = layers.split()
        lake.release()  # it starts without a metastore open, as a new process does
        answer, recorded = lake.spark.ask("crash_recorder:record", str(folder), *ask)
        assert answer.get("success", answer.get("code") == 0), answer
        self.expected = content(lake, *self.layers)
        # Every point at which the recorder looked, and the number of its image.
        self.points: list[tuple[str, int]] = recorded[0]
        # Those that differ from the one before, in their order.
        self.images: list[Image] = recorded[1]

    @property
    def states(self) -> list[Image]:
        """One image, the first, of each state."""
        return list({image.state: image for image in reversed(self.images)}.values())[::-1]

    def at(self, *points: str) -> list[Image]:
        """The images of some points: the first that each regular expression matches."""
        return [
            next(self.images[n] for name, n in self.points if re.search(point, name))
            for point in points
        ]

    def between(self, first: str, last: str) -> list[Image]:
        """The images from one point to the next other one, given as regular expressions."""
        points = iter(self.points)
        start = next(n for name, n in points if re.search(first, name))
        stop = next(n for name, n in points if re.search(last, name) and n > start)
        return self.images[start:stop]

    def restore(self, image: Image) -> None:
        """Put an image at the lake's place, instead of what is there."""
        self.lake.release()
        place = self.lake.root
        shutil.rmtree(place)
        place.mkdir()
        # A folder's path is before those of what is in it.
        for path, digest in sorted(image.files.items()):
            if path.endswith("/"):
                (place / path).mkdir()
            else:
                shutil.copyfile(self.folder / "contents" / digest, place / path)

    def check_rerun(self) -> None:
        """Run it, on what is in the lake's place now, and compare."""
        self.rerun()
        assert content(self.lake, *self.layers) == self.expected

    def failures(self, images: Iterable[Image]) -> dict[str, str]:
        """Run it after a kill at each of some points; what went wrong, by the point."""
        found = {}
        for image in images:
            self.restore(image)
            try:
                self.check_rerun()
            except Exception as error:  # whatever it is, the next image has its turn
                found[image.point] = f"{type(error).__name__}: {error}"[:2000]
        return found


def record_ingest(lake: Lake, folder: Path) -> Work:
    """Ingest what has landed in the lake, and keep what a kill would leave of it."""

    def rerun() -> None:
        done = lake.ingest()
        assert done.code == 0, done.err

    arguments = ["files", str(lake.landing), "--topics", str(lake.topics)]
    return Work(lake, folder, rerun, "bronze", "worker:run_ingest", arguments)


def record_build(lake: Lake, folder: Path, columns: dict[str, str]) -> Work:
    """Build its small project with some columns, and keep what a kill would leave of it."""
    # One statement after the other: then it is the same at each run which one is next.
    run = ["run", "--threads", "1"]

    def rerun() -> None:
        set_columns(lake.project, columns)
        lake.dbt(*run)

    set_columns(lake.project, columns)
    asked = ("worker:run_dbt", run, str(lake.project))
    return Work(lake, folder, rerun, "bronze silver gold", *asked)


@dataclass
class SmallLake:
    """Ingests and builds of one silver table and one of gold, recorded.

    Attributes:
        lake: the lake, whose project has a folder of its own.
        folder: keeps the images.
    """

    lake: Lake
    folder: Path
    ingests: list[Work] = field(default_factory=list)
    builds: list[Work] = field(default_factory=list)

    def go_on(self, columns: dict[str, str]) -> None:
        """Record the ingest of the next batch, and a build with some columns."""
        number = len(self.builds)
        self.lake.land(BATCHES[number])
        self.ingests.append(record_ingest(self.lake, self.folder / f"ingest-{number}"))
        folder = self.folder / f"build-{number}"
        self.builds.append(record_build(self.lake, folder, columns))
