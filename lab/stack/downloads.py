"""Folders that are filled from the network, once, by whichever process comes first."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

LOCK = Path(__file__).parents[2] / ".venv" / "downloads.lock"
# In the folder, and written last: what it was filled with.
STAMP = ".version"


def download_once(folder: Path, version: str, fill: Callable[[Path], None]) -> None:
    """Fill a folder, unless it has been filled with this version.

    One process downloads at a time; the others wait, and then find the folder filled. The
    kernel frees the lock when a process ends.

    Args:
        folder: it is emptied before it is filled.
        version: of its content.
        fill: downloads into the folder.
    """
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        stamp = folder / STAMP
        if stamp.exists() and stamp.read_text() == version:
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        fill(folder)
        stamp.write_text(version)
