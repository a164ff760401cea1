"""Kafka records as the S3 sink writes them, and Debezium's events in them."""

import json
from typing import Any

TOPIC = "demo.datalake.cdc_events"
UNAVAILABLE = "__debezium_unavailable_value"
START_MS = 1_767_225_600_000  # 2026-01-01 in UTC

Record = dict[str, Any]
Row = dict[str, Any]


def compact(value: Any) -> str:
    """JSON as Connect writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


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


def source_at(connector: str, lsn: int | None) -> Row:
    """What a connector says of an event's place, in a log whose places count as LSNs do.

    Files, transactions and changes are short, so that few places differ in all parts.
    """
    if connector == "postgresql":
        return {"lsn": lsn}
    if connector == "mariadb":
        if lsn is None:
            return {"file": None, "pos": None, "row": None}
        return {
            "file": f"binlog.{lsn // 1_000 + 1:06d}",
            "pos": lsn % 1_000 // 10,
            "row": lsn % 10,
        }
    assert connector == "sqlserver"
    if lsn is None:
        return {"commit_lsn": None, "change_lsn": None, "event_serial_no": None}
    return {
        "commit_lsn": f"{lsn // 10_000:08x}:{lsn % 10_000 // 100:08x}:0003",
        "change_lsn": f"{lsn // 10_000:08x}:{lsn % 100 // 10:08x}:0002",
        "event_serial_no": lsn % 10,
    }


def position_at(connector: str, lsn: int) -> str:
    """The position that bronze has of the same place."""
    source = source_at(connector, lsn)
    if connector == "mariadb":
        return f"{source['file'][-6:]:0>10}/{source['pos']:010d}/{source['row']:010d}"
    if connector == "sqlserver":
        serial = f"{source['event_serial_no']:010d}"
        return f"{source['commit_lsn']}/{source['change_lsn']}/{serial}"
    return f"{lsn:016x}"


def flattened(
    op: str,
    row: Row,
    lsn: int | None,
    ts_ms: int = START_MS,
    table: str = "cdc_events",
    connector: str | None = None,
) -> dict[str, Any]:
    """A change as Debezium's unwrap transform writes it.

    PostgreSQL's may leave the connector's name out, and do where none is given.
    """
    source = source_at(connector or "postgresql", lsn)
    return {
        **row,
        "__deleted": "true" if op == "d" else "false",
        "__op": op,
        "__db": "northwind",
        "__table": table,
        "__schema": "datalake",
        **({"__connector": connector} if connector else {}),
        **{f"__{name}": value for name, value in source.items()},
        "__source_ts_ms": ts_ms,
    }


def envelope(
    op: str,
    row: Row | None,
    lsn: int | None,
    ts_ms: int = START_MS,
    table: str = "cdc_events",
    connector: str = "postgresql",
) -> dict[str, Any]:
    """A change as Debezium writes it without a transform."""
    return {
        "before": row if op == "d" else None,
        "after": None if op == "d" else row,
        "source": {
            "connector": connector,
            "db": "northwind",
            "schema": "datalake",
            "table": table,
            **source_at(connector, lsn),
            "ts_ms": ts_ms,
        },
        "op": op,
        "ts_ms": ts_ms + 5,
        "transaction": None,
    }
