"""The ingest with a real broker: positions, restarts, and offsets that have expired."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from ingest.topics import TOPICS_FILE
from lab.stack.broker import Broker
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.kafka import Kafka
from tests.support.lake import Ingested, Lake
from tests.support.ports import free_port
from tests.support.project import PROJECT
from tests.support.records import TOPIC, flattened, record

KEY = '{"order_id":1}'


def event(lsn: int) -> str:
    return json.dumps(flattened("u", {"order_id": 1, "customer_id": "ALFKI"}, lsn))


@pytest.fixture(scope="module")
def broker(servers: None, stack_root: Path) -> Iterator[Broker]:
    folder = stack_root / "kafka-only"
    folder.mkdir()
    broker = Broker(folder, free_port(), free_port())
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


@pytest.fixture
def topic(kafka: Kafka, request: pytest.FixtureRequest) -> Iterator[str]:
    """The topic; a test may say with which settings it is created."""
    kafka.create_topic(TOPIC, **getattr(request, "param", {}))
    yield TOPIC
    kafka.delete_topic(TOPIC)


@pytest.fixture
def ingest(lake: Lake, kafka: Kafka) -> Callable[..., Ingested]:
    def run(*arguments: str, topic: str = TOPIC) -> Ingested:
        servers = ("--bootstrap-servers", kafka.bootstrap_servers)
        return lake.ingest_kafka(*servers, "--topic", topic, *arguments)

    return run


def produce(kafka: Kafka, *values: str | None) -> None:
    """Write records with a key; None is a tombstone."""
    kafka.produce(TOPIC, KEY, list(values))


def offsets(lake: Lake, table: str = "cdc_events") -> list[int]:
    return [row["kafka_offset"] for row in lake.rows(f"bronze.{table}")]


def places(lake: Lake, table: str = "cdc_events") -> list[tuple[int, int, int]]:
    """The generation, partition and offset of each event, in this order."""
    return sorted(
        (row["topic_generation"], row["kafka_partition"], row["kafka_offset"])
        for row in lake.rows(f"bronze.{table}")
    )


def lag(lake: Lake, kafka: Kafka) -> int:
    """What ``status`` says that bronze lacks of the topic."""
    done = lake.status("--json", "--bootstrap-servers", kafka.bootstrap_servers)
    assert (done.code, done.err) == (0, "")
    found: int = json.loads(done.out)["lag_by_topic"][TOPIC]
    return found


def start_continuous(
    kafka: Kafka, lake: Lake, output: IO[str] | int, *arguments: str
) -> subprocess.Popen[str]:
    """A continuous ingest of the topic, in a process of its own."""
    lake.release()
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "ingest", "kafka", "--continuous"),
            *("--bootstrap-servers", kafka.bootstrap_servers, "--topic", TOPIC),
            *arguments,
        ],
        cwd=PROJECT,
        env=lake.environment(),
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """End a process and its Java, if it runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_records_have_key_and_position(
    topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    produce(kafka, event(10), "not JSON", None, event(20))
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
    topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    """Bronze's commits have the next offsets: older records are not read again."""
    produce(kafka, event(10), event(20))
    assert ingest().counts == (2, 2, 0, 0)
    assert ingest().counts == (0, 0, 0, 0)
    shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (0, 0, 0, 0)
    produce(kafka, event(30))
    shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (1, 1, 0, 0)
    assert sorted(offsets(lake)) == [0, 1, 2]
    batches = [row["ingest_batch"] for row in lake.rows("bronze.cdc_events")]
    assert len(set(batches)) == 2


def test_another_set_of_topics_resumes_from_bronze(
    topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    other = "demo.datalake.customers"
    kafka.create_topic(other)
    try:
        produce(kafka, event(10))
        assert ingest().counts == (1, 1, 0, 0)
        produce(kafka, event(20))
        assert ingest("--topic", other).counts == (1, 1, 0, 0)
        produce(kafka, event(30))
        assert ingest().counts == (1, 1, 0, 0)
    finally:
        kafka.delete_topic(other)


def test_recreated_topic_is_read_from_its_start(
    topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    produce(kafka, event(10), event(20))
    assert ingest().code == 0
    kafka.delete_topic(TOPIC)
    kafka.create_topic(TOPIC)
    produce(kafka, event(30))
    shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (1, 1, 0, 0)
    assert sorted(offsets(lake)) == [0, 0, 1]


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_recreated_topic_with_more_records_than_the_old_one(
    has_checkpoint: bool,
    topic: str,
    kafka: Kafka,
    lake: Lake,
    ingest: Callable[..., Ingested],
) -> None:
    """Offsets cannot show it; Kafka's topic id does."""
    produce(kafka, event(10))
    assert ingest().counts == (1, 1, 0, 0)
    kafka.delete_topic(TOPIC)
    kafka.create_topic(TOPIC)
    produce(kafka, event(20), event(30), event(40))
    if not has_checkpoint:
        shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (3, 3, 0, 0)
    assert sorted(offsets(lake)) == [0, 0, 1, 2]
    produce(kafka, event(50))
    assert ingest().counts == (1, 1, 0, 0)


def test_topic_that_is_recreated_while_it_is_read_ends_the_ingest(
    topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    """Also where the new one has passed the offset of before when it is looked at again."""
    produce(kafka, event(10))
    with (lake.root / "log").open("w") as log:
        process = start_continuous(kafka, lake, log, "--interval", "20")
        try:
            wait_until(
                lambda: "wrote 1 events" in (lake.root / "log").read_text(),
                120,
                "the first event is not written",
            )
            kafka.delete_topic(TOPIC)
            kafka.create_topic(TOPIC)
            produce(kafka, event(20), event(30), event(40))
            assert process.wait(120) == 75
        finally:
            kill(process)
    said = (lake.root / "log").read_text()
    assert f"{TOPIC} was deleted and created again while it was read" in said
    assert places(lake) == [(0, 0, 0)]
    assert ingest().counts == (3, 3, 0, 0)
    assert places(lake) == [(0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 0, 2)]


@pytest.mark.parametrize("at_once", [True, False])
def test_rejected_records_at_the_end_may_expire(
    at_once: bool, topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    """Without a checkpoint, bronze itself says that it has them."""
    other = event(20).replace('"cdc_events"', '"shard"')
    if not at_once:
        produce(kafka, event(10))
        assert ingest().counts == (1, 1, 0, 0)
    produce(kafka, *([event(10)] if at_once else []), other, None)
    assert ingest().code == 0
    kafka.delete_records(TOPIC, before=3)
    shutil.rmtree(lake.root / "checkpoints")
    produce(kafka, event(30))
    assert ingest().counts == (1, 1, 0, 0)
    assert places(lake) == [(0, 0, 0), (0, 0, 3)]


def test_topic_that_was_recreated_since_files_brought_it_waits(
    topic: str,
    kafka: Kafka,
    lake: Lake,
    ingest: Callable[..., Ingested],
    tmp_path: Path,
) -> None:
    """Bronze has no id of its former generation, but Kafka timestamps."""
    old = [record(json.loads(KEY), json.loads(event(lsn)), lsn) for lsn in (10, 20)]
    lake.land([json.dumps(each) for each in old])
    assert lake.ingest().counts == (2, 2, 0, 0)
    produce(kafka, event(30))
    refused = ingest()
    assert refused.code == 1
    assert f"nothing more is read: {TOPIC} must wait" in refused.err
    line = refused.err.partition(" when: ")[2].partition("  or")[0]
    topics = tmp_path / "topics.toml"
    topics.write_text(f"{TOPICS_FILE.read_text()}{line}\n")
    assert ingest("--topics", str(topics)).counts == (1, 1, 0, 0)
    assert places(lake) == [(0, 0, 10), (0, 0, 20), (1, 0, 0)]
    # What was read from Kafka is known by the topic's id from now on.
    produce(kafka, event(40))
    assert ingest().counts == (1, 1, 0, 0)
    assert places(lake)[-1] == (1, 0, 1)


@pytest.mark.parametrize("is_of_earlier_version", [False, True])
def test_rejected_record_keeps_the_generation_it_came_with(
    is_of_earlier_version: bool,
    topic: str,
    kafka: Kafka,
    lake: Lake,
    ingest: Callable[..., Ingested],
    tmp_path: Path,
) -> None:
    """Of a row that an earlier version wrote, its batch tells it."""
    other = event(20).replace('"cdc_events"', '"shard"')
    produce(kafka, event(10), other)
    assert ingest().counts == (2, 1, 1, 0)
    for lsn in (30, 50):
        kafka.delete_topic(TOPIC)
        kafka.create_topic(TOPIC)
        produce(kafka, event(lsn), other.replace("20", f"{lsn + 10}"))
        assert ingest().counts == (2, 1, 1, 0)
    assert places(lake) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    if is_of_earlier_version:
        path = lake.root / "warehouse/bronze.db/rejected_events"
        lake.sql(f"create table before using hudi location 'file:{path}'")
        lake.sql("update before set topic_generation = null")
        lake.sql("drop table before")

    topics = tmp_path / "topics.toml"
    listed = f'[source_tables]\n"{TOPIC}" = ["cdc_events", "shard"]\n'
    topics.write_text(TOPICS_FILE.read_text().replace("[source_tables]\n", listed))
    assert lake.retry_rejected("--topics", str(topics)).counts == (3, 3, 0, 0)
    assert places(lake) == [(n, 0, offset) for n in range(3) for offset in range(2)]
    assert lake.rows("bronze.rejected_events") == []


@pytest.mark.parametrize("topic", [{"partitions": 3}], indirect=True)
def test_every_partition_is_read_on_where_it_ended(
    topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    kafka.produce(TOPIC, KEY, [event(10), event(20), event(30)], partition=0)
    kafka.produce(TOPIC, KEY, [event(40)], partition=2)
    assert ingest().counts == (4, 4, 0, 0)
    first = [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 2, 0)]
    assert (places(lake), lag(lake, kafka)) == (first, 0)
    kafka.produce(TOPIC, KEY, [event(50)], partition=1)
    kafka.produce(TOPIC, KEY, [event(60), event(70)], partition=2)
    assert lag(lake, kafka) == 3
    shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (3, 3, 0, 0)
    second = [(0, 1, 0), (0, 2, 1), (0, 2, 2)]
    assert (places(lake), lag(lake, kafka)) == (sorted([*first, *second]), 0)
    assert ingest().counts == (0, 0, 0, 0)


def test_transactions_are_read_and_aborted_ones_left_out(
    topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    """Each ends with a marker, which has an offset and is no record."""
    kafka.produce_transaction(TOPIC, KEY, [event(10), event(20)], is_aborted=False)
    kafka.produce_transaction(TOPIC, KEY, [event(30), event(40)], is_aborted=True)
    kafka.produce_transaction(TOPIC, KEY, [event(50)], is_aborted=False)
    assert ingest().counts == (3, 3, 0, 0)
    assert (sorted(offsets(lake)), lag(lake, kafka)) == ([0, 1, 6], 0)
    assert ingest().counts == (0, 0, 0, 0)
    kafka.produce_transaction(TOPIC, KEY, [event(60)], is_aborted=True)
    kafka.produce_transaction(TOPIC, KEY, [event(70)], is_aborted=False)
    assert lag(lake, kafka) == 4
    shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (1, 1, 0, 0)
    assert (sorted(offsets(lake)), lag(lake, kafka)) == ([0, 1, 6, 10], 0)


COMPACTED = {
    "cleanup_policy": "compact",
    "segment_ms": "1",
    "min_cleanable_dirty_ratio": "0.01",
}


@pytest.mark.parametrize("topic", [COMPACTED], indirect=True)
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_compacted_topic_is_read_past_what_is_gone(
    has_checkpoint: bool,
    topic: str,
    kafka: Kafka,
    lake: Lake,
    ingest: Callable[..., Ingested],
) -> None:
    """Newer records of the same key replaced it, so that nothing is lost."""
    kafka.configure("log.cleaner.backoff.ms", "50")
    produce(kafka, event(10), event(20))
    assert ingest().counts == (2, 2, 0, 0)
    for lsn in (30, 40, 50, 60):
        produce(kafka, event(lsn))  # each in a segment of its own
    # The last segment is never compacted.
    wait_until(lambda: kafka.offsets(TOPIC) == [4, 5], 60, "the topic is not compacted")
    if not has_checkpoint:
        shutil.rmtree(lake.root / "checkpoints")
    assert ingest().counts == (2, 2, 0, 0)
    assert (sorted(offsets(lake)), lag(lake, kafka)) == ([0, 1, 4, 5], 0)
    assert ingest().counts == (0, 0, 0, 0)


def test_signal_ends_an_ingest_that_always_has_more_to_read(
    topic: str, kafka: Kafka, new_lake: NewLake, tmp_path: Path
) -> None:
    """After the current batch, though records of the next one have arrived."""
    lake = new_lake()
    log = tmp_path / "log"
    with log.open("w") as output:
        process = start_continuous(kafka, lake, output)
    try:
        end, signalled = time.monotonic() + 120, False
        lsn = 0
        while process.poll() is None:
            assert time.monotonic() < end, log.read_text()
            lsn += 1
            produce(kafka, event(lsn))
            if not signalled and log.read_text().count("wrote") >= 3:
                process.send_signal(signal.SIGTERM)
                signalled, end = True, time.monotonic() + 30
        assert signalled, log.read_text()
        assert process.returncode == 0, log.read_text()
        assert "Traceback" not in log.read_text()
        written = offsets(lake)
        assert sorted(written) == list(range(len(written)))
        assert f"wrote {len(written)} events, rejected 0" in log.read_text()
    finally:
        kill(process)


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_expired_offsets_are_an_error(
    has_checkpoint: bool,
    topic: str,
    kafka: Kafka,
    lake: Lake,
    ingest: Callable[..., Ingested],
) -> None:
    produce(kafka, event(10), event(20))
    assert ingest().counts == (2, 2, 0, 0)
    produce(kafka, event(30), event(40), event(50))
    kafka.delete_records(TOPIC, before=4)
    if not has_checkpoint:
        shutil.rmtree(lake.root / "checkpoints")
    for _ in range(2):
        done = ingest()
        assert done.code == 1
        assert f"{TOPIC}, partition 0: resuming at offset 2" in done.err
        assert "--from-earliest" in done.err
        assert "Traceback" not in done.err
    assert ingest("--from-earliest").counts == (1, 1, 0, 0)
    assert sorted(offsets(lake)) == [0, 1, 4]
    produce(kafka, event(60))
    assert ingest().counts == (1, 1, 0, 0)


def test_missing_topics_are_reported(
    topic: str, kafka: Kafka, ingest: Callable[..., Ingested]
) -> None:
    done = ingest(topic="demo.datalake.customers")
    assert done.code == 1
    assert "lacks topics: " in done.err
    done = ingest(topic="nobody.knows")
    assert (done.code, done.out) == (1, "")
    assert "does not list the topic 'nobody.knows'" in done.err


def test_status_has_the_lag_of_topics_that_kafka_has(
    topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    """Files may bring records of others."""
    produce(kafka, event(10))
    ingest()
    produce(kafka, event(20), event(30))
    place = {"topic": "demo.datalake.customers", "partition": 0, "offset": 5}
    value = json.loads(event(1).replace("cdc_events", "customers"))
    lake.land([json.dumps({"key": KEY, "value": value, "metadata": place})])
    assert lake.ingest().code == 0
    done = lake.status("--json", "--bootstrap-servers", kafka.bootstrap_servers)
    assert (done.code, done.err) == (0, "")
    status = json.loads(done.out)
    assert status["lag_by_topic"] == {"demo.datalake.customers": None, TOPIC: 2}
    assert status["lag_records"] == 2


def test_lag_of_a_recreated_topic_is_what_bronze_lacks_of_it(
    topic: str, kafka: Kafka, lake: Lake, ingest: Callable[..., Ingested]
) -> None:
    """Whatever offsets it had before; a tombstone at its end does not wait."""
    produce(kafka, *[event(lsn) for lsn in (10, 20, 30, 40)])
    assert ingest().counts == (4, 4, 0, 0)
    assert lag(lake, kafka) == 0
    kafka.delete_topic(TOPIC)
    kafka.create_topic(TOPIC)
    produce(kafka, event(50), event(60))
    assert lag(lake, kafka) == 2
    assert ingest().counts == (2, 2, 0, 0)
    assert lag(lake, kafka) == 0
    produce(kafka, event(70), None)
    assert lag(lake, kafka) == 2
    assert ingest().counts == (2, 1, 0, 1)
    assert lag(lake, kafka) == 0


def test_unreachable_broker_is_reported(lake: Lake) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens, and nobody else gets the port
        port = closed.getsockname()[1]
        servers = ("--bootstrap-servers", f"127.0.0.1:{port}")
        done = lake.ingest_kafka(*servers, "--topic", TOPIC)
    assert done.code == 75
    assert f"Kafka at 127.0.0.1:{port} does not answer within" in done.err


def test_options_are_passed_through(
    topic: str, kafka: Kafka, tmp_path: Path, ingest: Callable[..., Ingested]
) -> None:
    """As for TLS, SASL and IAM; a value is never printed."""
    options = tmp_path / "client.properties"
    produce(kafka, event(10))
    # The syntax of Kafka's own tools: colons, spaces, continued lines.
    options.write_text(
        "# comment\nsecurity.protocol: PLAINTEXT\nmax.poll.records = 7\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule \\\n"
        '    required username="u" password="p";\n'
    )
    assert ingest("--options", str(options)).counts == (1, 1, 0, 0)
    options.write_text("security.protocol=NONSENSE\n")
    done = ingest("--options", str(options))
    assert done.code == 1
    assert "security.protocol" in done.err
    for line, message in (
        ("sasl.pasword=secret", "Kafka's consumer knows no property 'sasl.pasword'"),
        ("auto.offset.reset=latest", "the ingest itself sets 'auto.offset.reset'"),
        ("ssl.key.password=secret\\u12", "it holds a malformed"),
    ):
        options.write_text(f"security.protocol=SSL\n{line}\n")
        done = ingest("--options", str(options))
        assert (done.code, "secret" in done.err) == (1, False)
        assert message in done.err


def test_a_failed_build_never_stops_the_ingest(
    topic: str, kafka: Kafka, new_lake: NewLake
) -> None:
    """The failure is printed, and the build runs again with the next batch."""
    lake = new_lake()
    produce(kafka, event(10))
    variables = "{cdc_lakehouse_complete_snapshots: {cdc_events: 5}}"
    wrong = f"run -s stg_orders orders --vars '{variables}'"
    process = start_continuous(kafka, lake, subprocess.PIPE, "--then-build", wrong)
    printed = process.stdout
    assert printed is not None

    def wait_for_failure() -> None:
        said = []
        for line in printed:
            if "the build failed; it is tried again" in line:
                return
            said.append(line)
        pytest.fail("".join(said))

    try:
        wait_for_failure()
        produce(kafka, event(20))
        wait_for_failure()
        process.send_signal(signal.SIGTERM)
        assert "read 2 records, wrote 2 events" in printed.read()
        assert process.wait() == 1
        assert sorted(offsets(lake)) == [0, 1]
    finally:
        kill(process)
