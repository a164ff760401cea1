"""Files at local paths, listed by the system's own calls: Spark takes 20 times as long."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

Found = tuple[str, os.stat_result | None, str | None]


def matches(names: Sequence[re.Pattern[str] | str], folder: str = "") -> Iterator[str]:
    """The paths that a pattern matches.

    Args:
        names: the pattern of each name of the path, text where it is no pattern.
        folder: what the names are below.
    """
    if not names:
        yield folder or "/"
        return
    name, *below = names
    if isinstance(name, str):
        found = [name] if os.path.lexists(f"{folder}/{name}") else []
    else:
        try:
            with os.scandir(folder or "/") as entries:
                there = sorted(each.name for each in entries if not _is_hidden(each.name))
        except OSError:  # no folder
            there = []
        found = [each for each in there if name.fullmatch(each)]
    for each in found:
        yield from matches(below, f"{folder}/{each}")


def files_at(
    place: Path | os.DirEntry[str], above: tuple[tuple[int, int], ...] = ()
) -> Iterator[Found]:
    """The files at a place and below it: path, status, and why it cannot be read.

    Links are followed, but not to a folder that they are in. What goes away meanwhile is
    left out. What cannot be read may have no status.

    Args:
        place: a file or folder.
        above: the folders that it is in, by device and number.
    """
    path = os.fspath(place)
    try:
        path.encode()
        status = place.stat()
        if not stat.S_ISDIR(status.st_mode):
            is_file = stat.S_ISREG(status.st_mode)
            yield path, status, None if is_file else "it is a pipe or a device, and no file"
            return
        identity = status.st_dev, status.st_ino
        if identity in above:
            return
        with os.scandir(path) as entries:
            below = [each for each in entries if not _is_hidden(each.name)]
    except UnicodeEncodeError:
        yield path, None, "its name is not UTF-8: rename it"
    except FileNotFoundError:
        if place.is_symlink():
            yield path, None, "it is a link to nothing"
    except OSError as error:
        yield path, None, error.strerror
    else:
        for entry in below:
            yield from files_at(entry, (*above, identity))


def _is_hidden(name: str) -> bool:
    """Whether Spark would leave it out, too."""
    is_partition = name.startswith("_") and "=" in name
    return name.startswith(("_", ".")) and not is_partition
