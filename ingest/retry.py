"""The quarantine once more, after a correction: a line of the topics file, an option."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.avro import UNDECODED, Schemas, records_from_kafka
from ingest.batches import Batches
from ingest.bronze import Bronze
from ingest.events import RECORD, records_from_lines
from lake.mark import REJECTED_TABLE


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
    records = _records(bronze, topic, schemas).persist()
    try:
        batches.write(records)
        # In memory, so that Spark does not push the filter into what its columns are made
        # of, which it copies at each use: a minute of planning.
        rows = batches.classifier.classified(records).persist()
        is_gone = (F.col("destination") != REJECTED_TABLE) | (
            F.col("event_id") != F.col("rejected_id")
        )
        bronze.remove_rejected(rows.where(is_gone).select("rejected_id"))
        rows.unpersist()
    finally:
        records.unpersist()


def _records(bronze: Bronze, topic: str | None, schemas: Schemas | None) -> DataFrame:
    rejected = bronze.read(REJECTED_TABLE).withColumn("rejected_id", F.col("event_id"))
    of_files = rejected.where("source_file is not null")
    lines = records_from_lines(
        of_files.select("value", "source_file", "rejected_id"), topic
    )
    of_kafka = (
        rejected.where("source_file is null")
        .withColumn("record", F.col("value"))
        .withColumn("decode_error", F.lit(None).cast("string"))
        .withColumn("undecoded", F.from_json("value", UNDECODED)["undecoded"])
    )
    columns = [field.split()[0] for field in RECORD.split(", ")]
    texts = of_kafka.where("undecoded is null").select(*columns, "rejected_id")
    undecoded = of_kafka.where("undecoded is not null").select(
        "topic",
        F.col("kafka_partition").alias("partition"),
        F.col("kafka_offset").alias("offset"),
        F.col("kafka_timestamp").alias("timestamp"),
        "undecoded.*",
        "rejected_id",
    )
    return lines.unionByName(texts).unionByName(records_from_kafka(undecoded, schemas))
