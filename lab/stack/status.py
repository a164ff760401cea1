"""Health of the services and lag of the ingest, read without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from cdc_lakehouse.errors import UserError
from ingest.status import LakeStatus, lake_status
from lab.stack.northwind import NorthwindStack, Slot
from lab.stack.processes import HOST
from lab.stack.stack import Stack

Row = dict[str, Any]


@dataclass(frozen=True)
class Status:
    """Health of the services, lag of the ingest.

    Attributes:
        parts: the services; their address is None where they do not run, and until a
            first start has ended.
        connectors: with the state of their slots, None where PostgreSQL does not give it.
        partitions: of the topics; what bronze lacks of each.
        lake: the lag of the ingest.
        problems: what could not be read, and why connectors failed.
    """

    parts: list[Row]
    connectors: list[Row]
    partitions: list[Row]
    lake: LakeStatus
    problems: list[str]


def read_status(stack: NorthwindStack) -> Status:
    """Ask every part that runs; what does not answer is among the problems."""
    parts, lake = read_parts(stack), lake_status(str(stack.root))
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
            partitions = _read_partitions(stack, lake)
    return Status(parts, connectors, partitions, lake, problems)


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        problems.append(str(error))


def read_parts(stack: Stack) -> list[Row]:
    """What runs where."""
    return [
        {
            "part": name,
            "state": "up" if pid else "down",
            "address": f"{HOST}:{part.port}" if pid and part.port else None,
            "pid": pid,
            "log": str(part.log),
        }
        for name, part in stack.parts.items()
        for pid in [part.pid()]
    ]


def stop(stack: Stack) -> None:
    """End a stack, and say what ran."""
    ran = stack.running()
    for name in stack.stop():
        click.echo(f"{name} did not end by itself and was killed")
    click.echo(f"stopped: {', '.join(ran)}" if ran else "nothing ran")


def _read_connectors(
    stack: NorthwindStack, slots: dict[str, Slot], problems: list[str]
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


def _read_partitions(stack: NorthwindStack, lake: LakeStatus) -> list[Row]:
    found: list[Row] = []
    for name, end in sorted(stack.topic_ends().items()):
        held = lake.offsets.get(name, -1) + 1
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
    yield from status.lake.lines()


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
