"""What Prometheus can scrape of an ingest that stays."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

from prometheus_client import Counter, Gauge, Summary, start_http_server

from cdc_lakehouse.errors import UserError

# Outcomes: read, written, rejected, skipped, duplicate.
records = Counter("cdc_lakehouse_records", "Records, by what became of them", ["outcome"])
batch_seconds = Summary("cdc_lakehouse_batch_seconds", "Seconds that micro-batches took")
lag_seconds = Gauge(
    "cdc_lakehouse_lag_seconds",
    "Age of what bronze lacks: since the newest change that it has, 0 where it has all",
    ["table"],
)
# Outcomes: succeeded, failed.
builds = Counter("cdc_lakehouse_builds", "Builds, by their outcome", ["outcome"])
build_seconds = Summary("cdc_lakehouse_build_seconds", "Seconds that builds took")
rows_changed = Counter(
    "cdc_lakehouse_rows_changed", "Rows that builds wrote, by model", ["model"]
)
last_success = Gauge(
    "cdc_lakehouse_last_successful_build_timestamp_seconds",
    "When a build succeeded last, in Unix time",
)

# When the newest change of a table was made, in Unix time, and the batch that brought it.
_newest: dict[str, tuple[float, int]] = {}
_complete: set[str] = set()
# When the batch under way began, and the number of that or of the one before.
_began: float | None = None
_batch = 0


@contextmanager
def batch(number: int = 0) -> Iterator[None]:
    """A batch, of which nobody knows yet what it brings to which table.

    Args:
        number: that of Spark's micro-batch.
    """
    global _began, _batch
    _began, _batch = time.time(), number
    try:
        yield
    finally:
        _began = None


def note_written(table: str, newest: float) -> None:
    """Note when the newest change of a batch was made; more may follow."""
    _newest[table] = newest, _batch
    _complete.discard(table)
    lag_seconds.labels(table).set_function(partial(_lag, table))


def note_complete(tables: Collection[str], number: int = 0) -> None:
    """Note which tables have all there is, until a batch brings more.

    Args:
        tables: those that had it after a batch.
        number: of that; a later one may be under way, or have written some of them.
    """
    known = [each for each in tables if _newest.get(each, (0, number))[1] <= number]
    _complete.clear()
    _complete.update(known)


def _lag(table: str) -> float:
    now = time.time()
    since = (_began or now) if table in _complete else _newest[table][0]
    return max(0, now - since)


def serve(address: str, port: int) -> None:
    """Answer at ``/metrics`` of a port, in a thread of its own.

    Anybody who reaches it is answered.

    Raises:
        UserError: the port is taken, or the address is not this machine's.
    """
    try:
        start_http_server(port, addr=address)
    except OSError as error:
        raise UserError(
            f"cannot serve metrics at {address}:{port}: {error.strerror}"
        ) from error
