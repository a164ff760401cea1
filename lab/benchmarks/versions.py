"""What one more commit to a table costs after many, with the versions that we keep of it.

Upserts of ten rows and overwrites, as those of silver and gold, of tables with our settings
and of tables that keep all versions of a day. Prints the medians of each stretch of
commits, and how many files each table has after it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from lab.benchmarks.settings import table_properties

STRETCH = 25
ROWS = 1_000
UPSERTED = 10
A_DAY = {
    "hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS",
    "hoodie.cleaner.hours.retained": "24",
}


def kept() -> dict[str, dict[str, str]]:
    """The properties of the tables: ours, and those that keep a day."""
    ours = table_properties()
    others = {
        name: value
        for name, value in ours.items()
        if not name.startswith(("hoodie.clean", "hoodie.keep"))
    }
    return {"ours": ours, "a day": others | A_DAY}


def measure(commits: int, folder: Path) -> None:
    """Write commits to every table in turn, and print what each stretch cost."""
    os.environ |= {"LAKE_ROOT": str(folder), "LAKE_JIT_LEVEL": "4"}
    from cdc_lakehouse.spark.session import spark_session

    spark = spark_session()
    seconds: dict[str, dict[str, list[float]]] = {}
    for number, (name, properties) in enumerate(kept().items()):
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        for kind in ("upsert", "overwrite"):
            spark.sql(
                f"create table {kind}_{number} (id bigint, name string) using hudi"
                f" tblproperties ({listed}, 'primaryKey' = 'id')"
            )
        spark.sql(f"insert into upsert_{number} select id as number, '' from range({ROWS})")
        seconds[name] = {"upsert": [], "overwrite": []}
    for commit in range(1, commits + 1):
        for number, of_table in enumerate(seconds.values()):
            for kind, verb in (("upsert", "into"), ("overwrite", "overwrite table")):
                start = time.monotonic()
                spark.sql(
                    f"insert {verb} {kind}_{number}"
                    f" select id as number, '{commit}' from range({UPSERTED})"
                )
                of_table[kind].append(time.monotonic() - start)
        if commit % STRETCH:
            continue
        for number, (name, of_table) in enumerate(seconds.items()):
            for kind, measured in of_table.items():
                table = folder / f"warehouse/{kind}_{number}"
                click.echo(
                    f"{commit:>6} commits, {name}: {kind}"
                    f" {statistics.median(measured[-STRETCH:]):.2f} s,"
                    f" {sum(1 for _ in table.glob('*.parquet')):,} files,"
                    f" {sum(1 for _ in (table / '.hoodie').iterdir()):,} of the timeline"
                )
    spark.stop()


@click.command("lab.benchmarks.versions", help=__doc__, context_settings=STYLE)
@version
@click.option("--commits", type=click.IntRange(min=STRETCH), default=150)
def command(commits: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        measure(commits, Path(folder))


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
