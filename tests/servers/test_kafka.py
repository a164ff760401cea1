"""The ingest with a real broker: positions, restarts, and offsets that have expired."""

import json
import os
import shutil
import signal
import socket
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import IO

import pytest

from lab.stack.broker import Broker
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.commands import Process, start
from tests.support.kafka import KEY, Story, event, other
from tests.support.lake import TOPICS_FILE, Lake
from tests.support.ports import free_port
from tests.support.project import PROJECT, replace_once
from tests.support.records import TOPIC, record

CUSTOMERS = "demo.datalake.customers"
STORIES_FILE = PROJECT / "tests/support/topic_stories.toml"


@pytest.fixture(scope="module")
def broker(servers: None, open_folder: Path) -> Iterator[Broker]:
    broker = Broker(open_folder, free_port(), free_port())
    broker.start()
    broker.wait_until_ready()
    yield broker
    broker.kill()


@pytest.fixture
def lake(new_lake: NewLake) -> Lake:
    """A lake of each test's own."""
    return new_lake()


@pytest.fixture
def story(broker: Broker, lake: Lake, request: pytest.FixtureRequest) -> Iterator[Story]:
    """A topic, with the partitions and settings that a test gives, and its lake."""
    story, given = Story(f"127.0.0.1:{broker.port}", lake), getattr(request, "param", {})
    story.create(TOPIC, given.get("partitions", 1), given.get("settings"))
    yield story
    story.remove()


@contextmanager
def continuous(story: Story, output: IO[str] | int, *words: str) -> Iterator[Process]:
    """A continuous ingest of the topic, in a process of its own."""
    story.lake.release()
    command = (sys.executable, "-m", "ingest", "kafka", "--continuous", *story.servers)
    env = story.lake.environment()
    process = start(*command, "--topic", TOPIC, *words, env=env, output=output)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


STORIES = tomllib.loads(STORIES_FILE.read_text(encoding="utf-8"))
TOLD = [
    pytest.param(story, story["told"].replace("?lose", lose), id=name + suffix)
    for name, story in STORIES.items()
    for lose, suffix in (
        [("lose", ", without"), ("", ", with")] if "?" in story["told"] else [("", "")]
    )
]
WORDS = {"none": "", "other": other(20)}


@pytest.mark.parametrize(("story", "told"), TOLD, indirect=["story"])
def test_reading_resumes_where_bronze_ends(story: Story, told: str) -> None:
    for step in filter(str.strip, told.split(";")):
        word, *arguments = step.split()
        getattr(story, word)(
            *(int(each) if each.isdigit() else WORDS.get(each, each) for each in arguments)
        )


def test_topic_that_is_recreated_while_it_is_read_ends_the_ingest(
    story: Story, tmp_path: Path
) -> None:
    """Also where the new one has passed the offset of before when it is looked at again."""
    story.put(10)
    log = tmp_path / "log"
    slowly = ("--interval", "20")
    with log.open("w") as output, continuous(story, output, *slowly) as process:
        wait_until(lambda: "wrote 1 events" in log.read_text(), 120, "nothing is written")
        story.recreate()
        story.put(20, 30, 40)
        assert process.wait(120) == 75
    assert f"{TOPIC} was deleted and created again while it was read" in log.read_text()
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
    story: Story, lake: Lake, tmp_path: Path
) -> None:
    """After the current batch, though records of the next one have arrived."""
    log = tmp_path / "log"
    with log.open("w") as output, continuous(story, output) as process:
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
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens, and nobody else gets the port
        server = f"127.0.0.1:{closed.getsockname()[1]}"
        done = lake.ingest_kafka("--bootstrap-servers", server, "--topic", TOPIC)
    assert done.code == 75
    assert f"Kafka at {server} does not answer within" in done.err


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


def test_a_failed_build_never_stops_the_ingest(story: Story, lake: Lake) -> None:
    """The failure is printed, and the build runs again with the next batch."""
    story.put(10)
    variables = "{cdc_lakehouse_complete_snapshots: {cdc_events: 5}}"
    wrong = f"run -s stg_orders orders --vars '{variables}'"
    with continuous(story, PIPE, "--then-build", wrong) as process:
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
