"""A shop's sales by region in windows of time: from Kafka's change events back to Kafka."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from cdc_lakehouse.command import STYLE, run, stop_request, version
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.spark.session import spark_session
from cdc_lakehouse.storage.folders import note_own
from cdc_lakehouse.storage.place import lake_folder
from ingest.avro import Schemas, records_from_kafka, schema_ids
from ingest.events import Classifier
from ingest.failures import SPARK_ERRORS, reason
from ingest.kafka import next_offsets, topic_state
from ingest.registry import Registry
from ingest.stream import kafka_records, wait
from ingest.topics import read_topics

SALES, ANSWERS = "demo.shop.sales", "sales_by_region_and_window"
WINDOW, EVERY = "10 minutes", "5 minutes"
# How long a sale may come after one that was made later.
WATERMARK = "30 minutes"
ROW = "struct<sale_id: int, amount: string, sold_at: bigint, country: string>"
MINUTE = "yyyy-MM-dd'T'HH:mm"


def sales(records: DataFrame, regions: DataFrame) -> DataFrame:
    """A row with +1 for each that came, and one with -1 for each that went.

    An update is both, so that sums follow the source in whatever order events arrive.

    Args:
        records: of Kafka, as the ingest decodes them.
        regions: the region of each country.
    """
    # Spark pushes no filter below it, where it would read an event once for every use.
    is_rejected = F.col("destination") == "rejected_events"
    events = Classifier(read_topics()).classified(records)
    events = events.observe("events", F.count_if(is_rejected).alias("rejected"))
    events = events.withColumn("event", F.from_json("value", f"before {ROW}, after {ROW}"))
    rows = F.array(
        *(
            F.struct(F.lit(sign).alias("sign"), F.col(f"event.{side}").alias("row"))
            for sign, side in ((-1, "before"), (1, "after"))
        )
    )
    return (
        events.where(_is_counted())
        .select("source_epoch", "source_position", F.inline(rows))
        .where("row is not null")
        .select(
            "source_epoch",
            "source_position",
            "sign",
            "row.sale_id",
            "row.country",
            F.timestamp_micros("row.sold_at").alias("sold_at"),
            (F.col("sign") * F.col("row.amount").cast("decimal(10,2)"))
            .cast("decimal(10,2)")
            .alias("amount"),
        )
        .join(F.broadcast(regions), on="country", how="left")
        .withColumn("region", F.coalesce("region", F.lit("unknown")))
    )


def _is_counted() -> Column:
    """Whether a record is an event of a sale; what the query cannot go past ends it."""
    is_new = F.coalesce(F.col("reason").contains("registry has no schema"), F.lit(False))
    is_event = F.col("destination") == "sales"
    op, has_old, has_new = F.col("op"), *map(_is_there, ("before", "after"))
    lacks_row = (op.isin("u", "d") & ~has_old) | ((op != "d") & ~has_new)
    at = F.concat(F.lit("offset "), "kafka_offset", F.lit(": "))
    new_schema = F.lit("; start this again, which asks the registry once more")
    no_row = F.lit("a truncate, or an event without its old row (REPLICA IDENTITY FULL)")
    return (
        F.when(is_new, F.raise_error(F.concat(at, "reason", new_schema)).cast("boolean"))
        .when(is_event & lacks_row, F.raise_error(F.concat(at, no_row)).cast("boolean"))
        .otherwise(is_event)
    )


def _is_there(side: str) -> Column:
    return F.col(f"event.{side}.sold_at").isNotNull()


def by_region_and_window(rows: DataFrame) -> DataFrame:
    """The aggregate: ``sales_by_region_and_window`` of gold, as records of Kafka.

    One that is written again, after a crash, has the same key and the same value.
    """
    windows = (
        rows.withWatermark("sold_at", WATERMARK)
        # What Debezium delivers twice has the same place in the source's log.
        .dropDuplicatesWithinWatermark(
            ["source_epoch", "source_position", "sale_id", "sign"]
        )
        .groupBy("region", F.window("sold_at", WINDOW, EVERY).alias("sold_in"))
        .agg(F.sum("sign").alias("count_sales"), F.sum("amount").alias("revenue"))
    )
    start, end = (F.date_format(f"sold_in.{side}", MINUTE) for side in ("start", "end"))
    answer = F.struct(
        "region",
        start.alias("window_start"),
        end.alias("window_end"),
        "count_sales",
        "revenue",
    )
    return windows.select(
        F.concat_ws("/", "region", start).alias("key"),
        # A window whose last sale was deleted is none in gold; compaction removes it.
        F.when(F.col("count_sales") > 0, F.to_json(answer)).alias("value"),
    )


def regions_of_the_start(spark: SparkSession, lake: Path, folder: Path) -> DataFrame:
    """Silver's regions when the query first began.

    Later ones would take a sale off another region than the one that it was counted in.
    """
    kept = str(folder / "regions")
    live = spark.read.format("hudi").load(f"{lake}/warehouse/silver.db/regions")
    live = live.where("not is_deleted").select("country", "region").coalesce(1)
    live.write.mode("ignore").parquet(kept)
    return spark.read.parquet(kept)


class Report:
    """What was read, and what of it is not counted, by the query's own progress."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._last = ""
        self.read = self.late = self.rejected = 0

    def note(self) -> None:
        """Take over what is new; on stderr, what came too late."""
        newest = self._query.lastProgress
        if newest is None or newest["timestamp"] <= self._last:
            return
        for progress in self._query.recentProgress:
            if progress["timestamp"] > self._last:
                self._last = progress["timestamp"]
                operators = progress["stateOperators"]
                late = sum(each["numRowsDroppedByWatermark"] for each in operators)
                self.read += progress["numInputRows"]
                self.late += late
                observed = progress.get("observedMetrics", {}).get("events", {})
                self.rejected += observed.get("rejected", 0)
                if late:
                    watermark = progress["eventTime"]["watermark"]
                    said = f"{late} rows came too late: sold before {watermark}"
                    click.echo(said, err=True)


@click.command("examples.sales_stream.stream", context_settings=STYLE)
@version
@click.option("--bootstrap-servers", required=True, metavar="HOST:PORT")
@click.option("--registry", "registry_url", required=True, metavar="URL")
@click.option("--max-records", type=click.IntRange(1), default=250_000, help="of a batch")
@click.option("--continuous/--once", default=False, help="go on until stopped (Ctrl-C)")
def command(
    bootstrap_servers: str, registry_url: str, max_records: int, *, continuous: bool
) -> None:
    """Count the sales of Kafka by region in windows of time, and write them to Kafka.

    It goes on where its checkpoint is, below LAKE_ROOT/checkpoints/sales_stream.
    """
    lake = lake_folder("the checkpoint needs a folder").absolute()
    folder = lake / "checkpoints/sales_stream"
    with exclusive_lock(str(lake), "stream"), stop_request() as stop:
        note_own(str(lake), "checkpoints")
        try:
            spark = spark_session(has_catalogue=False)
            state = topic_state(spark, bootstrap_servers, [SALES], {})
            there = (
                spark.read.format("kafka")
                .option("kafka.bootstrap.servers", bootstrap_servers)
                .options(subscribe=SALES, includeHeaders="true")
                .load()
            )
            records = records_from_kafka(
                kafka_records(
                    spark, bootstrap_servers, next_offsets(state, {}), {}, max_records
                ),
                Schemas(spark, Registry(registry_url)),
                schema_ids(there),
            )
            rows = sales(records, regions_of_the_start(spark, lake, folder))
            writer = (
                by_region_and_window(rows)
                .writeStream.format("kafka")
                .option("kafka.bootstrap.servers", bootstrap_servers)
                .option("topic", ANSWERS)
                .option("checkpointLocation", str(folder / "query"))
                .outputMode("update")
            )
            if continuous:
                query = writer.trigger(processingTime="1 second").start()
            else:
                query = writer.trigger(availableNow=True).start()
            report = Report(query)
            try:
                wait(query, stop, report.note)
            finally:
                report.note()
        except SPARK_ERRORS as error:
            raise UserError(f"the stream stopped: {reason(str(error))}") from error
    click.echo(
        f"read {report.read} records, rejected {report.rejected};"
        f" {report.late} rows came too late"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the stream."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
