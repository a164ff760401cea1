"""What each way to store a table costs: a write of 1,000 rows, a read, the size on disk.

Every way is a table of its own, with the properties that the macros give it, of ROWS rows.
Each round upserts 1,000 rows into every table in turn, by an insert as silver's; then every
table is read before and after a compaction. Prints medians.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from lab.benchmarks.settings import COLUMNS, table_properties

INCREMENT = 1_000
ROWS_A_BUCKET = 125_000
PARTITIONS = 50
# As many rounds as a merge-on-read table takes before it is compacted by itself.
ROUNDS = 4
READ = "select count(*), sum(length(body)), max(source_lsn) from {table}"


def ways(rows: int) -> dict[str, tuple[str, dict[str, str]]]:
    """Of each way to store a table its partition column, if any, and its properties."""
    ours = table_properties()
    buckets = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(max(1, rows // ROWS_A_BUCKET)),
    }
    return {
        "cow": ("", ours),
        "cow, partitioned": ("part", table_properties(partitioned=True)),
        "cow, bucket index": ("", ours | buckets),
        "mor": ("", ours | {"type": "mor"}),
        "mor, bucket index": ("", ours | {"type": "mor"} | buckets),
    }


@click.command("lab.benchmarks.storage", help=__doc__, context_settings=STYLE)
@version
@click.argument("rows", type=int)
def command(rows: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="lake-"))
    os.environ |= {
        "LAKE_ROOT": str(folder),
        "LAKE_JIT_LEVEL": "4",
        "SPARK_DRIVER_MEMORY": "6g",
    }
    from cdc_lakehouse.spark.session import spark_session

    spark = spark_session()

    def seconds(statement: str) -> float:
        start = time.monotonic()
        spark.sql(statement).collect()
        return time.monotonic() - start

    source = (
        "select id, concat('name ', id) as name, repeat(md5(string(id)), 20) as body,"
        f" id as source_lsn, string(id % {PARTITIONS}) as part"
        " from range({low}, {high}, {step})"
    )
    spark.sql("create schema silver")
    tables = {}
    for number, (name, (partition, properties)) in enumerate(ways(rows).items()):
        tables[name] = f"silver.way_{number}"
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        spark.sql(
            f"create table {tables[name]} ({COLUMNS}, part string) using hudi"
            + (f" partitioned by ({partition})" if partition else "")
            + f' options (primaryKey "id") tblproperties ({listed})'
        )
        seconds(
            f"insert overwrite table {tables[name]} "
            + source.format(low=0, high=rows, step=1)
        )

    writes: dict[str, list[float]] = {name: [] for name in tables}
    for number in range(ROUNDS):
        increment = source.format(low=number, high=rows, step=max(1, rows // INCREMENT))
        for name, table in tables.items():
            writes[name].append(seconds(f"insert into {table} {increment}"))

    def read(table: str) -> float:
        return statistics.median(seconds(READ.format(table=table)) for _ in range(3))

    def size(table: str) -> float:
        place = folder / "warehouse" / table.replace(".", ".db/")
        return sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 1e6

    print(f"\n{rows:,} rows, upserts of {INCREMENT:,}; seconds and megabytes")
    print(f"{'':<20} {'write':>6} {'read':>6} {'size':>7} {'compaction':>11} {'read':>6}")
    for name, table in tables.items():
        line = f"{name:<20} {statistics.median(writes[name][1:]):6.2f} {read(table):6.2f}"
        line += f" {size(table):7.1f}"
        if "mor" in name:
            spent = seconds(
                f"call run_compaction(op => 'schedule', table => '{table}',"
                " options => 'hoodie.compact.inline.max.delta.commits=1')"
            )
            spent += seconds(f"call run_compaction(op => 'run', table => '{table}')")
            line += f" {spent:11.2f} {read(table):6.2f}"
        print(line)
    shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
