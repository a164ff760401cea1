"""The ingest's parser on many records in one Spark job, without a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.spark.session import spark_session
from ingest.avro import Schemas, records_from_kafka
from ingest.events import Classifier, records_from_lines
from ingest.registry import Registry
from ingest.topics import Topics, read_topics
from tests.support.lake import Lake
from tests.support.records import TOPIC, Row

Text = str | bytes


@dataclass
class KafkaRecord:
    """Key, value and headers, as a broker has them."""

    value: bytes | None
    key: bytes | None = None
    headers: dict[str, bytes] = field(default_factory=dict)


def classify(
    lake: Lake,
    texts: Sequence[Text],
    *,
    topic: str | None = TOPIC,
    topics: Topics | None = None,
) -> list[Row | None]:
    """Where the parser files each line, as a row of ``ingest.events.Classifier``.

    Args:
        lake: its Spark runs the job; the lake stays as it is.
        texts: lines of a file.
        topic: of lines that do not name theirs.
        topics: the topics file's content, where it is not the project's.

    Returns:
        One row for each text, in order, with times as text; None for an empty line,
        which is no record.
    """
    topics = topics or read_topics()
    lines = [text.encode() if isinstance(text, str) else text for text in texts]
    lake.spark.put(lake)
    rows: list[Row] = lake.spark.ask("parser:run_classify", lines, topic, topics)
    by_number: dict[int, Row] = {}
    for row in rows:
        number = int(row["source_file"])
        assert number not in by_number, f"a record became two: {row}"
        by_number[number] = row
    return [by_number.get(number) for number in range(len(texts))]


def run_classify(texts: list[bytes], topic: str | None, topics: Topics) -> list[Row]:
    """The part of ``classify`` that runs in the process with Spark."""
    numbered = [(bytearray(text), str(number)) for number, text in enumerate(texts)]
    frame = spark_session().createDataFrame(numbered, "value binary, source_file string")
    lines = frame.select(F.col("value").cast("string"), "source_file")
    return _rows(Classifier(topics).classified(records_from_lines(lines, topic)))


def decode(lake: Lake, records: Sequence[KafkaRecord], registry: str | None) -> list[Row]:
    """What the ingest makes of each record of Kafka, as a row of ``Classifier``.

    Args:
        lake: its Spark runs the job; the lake stays as it is.
        records: of one topic, in their order.
        registry: its URL.
    """
    lake.spark.put(lake)
    rows: list[Row] = lake.spark.ask("parser:run_decode", records, registry)
    rows.sort(key=lambda row: int(row["kafka_offset"]))
    assert [row["kafka_offset"] for row in rows] == list(range(len(records)))
    return rows


def run_decode(records: list[KafkaRecord], registry: str | None) -> list[Row]:
    """The part of ``decode`` that runs in the process with Spark."""
    spark = spark_session()
    headers = "array<struct<key: string, value: binary>>"
    batch = spark.createDataFrame(
        [
            (n, _bytes(each.key), _bytes(each.value), [*each.headers.items()])
            for n, each in enumerate(records)
        ],
        f"offset bigint, key binary, value binary, headers {headers}",
    ).select(
        F.lit(TOPIC).alias("topic"),
        F.lit(0).alias("partition"),
        "offset",
        F.timestamp_millis(F.lit(0)).alias("timestamp"),
        *("key", "value", "headers"),
    )
    schemas = None if registry is None else Schemas(spark, Registry(registry))
    return _rows(Classifier(read_topics()).classified(records_from_kafka(batch, schemas)))


def _rows(frame: DataFrame) -> list[Row]:
    times = [name for name, kind in frame.dtypes if kind == "timestamp"]
    texts = {name: F.col(name).cast("string") for name in times}
    return [row.asDict() for row in frame.withColumns(texts).collect()]


def _bytes(content: bytes | None) -> bytearray | None:
    return None if content is None else bytearray(content)
