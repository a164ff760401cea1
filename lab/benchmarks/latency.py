"""From a commit in PostgreSQL to gold, as a reader sees it, in continuous mode.

A stack of its own streams Northwind; `python -m ingest kafka --continuous --then-build
COMMAND` brings the outbox, customers and products to gold. One order line changes at a
time, at random moments; a reader without a JVM looks for the new revenue every 50 ms.
Prints the median and the 95th percentile until the change was in bronze and in gold.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version
from lab.demo.gold import Gold
from lab.stack.northwind import NorthwindStack

TOPICS = [f"demo.datalake.{table}" for table in ("cdc_events", "customers", "products")]
SECONDS_TO_WAIT = 180


def newest_batch(lake: Path) -> float:
    """When the newest commit of the outbox's bronze table was completed."""
    timeline = lake / "warehouse/bronze.db/cdc_events/.hoodie"
    return max((file.stat().st_mtime for file in timeline.glob("*.commit")), default=0.0)


def change(connection: Any, draw: random.Random) -> tuple[str, Decimal]:
    """Change one order line; the customer's name and revenue after it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "update datalake.order_details set quantity = %s where (order_id, product_id) ="
            " (select order_id, product_id from datalake.order_details"
            " order by order_id offset %s limit 1) returning order_id",
            (draw.randint(200, 30_000), draw.randrange(2_000)),
        )
        (order_id,) = cursor.fetchone()
        cursor.execute(
            "select rtrim(customer_id), sum(round(unit_price::text::numeric * quantity"
            " * (1 - discount::text::numeric), 4)) from datalake.orders"
            " join datalake.order_details using (order_id) where customer_id ="
            " (select customer_id from datalake.orders where order_id = %s)"
            " group by customer_id",
            (order_id,),
        )
        customer_id, revenue = cursor.fetchone()
    connection.commit()
    return customer_id, revenue


def wait_for(gold: Gold, customer_id: str, revenue: Decimal) -> float:
    """When a reader first saw a customer's revenue, in seconds since 1970."""
    end, seen = time.time() + SECONDS_TO_WAIT, 0.0
    while time.time() < end:
        committed = gold.committed_at("revenue_by_customer")
        if committed != seen:
            seen = committed
            row = gold.rows("revenue_by_customer").get(customer_id)
            if row is not None and row["revenue"] == revenue:
                return time.time()
        time.sleep(0.05)
    raise TimeoutError(f"{customer_id} has no revenue of {revenue} in gold")


def measure(
    lake: Path, build: str, warm_up: int, changes: int
) -> list[tuple[float, float]]:
    """Of every change, the seconds until bronze and until gold."""
    stack = NorthwindStack(lake)
    stack.start()
    log = (lake / "ingest.log").open("wb")
    ingest = subprocess.Popen(
        [
            *(sys.executable, "-m", "ingest", "kafka"),
            *("--bootstrap-servers", stack.bootstrap_servers),
            *(f"--topic={topic}" for topic in TOPICS),
            *("--continuous", "--then-build", build),
        ],
        env={**os.environ, "LAKE_ROOT": str(lake)},
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        gold, draw, found = Gold(lake), random.Random(5), []
        with closing(stack.connect_to_source()) as connection:
            for number in range(warm_up + changes):
                customer_id, revenue = change(connection, draw)
                committed = time.time()
                seen = wait_for(gold, customer_id, revenue)
                found.append((newest_batch(lake) - committed, seen - committed))
                print(f"{number:4d} {found[-1][0]:6.2f} {found[-1][1]:6.2f}", flush=True)
                time.sleep(draw.uniform(0, 8))
        return found[warm_up:]
    finally:
        os.killpg(ingest.pid, signal.SIGKILL)
        ingest.wait()
        said = (lake / "ingest.log").read_text(encoding="utf-8")
        builds = [float(text) for text in re.findall(r"built \(([\d.]+) s\)", said)]
        if builds:
            print(f"builds: median of the last half {_half(builds):.2f} s")
        stack.remove()


def _half(values: list[float]) -> float:
    return statistics.median(values[len(values) // 2 :])


@click.command("lab.benchmarks.latency", help=__doc__, context_settings=STYLE)
@version
@click.option("--changes", default=50)
@click.option("--warm-up", default=10, help="Changes that are not counted, before these.")
@click.option("--command", "build", default="build", help="What dbt runs for each batch.")
def command(changes: int, warm_up: int, build: str) -> None:
    lake = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    lake.chmod(0o755)
    try:
        found = measure(lake, build, warm_up, changes)
    finally:
        shutil.rmtree(lake, ignore_errors=True)
    for name, values in (
        ("in bronze", [bronze for bronze, _ in found]),
        ("in gold", [gold for _, gold in found]),
    ):
        p95 = statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
        print(f"{name}: p50 {statistics.median(values):.1f} s, p95 {p95:.1f} s")


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
