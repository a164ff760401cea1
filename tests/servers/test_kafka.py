"""What the ingest does with a real broker: positions, restarts, and offsets that vanish."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connectors.stack.broker import Broker
from connectors.stack.processes import java_command
from connectors.stack.stack import free_ports
from tests.conftest import NewLake
from tests.support.lake import Ingested, Lake
from tests.support.project import PROJECT
from tests.support.records import TOPIC, flattened

KEY = '{"order_id":1}'


def event(lsn: int) -> str:
    return json.dumps(flattened("u", {"order_id": 1, "customer_id": "ALFKI"}, lsn))


@pytest.fixture(scope="module")
def broker(servers: None, stack_root: Path) -> Iterator[Broker]:
    with free_ports() as free_port:
        broker = Broker(stack_root / "kafka-only", free_port(), free_port())
    broker.folder.mkdir()
    broker.start()
    broker.wait_until_ready()
    yield broker
    broker.process.kill()


@pytest.fixture
def topic(broker: Broker) -> Iterator[str]:
    tool(broker, "TopicCommand", "--create", "--topic", TOPIC)
    yield TOPIC
    tool(broker, "TopicCommand", "--delete", "--topic", TOPIC)


@pytest.fixture(scope="module")
def session(new_lake: NewLake) -> Lake:
    """The process that ingests for every lake of this module."""
    return new_lake()


@pytest.fixture
def lake(session: Lake) -> Lake:
    """The module's lake, emptied."""
    for folder in ("warehouse", "checkpoints"):
        shutil.rmtree(session.root / folder, ignore_errors=True)
    return session


@pytest.fixture
def ingest(lake: Lake, broker: Broker) -> Callable[..., Ingested]:
    def run(*arguments: str, topic: str = TOPIC) -> Ingested:
        servers = f"127.0.0.1:{broker.port}"
        return lake.ingest_kafka(
            "--bootstrap-servers", servers, "--topic", topic, *arguments
        )

    return run


def tool(broker: Broker, name: str, *arguments: str, given: str = "") -> None:
    """Run one of Kafka's own tools."""
    server = ("--bootstrap-server", f"127.0.0.1:{broker.port}")
    subprocess.run(
        java_command("128m", f"org.apache.kafka.tools.{name}", *server, *arguments),
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )


def produce(broker: Broker, *values: str | None) -> None:
    """Write records with a key; None is a tombstone."""
    lines = "".join(f"{KEY}\t{'NULL' if value is None else value}\n" for value in values)
    properties = ("parse.key=true", "key.separator=\t", "null.marker=NULL")
    options = [word for text in properties for word in ("--property", text)]
    tool(broker, "ConsoleProducer", "--topic", TOPIC, *options, given=lines)


def delete_before(broker: Broker, folder: Path, offset: int) -> None:
    """As retention does."""
    file = folder / "delete.json"
    partition = {"topic": TOPIC, "partition": 0, "offset": offset}
    file.write_text(json.dumps({"partitions": [partition], "version": 1}))
    tool(broker, "DeleteRecordsCommand", "--offset-json-file", str(file))


def offsets(lake: Lake, table: str = "cdc_events") -> list[int]:
    return [row["kafka_offset"] for row in lake.rows(f"bronze.{table}")]


def continuous(
    broker: Broker, lake: Lake, log: Path, *arguments: str
) -> subprocess.Popen[bytes]:
    """An ingest of the topic that stays, in a process of its own."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "ingest", "kafka", "--continuous"),
                *("--bootstrap-servers", f"127.0.0.1:{broker.port}", "--topic", TOPIC),
                *arguments,
            ],
            cwd=PROJECT,
            env=lake.environment(),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def test_records_come_with_key_and_position(
    topic: str, broker: Broker, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    produce(broker, event(10), "not JSON", None, event(20))
    done = ingest()
    assert (done.code, done.counts) == (0, (4, 2, 1, 1))
    rows = {row["kafka_offset"]: row for row in lake.rows("bronze.cdc_events")}
    assert sorted(rows) == [0, 3]
    assert (rows[0]["key"], rows[0]["value"]) == (KEY, event(10))
    assert (rows[0]["topic"], rows[0]["kafka_partition"]) == (TOPIC, 0)
    assert (rows[0]["source_lsn"], rows[3]["source_lsn"]) == (10, 20)
    assert rows[0]["kafka_timestamp"] is not None
    [rejected] = lake.rows("bronze.rejected_events")
    assert (rejected["value"], rejected["reason"]) == ("not JSON", "not JSON")
    assert (rejected["topic"], rejected["kafka_offset"]) == (TOPIC, 1)


def test_a_second_run_and_a_lost_checkpoint_add_nothing(
    topic: str, broker: Broker, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    """Bronze's commits say where to go on: what they hold is not even read again."""
    produce(broker, event(10), event(20))
    assert ingest().counts == (2, 2, 0, 0)
    assert ingest().counts == (0, 0, 0, 0)
    shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (0, 0, 0, 0)
    produce(broker, event(30))
    shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (1, 1, 0, 0)
    assert sorted(offsets(lake)) == [0, 1, 2]
    batches = [row["ingest_batch"] for row in lake.rows("bronze.cdc_events")]
    assert len(set(batches)) == 2


def test_another_set_of_topics_goes_on_from_bronze(
    topic: str, broker: Broker, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    other = "demo.datalake.customers"
    tool(broker, "TopicCommand", "--create", "--topic", other)
    try:
        produce(broker, event(10))
        assert ingest().counts == (1, 1, 0, 0)
        produce(broker, event(20))
        assert ingest("--topic", other).counts == (1, 1, 0, 0)
        produce(broker, event(30))
        assert ingest().counts == (1, 1, 0, 0)
    finally:
        tool(broker, "TopicCommand", "--delete", "--topic", other)


def test_a_topic_made_anew_is_read_from_its_start(
    topic: str, broker: Broker, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    produce(broker, event(10), event(20))
    assert ingest().code == 0
    tool(broker, "TopicCommand", "--delete", "--topic", TOPIC)
    time.sleep(1)
    tool(broker, "TopicCommand", "--create", "--topic", TOPIC)
    produce(broker, event(30))
    shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (1, 1, 0, 0)
    assert sorted(offsets(lake)) == [0, 0, 1]


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_topic_made_anew_that_has_grown_past_the_old_one(
    has_checkpoint: bool,
    topic: str,
    broker: Broker,
    lake: Lake,
    ingest: Callable[..., Ingested],
) -> None:
    """Its offsets say nothing: Kafka's id of the topic tells."""
    produce(broker, event(10))
    assert ingest().counts == (1, 1, 0, 0)
    tool(broker, "TopicCommand", "--delete", "--topic", TOPIC)
    time.sleep(1)
    tool(broker, "TopicCommand", "--create", "--topic", TOPIC)
    produce(broker, event(20), event(30), event(40))
    if not has_checkpoint:
        shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (3, 3, 0, 0)
    assert sorted(offsets(lake)) == [0, 0, 1, 2]
    produce(broker, event(50))
    assert ingest().counts == (1, 1, 0, 0)


def test_signal_ends_an_ingest_that_always_has_more_to_read(
    topic: str, broker: Broker, session: Lake, tmp_path: Path
) -> None:
    """After the batch under way, though the next one is there already."""
    session.close()
    lake = Lake(tmp_path / "lake")
    lake.root.mkdir()
    log = tmp_path / "log"
    producer = subprocess.Popen(
        java_command(
            *("128m", "org.apache.kafka.tools.ConsoleProducer", "--topic", TOPIC),
            *("--bootstrap-server", f"127.0.0.1:{broker.port}"),
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert producer.stdin is not None
    process = continuous(broker, lake, log)
    try:
        end, asked = time.monotonic() + 120, 0.0
        lsn = 0
        while process.poll() is None:
            assert time.monotonic() < end, log.read_text()
            lsn += 1
            producer.stdin.write(event(lsn) + "\n")
            producer.stdin.flush()
            if not asked and log.read_text().count("wrote") >= 3:
                process.send_signal(signal.SIGTERM)
                asked, end = time.monotonic(), time.monotonic() + 30
            time.sleep(0.02)
        assert process.returncode == 0, log.read_text()
        assert "Traceback" not in log.read_text()
        held = offsets(lake)
        assert sorted(held) == list(range(len(held)))
        assert f"wrote {len(held)} events, rejected 0" in log.read_text()
    finally:
        producer.kill()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_offsets_that_vanished_are_an_error(
    has_checkpoint: bool,
    topic: str,
    broker: Broker,
    lake: Lake,
    tmp_path: Path,
    ingest: Callable[..., Ingested],
) -> None:
    produce(broker, event(10), event(20))
    assert ingest().counts == (2, 2, 0, 0)
    produce(broker, event(30), event(40), event(50))
    delete_before(broker, tmp_path, 4)
    if not has_checkpoint:
        shutil.rmtree(lake.root / "checkpoints")
    for _ in range(2):
        done = ingest()
        assert done.code == 1
        assert f"{TOPIC}, partition 0: reading goes on at offset 2" in done.err
        assert "--from-earliest" in done.err
        assert "Traceback" not in done.err
    assert ingest("--from-earliest").counts == (1, 1, 0, 0)
    assert sorted(offsets(lake)) == [0, 1, 4]
    produce(broker, event(60))
    assert ingest().counts == (1, 1, 0, 0)


def test_topics_that_are_not_there(
    topic: str, broker: Broker, ingest: Callable[..., Ingested]
) -> None:
    done = ingest(topic="demo.datalake.customers")
    assert done.code == 1
    assert "has not all of the topics" in done.err
    done = ingest(topic="nobody.knows")
    assert (done.code, done.out) == (1, "")
    assert "does not list the topic 'nobody.knows'" in done.err


def test_a_broker_that_does_not_answer(lake: Lake) -> None:
    with free_ports() as free_port:
        port = free_port()
    done = lake.ingest_kafka("--bootstrap-servers", f"127.0.0.1:{port}", "--topic", TOPIC)
    assert done.code == 1
    assert f"Kafka at 127.0.0.1:{port} does not answer within" in done.err


def test_options_are_passed_through(
    topic: str, broker: Broker, tmp_path: Path, ingest: Callable[..., Ingested]
) -> None:
    """As they are for TLS, SASL and IAM; a value is never shown."""
    options = tmp_path / "client.properties"
    produce(broker, event(10))
    # As Kafka's own tools read it: colons, spaces, lines that go on.
    options.write_text(
        "# ours\nsecurity.protocol: PLAINTEXT\nmax.poll.records = 7\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule \\\n"
        '    required username="u" password="p";\n'
    )
    assert ingest("--options", str(options)).counts == (1, 1, 0, 0)
    options.write_text("security.protocol=NONSENSE\n")
    done = ingest("--options", str(options))
    assert done.code == 1
    assert "security.protocol" in done.err
    for line, said in (
        ("sasl.pasword=secret", "Kafka's consumer knows no property 'sasl.pasword'"),
        ("auto.offset.reset=latest", "the ingest itself sets 'auto.offset.reset'"),
        ("ssl.key.password=secret\\u12", "it holds a malformed"),
    ):
        options.write_text(f"security.protocol=SSL\n{line}\n")
        done = ingest("--options", str(options))
        assert (done.code, "secret" in done.err) == (1, False)
        assert said in done.err


def test_a_failed_build_never_stops_the_ingest(
    topic: str, broker: Broker, session: Lake, tmp_path: Path
) -> None:
    """It is said, and tried again with the next batch."""
    session.close()
    lake = Lake(tmp_path / "lake")
    lake.root.mkdir()
    produce(broker, event(10))
    log = tmp_path / "log"
    wrong = "run -s stg_orders orders --vars '{complete_snapshots: {cdc_events: 5}}'"
    process = continuous(broker, lake, log, "--then-build", wrong)

    def wait_for(text: str, times: int) -> None:
        end = time.monotonic() + 90
        while log.read_text().count(text) < times:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)

    try:
        wait_for("the build failed; the next batch retries it", 1)
        produce(broker, event(20))
        wait_for("the build failed; the next batch retries it", 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 1
        assert "read 2 records, wrote 2 events" in log.read_text()
        assert sorted(offsets(lake)) == [0, 1]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
