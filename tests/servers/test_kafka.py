"""The ingest with a real broker: positions, restarts, and offsets that have expired."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO

import pytest

from lab.stack.broker import Broker
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.kafka import Kafka
from tests.support.lake import TOPICS_FILE, Ingested, Lake
from tests.support.ports import free_port
from tests.support.project import PROJECT, replace_once
from tests.support.records import TOPIC, flattened, record

KEY, GONE = '{"order_id":1}', '{"order_id":2}'


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


@pytest.fixture
def lake(module_lake: Lake) -> Lake:
    """The module's lake, emptied."""
    for folder in ("warehouse", "checkpoints", "landing"):
        shutil.rmtree(module_lake.root / folder, ignore_errors=True)
    return module_lake


@pytest.fixture(scope="module")
def module_lake(new_lake: NewLake) -> Lake:
    """The lake of all tests that ingest in the resident process."""
    return new_lake()


@pytest.fixture(scope="module")
def kafka(broker: Broker, module_lake: Lake) -> Kafka:
    """The broker's topics; the process that changes them starts in a lake."""
    assert module_lake.root.exists()
    return Kafka(module_lake.spark, f"127.0.0.1:{broker.port}")


class Story:
    """A topic and the lake that reads it; each method is a word of a story."""

    def __init__(self, kafka: Kafka, lake: Lake) -> None:
        self.kafka = kafka
        self.lake = lake

    def put(self, *values: int | str, partition: int = 0) -> None:
        """Write events by their LSNs, and other texts as they are.

        None is a tombstone, of a key that has no row.
        """
        texts = [
            event(value) if isinstance(value, int) else value or None for value in values
        ]
        for is_gone, group in groupby(texts, lambda text: text is None):
            self.kafka.produce(TOPIC, GONE if is_gone else KEY, list(group), partition)

    def put_in(self, partition: int, *values: int) -> None:
        """The same in a partition."""
        self.put(*values, partition=partition)

    def commit(self, *lsns: int) -> None:
        """Write events in a transaction."""
        self.kafka.produce_transaction(TOPIC, KEY, [*map(event, lsns)], False)

    def abort(self, *lsns: int) -> None:
        """Write events in a transaction that is aborted."""
        self.kafka.produce_transaction(TOPIC, KEY, [*map(event, lsns)], True)

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

    def ingest(self, *arguments: str, topic: str = TOPIC) -> Ingested:
        servers = ("--bootstrap-servers", self.kafka.bootstrap_servers)
        return self.lake.ingest_kafka(*servers, "--topic", topic, *arguments)

    def read(self, written: int, rejected: int = 0, skipped: int = 0) -> None:
        """Ingest, which brings so many records."""
        done = self.ingest()
        counts = (written + rejected + skipped, written, rejected, skipped)
        assert (done.code, done.counts) == (0, counts), done.err

    def read_of_two(self, written: int) -> None:
        """The same of this topic and another, which is empty."""
        customers = "demo.datalake.customers"
        self.kafka.create_topic(customers, 1, {})
        try:
            counts = self.ingest("--topic", customers).counts
            assert counts == (written, written, 0, 0)
        finally:
            self.kafka.delete_topic(customers)

    def refuse(self, offset: int) -> None:
        """Ingest, which finds that records from an offset on have expired."""
        done = self.ingest()
        assert done.code == 1
        assert f"{TOPIC}, partition 0: resuming at offset {offset}" in done.err
        assert "--from-earliest" in done.err
        assert "Traceback" not in done.err

    def read_from_earliest(self, written: int) -> None:
        """Ingest what is left."""
        assert self.ingest("--from-earliest").counts == (written, written, 0, 0)

    def places(self, *expected: str) -> None:
        """Bronze has the events of these generations, partitions and offsets."""
        assert sorted(
            f"{row['topic_generation']}/{row['kafka_partition']}/{row['kafka_offset']}"
            for row in self.lake.rows("bronze.cdc_events")
        ) == sorted(expected)

    def lag(self, expected: int) -> None:
        """What ``status`` says that bronze lacks of the topic."""
        servers = ("--bootstrap-servers", self.kafka.bootstrap_servers)
        done = self.lake.status("--json", *servers)
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out)["lag_by_topic"][TOPIC] == expected


NewStory = Callable[..., Story]


@pytest.fixture
def new_story(kafka: Kafka, lake: Lake) -> Iterator[NewStory]:
    """Makes the topic, with some settings."""

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
    story: Story, lake: Lake, output: IO[str] | int, *arguments: str
) -> Iterator[subprocess.Popen[str]]:
    """A continuous ingest of the topic, in a process of its own."""
    lake.release()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ingest", "kafka", "--continuous"),
            *("--bootstrap-servers", story.kafka.bootstrap_servers, "--topic", TOPIC),
            *arguments,
        ],
        cwd=PROJECT,
        env=lake.environment(),
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
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
    rows = {row["kafka_offset"]: row for row in lake.rows("bronze.cdc_events")}
    assert sorted(rows) == [0, 3]
    assert (rows[0]["key"], rows[0]["value"]) == (KEY, event(10))
    assert (rows[0]["topic"], rows[0]["kafka_partition"]) == (TOPIC, 0)
    assert (rows[0]["source_lsn"], rows[3]["source_lsn"]) == (10, 20)
    assert rows[0]["kafka_timestamp"] is not None
    [rejected] = lake.rows("bronze.rejected_events")
    assert (rejected["value"], rejected["reason"]) == ("not JSON", "not JSON")
    assert (rejected["topic"], rejected["kafka_offset"]) == (TOPIC, 1)


# What happens to a topic, and what each ingest reads of it. `?lose` is told twice, with a
# lost checkpoint and without: bronze's commits have the next offsets.
STORIES: dict[str, tuple[dict[str, str], str]] = {
    "a second run and a lost checkpoint add nothing": (
        {},
        "put 10 20; read 2; read 0; lose; read 0; put 30; lose; read 1; read 0;"
        " places 0/0/0 0/0/1 0/0/2",
    ),
    "a recreated topic is read from its start": (
        {},
        "put 10 20; read 2; recreate; put 30; lose; read 1; places 0/0/0 0/0/1 1/0/0",
    ),
    "offsets cannot show that a topic was recreated; its id does": (
        {},
        "put 10; read 1; recreate; put 20 30 40; ?lose; read 3;"
        " places 0/0/0 1/0/0 1/0/1 1/0/2; put 50; read 1",
    ),
    "lag of a recreated topic is what bronze lacks of it, whatever offsets it had": (
        {},
        "put 10 20 30 40; read 4; lag 0; recreate; put 50 60; lag 2; read 2; lag 0;"
        " put 70 none; lag 2; read 1 0 1; lag 0",
    ),
    "every partition is read on where it ended": (
        {"partitions": "3"},
        "put_in 0 10 20 30; put_in 2 40; read 4; places 0/0/0 0/0/1 0/0/2 0/2/0; lag 0;"
        " put_in 1 50; put_in 2 60 70; lag 3; lose; read 3; lag 0;"
        " places 0/0/0 0/0/1 0/0/2 0/2/0 0/1/0 0/2/1 0/2/2; read 0",
    ),
    "a transaction ends with a marker, which has an offset and is no record": (
        {},
        "commit 10 20; abort 30 40; commit 50; read 3; places 0/0/0 0/0/1 0/0/6; lag 0;"
        " read 0; abort 60; commit 70; lag 4; lose; read 1;"
        " places 0/0/0 0/0/1 0/0/6 0/0/10; lag 0",
    ),
    # Each of the later events is in a segment of its own; the last one is never compacted.
    "a compacted topic is read past what newer records replaced": (
        {
            "cleanup_policy": "compact",
            "segment_ms": "1",
            "min_cleanable_dirty_ratio": "0.01",
        },
        "put 10 20; read 2; put 30; put 40; put 50; put 60; compact 4 5; ?lose; read 2;"
        " places 0/0/0 0/0/1 0/0/4 0/0/5; lag 0; read 0",
    ),
    "another set of topics resumes from bronze": (
        {},
        "put 10; read 1; put 20; read_of_two 1; put 30; read 1",
    ),
    "expired offsets are an error": (
        {},
        "put 10 20; read 2; put 30 40 50; expire 4; ?lose; refuse 2; refuse 2;"
        " read_from_earliest 1; places 0/0/0 0/0/1 0/0/4; put 60; read 1",
    ),
    "rejected records at the end may expire": (
        {},
        "put 10; read 1; put other none; read 0 1 1; expire 3; lose; put 30; read 1;"
        " places 0/0/0 0/0/3",
    ),
    "and those that came with an event": (
        {},
        "put 10 other none; read 1 1 1; expire 3; lose; put 30; read 1; places 0/0/0 0/0/3",
    ),
}
TOLD = [
    pytest.param(settings, told.replace("?lose", lose), id=f"{name}{suffix}")
    for name, (settings, told) in STORIES.items()
    for lose, suffix in (
        [("lose", ", without"), ("", ", with")] if "?" in told else [("", "")]
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
    done = story.ingest(topic="demo.datalake.customers")
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
    place = {"topic": "demo.datalake.customers", "partition": 0, "offset": 5}
    value = json.loads(event(1).replace("cdc_events", "customers"))
    lake.land([json.dumps({"key": KEY, "value": value, "metadata": place})])
    assert lake.ingest().code == 0
    done = lake.status("--json", "--bootstrap-servers", story.kafka.bootstrap_servers)
    assert (done.code, done.err) == (0, "")
    status = json.loads(done.out)
    assert status["lag_by_topic"] == {"demo.datalake.customers": None, TOPIC: 2}
    assert status["lag_records"] == 2


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
    with continuous(story, lake, subprocess.PIPE, *arguments) as process:
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
