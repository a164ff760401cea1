"""A topic that Kafka's own clients change, and the lake that reads it."""

import json
import shutil
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import closing
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from lab.stack.processes import wait_until
from tests.support.lake import Ingested, Lake
from tests.support.records import TOPIC, flattened, record

# Without blanks, as bronze has what files bring.
KEY, GONE = '{"order_id":1}', '{"order_id":2}'


def event(lsn: int) -> str:
    value = flattened("u", {"order_id": 1, "customer_id": "ALFKI"}, lsn)
    return json.dumps(value, separators=(",", ":"))


def other(lsn: int) -> str:
    """An event of a table that the topic does not carry."""
    return event(lsn).replace('"cdc_events"', '"shard"')


def _await(answers: Mapping[Any, Future[Any]]) -> None:
    for answer in answers.values():
        answer.result()


class Story:
    """A topic and the lake that reads it; each method is a word of a story."""

    def __init__(self, servers: str, lake: Lake) -> None:
        self.lake = lake
        self.servers = ("--bootstrap-servers", servers)
        self._broker: dict[str, Any] = {"bootstrap.servers": servers}
        self._admin = AdminClient(self._broker)
        self._topics: list[str] = []

    def create(
        self,
        topic: str = TOPIC,
        partitions: int = 1,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, and wait until the broker lists it.

        The controller has the topic, and the broker learns of it a moment later: of the
        second one, which it never knew by another id, at the same time.
        """
        sign = str(uuid.uuid4())
        new = NewTopic(topic, partitions, 1, config={**(settings or {})})
        _await(self._admin.create_topics([new, NewTopic(sign, 1, 1)]))
        self._topics.append(topic)
        listed = self._admin.list_topics
        wait_until(lambda: sign in listed(timeout=10).topics, 30, f"{topic} is not listed")
        _await(self._admin.delete_topics([sign]))

    def remove(self) -> None:
        """Delete every topic that it created."""
        _await(self._admin.delete_topics(self._topics))
        self._topics.clear()

    def recreate(self) -> None:
        self.remove()
        self.create()

    def _send(self, producer: Producer, partition: int, *values: int | str) -> None:
        """Events by their LSNs, and other texts as they are.

        An empty one is a tombstone, of a key that has no row.
        """

        def check(error: object, _: object) -> None:
            assert error is None, error

        for value in values:
            text = event(value) if isinstance(value, int) else value or None
            key = KEY if text else GONE
            producer.produce(TOPIC, text, key, partition, on_delivery=check)
        assert producer.flush(30) == 0

    def put_in(self, partition: int, *values: int | str) -> None:
        """Write records into a partition."""
        self._send(Producer(self._broker), partition, *values)

    def put(self, *values: int | str) -> None:
        self.put_in(0, *values)

    def commit(self, *lsns: int, is_aborted: bool = False) -> None:
        """Write events in a transaction."""
        producer = Producer({**self._broker, "transactional.id": "tests"})
        producer.init_transactions()
        producer.begin_transaction()
        self._send(producer, 0, *lsns)
        producer.abort_transaction() if is_aborted else producer.commit_transaction()

    def abort(self, *lsns: int) -> None:
        """The same in one that is aborted."""
        self.commit(*lsns, is_aborted=True)

    def expire(self, before: int) -> None:
        """Delete the records below an offset, as retention does."""
        _await(self._admin.delete_records([TopicPartition(TOPIC, 0, before)]))

    def _offsets(self) -> list[int | None]:
        """Of the records that partition 0 has."""
        settings = {**self._broker, "group.id": "tests", "enable.partition.eof": True}
        offsets: list[int | None] = []
        with closing(Consumer(settings)) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
            # A message without a value is false.
            while (found := consumer.poll(30)) is not None and found.error() is None:
                offsets.append(found.offset())
        return offsets

    def compact(self, *left: int) -> None:
        """Wait until newer records have replaced all but these offsets."""
        often = ConfigEntry(
            "log.cleaner.backoff.ms", "50", incremental_operation=AlterConfigOpType.SET
        )
        broker = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[often])
        _await(self._admin.incremental_alter_configs([broker]))
        wait_until(lambda: self._offsets() == [*left], 60, "it is not compacted")

    def lose(self) -> None:
        """Lose the checkpoint."""
        shutil.rmtree(self.lake.root / "checkpoints")

    def ingest(self, *words: str, topic: str = TOPIC) -> Ingested:
        return self.lake.ingest_kafka(*self.servers, "--topic", topic, *words)

    def read(self, written: int, rejected: int = 0, skipped: int = 0, *words: str) -> None:
        """Ingest, which brings so many records."""
        done = self.ingest(*words)
        counts = (written + rejected + skipped, written, rejected, skipped)
        assert (done.code, done.counts) == (0, counts), done.err

    def refuse(self, offset: int) -> None:
        """Ingest, which finds that records from an offset on have expired."""
        done = self.ingest()
        assert done.code == 1
        assert f"{TOPIC}, partition 0: resuming at offset {offset}" in done.err
        assert "--from-earliest" in done.err
        assert "Traceback" not in done.err

    def places(self, *expected: str) -> None:
        """Bronze has the events of these generations, partitions and offsets."""
        found = []
        for row in self.lake.rows("bronze.cdc_events"):
            assert (row["topic"], row["key"]) == (TOPIC, KEY)
            assert row["value"] in (event(row["source_lsn"]), other(row["source_lsn"]))
            assert row["kafka_timestamp"] is not None
            place = ("topic_generation", "kafka_partition", "kafka_offset")
            found.append("/".join(str(row[name]) for name in place))
        assert sorted(found) == sorted(expected)

    def land(self, topic: str) -> None:
        """Ingest a file with an event of another topic, which Kafka lacks."""
        value = json.loads(event(1).replace("cdc_events", topic.rpartition(".")[2]))
        self.lake.land([record(json.loads(KEY), value, 5, topic)])
        assert self.lake.ingest().code == 0

    def lag(self, expected: int, *unknown: str) -> None:
        """What ``status`` says that bronze lacks of the topic, and of no other."""
        done = self.lake.status("--json", *self.servers)
        assert (done.code, done.err) == (0, "")
        status = json.loads(done.out)
        assert status["lag_by_topic"] == {TOPIC: expected, **dict.fromkeys(unknown)}
        assert status["lag_records"] == expected
