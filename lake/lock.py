"""One writer a lake: an advisory file lock that dies with its process."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lake.errors import UserError
from lake.folders import note_own


def lock_file(lake: str, name: str) -> Path:
    """Where the lock called ``name`` of a lake is kept: in it, if it is a folder."""
    if "://" in lake:
        digest = hashlib.sha256(lake.encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"cdc-lakehouse-{digest}-{name}.lock"
    return Path(lake) / f"{name}.lock"


@contextmanager
def only_one(lake: str, name: str) -> Iterator[None]:
    """Hold the lock called ``name`` of a lake while the block runs.

    The kernel frees the lock when the process ends, however it ends, so that a kill
    leaves nothing to clean up.

    Raises:
        UserError: another process holds it; the message gives its process id. Or the
            lake's folder cannot be written.
    """
    path = lock_file(lake, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        note_own(lake, path.name)
        opened = path.open("a+", encoding="ascii")
    except OSError as error:
        raise UserError(f"cannot write below {lake}: {error.strerror}") from error
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise UserError(
                f"another {name} (process {holder}) is at work on {lake}; wait until it"
                f" is done, or stop it with: kill {holder}"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
