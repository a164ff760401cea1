"""Kafka records as the S3 sink writes them, and Debezium's events in them."""

from __future__ import annotations

from typing import Any

TOPIC = "demo.datalake.cdc_events"
UNAVAILABLE = "__debezium_unavailable_value"
START_MS = 1_767_225_600_000  # 2026-01-01 in UTC

Record = dict[str, Any]
Row = dict[str, Any]


def record(
    key: Any,
    value: Any,
    offset: int | None,
    topic: str = TOPIC,
    partition: int | None = 0,
    timestamp: int = START_MS,
) -> Record:
    """A Kafka record as the S3 sink writes it with ``store.envelope``."""
    return {
        "key": key,
        "value": value,
        "headers": {},
        "metadata": {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp": timestamp,
        },
    }


def flattened(
    op: str,
    row: Row,
    lsn: int | None,
    ts_ms: int = START_MS,
    table: str = "cdc_events",
) -> dict[str, Any]:
    """A change as Debezium's unwrap transform writes it."""
    return {
        **row,
        "__deleted": "true" if op == "d" else "false",
        "__op": op,
        "__db": "northwind",
        "__table": table,
        "__schema": "datalake",
        "__lsn": lsn,
        "__source_ts_ms": ts_ms,
    }


def envelope(
    op: str,
    row: Row | None,
    lsn: int | None,
    ts_ms: int = START_MS,
    table: str = "cdc_events",
) -> dict[str, Any]:
    """A change as Debezium writes it without a transform."""
    return {
        "before": row if op == "d" else None,
        "after": None if op == "d" else row,
        "source": {
            "connector": "postgresql",
            "db": "northwind",
            "schema": "datalake",
            "table": table,
            "lsn": lsn,
            "ts_ms": ts_ms,
        },
        "op": op,
        "ts_ms": ts_ms + 5,
        "transaction": None,
    }
