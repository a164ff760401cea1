"""Topics of Kafka, by a streaming query: its start, its checkpoint, its end."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cdc_lakehouse import metrics
from cdc_lakehouse.command import StopRequest
from cdc_lakehouse.errors import UserError
from ingest.avro import Schemas, records_from_kafka
from ingest.batches import Batches

SECONDS_BETWEEN_POLLS = 0.2

# Shows the trace of whatever a batch raises, which the query raises again.
logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)


class StoppedError(Exception):
    """The ingest is to end, and this micro-batch has not been begun."""


def kafka_records(
    spark: SparkSession,
    bootstrap_servers: str,
    starts: dict[str, dict[int, int]],
    options: dict[str, str],
    max_records: int,
) -> DataFrame:
    """Stream the records of Kafka topics.

    Args:
        spark: the session.
        bootstrap_servers: ``host:port``, comma-separated.
        starts: where to start if there is no checkpoint, by topic and partition.
        options: of Kafka's clients, each with the prefix ``kafka.`` (security, say).
        max_records: how many a batch reads.

    Returns:
        The columns of Spark's Kafka source, with headers.
    """
    return (
        spark.readStream.format("kafka")
        # What an aborted transaction wrote never was.
        .option("kafka.isolation.level", "read_committed")
        .options(**options)
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", ",".join(sorted(starts)))
        .option("startingOffsets", json.dumps(starts))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", max_records)
        .load()
    )


def start(
    records: DataFrame,
    batches: Batches,
    schemas: Schemas | None,
    stop: StopRequest,
    checkpoint: str,
    seconds: float | None,
    wait_for_build: Callable[[], None],
) -> StreamingQuery:
    """Start to write records to bronze.

    Args:
        records: as ``kafka_records`` gives them.
        batches: what is done with a micro-batch.
        schemas: of records in Avro; None where there is no registry.
        stop: after it, no further one begins.
        checkpoint: the folder or URL of the query's progress.
        seconds: between batches, or None to end when all that is there is written.
        wait_for_build: called after each batch; returns when the next one may begin.
    """

    def write(batch: DataFrame, number: int) -> None:
        # Under steady input one batch follows the other.
        if stop:
            raise StoppedError
        with metrics.batch(number):
            batches.write(records_from_kafka(batch, schemas))
        # The checkpoint must not go past what was left out.
        if batches.refused:
            raise UserError(f"nothing more is read: {', '.join(batches.refused)} must wait")
        # Records that arrive during the wait are in the next batch: the lag counts it.
        with metrics.batch(number + 1):
            wait_for_build()

    writer = (
        records.writeStream.foreachBatch(write)
        .option("checkpointLocation", checkpoint)
        .queryName("bronze")
    )
    if seconds is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{int(seconds * 1000)} milliseconds").start()


def last_batch(progress: Mapping[str, Any]) -> int:
    """The last batch that was written when a query reported its progress.

    Where nothing is new, Spark reports the number of the batch that is to come.
    """
    is_written = "addBatch" in progress["durationMs"]
    return int(progress["batchId"]) - (0 if is_written else 1)


def complete_topics(progress: Mapping[str, Any]) -> set[str]:
    """The topics of which all is read, by the progress of the last batch."""
    return {
        topic
        for source in progress["sources"]
        for topic, ends in (source["latestOffset"] or {}).items()
        if ends.items() <= (source["endOffset"] or {}).get(topic, {}).items()
    }


def keep_only(spark: SparkSession, folder: str, known: list[str]) -> bool:
    """Remove the checkpoints below a folder that are not known.

    Returns:
        Whether one is left.
    """
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(folder)
    file_system = path.getFileSystem(spark._jsc.hadoopConfiguration())
    if not file_system.exists(path):
        return False
    left = False
    for status in file_system.listStatus(path):
        if status.getPath().getName() in known:
            left = True
        else:
            file_system.delete(status.getPath(), True)
    return left


def wait(query: StreamingQuery, stop: StopRequest, between: Callable[[], None]) -> bool:
    """Wait for the query's end, which a stop request brings after the batch under way.

    Args:
        query: the query.
        stop: the request.
        between: called again and again meanwhile.

    Returns:
        Whether it ended by itself.

    Raises:
        PySparkException: the query failed.
    """
    try:
        # PySpark takes parts of a second, and declares whole ones.
        while not query.awaitTermination(SECONDS_BETWEEN_POLLS):  # type: ignore[arg-type]  # as above
            if stop:
                if not query.status["isTriggerActive"]:
                    query.stop()
                    return False
            else:
                between()
    except PySparkException as error:
        if StoppedError.__name__ not in str(error):
            raise
        return False
    return True
