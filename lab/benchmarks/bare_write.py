"""Read files of events by Spark and write them as Parquet: what no load can be below.

Each event is its key and its value as texts, and where it was in Kafka, as bronze has
them; the session is the ingest's.
"""

from __future__ import annotations

import sys

import click
from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.command import STYLE, run, version

EVENT = (
    "key string, value string,"
    " metadata struct<topic: string, partition: int, offset: bigint, timestamp: bigint>"
)


def events_of(spark: SparkSession, source: str) -> DataFrame:
    """The events of files: ``key`` and ``value`` as texts, and where each was in Kafka."""
    return spark.read.schema(EVENT).json(source).select("key", "value", "metadata.*")


@click.command("lab.benchmarks.bare_write", help=__doc__, context_settings=STYLE)
@version
@click.argument("source")
@click.argument("target")
def command(source: str, target: str) -> None:
    from cdc_lakehouse.spark.session import spark_session

    events = events_of(spark_session(has_catalogue=False), source)
    events.write.option("compression", "zstd").parquet(target)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
