"""What each Hudi setting that the tables keep buys, against leaving it out, in one run.

Every variant is a table of its own: all settings of a silver table, and all but one.
Each round upserts 1,000 rows into every table, by an insert as silver's, and overwrites it,
in turn; prints medians and the ratio to all settings, and the size of the newest files.
Variants with a setting that we left at its default are measured too, and the upsert as a
MERGE.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version

COLUMNS = "id bigint, name string, body string, source_lsn bigint"
LEFT_ALONE = {
    "Spark's record merger": {
        "hoodie.write.record.merge.custom.implementation.classes": (
            "org.apache.hudi.DefaultSparkRecordMerger"
        ),
    },
    "bucket index of one bucket": {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
    },
    "rows that are not combined": {"hoodie.combine.before.upsert": "false"},
    "snappy": {"hoodie.parquet.compression.codec": "snappy"},
    "no automatic cleaning": {"hoodie.clean.automatic": "false"},
    "one task a shuffle": {
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.bulkinsert.shuffle.parallelism": "1",
    },
    "small files are left alone": {"hoodie.parquet.small.file.limit": "0"},
}
MERGE = "with MERGE in place of an insert"
NEEDED = {
    "type",
    "hoodie.write.table.version",
    "hoodie.write.auto.upgrade",
    "hoodie.spark.sql.insert.into.operation",
    # How many versions are kept, each of which Hudi checks against the others.
    "hoodie.clean.commits.retained",
    "hoodie.clean.trigger.max.commits",
    "hoodie.keep.min.commits",
    "hoodie.keep.max.commits",
}


def table_properties(*, partitioned: bool = False) -> dict[str, str]:
    """The properties that the macro ``table_properties`` gives a silver table."""
    macro = Path("macros/materializations/table_properties.sql")
    always, condition, more = macro.read_text().partition("if partition")
    assert condition
    return dict(re.findall(r"'([\w.]+)': '(\w+)'", always + more * partitioned))


def variants() -> dict[str, dict[str, str]]:
    """The settings of every variant, by what is different about it."""
    ours = table_properties()
    found = {"all settings": dict(ours)}
    for setting in ours:
        if setting not in NEEDED:
            found[f"without {setting}"] = {
                name: value for name, value in ours.items() if name != setting
            }
    for name, extra in LEFT_ALONE.items():
        found[f"with {name}"] = ours | extra
    found[MERGE] = dict(ours)
    return found


@click.command("lab.benchmarks.settings", help=__doc__, context_settings=STYLE)
@version
@click.option("--rows", "count", default=100_000)
@click.option("--runs", default=7)
def command(count: int, runs: int) -> None:
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

    rows = (
        "select id, concat('name ', id) as name, array_join("
        "transform(sequence(1, 10), each -> md5(string(id * each))), ' ') as body,"
        " id as source_lsn from range({low}, {high}, {step})"
    )
    spark.sql("create schema silver")
    tables = {}
    for number, (name, settings) in enumerate(variants().items()):
        tables[name] = f"silver.variant_{number}"
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in settings.items())
        spark.sql(
            f"create table {tables[name]} ({COLUMNS}) using hudi"
            f' options (primaryKey "id") tblproperties ({properties})'
        )
        seconds(
            f"insert overwrite table {tables[name]} "
            + rows.format(low=0, high=count, step=1)
        )

    upserts: dict[str, list[float]] = {name: [] for name in tables}
    overwrites: dict[str, list[float]] = {name: [] for name in tables}
    for number in range(runs + 2):
        source = rows.format(low=number, high=count, step=max(1, count // 1_000))
        for name, table in tables.items():
            upserts[name].append(
                seconds(
                    f"merge into {table} as stored using ({source}) as incoming"
                    " on stored.id = incoming.id"
                    " when matched then update set *"
                    " when not matched then insert *"
                    if name == MERGE
                    else f"insert into {table} {source}"
                )
            )
            overwrites[name].append(
                seconds(
                    f"insert overwrite table {table} "
                    + rows.format(low=0, high=count, step=1)
                )
            )
    sizes = {}
    for name, table in tables.items():
        files = (folder / "warehouse/silver.db" / table.partition(".")[2]).glob("*.parquet")
        sizes[name] = max(files, key=lambda file: file.stat().st_mtime).stat().st_size
    shutil.rmtree(folder, ignore_errors=True)

    def median(values: list[float]) -> float:
        return statistics.median(values[2:])

    base = "all settings"
    print(f"\n{count:,} rows, {runs} rounds; medians in seconds")
    print(f"{'':<58} {'upsert':>6} {'ratio':>6} {'overwrite':>10} {'ratio':>6} {'MiB':>6}")
    for name in tables:
        print(
            f"{name:<58} {median(upserts[name]):6.2f}"
            f" {median(upserts[name]) / median(upserts[base]):6.2f}"
            f" {median(overwrites[name]):10.2f}"
            f" {median(overwrites[name]) / median(overwrites[base]):6.2f}"
            f" {sizes[name] / 2**20:6.1f}"
        )


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
