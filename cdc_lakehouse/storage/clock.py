"""The clock that Hudi names commits by: no write begins before the newest commit's name.

Readers take the file with the highest name, so that they would not see what is written by a
clock that went back; and Hudi waits in silence until it is past the last name that it gave.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cdc_lakehouse.errors import TransientError
from cdc_lakehouse.storage.marks import batch_time

SECONDS_TO_WAIT = 5.0
_COMMITS = re.compile(r"/([^/]+)\.db/([^/]+)/\.hoodie/(\d{17})\.")


class Commit(NamedTuple):
    """When a commit was made, or begun, in seconds of Unix time, and of which table."""

    at: float
    table: str


_shown = Commit(0.0, "this process")


def newest_commit(
    spark: Any, warehouse: str, *, schemas: str = "*", without: str = ""
) -> Commit:
    """The newest commit of some tables, by its name, as of the UTC clock.

    Args:
        spark: the session, whose JVM lists the files.
        warehouse: the folder or URL with the schemas' folders.
        schemas: a glob of their names.
        without: one to leave out.
    """
    hadoop: Any = spark._jvm.org.apache.hadoop.fs
    timelines = hadoop.Path(f"{warehouse}/{schemas}.db/*/.hoodie/[0-9]*")
    files = timelines.getFileSystem(spark._jsc.hadoopConfiguration())
    paths = hadoop.FileUtil.stat2Paths(files.globStatus(timelines))
    # One text, as each path would be a call of its own.
    text = spark._jvm.scala.runtime.ScalaRunTime.stringOf(paths)
    found = [(name, f"{schema}.{table}") for schema, table, name in _COMMITS.findall(text)]
    kept = [each for each in found if not each[1].startswith(f"{without}.")]
    name, table = max(kept, default=("", ""))
    return Commit(batch_time(int(name)).timestamp() if name else 0.0, table)


def note() -> float:
    """What the clock says, which later calls of ``require_later`` remember."""
    global _shown
    now = time.time()
    _shown = max(_shown, Commit(now, _shown.table))
    return now


def require_later(newest: Commit) -> None:
    """Wait until the clock is past a commit, and past what it has shown before.

    Raises:
        TransientError: it is further behind than ``SECONDS_TO_WAIT``.
    """
    newest = max(newest, _shown)
    behind = newest.at - note()
    if behind > SECONDS_TO_WAIT:
        until = datetime.fromtimestamp(newest.at, UTC)
        raise TransientError(
            f"the clock is {behind:,.0f} s behind the newest commit of {newest.table}, and"
            f" what is written before {until:%Y-%m-%d %H:%M:%S} UTC would not be seen: put"
            " the clock right, or wait until then (docs/runbook.md, A clock that is behind)"
        )
    while behind >= 0:
        time.sleep(behind + 0.001)
        behind = newest.at - note()
