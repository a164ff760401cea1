"""The quarantine once more, after a correction: a line of the topics file, an option."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.storage.marks import REJECTED_TABLE
from ingest.avro import UNDECODED, Schemas, records_from_kafka
from ingest.batches import Batches
from ingest.bronze import Bronze
from ingest.events import RECORD, records_from_lines


def retry_rejected(
    bronze: Bronze, batches: Batches, topic: str | None, schemas: Schemas | None
) -> None:
    """Write what is a change event now to its table, and take it out of the quarantine.

    What is rejected again stays there, for the reason that holds now. After a crash in
    between a record may be in both places; the next run ends that.

    Args:
        bronze: the tables.
        batches: counts what becomes of the records.
        topic: the topic of records that do not name theirs.
        schemas: of records in Avro; None where there is no registry.

    Raises:
        UserError: the registry refuses to answer, or does not answer.
    """
    records = _records(bronze, topic, schemas)
    known = F.coalesce("topic_generation", _generation_then(bronze, batches))
    records = records.withColumn("topic_generation", known).drop("ingest_batch").persist()
    try:
        batches.write(records)
        # In memory, so that Spark does not push the filter into what its columns are made
        # of, which it copies at each use: a minute of planning.
        rows = batches.classifier.classified(records).persist()
        is_gone = (F.col("destination") != REJECTED_TABLE) | (
            F.col("event_id") != F.col("rejected_id")
        )
        if batches.refused:
            is_refused = F.col("topic").isin(*batches.refused)
            is_gone = is_gone & ~F.coalesce(is_refused, F.lit(False))
        bronze.remove_rejected(rows.where(is_gone).select("rejected_id"))
        rows.unpersist()
    finally:
        records.unpersist()


def _records(bronze: Bronze, topic: str | None, schemas: Schemas | None) -> DataFrame:
    rejected = bronze.read(REJECTED_TABLE).withColumn("rejected_id", F.col("event_id"))
    of_files = rejected.where("source_file is not null")
    kept = ("rejected_id", "topic_generation", "ingest_batch")
    lines = records_from_lines(of_files.select("value", "source_file", *kept), topic)
    of_kafka = (
        rejected.where("source_file is null")
        .withColumn("record", F.col("value"))
        .withColumn("decode_error", F.lit(None).cast("string"))
        .withColumn("undecoded", F.from_json("value", UNDECODED)["undecoded"])
    )
    columns = [field.split()[0] for field in RECORD.split(", ")]
    texts = of_kafka.where("undecoded is null").select(*columns, *kept)
    undecoded = of_kafka.where("undecoded is not null").select(
        "topic",
        F.col("kafka_partition").alias("partition"),
        F.col("kafka_offset").alias("offset"),
        F.col("kafka_timestamp").alias("timestamp"),
        "undecoded.*",
        *kept,
    )
    return lines.unionByName(texts).unionByName(records_from_kafka(undecoded, schemas))


def _generation_then(bronze: Bronze, batches: Batches) -> Column:
    """The generation of a record whose row has none, as it names no listed topic, or is of
    an earlier version: by the topics file, or else the newest that bronze had then.
    """
    found = F.when(F.col("topic").isin(*batches.topics.tables), 0)
    for table in batches.tables:
        if table == REJECTED_TABLE or not any(bronze.mark(table).generations.values()):
            continue
        begun = (
            bronze.read(table)
            .where("topic_generation > 0")
            .groupBy("topic", "topic_generation")
            .agg(F.min("ingest_batch").alias("batch"))
            .sort("topic_generation")
            .collect()
        )
        for row in begun:
            is_later = F.col("ingest_batch") >= row["batch"]
            is_its = (F.col("topic") == row["topic"]) & is_later
            found = F.when(is_its, row["topic_generation"]).otherwise(found)
    listed = [topic for topic, times in batches.topics.recreated.items() if times]
    return F.when(F.col("topic").isin(*listed), batches.generation()).otherwise(found)
