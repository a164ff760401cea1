"""`dbt build` against the same by hand, in one run and one warm session.

Each round lands new events, ingests them, and lets both bring them to gold, in turn. Prints
the medians and, round by round, the ratio of dbt to the peer; data tests are timed apart.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version

SEVERAL = "May be given several times."


def measure(orders: int, events: int, rounds: int, folder: Path) -> dict[str, Any]:
    """One base and one size of increment; the seconds of each round."""
    os.environ["LAKE_ROOT"] = str(folder)
    from dbt.cli.main import dbtRunner

    from cdc_lakehouse.spark.session import spark_session
    from ingest.cli import main as ingest
    from lab.benchmarks.events import Stream
    from lab.benchmarks.peer import Peer

    spark = spark_session()
    stream = Stream(folder / "landing")
    runner = dbtRunner()

    def dbt(*arguments: str) -> Any:
        result = runner.invoke(["--quiet", *arguments, "--profiles-dir", "profiles"])
        assert result.success, result.exception
        return result.result

    def land(keys: list[int], op: str) -> int:
        assert ingest(["files", str(stream.write(keys, op))]) == 0
        frame = spark.read.format("hudi").load(f"{folder}/warehouse/bronze.db/cdc_events")
        return int(frame.agg({"ingest_batch": "max"}).collect()[0][0])

    high = land(list(range(1, orders + 1)), "r")
    built = dbt("build", "--exclude-resource-type", "test", "unit_test")
    gold = {
        node.node.name: (node.node.config.get("unique_key"), node.node.compiled_code)
        for node in built.results
        if getattr(node.node, "schema", "") == "gold"
    }
    peer = Peer(spark, str(folder), gold)
    peer.build(0, high, first=True)

    draw = random.Random(11)
    rows = []
    for round_number in range(rounds + 2):
        low, high = (
            high,
            land(sorted(draw.sample(range(1, orders + 1), min(events, orders))), "u"),
        )
        start = time.monotonic()
        result = dbt("build", "--exclude-resource-type", "test", "unit_test")
        dbt_seconds = time.monotonic() - start
        start = time.monotonic()
        by_table = peer.build(low, high)
        peer_seconds = time.monotonic() - start
        start = time.monotonic()
        if round_number == rounds + 1:
            dbt("test")
        test_seconds = time.monotonic() - start
        rows.append(
            {
                "dbt": dbt_seconds,
                "peer": peer_seconds,
                "tests": test_seconds,
                "dbt_models": {
                    node.node.name: node.execution_time
                    for node in result.results
                    if node.node.resource_type == "model"
                },
                "peer_models": by_table,
            }
        )
    ours = spark.table("gold.revenue_by_customer").agg({"revenue": "sum"}).collect()[0][0]
    theirs = peer._read("revenue_by_customer").agg({"revenue": "sum"}).collect()[0][0]
    assert ours == theirs, (ours, theirs)
    return {"orders": orders, "events": events, "rounds": rows[2:]}


def report(measured: dict[str, Any]) -> None:
    """Print what one base and size gave."""
    rounds = measured["rounds"]
    ratios = [row["dbt"] / row["peer"] for row in rounds]

    def median(*path: str) -> float:
        values = []
        for row in rounds:
            value: Any = row
            for part in path:
                value = value.get(part, float("nan"))
            values.append(value)
        return float(statistics.median(values))

    print(
        f"\n{measured['orders']:,} orders, {measured['events']:,} events,"
        f" {len(rounds)} rounds"
    )
    print(f"  {'':<22} {'dbt':>6} {'peer':>6} {'ratio':>6}   seconds, medians")
    for name in rounds[0]["peer_models"]:
        ours, theirs = median("dbt_models", name), median("peer_models", name)
        print(f"  {name:<22} {ours:6.2f} {theirs:6.2f} {ours / theirs:6.2f}")
    print(
        f"  {'in all':<22} {median('dbt'):6.2f} {median('peer'):6.2f} "
        f"{statistics.median(ratios):6.2f}   ratio by round: "
        f"{min(ratios):.2f} to {max(ratios):.2f}"
    )
    print(f"  data tests, apart      {rounds[-1]['tests']:6.2f}", flush=True)


@click.command("lab.benchmarks.build", help=__doc__, context_settings=STYLE)
@version
@click.option("--orders", type=int, multiple=True, default=[1_000, 100_000], help=SEVERAL)
@click.option("--events", type=int, multiple=True, default=[100, 1_000], help=SEVERAL)
@click.option("--runs", default=5)
def command(orders: tuple[int, ...], events: tuple[int, ...], runs: int) -> None:
    # A warm session: both sides get the optimising compiler.
    os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "6g")
    if len(orders) * len(events) > 1:  # each in a process of its own
        for base, size in itertools.product(orders, events):
            subprocess.run(
                [
                    *(sys.executable, "-m", "lab.benchmarks.build"),
                    *("--orders", str(base), "--events", str(size), "--runs", str(runs)),
                ],
                check=True,
            )
        return
    folder = Path(tempfile.mkdtemp(prefix="lake-"))
    try:
        measured = measure(orders[0], events[0], runs, folder)
        (folder / "measured.json").write_text(json.dumps(measured))
        report(measured)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
