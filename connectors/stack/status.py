"""How the stack does, and how far bronze has come, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connectors.stack.stack import Slot, Stack
from lake.errors import UserError
from lake.mark import REJECTED_TABLE

# What bronze keeps in its commits (ingest/bronze.py, which needs Spark to import).
MARK = "lakehouse.mark"


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


def describe_parts(stack: Stack) -> list[str]:
    """What runs where, one line a part; before the first start's end without ports."""
    ports = {
        "postgres": stack.ports.postgres,
        "broker": stack.ports.kafka,
        "connect": stack.ports.connect,
    }
    logs = stack.logs()
    rows = []
    for name, pid in stack.pids().items():
        place = f"127.0.0.1:{ports[name]}" if ports[name] else "up"
        rows.append((name, place if pid else "down", str(pid or "-"), str(logs[name])))
    return _table(("part", "where", "pid", "log"), rows)


def describe_state(stack: Stack) -> Iterator[str]:
    """Connectors, slots, topics and bronze; what cannot be asked says so."""
    running = stack.running() if stack.is_complete else []  # where, only a state says
    if "connect" in running:
        yield from _describe_connectors(stack, is_source_up="postgres" in running)
        yield ""
    bronze = bronze_state(stack.root)
    if "broker" in running:
        yield from _describe_topics(stack, bronze)
        yield ""
    yield f"newest commit of bronze: {_batch_time(bronze.newest_batch)}"
    bound = "" if bronze.is_rejected_exact else "at least "
    yield f"rejected records: {bound}{bronze.rejected}"


def _describe_connectors(stack: Stack, *, is_source_up: bool) -> list[str]:
    rows, failures = [], []
    slots: dict[str, Slot] = {}
    if is_source_up:
        try:
            slots = stack.slots()
        except UserError as error:
            failures.append(str(error))
    try:
        states = stack.connect.states()
    except UserError as error:
        return [*failures, str(error)]
    for name in sorted(states):
        state, slot = states[name], slots.get(stack.slot_name(name))
        rows.append(
            (
                name,
                state.connector.lower(),
                ", ".join(state.tasks).lower() or "none",
                "-" if slot is None else "read" if slot.is_active else "not read",
                "-" if slot is None else f"{slot.lag_bytes:,}",
            )
        )
        if state.trace:
            failures.append(f"{name}: {state.trace.splitlines()[0]}")
    head = ("connector", "state", "task", "slot", "lag in bytes")
    return _table(head, rows) + failures


def _describe_topics(stack: Stack, bronze: BronzeState) -> list[str]:
    try:
        ends = stack.topic_ends()
    except UserError as error:
        return [str(error)]
    rows = []
    for place, end in sorted(ends.items()):
        held = bronze.offsets.get(place, -1) + 1
        rows.append((place, f"{end:,}", f"{held:,}", f"{max(end - held, 0):,}"))
    return _table(("topic/partition", "end", "bronze up to", "behind"), rows)


def _batch_time(batch: int) -> str:
    if not batch:
        return "none yet"
    at = datetime.strptime(f"{batch}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    seconds = (datetime.now(UTC) - at).total_seconds()
    return f"{at:%Y-%m-%d %H:%M:%S} UTC, {seconds:,.0f} s ago"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in [head, *rows]
    ]
