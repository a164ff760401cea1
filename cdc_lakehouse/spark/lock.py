"""One writer a lake: a file lock on one machine, and Hudi's lock provider between machines.

Both die with their process, so that a kill leaves nothing to clean up.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.storage.folders import note_own

PROVIDER = "hoodie.write.lock.provider"
SECONDS_TO_WAIT = 5
SECONDS_TO_LOOK = 0.2


def lock_file(lake: str, name: str) -> Path:
    """Where the lock called ``name`` of a lake is kept: in it, if it is a folder."""
    if "://" in lake:
        digest = hashlib.sha256(lake.encode()).hexdigest()[:16]
        return _own_folder() / f"{digest}-{name}.lock"
    return Path(lake) / f"{name}.lock"


def _own_folder() -> Path:
    """A folder for locks that nobody but this user can enter.

    Raises:
        UserError: somebody else has made it.
    """
    folder = Path(tempfile.gettempdir()) / f"cdc-lakehouse-{os.geteuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != os.geteuid()
        or found.st_mode & 0o77
    ):
        raise UserError(
            f"{folder} is not this user's alone: remove it, or set TMPDIR to a folder of"
            " one's own"
        )
    return folder


@contextmanager
def exclusive_lock(lake: str, name: str) -> Iterator[None]:
    """Hold the lock called ``name`` of a lake while the block runs.

    The kernel frees the lock when the process ends, however it ends, so that a kill
    leaves nothing to clean up.

    Raises:
        TransientError: another process holds it; the message gives its process id.
        UserError: the lake's folder cannot be written.
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
            raise TransientError(
                f"another {name} (process {holder}) is at work on {lake}; wait until it"
                f" is done, or stop it with: kill {holder}"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextmanager
def waited_lock(
    lake: str, name: str, tell: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold a lock as ``exclusive_lock`` does, once who has it lets it go.

    Args:
        lake: the lake.
        name: of the lock.
        tell: called once where there is something to wait for.
    """
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(exclusive_lock(lake, name))
                break
            except TransientError as error:
                if tell is not None:
                    tell(f"waiting: {error}")
                tell = None
                time.sleep(SECONDS_TO_LOOK)
        yield


@contextmanager
def only_one_anywhere(spark: Any, lake: str, name: str) -> Iterator[None]:
    """Hold the lock called ``name`` with Hudi's lock provider, which all machines ask.

    The properties file that ``LAKE_LOCK`` names says which provider that is, in Hudi's own
    words (``hoodie.write.lock.provider`` and what it needs); ``{lock}`` in a value stands
    for the name. Without ``LAKE_LOCK`` nothing is held.

    A provider's lock ends when its process cannot reach it for as long as its session
    lasts; such a process is not stopped.

    Args:
        spark: the session, whose JVM has Hudi.
        lake: for messages.
        name: ``ingest`` or ``dbt build``.

    Raises:
        TransientError: another process holds it, or the provider does not answer.
        UserError: the file cannot be read, or names no provider.
    """
    file = os.environ.get("LAKE_LOCK")
    if not file:
        yield
        return
    jvm: Any = spark._jvm
    properties = jvm.org.apache.hudi.common.config.TypedProperties()
    try:
        Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {file} (LAKE_LOCK): {error.strerror}") from error
    properties.load(jvm.java.io.FileInputStream(file))
    for key in properties.stringPropertyNames():
        value = properties.getProperty(key)
        properties.setProperty(key, value.replace("{lock}", name.replace(" ", "-")))
    if properties.getProperty(PROVIDER) is None:
        raise UserError(f"{file} (LAKE_LOCK) does not set {PROVIDER}")
    held: Any = None
    try:
        provider = jvm
        for part in properties.getProperty(PROVIDER).split("."):
            provider = getattr(provider, part)
        held = provider(
            jvm.org.apache.hudi.common.config.LockConfiguration(properties),
            jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(
                spark._jsc.hadoopConfiguration()
            ),
        )
        is_mine = held.tryLock(SECONDS_TO_WAIT, jvm.java.util.concurrent.TimeUnit.SECONDS)
    except TypeError as error:  # how py4j says that it found no such class
        raise UserError(f"{file} (LAKE_LOCK) names no lock provider of Hudi's") from error
    except Py4JError as error:
        _close(held)
        said = re.findall(r"^(?:: |Caused by: )[\w.$]+: (.+)", str(error), re.MULTILINE)
        raise TransientError(
            f"another {name} is at work on {lake}, or the lock provider of {file} does not"
            f" answer: {said[-1] if said else error}"
        ) from error
    if not is_mine:
        _close(held)
        raise TransientError(f"another {name} is at work on {lake} (LAKE_LOCK)")
    try:
        yield
    finally:
        # Where the JVM is gone, so is the lock.
        with suppress(Py4JError, OSError):
            held.unlock()
        _close(held)


def _close(provider: Any) -> None:
    with suppress(Py4JError, OSError):
        if provider is not None:
            provider.close()
