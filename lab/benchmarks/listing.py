"""How often queries that begin at once fail because they share a table's list of files.

Spark keeps one relation of a table for all its threads, and Hudi's list of files in it is
filled by the first query, unless it is filled when the relation is made (``eager``). Prints
how many of so many rounds failed, in which some queries are planned at once on a relation
that no query has seen.
"""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version

MODE = "hoodie.datasource.read.file.index.listing.mode"


def failures(spark: Any, table: str, queries: int) -> list[str]:
    """Plan some queries of a table at once; what those said that failed."""
    spark.sql(f"refresh table {table}")
    # It makes the relation, and asks for no file.
    spark.sql(f"select * from {table}")
    begin = Barrier(queries)

    def plan(number: int) -> None:
        found = spark.sql(f"select count(*) from {table} where id = {number}")
        begin.wait()
        found._jdf.queryExecution().optimizedPlan()

    with ThreadPoolExecutor(queries) as pool:
        planned = [pool.submit(plan, number) for number in range(queries)]
    return [str(error) for each in planned if (error := each.exception()) is not None]


@click.command("lab.benchmarks.listing", help=__doc__, context_settings=STYLE)
@version
@click.option("--rounds", default=500)
@click.option("--queries", default=4, help="That begin at once.")
def command(rounds: int, queries: int) -> None:
    with tempfile.TemporaryDirectory(prefix="cdc-lakehouse-") as folder:
        os.environ["LAKE_ROOT"] = folder
        from cdc_lakehouse.spark.session import spark_session

        spark = spark_session()
        spark.sparkContext.setLogLevel("OFF")
        spark.sql("create schema listing")
        for mode in ("lazy", "eager"):
            spark.sql(
                f"create table listing.{mode} (id int) using hudi"
                f" options (primaryKey 'id', '{MODE}' '{mode}')"
            )
            spark.sql(f"insert into listing.{mode} values (1)")
            failed = [failures(spark, f"listing.{mode}", queries) for _ in range(rounds)]
            texts = [text for said in failed for text in said]
            click.echo(
                f"{mode}: {sum(map(bool, failed))} of {rounds} rounds failed,"
                f" {sum('NullPointerException' in text for text in texts)} queries by a"
                " NullPointerException"
            )


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
