"""What Prometheus can scrape of an ingest that stays."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Summary, start_http_server

from lake.errors import UserError

# Outcomes: read, written, rejected, skipped, duplicate.
records = Counter("cdc_lakehouse_records", "Records, by what became of them", ["outcome"])
batch_seconds = Summary("cdc_lakehouse_batch_seconds", "Seconds that micro-batches took")
lag_seconds = Gauge(
    "cdc_lakehouse_lag_seconds",
    "From the newest change of the last batch to its commit in bronze",
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


def serve(port: int) -> None:
    """Answer at ``/metrics`` of a port, in a thread of its own.

    Raises:
        UserError: the port is taken.
    """
    try:
        start_http_server(port)
    except OSError as error:
        raise UserError(f"cannot serve metrics at port {port}: {error.strerror}") from error
