"""The walk-through: from a commit at a source to a number in gold, before one's eyes.

Everything of it lies below ``LAKE_ROOT/live``, which it begins anew.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import click

from cdc_lakehouse.command import STYLE, delayed_signals, run, version
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.gold import Row
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.storage.folders import MARKER, claim, clear, require_own
from cdc_lakehouse.storage.place import lake_folder
from lab.demo.gold import KEYS, Gold, differences
from lab.northwind.northwind import insert_order
from lab.stack.northwind import NorthwindStack

TOPICS = ("cdc_events", "customers", "products")
HELD_BACK = 11075
SECONDS_TO_WAIT = 300
SECONDS_TO_STOP = 120
ROWS_SHOWN = 4
# What changes in every row with any change; shown only beside something else.
RELATIVE = {"revenue_share", "revenue_rank", "buyer_rank", "seller_rank"}


@dataclass(frozen=True)
class Step:
    """One change at the sources, which it is given."""

    title: str
    change: Callable[[Any], None]


@dataclass(frozen=True)
class Scenario:
    """Sources that change, and what follows them.

    Attributes:
        servers: what starts.
        sources: starts it below a lake's folder, and ends it.
        arguments: of ``ingest kafka``, for the sources.
        keys: gold's tables, and the key of each.
        steps: the changes.
        project: the folder of the dbt project, where the ingest runs.
    """

    servers: str
    sources: Callable[[Path], AbstractContextManager[Any]]
    arguments: Callable[[Any], list[str]]
    keys: Mapping[str, str]
    steps: Sequence[Step]
    project: Path = Path()


def _change(change: Callable[[Any], None]) -> Callable[[NorthwindStack], None]:
    def commit(stack: NorthwindStack) -> None:
        with closing(stack.connect_to_source()) as connection:
            change(connection)
            connection.commit()

    return commit


def _execute(statement: str) -> Callable[[NorthwindStack], None]:
    def change(connection: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return _change(change)


STEPS = (
    Step(
        "order 11077 is shipped",
        _execute(
            "update datalake.orders set shipped_date = '1998-06-15' where order_id = 11077"
        ),
    ),
    Step(
        "order 11075 comes in, with its three lines",
        _change(lambda connection: insert_order(connection, HELD_BACK)),
    ),
    Step(
        "a line of it is taken off",
        _execute(
            "delete from datalake.order_details where order_id = 11075 and product_id = 2"
        ),
    ),
    Step(
        "order 11074 is deleted",
        _execute("delete from datalake.orders where order_id = 11074"),
    ),
)


class Pipeline:
    """The ingest as a process that builds after each batch."""

    def __init__(self, lake: Path, project: Path) -> None:
        self.lake = lake
        self.project = project
        self.log = lake / "ingest.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._builds = 0

    def start(self, arguments: Sequence[str]) -> None:
        """Start it, detached: Ctrl-C is this program's."""
        # No signal may come between its start and the note of it.
        with self.log.open("wb") as log, delayed_signals():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ingest", "kafka", "--continuous", *arguments],
                cwd=self.project,
                env={**os.environ, "LAKE_ROOT": str(self.lake)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for_build(self) -> None:
        """Wait until one more build has ended.

        Raises:
            UserError: it failed, took too long, or the process ended.
        """
        end = time.monotonic() + SECONDS_TO_WAIT
        while time.monotonic() < end:
            said = self.log.read_text(encoding="utf-8")
            if "the build failed" in said:
                raise UserError(f"the build failed; see {self.log}")
            if said.count("built (") > self._builds:
                self._builds = said.count("built (")
                return
            if self._process is None or self._process.poll() is not None:
                raise UserError(f"the ingest ended; see {self.log}")
            time.sleep(0.1)
        raise UserError(f"no build within {SECONDS_TO_WAIT} s; see {self.log}")

    def stop(self) -> None:
        """End it after the batch and the build under way, or when it takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            # With its Java, which is of its session.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def northwind_stack(lake: Path, hold_back: int | None = None) -> Iterator[NorthwindStack]:
    """The stack for as long as a block, with its ports on the screen.

    Args:
        lake: the folder that it is made in.
        hold_back: an order that comes later.
    """
    stack = NorthwindStack(lake)
    try:
        stack.start(hold_back=hold_back)
        print(f"   PostgreSQL on port {stack.postgres.port}, Kafka on {stack.broker.port},")
        print(f"   Connect on {stack.connect.port}; all logs below {stack.folder}")
        yield stack
    finally:
        stack.stop()


NORTHWIND = Scenario(
    "PostgreSQL with Northwind, Kafka, Connect with Debezium",
    partial(northwind_stack, hold_back=HELD_BACK),
    lambda stack: [
        *("--bootstrap-servers", stack.bootstrap_servers),
        *(f"--topic=demo.datalake.{table}" for table in TOPICS),
        "--then-build",
    ],
    KEYS,
    STEPS,
)


@contextmanager
def _running(lake: Path, scenario: Scenario) -> Iterator[tuple[Any, Pipeline]]:
    """The sources and the pipeline, begun anew; ended in any case.

    Raises:
        UserError: the folder is somebody else's, or something is at work in it.
    """
    require_own(lake)
    claim(lake, "a lake, made by python -m lab.demo.live, which removes it\n")
    with exclusive_lock(str(lake), "live"):
        # A run that was killed leaves its ingest, which would write on below the new one.
        with exclusive_lock(str(lake), "ingest"):
            NorthwindStack(lake).remove()
            # A lock without its file would be nobody's.
            clear(lake, MARKER, "*.lock")
        with scenario.sources(lake) as sources:
            pipeline = Pipeline(lake, scenario.project)
            try:
                pipeline.start(scenario.arguments(sources))
                yield sources, pipeline
            finally:
                pipeline.stop()


def _value(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value:,.2f}"
    return "-" if value is None else str(value)


def _show(before: Row | None, after: Row | None, key: str) -> None:
    """One changed row: its key, and the columns that differ, as they were and are."""
    either = after or before or {}
    if before is None or after is None:
        word = "new" if before is None else "gone"
        values = [
            f"{name} {_value(value)}" for name, value in either.items() if name != key
        ]
        changes = ", ".join(values[:4])
    else:
        word = ""
        changes = ", ".join(
            f"{name} {_value(before[name])} -> {_value(value)}"
            for name, value in after.items()
            if before[name] != value and name != "revenue_share"
        )
    print(f"      {either[key]}: {word + ': ' if word else ''}{changes}")


def _is_relative(before: Row | None, after: Row | None) -> bool:
    """Whether nothing but a row's share or rank has changed."""
    if before is None or after is None:
        return False
    return {name for name in after if before[name] != after[name]} <= RELATIVE


def _show_changes(
    before: dict[str, dict[Any, Row]], gold: Gold, committed: float
) -> dict[str, dict[Any, Row]]:
    after = gold.everything()
    for table, rows in differences(before, after).items():
        seconds = gold.committed_at(table) - committed
        shown = [pair for pair in rows if not _is_relative(*pair)]
        print(f"   gold.{table}, {seconds:.1f} s after the commit:")
        for old, new in shown[:ROWS_SHOWN]:
            _show(old, new, gold.keys[table])
        if len(shown) > ROWS_SHOWN:
            print(f"      and {len(shown) - ROWS_SHOWN} more rows")
        if len(rows) > len(shown):
            print(f"      {len(rows) - len(shown)} rows in rank and share only")
    return after


@click.command("lab.demo.live", context_settings=STYLE)
@version
def command() -> None:
    """Follow changes from their source through Debezium and Kafka to gold.

    Everything of it is below LAKE_ROOT/live, which is emptied first.
    """
    follow(NORTHWIND)


def follow(scenario: Scenario) -> None:
    """Start the sources and the pipeline, and show what each change does to gold.

    Raises:
        UserError: a part is missing, does not come up, or fails.
    """
    lake = lake_folder("the stack needs a folder").absolute() / "live"
    gold = Gold(lake, scenario.keys)
    start = time.monotonic()
    print(f"\n== the stack: {scenario.servers}")
    with _running(lake, scenario) as (sources, pipeline):
        print(f"   streaming after {time.monotonic() - start:.0f} s")
        print("\n== the snapshot, through to gold")
        pipeline.wait_for_build()
        state = gold.everything()
        print(f"   {sum(map(len, state.values()))} rows in {len(state)} gold tables,")
        print(f"   {time.monotonic() - start:.0f} s after the start")
        for step in scenario.steps:
            print(f"\n== {datetime.now():%H:%M:%S}  {step.title}", flush=True)
            step.change(sources)
            committed = time.time()
            pipeline.wait_for_build()
            state = _show_changes(state, gold, committed)
        print("\n== the end: stopping everything")


def main(arguments: list[str] | None = None) -> int:
    """Run the walk-through; 0 where everything went well."""
    return run(command, arguments, on_stop=lambda: "stopped; what it started was ended")


if __name__ == "__main__":
    sys.exit(main())
