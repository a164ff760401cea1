"""The ingest's parser on many records in one Spark job, without a table."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F

from cdc_lakehouse.spark.session import spark_session
from ingest.avro import records_from_kafka
from ingest.events import Classifier, records_from_lines
from ingest.topics import Topics, read_topics
from tests.support.lake import Lake
from tests.support.records import TOPIC, Row

Text = str | bytes
HEADERS = "array<struct<key: string, value: binary>>"


def classify(
    lake: Lake,
    texts: Sequence[Text],
    *,
    topic: str | None = TOPIC,
    topics: Topics | None = None,
    is_kafka: bool = False,
) -> list[Row | None]:
    """Where the parser files each text, as a row of ``ingest.events.Classifier``.

    Args:
        lake: its Spark runs the job; the lake stays as it is.
        texts: lines of a file, or values of a Kafka topic.
        topic: of lines that do not name theirs, or of all values.
        topics: the topics file's content, where it is not the project's.
        is_kafka: whether the texts are values of Kafka.

    Returns:
        One row for each text, in order, with times as text; None for an empty line,
        which is no record.
    """
    topics = topics or read_topics()
    lake.spark.put(lake)
    rows: list[Row] = lake.spark.ask(
        "classify",
        [base64.b64encode(_bytes(text)).decode() for text in texts],
        topic,
        [topics.tables, topics.epochs, topics.source_tables],
        is_kafka,
    )
    by_number: dict[int, Row] = {}
    for row in rows:
        number = row["kafka_offset"] if is_kafka else int(row["source_file"])
        assert number not in by_number, f"a record became two: {row}"
        by_number[number] = row
    return [by_number.get(number) for number in range(len(texts))]


def run_classify(
    texts: list[str], topic: str | None, topics: list[Any], is_kafka: bool
) -> list[Row]:
    """The part of ``classify`` that runs in the process with Spark."""
    numbered = [(base64.b64decode(text), number) for number, text in enumerate(texts)]
    frame = spark_session().createDataFrame(numbered, "value binary, number bigint")
    if is_kafka:
        records = records_from_kafka(
            frame.select(
                F.lit(topic).alias("topic"),
                F.lit(0).alias("partition"),
                F.col("number").alias("offset"),
                F.timestamp_millis(F.lit(0)).alias("timestamp"),
                F.lit(None).cast("binary").alias("key"),
                "value",
                F.lit(None).cast(HEADERS).alias("headers"),
            ),
            None,
        )
    else:
        lines = frame.select(
            F.col("value").cast("string"),
            F.col("number").cast("string").alias("source_file"),
        )
        records = records_from_lines(lines, topic)
    rows = Classifier(Topics(*topics)).classified(records)
    times = [name for name, kind in rows.dtypes if kind == "timestamp"]
    return [
        row.asDict()
        for row in rows.withColumns(
            {name: F.col(name).cast("string") for name in times}
        ).collect()
    ]


def _bytes(text: Text) -> bytes:
    return text.encode() if isinstance(text, str) else text
