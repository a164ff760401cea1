"""What a lake costs after many days of small batches: builds, a reader, files and bytes.

Batches of ten changes of 1,000 customers, spread over 90 days of bronze by a clock that is
set ahead; a build of their table and a gold table of them after every tenth, in the
process of the ingest. Prints after every tenth part of the way the median seconds of an
append, of a build and of a reader without a JVM, the process's memory, and the files and
bytes of each layer and the entries of its timelines; in the end, what Trino takes to read
silver and gold as they were after the first part and are after the last, from a local S3
(moto's server).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.serving.gold import find_table
from cdc_lakehouse.storage.tables import read_columns
from lab.benchmarks.cost import BUCKET, S3
from lab.benchmarks.increments import copy_project
from lab.benchmarks.watched import memory_text, resident_mib, watched
from lab.stack import trino_server
from lab.stack.ports import reserved_ports
from lab.stack.trino_server import Trino

CHANGES = 10
KEYS = 1_000
DAYS = 90
BUILD_EVERY = 10
PARTS = 10
FIRST = datetime(2027, 1, 1, tzinfo=UTC)
LAYERS = ("bronze", "silver", "gold")
MODELS = ("stg_customers", "customers", "customers_by_country")
MOMENTS = ("beginning", "end")
READS = 20
QUESTIONS = (
    "select count(*), max(company_name) from {}_silver.customers where not is_deleted",
    "select * from {}_gold.customers_by_country",
)
# The last of the models, in a copy of the project.
GOLD = """\
{{ config(unique_key='country') }}
select country, count(*) as customers from {{ ref('customers') }}
where not is_deleted and country is not null group by country
"""


def _line(offset: int) -> str:
    number = offset if offset < KEYS else (offset * 7_919) % KEYS
    value = {
        **{"customer_id": f"C{number:06d}", "company_name": f"Company {offset}"},
        **{"city": f"City {offset % 97}", "country": f"Country {number % 23}"},
        **{"__deleted": "false", "__op": "u" if offset >= KEYS else "c"},
        **{"__table": "customers", "__lsn": 50_000_000 + offset},
        "__source_ts_ms": 1_795_227_000_000 + offset,
    }
    place = {"topic": "demo.datalake.customers", "partition": 0, "offset": offset}
    key = {"customer_id": value["customer_id"]}
    return json.dumps({"key": key, "value": value, "metadata": place})


def measure(project: Path, batches: int, kept: Path) -> None:
    """Write and build, and print what it cost on the way.

    Args:
        project: a copy, which gets a lake.
        batches: to write.
        kept: gets a folder for each of ``MOMENTS``, with the layers as they were.
    """
    from cdc_lakehouse.dbt.runner import Project
    from cdc_lakehouse.spark.session import spark_session
    from ingest.batches import Batches
    from ingest.bronze import Bronze
    from ingest.events import records_from_lines
    from ingest.topics import read_topics

    lake = project / "lake"
    os.environ["LAKE_ROOT"] = str(lake)
    os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    os.chdir(project)
    spark = spark_session()
    gateway: Any = spark.sparkContext._gateway
    bronze = Bronze(spark, f"{lake}/warehouse")
    writer = Batches(bronze, read_topics(), logging.getLogger("ingest"), continuous=False)
    writer.create_missing()
    build = Project(["run", "-s", *MODELS])
    appends: list[float] = []
    builds: list[float] = []
    reads: list[float] = []
    offset, a_part = 0, batches // PARTS
    writer.now = lambda: FIRST + timedelta(days=DAYS * len(appends) / batches)
    for number in range(batches):
        count = CHANGES if number else KEYS
        lines = [(_line(at), "file") for at in range(offset, offset + count)]
        offset += count
        records = spark.createDataFrame(lines, "value string, source_file string")
        appends.append(
            _seconds(lambda of=records: writer.write(records_from_lines(of, None)))
        )
        if number % BUILD_EVERY == 0:
            builds.append(_seconds(lambda: _build(build)))
            reads.append(_seconds(lambda: _read(lake)))
        if (number + 1) % a_part == 0:
            last = -(a_part // BUILD_EVERY)
            show(lake, number + 1, appends[-a_part:], builds[last:], reads[last:])
            processes = {"java": gateway.proc.pid, "python": os.getpid()}
            memory = {name: resident_mib(pid) for name, pid in processes.items()}
            click.echo(f"       memory: {memory_text(memory)}")
        if number + 1 in (a_part, batches):
            moment = MOMENTS[number + 1 == batches]
            shutil.copytree(lake / "warehouse", kept / moment / "warehouse")
    spark.stop()


def read_by_trino(project: Path, kept: Path) -> None:
    """Print what Trino takes to read silver and gold at each of the moments."""
    s3 = S3()
    os.environ |= s3.environment
    for moment in MOMENTS:
        s3.put(kept / moment, moment)
        root = {"LAKE_ROOT": f"s3a://{BUCKET}/{moment}"}
        glue = ("cdc_lakehouse", "glue", "--prefix", moment)
        watched(*glue, folder=project, environment=root)
    logging.getLogger("trino").setLevel(logging.WARNING)  # it is asked until it answers
    seconds: dict[str, list[float]] = {moment: [] for moment in MOMENTS}
    (folder := kept / "trino").mkdir()
    with reserved_ports() as free_port:
        trino = Trino(folder, s3.endpoint, free_port())
        trino.start()
        try:
            trino.wait_until_ready(180)
            for _ in range(READS):
                for moment, found in seconds.items():
                    questions = [question.format(moment) for question in QUESTIONS]
                    found.append(_seconds(lambda of=questions: [*map(trino.rows, of)]))
        finally:
            trino.stop()
    # Of the first half it compiles.
    said = ", ".join(
        f"{moment} {statistics.median(found[READS // 2 :]):.2f} s"
        for moment, found in seconds.items()
    )
    click.echo(f"Trino reads silver and gold: {said}")


def _seconds(work: Any) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def _build(project: Any) -> None:
    if code := project.run([]):
        raise click.ClickException(f"a build ended with {code}")
    project.make_copy()


def _read(lake: Path) -> None:
    for name in ("silver.customers", "gold.customers_by_country"):
        table = find_table(lake, name)
        assert table is not None
        read_columns(table)


def show(
    lake: Path, batches: int, appends: list[float], builds: list[float], reads: list[float]
) -> None:
    """Print what the last part cost, and what the lake has."""
    click.echo(
        f"{batches:>6} batches: append {statistics.median(appends):.2f} s, build"
        f" {statistics.median(builds):.2f} s, read {statistics.median(reads):.3f} s"
    )
    for layer in LAYERS:
        files = [
            path for path in (lake / f"warehouse/{layer}.db").rglob("*") if path.is_file()
        ]
        entries = sum(path.parent.name == ".hoodie" for path in files)
        size = sum(path.stat().st_size for path in files)
        click.echo(
            f"       {layer:<7} {len(files):>6,} files, {entries:>5,} of them timeline,"
            f" {size / 2**20:>7.1f} MiB"
        )


@click.command("lab.benchmarks.aging", help=__doc__, context_settings=STYLE)
@version
@click.option("--batches", type=click.IntRange(min=PARTS * BUILD_EVERY), default=3_000)
def command(batches: int) -> None:
    trino_server.fetch()
    with tempfile.TemporaryDirectory(prefix="cdc-lakehouse-") as folder:
        project = copy_project(Path(folder) / "project")
        (project / f"models/gold/{MODELS[-1]}.sql").write_text(GOLD)
        measure(project, batches, Path(folder))
        read_by_trino(project, Path(folder))


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
