"""The ingest with a real broker: positions, restarts, and offsets that have expired."""

import json
import os
import shutil
import signal
import socket
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from subprocess import PIPE
from typing import IO

import pytest

from lab.stack.broker import Broker
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.commands import Process, start
from tests.support.kafka import Kafka
from tests.support.lake import TOPICS_FILE, Ingested, Lake
from tests.support.ports import free_port
from tests.support.project import PROJECT, replace_once
from tests.support.records import TOPIC, flattened, record

KEY, GONE = '{"order_id":1}', '{"order_id":2}'
CUSTOMERS = "demo.datalake.customers"
STORIES_FILE = PROJECT / "tests/support/topic_stories.toml"


def event(lsn: int) -> str:
    return json.dumps(flattened("u", {"order_id": 1, "customer_id": "ALFKI"}, lsn))


def other(lsn: int) -> str:
    """An event of a table that the topic does not carry."""
    return event(lsn).replace('"cdc_events"', '"shard"')


@pytest.fixture(scope="module")
def broker(servers: None, open_folder: Path) -> Iterator[Broker]:
    broker = Broker(open_folder, free_port(), free_port())
    broker.start()
    broker.wait_until_ready()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def module_lake(new_lake: NewLake) -> Lake:
    """The lake of all tests that ingest in the resident process."""
    return new_lake()


@pytest.fixture
def lake(module_lake: Lake) -> Lake:
    """The module's lake, emptied."""
    for folder in ("warehouse", "checkpoints", "landing"):
        shutil.rmtree(module_lake.root / folder, ignore_errors=True)
    return module_lake


class Story:
    """A topic and the lake that reads it; each method is a word of a story."""

    def __init__(self, kafka: Kafka, lake: Lake) -> None:
        self.kafka = kafka
        self.lake = lake
        self.servers = ("--bootstrap-servers", kafka.bootstrap_servers)

    def put(self, *values: int | str, partition: int = 0) -> None:
        """Write events by their LSNs, and other texts as they are.

        An empty one is a tombstone, of a key that has no row.
        """
        texts = [
            event(value) if isinstance(value, int) else value or None for value in values
        ]
        for is_gone, group in groupby(texts, lambda text: text is None):
            self.kafka.produce(TOPIC, GONE if is_gone else KEY, list(group), partition)

    def put_in(self, partition: int, *values: int) -> None:
        """The same in a partition."""
        self.put(*values, partition=partition)

    def commit(self, *lsns: int, is_aborted: bool = False) -> None:
        """Write events in a transaction."""
        self.kafka.produce_transaction(TOPIC, KEY, [*map(event, lsns)], is_aborted)

    def abort(self, *lsns: int) -> None:
        """The same in one that is aborted."""
        self.commit(*lsns, is_aborted=True)

    def recreate(self) -> None:
        self.kafka.delete_topic(TOPIC)
        self.kafka.create_topic(TOPIC, 1, {})

    def expire(self, before: int) -> None:
        """Delete the records below an offset, as retention does."""
        self.kafka.delete_records(TOPIC, before)

    def compact(self, *left: int) -> None:
        """Wait until newer records have replaced all but these offsets."""
        self.kafka.configure("log.cleaner.backoff.ms", "50")
        wait_until(lambda: self.kafka.offsets(TOPIC) == [*left], 60, "it is not compacted")

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

    def read_of_two(self, written: int) -> None:
        """The same of this topic and another, which is empty."""
        self.kafka.create_topic(CUSTOMERS, 1, {})
        try:
            self.read(written, 0, 0, "--topic", CUSTOMERS)
        finally:
            self.kafka.delete_topic(CUSTOMERS)

    def refuse(self, offset: int) -> None:
        """Ingest, which finds that records from an offset on have expired."""
        done = self.ingest()
        assert done.code == 1
        assert f"{TOPIC}, partition 0: resuming at offset {offset}" in done.err
        assert "--from-earliest" in done.err
        assert "Traceback" not in done.err

    def read_from_earliest(self, written: int) -> None:
        """Ingest what is left."""
        self.read(written, 0, 0, "--from-earliest")

    def places(self, *expected: str) -> None:
        """Bronze has the events of these generations, partitions and offsets."""
        assert sorted(
            f"{row['topic_generation']}/{row['kafka_partition']}/{row['kafka_offset']}"
            for row in self.lake.rows("bronze.cdc_events")
        ) == sorted(expected)

    def lag(self, expected: int, **others: int | None) -> None:
        """What ``status`` says that bronze lacks of the topics."""
        done = self.lake.status("--json", *self.servers)
        assert (done.code, done.err) == (0, "")
        status = json.loads(done.out)
        assert status["lag_by_topic"] == {TOPIC: expected, **others}
        assert status["lag_records"] == expected


NewStory = Callable[..., Story]


@pytest.fixture
def new_story(broker: Broker, lake: Lake) -> Iterator[NewStory]:
    """Makes the topic, with some settings."""
    assert lake.root.exists()  # the process that changes topics starts in a lake
    kafka = Kafka(lake.spark, f"127.0.0.1:{broker.port}")

    def begin(**settings: str) -> Story:
        partitions = int(settings.pop("partitions", 1))
        kafka.create_topic(TOPIC, partitions, settings)
        return Story(kafka, lake)

    yield begin
    kafka.delete_topic(TOPIC)


@pytest.fixture
def story(new_story: NewStory) -> Story:
    return new_story()


@contextmanager
def continuous(
    story: Story, lake: Lake, output: IO[str] | int, *words: str
) -> Iterator[Process]:
    """A continuous ingest of the topic, in a process of its own."""
    lake.release()
    command = (sys.executable, "-m", "ingest", "kafka", "--continuous", *story.servers)
    process = start(
        *(*command, "--topic", TOPIC, *words), env=lake.environment(), output=output
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_records_have_key_and_position(story: Story, lake: Lake) -> None:
    story.put(10, "not JSON", "", 20)
    story.read(2, rejected=1, skipped=1)
    first, last = sorted(lake.rows("bronze.cdc_events"), key=lambda row: row["source_lsn"])
    place = {"topic": TOPIC, "kafka_partition": 0, "kafka_offset": 0, "source_lsn": 10}
    assert first.items() >= {**place, "key": KEY, "value": event(10)}.items()
    assert last.items() >= {**place, "kafka_offset": 3, "source_lsn": 20}.items()
    assert first["kafka_timestamp"] is not None
    [rejected] = lake.rows("bronze.rejected_events")
    assert (rejected["value"], rejected["reason"]) == ("not JSON", "not JSON")
    assert (rejected["topic"], rejected["kafka_offset"]) == (TOPIC, 1)


STORIES = tomllib.loads(STORIES_FILE.read_text(encoding="utf-8"))
TOLD = [
    pytest.param(
        story.get("settings", {}), story["told"].replace("?lose", lose), id=name + suffix
    )
    for name, story in STORIES.items()
    for lose, suffix in (
        [("lose", ", without"), ("", ", with")] if "?" in story["told"] else [("", "")]
    )
]
WORDS = {"none": "", "other": other(20)}


@pytest.mark.parametrize(("settings", "told"), TOLD)
def test_reading_resumes_where_bronze_ends(
    new_story: NewStory, settings: dict[str, str], told: str
) -> None:
    story = new_story(**settings)
    for step in filter(str.strip, told.split(";")):
        word, *arguments = step.split()
        getattr(story, word)(
            *(int(each) if each.isdigit() else WORDS.get(each, each) for each in arguments)
        )


def test_topic_that_is_recreated_while_it_is_read_ends_the_ingest(
    story: Story, lake: Lake
) -> None:
    """Also where the new one has passed the offset of before when it is looked at again."""
    story.put(10)
    log = lake.root / "log"
    with (
        log.open("w") as output,
        continuous(story, lake, output, "--interval", "20") as process,
    ):
        wait_until(lambda: "wrote 1 events" in log.read_text(), 120, "nothing is written")
        story.recreate()
        story.put(20, 30, 40)
        assert process.wait(120) == 75
    said = (lake.root / "log").read_text()
    assert f"{TOPIC} was deleted and created again while it was read" in said
    story.places("0/0/0")
    story.read(3)
    story.places("0/0/0", "1/0/0", "1/0/1", "1/0/2")


def test_topic_that_was_recreated_since_files_brought_it_waits(
    story: Story, lake: Lake, tmp_path: Path
) -> None:
    """Bronze has no id of its former generation, but Kafka timestamps."""
    old = [record(json.loads(KEY), json.loads(event(lsn)), lsn) for lsn in (10, 20)]
    lake.land([json.dumps(each) for each in old])
    assert lake.ingest().counts == (2, 2, 0, 0)
    story.put(30)
    refused = story.ingest()
    assert refused.code == 1
    assert f"nothing more is read: {TOPIC} must wait" in refused.err
    line = refused.err.partition(" when: ")[2].partition("  or")[0]
    topics = tmp_path / "topics.toml"
    topics.write_text(f"{TOPICS_FILE.read_text()}{line}\n")
    assert story.ingest("--topics", str(topics)).counts == (1, 1, 0, 0)
    # What was read from Kafka is known by the topic's id from now on.
    story.put(40)
    story.read(1)
    story.places("0/0/10", "0/0/20", "1/0/0", "1/0/1")


@pytest.mark.parametrize("is_of_earlier_version", [False, True])
def test_rejected_record_keeps_the_generation_it_came_with(
    is_of_earlier_version: bool, story: Story, lake: Lake, tmp_path: Path
) -> None:
    """Of a row that an earlier version wrote, its batch tells it."""
    for lsn in (10, 30, 50):
        if lsn > 10:
            story.recreate()
        story.put(lsn, other(lsn + 10))
        story.read(1, rejected=1)
    story.places("0/0/0", "1/0/0", "2/0/0")
    if is_of_earlier_version:
        path = lake.root / "warehouse/bronze.db/rejected_events"
        lake.sql(f"create table before using hudi location 'file:{path}'")
        lake.sql("update before set topic_generation = null")
        lake.sql("drop table before")
    topics = Path(shutil.copy(TOPICS_FILE, tmp_path))
    listed = f'[source_tables]\n"{TOPIC}" = ["cdc_events", "shard"]\n'
    replace_once(topics, "[source_tables]\n", listed)
    assert lake.retry_rejected("--topics", str(topics)).counts == (3, 3, 0, 0)
    story.places("0/0/0", "0/0/1", "1/0/0", "1/0/1", "2/0/0", "2/0/1")
    assert lake.rows("bronze.rejected_events") == []


def test_signal_ends_an_ingest_that_always_has_more_to_read(
    story: Story, new_lake: NewLake, tmp_path: Path
) -> None:
    """After the current batch, though records of the next one have arrived."""
    lake, log = new_lake(), tmp_path / "log"
    with log.open("w") as output, continuous(story, lake, output) as process:
        end, signalled, lsn = time.monotonic() + 120, False, 0
        while process.poll() is None:
            assert time.monotonic() < end, log.read_text()
            lsn += 1
            story.put(lsn)
            if not signalled and log.read_text().count("wrote") >= 3:
                process.send_signal(signal.SIGTERM)
                signalled, end = True, time.monotonic() + 30
    said = log.read_text()
    assert signalled and process.returncode == 0, said
    assert "Traceback" not in said
    written = [row["kafka_offset"] for row in lake.rows("bronze.cdc_events")]
    assert sorted(written) == list(range(len(written)))
    assert f"wrote {len(written)} events, rejected 0" in said


def test_missing_topics_and_brokers_are_reported(story: Story, lake: Lake) -> None:
    done = story.ingest(topic=CUSTOMERS)
    assert done.code == 1
    assert "lacks topics: " in done.err
    done = story.ingest(topic="nobody.knows")
    assert (done.code, done.out) == (1, "")
    assert "does not list the topic 'nobody.knows'" in done.err
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens, and nobody else gets the port
        server = f"127.0.0.1:{closed.getsockname()[1]}"
        done = lake.ingest_kafka("--bootstrap-servers", server, "--topic", TOPIC)
    assert done.code == 75
    assert f"Kafka at {server} does not answer within" in done.err


def test_status_has_the_lag_of_topics_that_kafka_has(story: Story, lake: Lake) -> None:
    """Files may bring records of others."""
    story.put(10)
    story.read(1)
    story.put(20, 30)
    place = {"topic": CUSTOMERS, "partition": 0, "offset": 5}
    value = json.loads(event(1).replace("cdc_events", "customers"))
    lake.land([json.dumps({"key": KEY, "value": value, "metadata": place})])
    assert lake.ingest().code == 0
    story.lag(2, **{CUSTOMERS: None})


def test_options_are_passed_through(story: Story, tmp_path: Path) -> None:
    """As for TLS, SASL and IAM; a value is never printed."""
    options = tmp_path / "client.properties"
    story.put(10)
    # The syntax of Kafka's own tools: colons, spaces, continued lines.
    options.write_text(
        "# comment\nsecurity.protocol: PLAINTEXT\nmax.poll.records = 7\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule \\\n"
        '    required username="u" password="p";\n'
    )
    assert story.ingest("--options", str(options)).counts == (1, 1, 0, 0)
    for line, message in (
        ("security.protocol=NONSENSE", "security.protocol"),
        ("sasl.pasword=secret", "Kafka's consumer knows no property 'sasl.pasword'"),
        ("auto.offset.reset=latest", "the ingest itself sets 'auto.offset.reset'"),
        ("ssl.key.password=secret\\u12", "it holds a malformed"),
    ):
        options.write_text(f"security.protocol=SSL\n{line}\n")
        done = story.ingest("--options", str(options))
        assert (done.code, "secret" in done.err) == (1, False)
        assert message in done.err


def test_a_failed_build_never_stops_the_ingest(story: Story, new_lake: NewLake) -> None:
    """The failure is printed, and the build runs again with the next batch."""
    lake = new_lake()
    story.put(10)
    variables = "{cdc_lakehouse_complete_snapshots: {cdc_events: 5}}"
    wrong = f"run -s stg_orders orders --vars '{variables}'"
    arguments = ("--then-build", wrong)
    with continuous(story, lake, PIPE, *arguments) as process:
        assert process.stdout is not None
        until = iter(process.stdout.readline, "")
        failed = "the build failed; it is tried again"
        assert any(failed in line for line in until)
        story.put(20)
        assert any(failed in line for line in until)
        process.send_signal(signal.SIGTERM)
        assert "read 2 records, wrote 2 events" in process.stdout.read()
        assert process.wait() == 1
    assert {row["kafka_offset"] for row in lake.rows("bronze.cdc_events")} == {0, 1}
