"""What Avro costs the ingest: the same events as JSON and as Avro, from bytes to an event.

Without Kafka and without a table: the records lie in a Parquet file. Prints the seconds of
each form, round by round.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import tempfile
import time
from pathlib import Path

import click

from lake.command import STYLE, run, version

SCHEMA = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "order_id", "type": "long"},
        *({"name": f"column_{number}", "type": ["null", "string"]} for number in range(15)),
        {"name": "__op", "type": "string"},
        {"name": "__lsn", "type": "long"},
        {"name": "__source_ts_ms", "type": "long"},
    ],
}


def measure(records: int, rounds: int, folder: Path) -> None:
    """Write the records in both forms, and print what it takes to read them."""
    os.environ["LAKE_ROOT"] = str(folder)
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import to_avro

    from ingest.avro import SchemaId, Schemas, records_from_kafka
    from ingest.events import classified
    from ingest.registry import Registry
    from ingest.topics import read_topics
    from lake.session import spark_session

    class OneSchema(Schemas):
        """Asks nobody."""

        def of(self, wanted: list[SchemaId]) -> dict[SchemaId, str | Exception]:
            return {each: self._usable(json.dumps(SCHEMA)) for each in wanted}

    spark = spark_session(has_catalogue=False)
    number = F.col("id")
    columns = [
        number.alias("order_id"),
        *(F.concat(F.lit("x" * 20), number).alias(f"column_{n}") for n in range(15)),
        F.lit("u").alias("__op"),
        number.alias("__lsn"),
        F.lit(1_767_225_600_000).alias("__source_ts_ms"),
    ]
    row = F.struct(*columns)
    frame = F.lit(b"\0" + struct.pack(">I", 1))
    values = {
        "JSON": F.to_json(row).cast("binary"),
        "Avro": F.concat(frame, to_avro(row, json.dumps(SCHEMA))),
    }
    for form, value in values.items():
        spark.range(records).select(
            F.lit("demo.datalake.cdc_events").alias("topic"),
            F.lit(0).alias("partition"),
            number.alias("offset"),
            F.current_timestamp().alias("timestamp"),
            F.lit(b"{}").alias("key"),
            value.alias("value"),
            F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
        ).write.parquet(f"{folder}/{form}")
    schemas = OneSchema(spark, Registry("http://127.0.0.1"))
    for _ in range(rounds):
        for form in values:
            start = time.monotonic()
            batch = spark.read.parquet(f"{folder}/{form}")
            rows = classified(
                records_from_kafka(batch, schemas if form == "Avro" else None),
                read_topics(),
            )
            found = rows.where("reason is null").agg(F.sum("source_lsn")).collect()[0][0]
            seconds = time.monotonic() - start
            assert found == records * (records - 1) // 2
            size = sum(f.stat().st_size for f in Path(f"{folder}/{form}").glob("*.parquet"))
            click.echo(f"{form}: {seconds:.1f} s ({size / 1e6:.0f} MB)")


@click.command("benchmarks.avro", context_settings=STYLE)
@version
@click.option("--records", type=click.IntRange(min=1), default=250_000)
@click.option("--rounds", type=click.IntRange(min=1), default=3)
def command(records: int, rounds: int) -> None:
    """Read the same events as JSON and as Avro."""
    with tempfile.TemporaryDirectory() as folder:
        measure(records, rounds, Path(folder))


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
