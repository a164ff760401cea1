"""The first load of ``first_load`` by hand: what one would write instead, which does less.

Hudi's bulk insert of the events, and of the newest row of each key by its LSN: nothing is
checked, rejected, found to be known or put in order beyond that.
"""

from __future__ import annotations

import sys
import time

import click
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.command import STYLE, run, version
from lab.benchmarks import peer
from lab.benchmarks.bare_write import events_of

ROW = (
    "customer_id string, company_name string, contact_name string, contact_title string,"
    " address string, city string, region string, postal_code string, country string,"
    " phone string, fax string, __deleted string, __op string, __lsn bigint,"
    " __source_ts_ms bigint"
)
OPTIONS = peer.OPTIONS | {
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.index.bloom.num_entries": "1",
    "hoodie.bloom.index.filter.type": "SIMPLE",
}


def written(rows: DataFrame, table: str, folder: str, key: str) -> float:
    """Write rows as a table below a folder; the seconds."""
    start = time.monotonic()
    (
        rows.write.format("hudi")
        .options(**OPTIONS)
        .option("hoodie.table.name", table)
        .option("hoodie.datasource.write.recordkey.field", key)
        .mode("overwrite")
        .save(f"{folder}/{table}")
    )
    return time.monotonic() - start


def newest_row() -> Column:
    """The text of a key's newest event."""
    return F.max_by("value", F.get_json_object("value", "$.__lsn").cast("bigint"))


@click.command("lab.benchmarks.load_by_hand", help=__doc__, context_settings=STYLE)
@version
@click.argument("source")
@click.argument("target")
def command(source: str, target: str) -> None:
    from cdc_lakehouse.spark.session import spark_session

    spark = spark_session(has_catalogue=False)
    place = F.concat_ws("/", "topic", "partition", "offset").alias("event_id")
    bronze = written(
        events_of(spark, source).select(place, "*"), "bronze", target, "event_id"
    )
    newest = (
        spark.read.format("hudi")
        .load(f"{target}/bronze")
        .groupBy("key")
        .agg(newest_row().alias("value"))
        .select(F.inline(F.array(F.from_json("value", ROW))))
    )
    silver = written(newest, "silver", target, "customer_id")
    click.echo(f"bronze {bronze:,.0f} s, silver {silver:,.0f} s")


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
