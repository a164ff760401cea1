"""Health of the services and lag of the ingest, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connectors.stack.stack import Slot, Stack
from lake.errors import UserError
from lake.mark import REJECTED_TABLE

# What bronze keeps in its commits (ingest/bronze.py, which needs Spark to import).
MARK = "lakehouse.mark"

Row = dict[str, Any]


@dataclass(frozen=True)
class BronzeState:
    """What bronze's commits say.

    Attributes:
        offsets: the highest offset held or rejected, by ``topic/partition``.
        newest_batch: the newest commit's ``ingest_batch``, 0 without one.
        rejected: the rows of ``rejected_events``.
        is_rejected_exact: whether all its commits are still on the timeline.
    """

    offsets: dict[str, int]
    newest_batch: int
    rejected: int
    is_rejected_exact: bool


def bronze_state(root: Path) -> BronzeState:
    """Read bronze's commits below a lake's folder."""
    offsets: dict[str, int] = {}
    newest, rejected, is_exact = 0, 0, True
    for table in sorted((root / "warehouse" / "bronze.db").glob("*")):
        mark = next((m for c in _commits(table) if (m := _mark(c)) is not None), {})
        newest = max(newest, mark.get("batch", 0))
        # A topic's last record may be in its table or, rejected, among the others'.
        for place, offset in mark.get("offsets", {}).items():
            offsets[place] = max(offset, offsets.get(place, -1))
        if table.name != REJECTED_TABLE:
            continue
        rejected = sum(
            stat["numWrites"]
            for commit in _commits(table)
            for stats in commit["partitionToWriteStats"].values()
            for stat in stats
        )
        is_exact = not any((table / ".hoodie" / "archived").glob("*"))
    return BronzeState(offsets, newest, rejected, is_exact)


def _commits(table: Path) -> Iterator[dict[str, Any]]:
    """A table's completed commits, the newest first."""
    for file in sorted((table / ".hoodie").glob("*.commit"), reverse=True):
        yield json.loads(file.read_text(encoding="utf-8"))


def _mark(commit: dict[str, Any]) -> dict[str, Any] | None:
    text = commit["extraMetadata"].get(MARK)
    return None if text is None else json.loads(text)


@dataclass(frozen=True)
class Status:
    """Health of the services, lag of the ingest.

    Attributes:
        parts: the services; their address is None where they do not run, and until a
            first start has ended.
        connectors: with the state of their slots, None where PostgreSQL does not give it.
        partitions: of the topics; what bronze lacks of each.
        newest_batch: the newest commit of bronze, 0 without one.
        rejected: the records in ``rejected_events``.
        is_rejected_exact: False where there may be more of them.
        problems: what could not be read, and why connectors failed.
    """

    parts: list[Row]
    connectors: list[Row]
    partitions: list[Row]
    newest_batch: int
    rejected: int
    is_rejected_exact: bool
    problems: list[str]


def read_status(stack: Stack) -> Status:
    """Ask every part that runs; what does not answer is among the problems."""
    parts, bronze = read_parts(stack), bronze_state(stack.root)
    # Where to ask, only a complete stack knows.
    running = {part["part"] for part in parts if part["pid"] and stack.is_complete}
    slots: dict[str, Slot] = {}
    connectors: list[Row] = []
    partitions: list[Row] = []
    problems: list[str] = []
    if {"connect", "postgres"} <= running:
        with _noted(problems):
            slots = stack.slots()
    if "connect" in running:
        with _noted(problems):
            connectors = _read_connectors(stack, slots, problems)
    if "broker" in running:
        with _noted(problems):
            partitions = _read_partitions(stack, bronze)
    return Status(
        parts,
        connectors,
        partitions,
        bronze.newest_batch,
        bronze.rejected,
        bronze.is_rejected_exact,
        problems,
    )


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        problems.append(str(error))


def read_parts(stack: Stack) -> list[Row]:
    """What runs where."""
    ports = {
        "postgres": stack.ports.postgres,
        "broker": stack.ports.kafka,
        "connect": stack.ports.connect,
    }
    return [
        {
            "part": name,
            "state": "up" if pid else "down",
            "address": f"127.0.0.1:{ports[name]}" if pid and ports[name] else None,
            "pid": pid,
            "log": str(stack.logs()[name]),
        }
        for name, pid in stack.pids().items()
    ]


def _read_connectors(
    stack: Stack, slots: dict[str, Slot], problems: list[str]
) -> list[Row]:
    found: list[Row] = []
    for name, state in sorted(stack.connect.states().items()):
        slot = slots.get(stack.slot_name(name))
        found.append(
            {
                "connector": name,
                "state": state.connector.lower(),
                "tasks": [task.lower() for task in state.tasks],
                "slot": None if slot is None else "read" if slot.is_active else "not read",
                "lag_in_bytes": None if slot is None else slot.lag_bytes,
            }
        )
        if state.trace:
            problems.append(f"{name}: {state.trace.splitlines()[0]}")
    return found


def _read_partitions(stack: Stack, bronze: BronzeState) -> list[Row]:
    found: list[Row] = []
    for name, end in sorted(stack.topic_ends().items()):
        held = bronze.offsets.get(name, -1) + 1
        behind = max(end - held, 0)
        found.append(
            {"partition": name, "end": end, "bronze_up_to": held, "behind": behind}
        )
    return found


def describe(status: Status) -> Iterator[str]:
    """Connectors, partitions, problems and bronze, for people."""
    for rows in (status.connectors, status.partitions):
        if rows:
            yield from table(rows)
            yield ""
    yield from status.problems
    yield f"newest commit of bronze: {_batch_time(status.newest_batch)}"
    bound = "" if status.is_rejected_exact else "at least "
    yield f"rejected records: {bound}{status.rejected}"


def _batch_time(batch: int) -> str:
    if not batch:
        return "none yet"
    at = datetime.strptime(f"{batch}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    seconds = (datetime.now(UTC) - at).total_seconds()
    return f"{at:%Y-%m-%d %H:%M:%S} UTC, {seconds:,.0f} s ago"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Rows in columns, under their names."""
    names = [name.replace("_", " ") for name in rows[0]]
    cells = [names, *([_cell(*item) for item in row.items()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _cell(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, int) and name != "pid":
        return f"{value:,}"
    return "-" if value is None else str(value)
