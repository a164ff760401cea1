"""Where to read a topic on: bronze's own offsets, held against what Kafka still has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from cdc_lakehouse.errors import TransientError, UserError

EARLIEST = -2
SECONDS_TO_ANSWER = 15
# The first is an option; the others Spark's source refuses (its Kafka guide).
OWN_PROPERTIES = {
    "bootstrap.servers",
    "auto.offset.reset",
    "enable.auto.commit",
    "interceptor.classes",
    "key.deserializer",
    "value.deserializer",
}


def read_options(spark: SparkSession, path: Path) -> dict[str, str]:
    """Kafka's client properties (``security.protocol=SASL_SSL``), as Kafka reads them.

    Returns:
        The properties with the prefix that Spark's source wants.

    Raises:
        UserError: the file cannot be read, or has a property that Kafka's consumer does
            not know or that the ingest sets itself. Values are not shown, as they may be
            secrets.
    """
    try:
        path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    jvm: Any = spark._jvm
    try:
        properties = jvm.org.apache.kafka.common.utils.Utils.loadProps(str(path))
    except IllegalArgumentException as error:
        raise UserError(f"cannot read {path}: it holds a malformed \\u") from error
    known = set(jvm.org.apache.kafka.clients.consumer.ConsumerConfig.configNames())
    options = {}
    for name in sorted(properties.stringPropertyNames()):
        if name not in known:
            raise UserError(f"{path}: Kafka's consumer knows no property '{name}'")
        if name in OWN_PROPERTIES:
            raise UserError(f"{path}: the ingest itself sets '{name}'; leave it out")
        options[f"kafka.{name}"] = properties.getProperty(name)
    return options


@dataclass(frozen=True)
class TopicState:
    """What Kafka has of some topics.

    Attributes:
        ids: each topic's; another one where a topic was recreated.
        earliest: the first offset that is there, by topic and partition.
        latest: the next one to be written.
    """

    ids: dict[str, str]
    earliest: dict[tuple[str, int], int]
    latest: dict[tuple[str, int], int]


def next_offsets(state: TopicState, read_to: dict[str, int]) -> dict[str, dict[int, int]]:
    """Where to start reading where no checkpoint says it.

    Args:
        state: what Kafka has of the topics.
        read_to: the next offset to read, by ``topic/partition``, as bronze knows it.

    Returns:
        By topic and partition, for every partition: the next offset, or ``EARLIEST``
        where bronze knows none, or a higher one than Kafka has.

    Raises:
        UserError: records that bronze lacks are gone from Kafka.
    """
    starts: dict[str, dict[int, int]] = {}
    for (topic, partition), low in state.earliest.items():
        wanted = read_to.get(f"{topic}/{partition}")
        if wanted is None or wanted > state.latest[topic, partition]:
            wanted = EARLIEST
        elif wanted < low:
            raise UserError(vanished(topic, partition, wanted, low))
        starts.setdefault(topic, {})[partition] = wanted
    return starts


def recreated(topic: str) -> str:
    """What to say where a topic is another one than when reading began."""
    return (
        f"{topic} was deleted and created again while it was read: run this again, which"
        " reads the new topic from its start"
    )


def vanished(topic: str, partition: int, wanted: int, low: int | None) -> str:
    """What to say where Kafka no longer has the offset that comes next."""
    has = "no longer has it" if low is None else f"has records from {low} on only"
    return (
        f"{topic}, partition {partition}: resuming at offset {wanted}, but Kafka"
        f" {has}; what is gone never reached bronze. Have the connector take a new"
        " snapshot (docs/runbook.md, Offsets that vanished), then go on with what Kafka"
        " has: --from-earliest"
    )


@contextmanager
def topic_ids(
    spark: SparkSession, bootstrap_servers: str, topics: list[str], options: dict[str, str]
) -> Iterator[Callable[[], dict[str, str]]]:
    """What asks Kafka for the ids of topics; arguments and errors as of ``topic_state``."""

    def ask() -> dict[str, str]:
        try:
            return _ids(_descriptions(spark, admin, topics))
        except Py4JJavaError as error:
            raise _explanation(error, bootstrap_servers) from error

    admin = _client(spark, bootstrap_servers, options)
    try:
        yield ask
    finally:
        admin.close()


def existing_topics(
    spark: SparkSession, bootstrap_servers: str, topics: list[str], options: dict[str, str]
) -> list[str]:
    """Those of some topics that Kafka has; arguments and errors as of ``topic_state``."""
    with _admin(spark, bootstrap_servers, options) as admin:
        names = set(admin.listTopics().names().get())
    return [topic for topic in topics if topic in names]


def topic_state(
    spark: SparkSession, bootstrap_servers: str, topics: list[str], options: dict[str, str]
) -> TopicState:
    """Ask Kafka what it has of topics.

    Args:
        spark: the session.
        bootstrap_servers: ``host:port``, comma-separated.
        topics: the topics' names.
        options: as ``read_options`` gives them.

    Raises:
        UserError: Kafka does not answer, or a topic is not there.
    """
    jvm: Any = spark._jvm
    kafka = jvm.org.apache.kafka
    with _admin(spark, bootstrap_servers, options) as admin:
        descriptions = _descriptions(spark, admin, topics)
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
        return TopicState(_ids(descriptions), earliest=found[0], latest=found[1])


@contextmanager
def _admin(
    spark: SparkSession, bootstrap_servers: str, options: dict[str, str]
) -> Iterator[Any]:
    """Kafka's own client; its errors become sentences."""
    try:
        admin = _client(spark, bootstrap_servers, options)
        try:
            yield admin
        finally:
            admin.close()
    except Py4JJavaError as error:
        raise _explanation(error, bootstrap_servers) from error


def _client(spark: SparkSession, bootstrap_servers: str, options: dict[str, str]) -> Any:
    jvm: Any = spark._jvm
    properties = jvm.java.util.Properties()
    milliseconds = str(SECONDS_TO_ANSWER * 1000)
    for name, value in options.items():
        properties.setProperty(name.removeprefix("kafka."), value)
    properties.setProperty("bootstrap.servers", bootstrap_servers)
    properties.setProperty("default.api.timeout.ms", milliseconds)
    properties.setProperty("request.timeout.ms", milliseconds)
    return jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)


def _descriptions(spark: SparkSession, admin: Any, topics: list[str]) -> Any:
    """What Kafka says of topics, by their names."""
    jvm: Any = spark._jvm
    names = jvm.java.util.ArrayList()
    for topic in topics:
        names.add(topic)
    return admin.describeTopics(names).allTopicNames().get()


def _ids(descriptions: Any) -> dict[str, str]:
    return {topic: descriptions.get(topic).topicId().toString() for topic in descriptions}


def _explanation(error: Py4JJavaError, bootstrap_servers: str) -> UserError:
    """What Kafka's error means to the user."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    name, said = cause.getClass().getSimpleName(), cause.getMessage()
    if name == "UnknownTopicOrPartitionException":
        return UserError(f"Kafka at {bootstrap_servers} lacks topics: {said}")
    if name in ("TimeoutException", "DisconnectException"):
        return TransientError(
            f"Kafka at {bootstrap_servers} does not answer within {SECONDS_TO_ANSWER} s:"
            " is it running, and do --options say how to reach it?"
        )
    return UserError(f"Kafka at {bootstrap_servers}: {said} ({name})")
