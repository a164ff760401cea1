"""Crash images: what a lake's folder holds wherever a kill could end the work on it.

A killed process leaves on the disk what it has given to the kernel, and nothing else: what
its memory held is lost, Derby's page cache and the buffers of open files too. So a copy
of the folder, taken while the process is stopped, is exactly what ``kill -9`` would leave
at that moment. ``crash_recorder`` takes the copies while the work is done once,
undisturbed; this module keeps them, describes them, and puts them back.
"""

import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.support.lake import Lake

# On a timeline of table version 6 only the action commit leaves out its name in flight.
_INSTANT = re.compile(
    r"warehouse/(\w+)\.db/(\w+)/\.hoodie/(\d{17})\.(?:([a-z]+)\.)?([a-z]+)"
)
_IN_PLACE = re.compile(r"^metastore/|/hoodie\.properties$")
_PASSING = re.compile(
    r"(?<!/\.hoodie)/$|\.crc$|\.tmp$|/_temporary/|\.[0-9a-f]{8}-[0-9a-f-]{27}$"
)
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
# The point at which the work was done.
END = "end"
REQUESTED, IN_FLIGHT, COMPLETED = STATES = ("requested", "inflight", "completed")


def instants_of(paths: Iterable[str]) -> dict[tuple[str, str], str]:
    """How far each instant of each table is, by the table and the instant's time.

    The paths are of files, relative to the lake's folder.
    """
    found: dict[tuple[str, str], str] = {}
    for path in paths:
        if match := _INSTANT.fullmatch(path):
            layer, table, time, _, last = match.groups()
            state = last if last in STATES else COMPLETED
            key = (f"{layer}.{table}", time)
            found[key] = max(state, found.get(key, state), key=STATES.index)
    return found


def unfinished(paths: Iterable[str]) -> set[str]:
    """The tables that have an instant which is not completed."""
    return {table for (table, _), state in instants_of(paths).items() if state != COMPLETED}


@dataclass(frozen=True)
class Image:
    """What a kill at a point leaves."""

    point: str  # what the process was about to do
    # every file below the lake's folder and the SHA-256 of its content; a folder's path
    # ends with a slash
    files: dict[str, str] = field(repr=False)

    @cached_property
    def instants(self) -> dict[tuple[str, str], str]:
        """How far each instant of each table is."""
        return instants_of(self.files)

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


class Images:
    """The images that a recorder took."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        recorded = json.loads((folder / "images.json").read_text(encoding="utf-8"))
        # Every point at which it looked, and the number of its image.
        self.points: list[tuple[str, int]] = recorded["points"]
        # Those that differ from the one before, in their order.
        self.images = [Image(**image) for image in recorded["images"]]

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

    def restore(self, image: Image, lake: Lake) -> None:
        """Put an image at the lake's place, instead of what is there."""
        lake.release()
        place = lake.root
        shutil.rmtree(place)
        place.mkdir()
        # A folder's path is before those of what is in it.
        for path, digest in sorted(image.files.items()):
            if path.endswith("/"):
                (place / path).mkdir()
            else:
                shutil.copyfile(self.folder / "contents" / digest, place / path)
