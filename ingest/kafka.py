"""Where to read a topic on: bronze's own offsets, held against what Kafka still has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from ingest.errors import UserError

EARLIEST = -2
SECONDS_TO_ANSWER = 15


def read_options(path: Path) -> dict[str, str]:
    """Kafka's client properties (``security.protocol=SASL_SSL``), one a line.

    Returns:
        The properties with the prefix that Spark's source wants.

    Raises:
        UserError: the file cannot be read, or a line of it is no ``name=value``. The
            value is not shown, as it may be a secret.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    options = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith(("#", "!")):
            continue
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch(r"[a-z][a-z0-9._]*", name.strip()):
            raise UserError(f"{path}, line {number}: this is no `name=value`")
        options[f"kafka.{name.strip()}"] = value.strip()
    return options


def next_offsets(
    spark: SparkSession,
    bootstrap_servers: str,
    topics: list[str],
    options: dict[str, str],
    read_to: dict[str, int],
) -> dict[str, dict[int, int]]:
    """Where to start reading where no checkpoint says it.

    Args:
        spark: the session.
        bootstrap_servers: ``host:port``, comma-separated.
        topics: the topics' names.
        options: as ``read_options`` gives them.
        read_to: the next offset to read, by ``topic/partition``, as bronze knows it.

    Returns:
        By topic and partition, for every partition: the next offset, or ``EARLIEST``
        where bronze knows none, or a higher one than Kafka has (a topic made anew).

    Raises:
        UserError: Kafka does not answer, a topic is not there, or records that bronze
            lacks are gone from Kafka.
    """
    earliest, latest = _offset_ranges(spark, bootstrap_servers, topics, options)
    starts: dict[str, dict[int, int]] = {}
    for (topic, partition), low in earliest.items():
        wanted = read_to.get(f"{topic}/{partition}")
        if wanted is None or wanted > latest[topic, partition]:
            wanted = EARLIEST
        elif wanted < low:
            raise UserError(vanished(topic, partition, wanted, low))
        starts.setdefault(topic, {})[partition] = wanted
    return starts


def vanished(topic: str, partition: int, wanted: int, low: int | None) -> str:
    """What to say where Kafka no longer has the offset that comes next."""
    has = "no longer has it" if low is None else f"has records from {low} on only"
    return (
        f"{topic}, partition {partition}: reading goes on at offset {wanted}, but Kafka"
        f" {has}; what is gone never reached bronze. Have the connector take a new"
        " snapshot (docs/runbook.md, Offsets that vanished), then go on with what Kafka"
        " has: --from-earliest"
    )


def _offset_ranges(
    spark: SparkSession, bootstrap_servers: str, topics: list[str], options: dict[str, str]
) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    """The earliest offset and the next one to be written, of every partition."""
    jvm: Any = spark._jvm
    properties = jvm.java.util.Properties()
    milliseconds = str(SECONDS_TO_ANSWER * 1000)
    for name, value in options.items():
        properties.setProperty(name.removeprefix("kafka."), value)
    properties.setProperty("bootstrap.servers", bootstrap_servers)
    properties.setProperty("default.api.timeout.ms", milliseconds)
    properties.setProperty("request.timeout.ms", milliseconds)
    kafka = jvm.org.apache.kafka
    try:
        admin = kafka.clients.admin.AdminClient.create(properties)
    except Py4JJavaError as error:
        raise UserError(_sentence(error, bootstrap_servers)) from error
    try:
        names = jvm.java.util.ArrayList()
        for topic in topics:
            names.add(topic)
        descriptions = admin.describeTopics(names).allTopicNames().get()
        partitions = [
            kafka.common.TopicPartition(topic, entry.partition())
            for topic in topics
            for entry in descriptions.get(topic).partitions()
        ]
        found = []
        for spec in (
            kafka.clients.admin.OffsetSpec.earliest(),
            kafka.clients.admin.OffsetSpec.latest(),
        ):
            asked = jvm.java.util.HashMap()
            for partition in partitions:
                asked.put(partition, spec)
            answer = admin.listOffsets(asked).all().get()
            found.append(
                {
                    (part.topic(), part.partition()): answer.get(part).offset()
                    for part in partitions
                }
            )
        return found[0], found[1]
    except Py4JJavaError as error:
        raise UserError(_sentence(error, bootstrap_servers)) from error
    finally:
        admin.close()


def _sentence(error: Py4JJavaError, bootstrap_servers: str) -> str:
    """What Kafka's error means to the user."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    name, said = cause.getClass().getSimpleName(), cause.getMessage()
    if name == "UnknownTopicOrPartitionException":
        return f"Kafka at {bootstrap_servers} has not all of the topics: {said}"
    if name == "TimeoutException":
        return (
            f"Kafka at {bootstrap_servers} does not answer within {SECONDS_TO_ANSWER} s:"
            " is it running, and do --options say how to reach it?"
        )
    return f"Kafka at {bootstrap_servers}: {said} ({name})"
