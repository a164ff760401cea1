"""The ingest as a process that builds after each batch, and faults in it."""

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from contextlib import closing, suppress
from functools import partial

from cdc_lakehouse.errors import TransientError, UserError
from lab.stack.northwind import DATABASE, NorthwindStack
from lab.stack.processes import wait_until
from tests.support.commands import Process, run, start
from tests.support.lake import environment
from tests.support.source import SILVER, TOPICS_FILE, answers, gold_rows, silver_differences
from tests.support.source_database import SourceDatabase
from tests.support.storm import Storm
from tests.support.tables import Tables

# With what `cdc-lakehouse resync` marks.
CAPTURED = [*(table for table, _ in SILVER.values()), "complete_snapshots"]
TOPICS = [f"demo.datalake.{table}" for table in CAPTURED]
VARIABLES = {"cdc_lakehouse_base_tables": True, "cdc_lakehouse_resync": True}
KILLS = (
    "connect is killed",
    "the broker is killed",
    "the ingest is killed",
    "a build is killed",
    "PostgreSQL is restarted",
)
FAULTS = (*KILLS, "a connector is paused", "the checkpoint is lost")
SECONDS_TO_BUILD = 300


class Pipeline:
    """``python -m ingest kafka --then-build`` on every table of a stack's lake.

    Args:
        stack: the stack; its lake is the pipeline's.
    """

    def __init__(self, stack: NorthwindStack) -> None:
        self.stack = stack
        self.source = SourceDatabase(stack, DATABASE)
        self.tables = Tables(stack.root)
        self.environment = environment(stack.root)
        self.log = stack.root / "ingest.log"
        self.process: Process | None = None

    def command(self, *arguments: str) -> list[str]:
        return [
            *(sys.executable, "-m", "ingest", "kafka"),
            *("--bootstrap-servers", self.stack.bootstrap_servers),
            *("--topics", str(TOPICS_FILE), "--topic", *TOPICS),
            *("--then-build", f"run --vars '{json.dumps(VARIABLES)}'"),
            *arguments,
        ]

    def start(self) -> None:
        """Run it continuously; nothing where it runs already."""
        if self.has_ended:
            command = self.command("--continuous")
            with self.log.open("w") as log:
                self.process = start(*command, env=self.environment, output=log)

    def stop(self) -> int:
        """End it as a service manager does; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=240)

    def kill(self) -> None:
        """End it, and its Java, as a crash does."""
        if self.process is not None and not self.has_ended:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def output(self) -> str:
        """What the current continuous run has printed so far."""
        return self.log.read_text(errors="replace")

    @property
    def is_building(self) -> bool:
        """Whether the continuous run builds what a batch has brought, or did at its end."""
        steps = re.findall(r"^wrote [1-9]|^built|^the build failed", self.output(), re.M)
        return steps[-1:] != [] and steps[-1].startswith("wrote")

    def run_once(self) -> None:
        """Ingest and build everything that is committed in a process of its own.

        The continuous run must have ended.
        """
        self.stack.wait_until_caught_up(timeout=180)
        run(*self.command(), env=self.environment)

    def difference(self, ends: dict[str, int]) -> str:
        """How the lake differs from the source.

        Silver equals it row by row, gold is PostgreSQL's own answers, and bronze has every
        offset of every topic once: no gap, no duplicate.
        """
        rows = self.tables.rows
        with closing(self.stack.connect_to_source()) as connection:
            for silver, (table, _) in SILVER.items():
                found = rows(f"silver.{silver}")
                if wrong := silver_differences(connection, silver, found):
                    return f"{silver}: {len(wrong)} differ: {wrong[:2]}"
                offsets = sorted(row["kafka_offset"] for row in rows(f"bronze.{table}"))
                if offsets != list(range(ends[f"demo.datalake.{table}/0"])):
                    return f"bronze.{table} has offsets {offsets}"
            for name, answer in answers(connection).items():
                if gold_rows(rows(f"gold.{name}"), name) != answer:
                    return f"gold.{name}"
        rejected = rows("bronze.rejected_events") + rows("silver.rejected_rows")
        return str(rejected) if rejected else ""

    def wait_until_equal(self) -> None:
        """Wait until the continuous run has brought all that is committed to gold."""
        self.stack.wait_until_caught_up(timeout=180)
        ends = self.stack.topic_ends()

        def is_equal() -> bool:
            with suppress(UserError):  # a table is not there yet
                idle = not self.is_building
                return self.has_ended or (idle and not self.difference(ends))
            return False

        with suppress(TransientError):
            wait_until(is_equal, 600, "", 3)
        assert not self.has_ended, self.output()[-4000:]
        assert self.difference(ends) == "", self.log

    def storm(self, faults: list[str], seed: int, transactions: int) -> None:
        """Run transactions, and cause faults at random moments among them."""
        draw = random.Random(seed)
        connect = partial(
            self.stack.postgres.connect, dbname=DATABASE, options="-c search_path=datalake"
        )
        storm = Storm(connect, seed, transactions)
        storm.start()
        for fault in faults:
            time.sleep(draw.uniform(2, 8))
            self.inject(fault, draw)
            self.start()
        storm.wait()
        self.wait_until_equal()

    def inject(self, fault: str, draw: random.Random) -> None:
        """Cause one fault, and start again what a service manager would."""
        stack = self.stack
        match fault:
            case "connect is killed" | "the broker is killed":
                part = "connect" if "connect" in fault else "broker"
                stack.kill(part)
                stack.revive(part)
            case "the ingest is killed":
                self.kill()
            case "a build is killed":
                self.kill_a_build(draw)
            case "PostgreSQL is restarted":
                stack.postgres.stop()
                stack.revive("postgres")
            case "a connector is paused":
                stack.connect.pause("source-outbox")
                time.sleep(draw.uniform(1, 4))
                stack.connect.resume("source-outbox")
            case "the checkpoint is lost":
                self.kill()
                shutil.rmtree(stack.root / "checkpoints", ignore_errors=True)

    def kill_a_build(self, draw: random.Random) -> None:
        """Kill the continuous run at a random moment of a build that is in flight."""
        end = time.monotonic() + SECONDS_TO_BUILD
        while True:
            # The storm may be over; without a new event there is no build. No storm writes
            # this row, which keeps its values.
            self.source.execute(
                "update datalake.region set region_description = region_description"
                " where region_id = 1"
            )
            what = f"no build has begun; see {self.log}"
            wait_until(lambda: self.is_building or self.has_ended, SECONDS_TO_BUILD, what)
            assert not self.has_ended, self.output()[-4000:]
            time.sleep(draw.uniform(0, 6))
            self.kill()
            if self.is_building:
                return
            assert time.monotonic() < end, "each build ended before it was to be killed"
            self.start()
