"""Kafka's admin client and producer, in the JVM of the Spark process.

``python -m tests.support.worker`` runs these functions: a tool of Kafka's own starts a JVM
for each call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from py4j.java_gateway import JavaMember
from py4j.protocol import STATIC_PREFIX

from tests.support.lake import SparkProcess

SECONDS_TO_SEE_A_TOPIC = 30


class Kafka:
    """A broker's topics, changed by the Spark process of the tests.

    Args:
        spark: the process; its JVM has Kafka's client.
        bootstrap_servers: ``host:port``.
    """

    def __init__(self, spark: SparkProcess, bootstrap_servers: str) -> None:
        self.spark = spark
        self.bootstrap_servers = bootstrap_servers

    def create_topic(self, topic: str) -> None:
        """Create a topic of one partition, and wait until the broker lists it."""
        self._ask("create_topic", topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        self._ask("delete_topic", topic)

    def produce(self, topic: str, key: str | None, values: list[str | None]) -> None:
        """Write a record for each value; None is a tombstone."""
        self._ask("produce", topic, key, values)

    def delete_records(self, topic: str, before: int) -> None:
        """Delete the records of partition 0 below an offset, as retention does."""
        self._ask("delete_records", topic, before)

    def _ask(self, function: str, *arguments: Any) -> None:
        self.spark.ask("kafka", function, self.bootstrap_servers, *arguments)


def _properties(jvm: Any, servers: str) -> Any:
    properties = jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", servers)
    return properties


def _admin(jvm: Any, servers: str) -> Any:
    client = jvm.org.apache.kafka.clients.admin.AdminClient
    return closing(client.create(_properties(jvm, servers)))


def _create_topic(jvm: Any, servers: str, topic: str) -> None:
    one = jvm.java.util.Optional.of(1)
    default = jvm.java.util.Optional.empty()
    new = jvm.org.apache.kafka.clients.admin.NewTopic(topic, one, default)
    names = jvm.java.util.List.of(topic)
    with _admin(jvm, servers) as admin:
        created = admin.createTopics(jvm.java.util.List.of(new)).topicId(topic).get()
        # The controller has it; the broker learns of it a moment later.
        end = time.monotonic() + SECONDS_TO_SEE_A_TOPIC
        while True:
            listing = admin.listTopics().namesToListings().get()
            if topic in listing:
                described = admin.describeTopics(names).allTopicNames().get().get(topic)
                if described.topicId().toString() == created.toString():
                    return
            if time.monotonic() > end:
                raise TimeoutError(f"the broker does not list {topic}")
            time.sleep(0.05)


def _delete_topic(jvm: Any, servers: str, topic: str) -> None:
    with _admin(jvm, servers) as admin:
        admin.deleteTopics(jvm.java.util.List.of(topic)).all().get()


def _produce(
    jvm: Any, servers: str, topic: str, key: str | None, values: list[str | None]
) -> None:
    serializer = jvm.org.apache.kafka.common.serialization.StringSerializer
    record = jvm.org.apache.kafka.clients.producer.ProducerRecord
    client = jvm.org.apache.kafka.clients.producer.KafkaProducer
    properties = _properties(jvm, servers)
    with closing(client(properties, serializer(), serializer())) as producer:
        sent = [producer.send(record(topic, key, value)) for value in values]
        for each in sent:
            each.get()


def _delete_records(jvm: Any, servers: str, topic: str, before: int) -> None:
    partition = jvm.org.apache.kafka.common.TopicPartition(topic, 0)
    # By its name, py4j finds only the accessor that is called the same.
    name = "org.apache.kafka.clients.admin.RecordsToDelete"
    factory = JavaMember("beforeOffset", None, STATIC_PREFIX + name, jvm._gateway_client)
    offset = factory(before)
    with _admin(jvm, servers) as admin:
        admin.deleteRecords(jvm.java.util.Map.of(partition, offset)).all().get()


FUNCTIONS: dict[str, Callable[..., None]] = {
    "create_topic": _create_topic,
    "delete_topic": _delete_topic,
    "produce": _produce,
    "delete_records": _delete_records,
}
