"""Killed at any moment, and run again: the lake ends as one that nothing disturbed."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from demo.landing import EVENTS, recorded, sink_envelope
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT
from tests.support.records import Row

KILLS = 2
INGEST_SEED, DBT_SEED = 11, 5
TABLES = {
    "silver.orders": "order_id",
    "silver.order_items": "order_item_id",
    "silver.customers": "customer_id",
    "gold.revenue_by_customer": "customer_id",
}
ARRIVAL = ("ingested_at", "ingest_batch", "ingest_date")


def land_changes(lake: Lake, part: int) -> None:
    """The recorded snapshots, or the changes after them, a file for each topic."""
    for capture in sorted(EVENTS.glob("*.jsonl.gz")):
        lines = [
            sink_envelope(line) + "\n"
            for line in recorded(capture)
            if (json.loads(line["value"])["__op"] != "r") == bool(part)
        ]
        file = lake.landing / f"{capture.stem}-{part}.json.gz"
        with gzip.open(file, "wt", encoding="utf-8") as out:
            out.writelines(lines)


def run(lake: Lake, arguments: list[str], seconds: float | None = None) -> bool:
    """Run a command; kill it and all it started after some time. True if it ended."""
    with (lake.root / "crash.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=PROJECT,
            env=lake.environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
    assert code == 0, (lake.root / "crash.log").read_text(errors="replace")[-3000:]
    return True


def ingest(lake: Lake) -> list[str]:
    return ["ingest", "files", str(lake.landing)]


def build(lake: Lake) -> list[str]:
    places = ["--target-path", f"{lake.root}/target", "--log-path", f"{lake.root}/logs"]
    return [
        "dbt.cli.main",
        "--quiet",
        "run",
        "--profiles-dir",
        "profiles",
        *places,
    ]


def table_of(lake: Lake, table: str, key: str) -> dict[Any, Row]:
    rows = lake.rows(table)
    found = {row[key]: {k: v for k, v in row.items() if k not in ARRIVAL} for row in rows}
    assert len(found) == len(rows), f"{table} holds a key twice"
    return found


def bronze_of(lake: Lake) -> dict[str, dict[Any, Row]]:
    return {
        table: table_of(lake, table, "event_id")
        for table in lake.tables.names()
        if table.startswith("bronze.")
    }


@pytest.fixture(scope="module")
def undisturbed(new_lake: NewLake) -> Lake:
    """The recorded events in two increments, each built."""
    lake = new_lake()
    for part in (0, 1):
        land_changes(lake, part)
        assert lake.ingest().code == 0
        lake.dbt("run")

    return lake


@pytest.fixture(scope="module")
def duration(undisturbed: Lake, new_lake: NewLake) -> dict[str, float]:
    """How long an ingest and a first build take when nothing stops them."""
    lake = new_lake()
    land_changes(lake, 0)
    seconds = {}
    for name, arguments in (("ingest", ingest(lake)), ("build", build(lake))):
        start = time.monotonic()
        run(lake, arguments)
        seconds[name] = time.monotonic() - start
    return seconds


def test_killed_ingest_loses_nothing_and_doubles_nothing(
    undisturbed: Lake, duration: dict[str, float], new_lake: NewLake
) -> None:
    chance = random.Random(INGEST_SEED)
    lake = new_lake()
    for part in (0, 1):
        land_changes(lake, part)
        for _ in range(KILLS if part == 0 else 1):
            run(lake, ingest(lake), duration["ingest"] * chance.uniform(0.35, 0.95))
    run(lake, ingest(lake))
    assert bronze_of(lake) == bronze_of(undisturbed)


def test_killed_builds_end_as_an_undisturbed_one(
    undisturbed: Lake, duration: dict[str, float], new_lake: NewLake
) -> None:
    chance = random.Random(DBT_SEED)
    lake = new_lake()
    for part in (0, 1):
        land_changes(lake, part)
        run(lake, ingest(lake))
        for _ in range(KILLS if part == 0 else 1):
            run(lake, build(lake), duration["build"] * chance.uniform(0.4, 0.95))
        # That a line was removed is known only to a table that had the line.
        if not lake.tables.instants().get("silver.order_items"):
            run(lake, build(lake))
    run(lake, build(lake))
    for table, key in TABLES.items():
        assert table_of(lake, table, key) == table_of(undisturbed, table, key), table


def test_metastore_that_a_kill_left_half_made_is_made_anew(new_lake: NewLake) -> None:
    lake = new_lake()
    land_changes(lake, 0)
    # What a kill leaves that comes while Derby makes its database.
    (lake.root / "metastore" / "seg0").mkdir(parents=True)
    run(lake, ingest(lake))
    run(lake, [*build(lake), "--select", "stg_orders"])
    assert (lake.root / "metastore" / "service.properties").exists()


def test_ingest_runs_while_another_process_has_the_metastore(new_lake: NewLake) -> None:
    """Also an ingest that reads a table, to see what it has already."""
    lake = new_lake()
    land_changes(lake, 0)
    run(lake, ingest(lake))
    assert lake.sql("show databases")  # the embedded metastore takes one process
    shutil.rmtree(lake.root / "checkpoints")
    land_changes(lake, 1)
    run(lake, ingest(lake))
    assert bronze_of(lake)


def test_killed_ingest_leaves_no_lock(tmp_path: Path) -> None:
    """The kernel frees the lock, so that the next ingest needs no help."""
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time\n"
            "from ingest.lock import only_one\n"
            "with only_one(sys.argv[1], 'ingest'):\n"
            "    print('held', flush=True)\n"
            "    time.sleep(60)\n",
            str(tmp_path),
        ],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    from ingest.errors import UserError
    from ingest.lock import only_one

    with (
        pytest.raises(UserError, match=f"process {holder.pid}"),
        only_one(str(tmp_path), "ingest"),
    ):
        pass
    holder.kill()
    holder.wait()
    with only_one(str(tmp_path), "ingest"):
        pass
