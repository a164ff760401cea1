"""Where records come from. A source is a streaming DataFrame in the columns of RECORD."""

from __future__ import annotations

import json
import re
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.events import records_from_kafka, records_from_lines
from lake.errors import UserError


def file_records(spark: SparkSession, paths: list[str], topic: str | None) -> DataFrame:
    """Stream the records of JSON-lines files, plain or gzip.

    Args:
        spark: the session.
        paths: files, folders (with what is below them) and globs, local or any URL
            that Hadoop can read.
        topic: the topic of records that do not name theirs.

    Raises:
        UserError: nothing is at one of the paths, or they are of several file systems.
    """
    place = _one_pattern([_qualified(spark, path) for path in paths])
    lines = (
        spark.readStream.format("text")
        .schema("value string")
        .option("recursiveFileLookup", "true")
        # A file is read once, however old it is: the default forgets those that are a
        # week older than the newest.
        .option("maxFileAge", "36500d")
        .load(place)
        .withColumn("source_file", F.input_file_name())
    )
    return records_from_lines(lines, topic)


def _one_pattern(places: list[str]) -> str:
    """One pattern for all: a checkpoint is of one source, whatever the paths are."""
    if len(places) == 1:
        return places[0]
    parts = [re.fullmatch(r"(\w+:(?://[^/]*)?)/(.*)", place) for place in places]
    roots = {part[1] for part in parts if part}
    if len(roots) != 1 or None in parts:
        raise UserError(f"the paths are not of one file system: {', '.join(places)}")
    return f"{roots.pop()}/{{{','.join(part[2] for part in parts if part)}}}"


def _qualified(spark: SparkSession, path: str) -> str:
    """The path with its scheme, after a look that something is there."""
    jvm: Any = spark._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    file_system = hadoop_path.getFileSystem(spark._jsc.hadoopConfiguration())
    matches = file_system.globStatus(hadoop_path)
    if matches is None or len(matches) == 0:
        raise UserError(f"nothing is at {path}: no file, folder or match of the pattern")
    return str(file_system.makeQualified(hadoop_path).toString())


def kafka_records(
    spark: SparkSession,
    bootstrap_servers: str,
    starts: dict[str, dict[int, int]],
    options: dict[str, str],
) -> DataFrame:
    """Stream the records of Kafka topics.

    Args:
        spark: the session.
        bootstrap_servers: ``host:port``, comma-separated.
        starts: where to start if there is no checkpoint, by topic and partition.
        options: of Kafka's clients, each with the prefix ``kafka.`` (security, say).
    """
    stream = (
        spark.readStream.format("kafka")
        .options(**options)
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", ",".join(sorted(starts)))
        .option("startingOffsets", json.dumps(starts))
        .option("failOnDataLoss", "true")
        .load()
    )
    return records_from_kafka(stream)
