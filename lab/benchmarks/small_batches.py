"""What one more small batch costs after many: its append, and a read of what it brought.

Batches of ten events each, as a live pipeline writes them, with files made one and without.
Prints the means of each stretch of batches, and how many files the lake has after it, how
large those are, and what the read takes of them. With
``--ledger`` it measures the ledger of files instead: one more batch of one file, where the
ledger has so many files already.
"""

from __future__ import annotations

import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version

EVENTS = 10
STRETCH = 50
READS = 3


def _line(number: int) -> str:
    metadata = {"topic": "demo.datalake.cdc_events", "partition": 0, "offset": number}
    value = {
        **{"__op": "u", "__lsn": number, "__source_ts_ms": 1_767_225_600_000},
        **{"order_id": number % 1_000, "customer": "x" * 300},
    }
    return json.dumps({"key": "{}", "value": value, "headers": {}, "metadata": metadata})


def _bytes_read(spark: Any) -> int:
    """What this process has read of files so far."""
    statistics_of: Any = spark._jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(each.getBytesRead() for each in statistics_of)


def measure(batches: int, clusters: bool, folder: Path) -> None:
    """Write batches, and print what the last of each stretch cost."""
    os.environ["LAKE_ROOT"] = str(folder)
    from cdc_lakehouse.spark.session import spark_session
    from ingest.batches import Batches
    from ingest.bronze import WRITE_OPTIONS, Bronze
    from ingest.events import records_from_lines
    from ingest.topics import read_topics

    if not clusters:
        WRITE_OPTIONS["hoodie.clustering.inline"] = "false"
    spark = spark_session(has_catalogue=False)
    bronze = Bronze(spark, f"{folder}/warehouse")
    writer = Batches(bronze, read_topics(), logging.getLogger(__name__), continuous=False)
    writer.create_missing()
    appends: list[float] = []
    for number in range(1, batches + 1):
        lines = [(_line(number * EVENTS + n), "file") for n in range(EVENTS)]
        records = spark.createDataFrame(lines, "value string, source_file string")
        start = time.monotonic()
        writer.write(records_from_lines(records, None))
        appends.append(time.monotonic() - start)
        if number % STRETCH:
            continue
        newest = bronze.mark("cdc_events").batch
        stored = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
        reads = []
        before = _bytes_read(spark)
        for _ in range(READS):
            start = time.monotonic()
            found = bronze.read("cdc_events").where(f"ingest_batch >= {newest}").count()
            reads.append(time.monotonic() - start)
            assert found == EVENTS
        read = (_bytes_read(spark) - before) / READS
        click.echo(
            f"{number:>6} batches, {'made one' if clusters else 'left alone'}:"
            f" append {statistics.mean(appends[-STRETCH:]):.2f} s"
            f" (at most {max(appends[-STRETCH:]):.2f}),"
            f" read {statistics.median(reads):.2f} s"
            f" ({read / 1_000:,.0f} kB),"
            f" {stored / 1_000:,.0f} kB of Parquet in"
            f" {sum(path.is_file() for path in folder.rglob('*')):,} files"
        )


def measure_ledger(files: int, folder: Path) -> None:
    """Print what a ledger costs that has one file, and one that has so many."""
    os.environ["LAKE_ROOT"] = str(folder)
    from cdc_lakehouse.spark.session import spark_session
    from ingest.landing import LEDGER_FILES, File, Ledger

    spark = spark_session(has_catalogue=False)

    def landed(number: int) -> File:
        return File(f"file:/landing/topics/demo/0/{number:012d}.json", 1, 1_000)

    for known in (1, files):
        place = f"{folder}/ledger-{known}"
        Ledger(spark, place).add([landed(number) for number in range(known)])
        start = time.monotonic()
        ledger = Ledger(spark, place)
        opened = time.monotonic() - start
        seconds = []
        # So many that it is written as a whole, too.
        for number in range(known, known + 2 * LEDGER_FILES):
            start = time.monotonic()
            ledger.add([landed(number)])
            seconds.append(time.monotonic() - start)
        click.echo(
            f"ledger of {known:,} files: opened in {opened:.2f} s, one more in"
            f" {statistics.mean(seconds):.3f} s (at most {max(seconds):.2f})"
        )


@click.command("lab.benchmarks.small_batches", context_settings=STYLE)
@version
@click.option("--batches", type=click.IntRange(min=STRETCH), default=300)
@click.option("--clusters/--no-clusters", default=None, help="one of both only")
@click.option("--ledger", type=click.IntRange(min=1), metavar="FILES")
def command(batches: int, clusters: bool | None, ledger: int | None) -> None:
    """Write many small batches to bronze, with files made one and without."""
    if ledger is not None:
        with tempfile.TemporaryDirectory() as folder:
            measure_ledger(ledger, Path(folder))
        return
    if clusters is not None:
        with tempfile.TemporaryDirectory() as folder:
            measure(batches, clusters, Path(folder))
        return
    for option in ("--no-clusters", "--clusters"):
        # A process each: the JVM is as warm for one as for the other.
        subprocess.run(
            [sys.executable, "-m", command.name or "", f"--batches={batches}", option],
            check=True,
        )


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
