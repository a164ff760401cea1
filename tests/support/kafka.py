"""Kafka's admin client and producer, in the JVM of the Spark process.

``python -m tests.support.worker`` runs these functions: a tool of Kafka's own starts a JVM
for each call.
"""

import uuid
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

from py4j.java_gateway import JavaMember
from py4j.protocol import STATIC_PREFIX
from pyspark import SparkContext

from cdc_lakehouse.spark.session import spark_session
from tests.support.lake import SparkProcess


class Kafka:
    """A broker's topics, changed by the Spark process of the tests.

    Args:
        spark: the process; its JVM has Kafka's client.
        bootstrap_servers: ``host:port``.
    """

    def __init__(self, spark: SparkProcess, bootstrap_servers: str) -> None:
        self.spark = spark
        self.bootstrap_servers = bootstrap_servers

    def __getattr__(self, function: str) -> Callable[..., Any]:
        """A function of this module, for this broker."""
        return partial(self.spark.ask, "kafka:run", function, self.bootstrap_servers)


def run(function: str, *arguments: Any) -> Any:
    """Run a function of this module; without a Spark session, where one was closed."""
    gateway: Any = SparkContext._gateway or spark_session().sparkContext._gateway
    return globals()[function](gateway.jvm, *arguments)


def _properties(jvm: Any, servers: str) -> Any:
    properties = jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", servers)
    return properties


def _producer(jvm: Any, servers: str, **settings: str) -> Any:
    serializer = jvm.org.apache.kafka.common.serialization.StringSerializer
    client = jvm.org.apache.kafka.clients.producer.KafkaProducer
    properties = _properties(jvm, servers)
    properties.putAll(_map(jvm, settings))
    return closing(client(properties, serializer(), serializer()))


def _map(jvm: Any, settings: dict[str, str]) -> Any:
    found = jvm.java.util.HashMap()
    for name, value in settings.items():
        found.put(name.replace("_", "."), value)
    return found


def _admin(jvm: Any, servers: str) -> Any:
    client = jvm.org.apache.kafka.clients.admin.AdminClient
    return closing(client.create(_properties(jvm, servers)))


def create_topic(
    jvm: Any, servers: str, topic: str, partitions: int, settings: dict[str, str]
) -> None:
    """Create a topic, and wait until the broker lists it; settings have _ for a dot."""
    new = jvm.org.apache.kafka.clients.admin.NewTopic
    of = jvm.java.util.Optional.of
    default = jvm.java.util.Optional.empty()
    # The controller has the topic, and the broker learns of it a moment later: of the
    # second one, which it never knew by another id, at the same time.
    sign = str(uuid.uuid4())
    topics = jvm.java.util.List.of(
        new(topic, of(partitions), default).configs(_map(jvm, settings)),
        new(sign, of(1), default),
    )
    with _admin(jvm, servers) as admin, _producer(jvm, servers) as producer:
        admin.createTopics(topics).all().get()
        producer.partitionsFor(sign)  # returns when the broker lists it
        admin.deleteTopics(jvm.java.util.List.of(sign)).all().get()


def delete_topic(jvm: Any, servers: str, topic: str) -> None:
    """Delete a topic."""
    with _admin(jvm, servers) as admin:
        admin.deleteTopics(jvm.java.util.List.of(topic)).all().get()


def produce(
    jvm: Any, servers: str, topic: str, key: str, values: list[str | None], place: int = 0
) -> None:
    """Write a record for each value into a partition; None is a tombstone."""
    with _producer(jvm, servers) as producer:
        _send(jvm, producer, topic, place, key, values)


def produce_transaction(
    jvm: Any, servers: str, topic: str, key: str, values: list[str], is_aborted: bool
) -> None:
    """The same in one transaction."""
    with _producer(jvm, servers, transactional_id="tests") as producer:
        producer.initTransactions()
        producer.beginTransaction()
        _send(jvm, producer, topic, 0, key, values)
        if is_aborted:
            producer.abortTransaction()
        else:
            producer.commitTransaction()


def _send(jvm: Any, producer: Any, topic: str, *place: Any) -> None:
    partition, key, values = place
    record = jvm.org.apache.kafka.clients.producer.ProducerRecord
    for each in [producer.send(record(topic, partition, key, its)) for its in values]:
        each.get()


def configure(jvm: Any, servers: str, name: str, value: str) -> None:
    """Change a setting of the brokers while they run."""
    kafka = jvm.org.apache.kafka
    kinds = getattr(kafka.common.config, "ConfigResource$Type")
    brokers = kafka.common.config.ConfigResource(kinds.BROKER, "")
    entry = kafka.clients.admin.ConfigEntry(name, value)
    how = getattr(kafka.clients.admin, "AlterConfigOp$OpType").SET
    change = jvm.java.util.List.of(kafka.clients.admin.AlterConfigOp(entry, how))
    with _admin(jvm, servers) as admin:
        changes = jvm.java.util.Map.of(brokers, change)
        admin.incrementalAlterConfigs(changes).all().get()


def offsets(jvm: Any, servers: str, topic: str) -> list[int]:
    """The offsets of the records that partition 0 has."""
    deserializer = jvm.org.apache.kafka.common.serialization.StringDeserializer
    client = jvm.org.apache.kafka.clients.consumer.KafkaConsumer
    partition = jvm.org.apache.kafka.common.TopicPartition(topic, 0)
    partitions = jvm.java.util.List.of(partition)
    properties = _properties(jvm, servers)
    found: list[int] = []
    with closing(client(properties, deserializer(), deserializer())) as consumer:
        consumer.assign(partitions)
        consumer.seekToBeginning(partitions)
        end = consumer.endOffsets(partitions).get(partition)
        while consumer.position(partition) < end:
            records = consumer.poll(jvm.java.time.Duration.ofSeconds(1))
            found += [each.offset() for each in records.records(partition)]
    return found


def delete_records(jvm: Any, servers: str, topic: str, before: int) -> None:
    """Delete the records of partition 0 below an offset, as retention does."""
    partition = jvm.org.apache.kafka.common.TopicPartition(topic, 0)
    # By its name, py4j finds only the accessor that is called the same.
    name = "org.apache.kafka.clients.admin.RecordsToDelete"
    factory = JavaMember("beforeOffset", None, STATIC_PREFIX + name, jvm._gateway_client)
    offset = factory(before)
    with _admin(jvm, servers) as admin:
        admin.deleteRecords(jvm.java.util.Map.of(partition, offset)).all().get()
