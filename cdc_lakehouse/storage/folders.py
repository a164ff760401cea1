"""Folders that are removed again: only those that were marked when they were made."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from pathlib import Path

from cdc_lakehouse.errors import UserError

# In a folder that is ours as a whole, and in one of which parts are.
MARKER = "made-by-cdc-lakehouse"
NOTES = f"{MARKER}.list"
# Where a folder is made that cannot be in the lake's; it outlives a restart.
ELSEWHERE = "/var/tmp"
# Below this nothing is begun, and what failed is put down to it.
LEAST_ROOM = 16 << 20


def require_own(folder: Path) -> None:
    """Refuse a folder with somebody else's files.

    Raises:
        UserError: it holds something, and no marker; the message says what to do.
    """
    if not folder.exists() or (folder / MARKER).exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise UserError(
            f"{folder} holds files and no {MARKER}, so they may be somebody else's, and"
            " this command would remove them; move them away, or set LAKE_ROOT to"
            f" another folder, or, if nobody needs them: rm -r {shlex.quote(str(folder))}"
        )


def claim(folder: Path, text: str) -> None:
    """Make a folder and mark it; before anything else is written there."""
    note_own(str(folder.parent), folder.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text(text)


def make_elsewhere(path: Path) -> Path:
    """Make a folder that another user may enter, and a link to it at ``path``.

    Returns:
        The folder; it is removed with its link by ``clear``, and by ``make clean``.
    """
    folder = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-", dir=ELSEWHERE))
    (folder / MARKER).write_text(_claim_of(path))
    path.symlink_to(folder)
    return folder


def clear(folder: Path, *keep: str) -> None:
    """Remove what is in a folder but what fits the patterns of ``keep``."""
    # The marker last: a clearing that is cut off can be repeated.
    for path in sorted(folder.glob("*"), key=lambda path: path.name == MARKER):
        if any(path.match(pattern) for pattern in keep):
            continue
        if path.is_symlink():
            marker = path / MARKER
            if marker.exists() and marker.read_text() == _claim_of(path):
                shutil.rmtree(path.resolve())
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _claim_of(path: Path) -> str:
    return f"the files of {path.absolute()}, which is a link\n"


def note_own(root: str, *names: str) -> None:
    """Note in a lake's folder what of its folder is ours: what is not there yet.

    ``make clean`` removes what is noted, and a half-made metastore only if it is.

    Args:
        root: the lake's folder; of a URL nothing is noted, as nothing is removed there.
        names: what is to be made in it.
    """
    if "://" in root:
        return
    folder = Path(root)
    new = [name for name in names if not (folder / name).exists()]
    new = [name for name in new if name not in noted_own(root)]
    if new:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / NOTES).open("a", encoding="utf-8") as notes:
            notes.writelines(f"{name}\n" for name in new)


def require_room(root: str) -> None:
    """Refuse to go on where a lake's disk is full.

    Raises:
        UserError: less than ``LEAST_ROOM`` is left; the message says so.
    """
    if "://" in root or not Path(root).exists():
        return
    left = shutil.disk_usage(root).free
    if left < LEAST_ROOM:
        raise UserError(
            f"the disk of {root} is full ({left >> 20} MiB are left): make room, and run it"
            " again; what is committed stays"
        )


def noted_own(root: str) -> list[str]:
    """What ``note_own`` has noted."""
    notes = Path(root) / NOTES
    return notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
