"""The ingest's Avro decoder on records of Kafka that no broker has, without a table."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import functions as F

from cdc_lakehouse.spark.session import spark_session
from ingest.avro import Schemas, records_from_kafka
from ingest.events import Classifier
from ingest.registry import Registry
from ingest.topics import read_topics
from tests.support.lake import Lake
from tests.support.parser import HEADERS
from tests.support.records import TOPIC, Row


@dataclass
class KafkaRecord:
    """Key, value and headers, as a broker has them."""

    value: bytes | None
    key: bytes | None = None
    headers: dict[str, bytes] = field(default_factory=dict)


def decode(lake: Lake, records: Sequence[KafkaRecord], registry: str | None) -> list[Row]:
    """What the ingest makes of each record, as a row of ``ingest.events.Classifier``.

    Args:
        lake: its Spark runs the job; the lake stays as it is.
        records: of one topic, in their order.
        registry: its URL.
    """
    lake.spark.put(lake)
    plain = [
        [
            _text(each.key),
            _text(each.value),
            [[name, _text(content)] for name, content in each.headers.items()],
        ]
        for each in records
    ]
    rows: list[Row] = lake.spark.ask("decode", plain, registry)
    assert [row["kafka_offset"] for row in rows] == list(range(len(records)))
    return rows


def run_decode(records: list[Any], registry: str | None) -> list[Row]:
    """The part of ``decode`` that runs in the process with Spark."""
    spark = spark_session()
    batch = spark.createDataFrame(
        [
            (number, _bytes(key), _bytes(value), [(n, _bytes(v)) for n, v in headers])
            for number, (key, value, headers) in enumerate(records)
        ],
        f"offset bigint, key binary, value binary, headers {HEADERS}",
    ).select(
        F.lit(TOPIC).alias("topic"),
        F.lit(0).alias("partition"),
        "offset",
        F.timestamp_millis(F.lit(0)).alias("timestamp"),
        *("key", "value", "headers"),
    )
    schemas = None if registry is None else Schemas(spark, Registry(registry))
    rows = Classifier(read_topics()).classified(records_from_kafka(batch, schemas))
    columns = "kafka_offset", "key", "value", "record", "schema_id", "reason", "op"
    found = rows.select(*columns, "source_lsn", "destination").orderBy("kafka_offset")
    return [row.asDict() for row in found.collect()]


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def _bytes(text: str | None) -> bytearray | None:
    return None if text is None else bytearray(base64.b64decode(text))
