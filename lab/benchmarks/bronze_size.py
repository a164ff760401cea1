"""What 1,000 new events cost over a small and over a large bronze table.

Each size is a lake of its own with 1,000 orders; the rows are old events of those orders,
spread over days and read long ago. Prints the medians of ingest and build, and the ratio of
the largest to the smallest.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version

ORDERS = 1_000
EVENTS = 1_000


def measure(rows: int, days: int, runs: int, folder: Path) -> dict[str, float]:
    """The median seconds of one ingest and one build over so many old rows."""
    os.environ["LAKE_ROOT"] = str(folder)
    from dbt.cli.main import dbtRunner
    from pyspark.sql import functions as F

    from cdc_lakehouse.spark.session import spark_session
    from ingest.bronze import WRITE_OPTIONS
    from ingest.cli import main as ingest
    from lab.benchmarks.events import Stream

    spark = spark_session()
    stream = Stream(folder / "landing")
    runner = dbtRunner()

    def timed_round(op: str) -> tuple[float, float]:
        file = stream.write(list(range(1, ORDERS + 1)), op)
        start = time.monotonic()
        assert ingest(["files", str(file)]) == 0
        ingested = time.monotonic()
        result = runner.invoke(
            [
                "--quiet",
                "build",
                "--profiles-dir",
                "profiles",
                "--exclude-resource-type",
                "test",
                "unit_test",
            ]
        )
        assert result.success, result.exception
        return ingested - start, time.monotonic() - ingested

    timed_round("r")
    path = f"{folder}/warehouse/bronze.db/cdc_events"
    day = F.expr(f"date_add(date'2025-01-01', int(id % {days}))")
    old = (
        spark.range(rows)
        .withColumn("order_id", F.col("id") % ORDERS + 1)
        .select(
            F.md5(F.col("id").cast("string")).alias("event_id"),
            F.lit("demo.datalake.cdc_events").alias("topic"),
            F.lit(0).alias("kafka_partition"),
            (F.col("id") - rows).alias("kafka_offset"),
            F.current_timestamp().alias("kafka_timestamp"),
            F.format_string('{"order_id":%d}', "order_id").alias("key"),
            F.format_string(
                '{"order_id":%d,"customer_id":"C1","__op":"u"}', "order_id"
            ).alias("value"),
            F.lit("u").alias("op"),
            F.lit(0).alias("source_epoch"),
            F.col("id").alias("source_lsn"),
            F.current_timestamp().alias("source_ts"),
            F.lit("cdc_events").alias("source_table"),
            F.current_timestamp().alias("ingested_at"),
            (F.date_format(day, "yyyyMMdd").cast("bigint") * 1_000_000_000).alias(
                "ingest_batch"
            ),
            day.cast("string").alias("ingest_date"),
        )
        .repartition(8, "ingest_date")
        .sortWithinPartitions("ingest_date")
    )
    (
        old.write.format("hudi")
        .options(**WRITE_OPTIONS)
        .option("hoodie.table.name", "cdc_events")
        .mode("append")
        .save(path)
    )
    rounds = [timed_round("u") for _ in range(runs + 2)][2:]
    return {
        "ingest": statistics.median(seconds for seconds, _ in rounds),
        "build": statistics.median(seconds for _, seconds in rounds),
    }


@click.command("lab.benchmarks.bronze_size", help=__doc__, context_settings=STYLE)
@version
@click.option(
    "--rows",
    "sizes",
    type=int,
    multiple=True,
    default=[10_000, 10_000_000],
    help="May be given several times.",
)
@click.option("--days", default=300)
@click.option("--runs", default=5)
def command(sizes: tuple[int, ...], days: int, runs: int) -> None:
    os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "6g")
    if len(sizes) == 1:
        folder = Path(tempfile.mkdtemp(prefix="lake-"))
        try:
            print(json.dumps(measure(sizes[0], days, runs, folder)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return

    found = {}
    for rows in sizes:  # each in a process of its own
        output = subprocess.run(
            [
                *(sys.executable, "-m", "lab.benchmarks.bronze_size"),
                *("--rows", str(rows), "--days", str(days), "--runs", str(runs)),
            ],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        found[rows] = json.loads(output.splitlines()[-1])
        print(
            f"{rows:>12,} rows in {days} days:"
            f" ingest {found[rows]['ingest']:.2f} s,"
            f" build {found[rows]['build']:.2f} s",
            flush=True,
        )
    small, large = min(found), max(found)
    for part in ("ingest", "build"):
        print(f"{part}: {found[large][part] / found[small][part]:.2f} times")


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
