"""What ingest reads, keeps, rejects and says. One Spark session, many lakes."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from ingest.bronze import next_batch
from ingest.build import Build
from ingest.config import TOPICS_FILE, lake_root, read_topics
from ingest.errors import UserError
from ingest.lock import only_one
from ingest.session import spark_settings
from tests.conftest import NewLake
from tests.support.lake import Ingested, Lake
from tests.support.project import PROJECT
from tests.support.records import TOPIC, Row, envelope, flattened, record

KEY = {"order_id": 1}
ROW = {"order_id": 1, "customer_id": "ALFKI", "employee": '{"a": "Käse \\"x\\""}'}
FLAT = flattened("u", ROW, 77, 1_767_225_600_123)
ENVELOPE = envelope("u", ROW, 77, 1_767_225_600_123)
SCHEMA = {"type": "struct", "fields": []}


@pytest.fixture(scope="module")
def session(new_lake: NewLake) -> Iterator[Lake]:
    """The process that ingests for every lake of this module."""
    lake = new_lake()
    yield lake
    lake.close()


class Bronze(Lake):
    """A lake that only ingest writes, with the module's session."""

    session: Lake

    def ingest(self, *arguments: str, lake: Path | None = None) -> Ingested:
        self.session.topics = self.topics
        paths = list(arguments) or [str(self.landing)]
        return self.session.ingest(*paths, lake=self.root)

    def events(self, table: str = "cdc_events") -> list[Row]:
        return self.rows(f"bronze.{table}")

    def rejected(self) -> list[Row]:
        return self.rows("bronze.rejected_events")


@pytest.fixture
def bronze(session: Lake, tmp_path: Path) -> Bronze:
    lake = Bronze(tmp_path / "lake")
    lake.session = session
    return lake


def line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def wrapped(value: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "payload": value}


# What is accepted


@pytest.mark.parametrize(
    "value",
    [FLAT, ENVELOPE, wrapped(FLAT), wrapped(ENVELOPE)],
    ids=["flattened", "envelope", "flattened_with_schema", "envelope_with_schema"],
)
@pytest.mark.parametrize("around", ["bare", "sink_nested", "sink_text"])
def test_record_shapes(value: dict[str, Any], around: str, bronze: Bronze) -> None:
    if around == "bare":
        bronze.land([line(value)])
    elif around == "sink_nested":
        bronze.land([record(KEY, value, 5)])
    else:
        bronze.land([record(line(KEY), line(value), 5)])
    ingested = bronze.ingest(str(bronze.landing), "--topic", TOPIC)
    assert (ingested.code, ingested.counts) == (0, (1, 1, 0, 0))
    [row] = bronze.events()
    assert row["topic"] == TOPIC
    assert json.loads(row["value"]) == value
    assert (row["op"], row["source_lsn"], row["source_epoch"]) == ("u", 77, 0)
    assert row["source_table"] == "cdc_events"
    assert row["source_ts"] == datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
    if around == "bare":
        assert row["key"] is None
        assert row["kafka_partition"] is None
        assert row["kafka_offset"] is None
        assert row["kafka_timestamp"] is None
        assert row["value"] == line(value)
    else:
        assert json.loads(row["key"]) == KEY
        assert (row["kafka_partition"], row["kafka_offset"]) == (0, 5)
        assert row["kafka_timestamp"] == datetime(2026, 1, 1, tzinfo=UTC)


def test_value_that_is_text_is_kept_verbatim(bronze: Bronze) -> None:
    text = '{ "__op" : "c","__lsn":1,  "x": 1.50, "big": 9223372036854775807 }'
    bronze.land([record("k", text, 1)])
    assert bronze.ingest().counts == (1, 1, 0, 0)
    assert bronze.events()[0]["value"] == text


def test_numbers_of_a_nested_value_keep_their_digits(bronze: Bronze) -> None:
    # Debezium writes a double in its shortest form; Spark writes it so again
    value = '{"__op":"c","__lsn":1,"a":-9223372036854775808,"b":1.5,"c":0.1,"d":1.0E22}'
    text = line(record(KEY, "VALUE", 1)).replace('"VALUE"', value)
    bronze.land([text])
    bronze.ingest()
    assert bronze.events()[0]["value"] == value


@pytest.mark.parametrize("op", ["c", "u", "d", "r"])
def test_every_operation(op: str, bronze: Bronze) -> None:
    bronze.land(
        [record(KEY, flattened(op, ROW, 9), 1), record(KEY, envelope(op, ROW, 9), 2)]
    )
    assert bronze.ingest().counts == (2, 2, 0, 0)
    assert [row["op"] for row in bronze.events()] == [op, op]


def test_snapshot_read_without_an_lsn(bronze: Bronze) -> None:
    bronze.land([record(KEY, flattened("r", ROW, None), 1)])
    assert bronze.ingest().counts == (1, 1, 0, 0)
    assert bronze.events()[0]["source_lsn"] is None


def test_truncate_is_kept_as_an_event(bronze: Bronze) -> None:
    bronze.land([record(None, envelope("t", None, 9), 1)])
    assert bronze.ingest().counts == (1, 1, 0, 0)
    [row] = bronze.events()
    assert (row["op"], row["source_lsn"], row["key"]) == ("t", 9, None)


def test_several_topics_in_one_run(bronze: Bronze) -> None:
    topics = {
        "demo.datalake.cdc_events": "cdc_events",
        "demo.datalake.customers": "customers",
        "demo.datalake.products": "products",
    }
    bronze.land(record(KEY, flattened("c", ROW, 9), 1, topic) for topic in topics)
    assert bronze.ingest().counts == (3, 3, 0, 0)
    for topic, table in topics.items():
        assert [row["topic"] for row in bronze.events(table)] == [topic]


def test_every_bronze_table_is_there_after_the_first_ingest(bronze: Bronze) -> None:
    bronze.land([])
    assert bronze.ingest().counts == (0, 0, 0, 0)
    assert bronze.tables.names() == [
        "bronze.cdc_events",
        "bronze.customers",
        "bronze.products",
        "bronze.rejected_events",
    ]
    for table in bronze.tables.names():
        assert bronze.tables.properties(table)["hoodie.table.version"] == "6"
        assert bronze.rows(table) == []


def test_new_source_table_is_one_line(bronze: Bronze, tmp_path: Path) -> None:
    bronze.topics = tmp_path / "topics.toml"
    bronze.topics.write_text('[topics]\n"a.b.c" = "shippers"\n[epochs]\n"a.b.c" = 3\n')
    bronze.land([record(KEY, flattened("c", ROW, 9), 1, "a.b.c")])
    assert bronze.ingest().counts == (1, 1, 0, 0)
    assert [row["source_epoch"] for row in bronze.events("shippers")] == [3]


# Where it is read from


def test_plain_and_gzip_files_folders_and_globs(bronze: Bronze, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "below" / "further").mkdir(parents=True)
    (source / "x").mkdir()
    texts = [line(record(KEY, flattened("c", ROW, n), n)) + "\n" for n in range(5)]
    (source / "below" / "a.json").write_text(texts[0] + "\n   \n")
    with gzip.open(source / "below" / "further" / "b.json.gz", "wt") as file:
        file.write(texts[1])
    (source / "x" / "c1.json").write_text(texts[2])
    (source / "x" / "d1.json").write_text(texts[3])
    (source / "single.json").write_text("\ufeff" + texts[4])
    ingested = bronze.ingest(
        str(source / "below"),
        str(source / "x" / "c*.json"),
        str(source / "single.json"),
    )
    assert (ingested.code, ingested.counts) == (0, (4, 4, 0, 0))
    assert sorted(row["source_lsn"] for row in bronze.events()) == [0, 1, 2, 4]


def test_missing_path_is_named(bronze: Bronze, tmp_path: Path) -> None:
    ingested = bronze.ingest(str(tmp_path / "nowhere"))
    assert ingested.code == 1
    assert f"nothing is at {tmp_path}/nowhere" in ingested.err


def test_corrupt_gzip_is_named(bronze: Bronze) -> None:
    good = gzip.compress(line(record(KEY, FLAT, 1)).encode() * 200)
    (bronze.landing / "broken.json.gz").write_bytes(good[: len(good) // 2])
    ingested = bronze.ingest()
    assert ingested.code == 1
    assert "broken.json.gz" in ingested.err
    assert "Traceback" not in ingested.err
    assert len(ingested.err.strip().splitlines()) == 1
    (bronze.landing / "broken.json.gz").unlink()
    bronze.land([record(KEY, FLAT, 1)])
    assert bronze.ingest().counts == (1, 1, 0, 0)


def test_file_that_is_no_gzip_is_named(bronze: Bronze) -> None:
    (bronze.landing / "plain.json.gz").write_text(line(record(KEY, FLAT, 1)))
    ingested = bronze.ingest()
    assert ingested.code == 1
    assert "plain.json.gz" in ingested.err


# Written once


def test_same_files_again_add_nothing(bronze: Bronze) -> None:
    bronze.land([record(KEY, FLAT, 1), record(KEY, ENVELOPE, 2)])
    assert bronze.ingest().counts == (2, 2, 0, 0)
    before = bronze.tables.instants()
    assert bronze.ingest().counts == (0, 0, 0, 0)
    assert bronze.tables.instants() == before


@pytest.mark.parametrize("offset", [1, None], ids=["placed", "without_a_position"])
def test_copy_of_a_file_adds_nothing(offset: int | None, bronze: Bronze) -> None:
    bronze.land([record(KEY, FLAT, offset)])
    bronze.ingest()
    before = bronze.events()
    bronze.land([record(KEY, FLAT, offset)], "copy.json")
    assert bronze.ingest().counts == (1, 0, 0, 0)
    assert bronze.events() == before


def test_record_twice_in_a_file_is_written_once(bronze: Bronze) -> None:
    bronze.land([record(KEY, FLAT, 1), record(KEY, FLAT, 1)])
    assert bronze.ingest().counts == (2, 1, 0, 0)
    assert len(bronze.events()) == 1


def test_event_at_another_offset_is_another_record(bronze: Bronze) -> None:
    bronze.land([record(KEY, FLAT, 1), record(KEY, FLAT, 2)])
    assert bronze.ingest().counts == (2, 2, 0, 0)
    bronze.land([record(KEY, FLAT, 0)])
    assert bronze.ingest().counts == (1, 1, 0, 0)
    assert sorted(row["kafka_offset"] for row in bronze.events()) == [0, 1, 2]


def test_topic_made_anew_starts_its_offsets_again(bronze: Bronze) -> None:
    bronze.land([record(KEY, flattened("c", ROW, 5), 1)])
    bronze.ingest()
    bronze.land([record(KEY, flattened("u", ROW, 6), 1)])
    assert bronze.ingest().counts == (1, 1, 0, 0)
    assert sorted(row["source_lsn"] for row in bronze.events()) == [5, 6]


def test_lost_checkpoint_adds_nothing_and_the_batch_rises(bronze: Bronze) -> None:
    bronze.land([record(KEY, FLAT, 1), "not JSON"])
    assert bronze.ingest().counts == (2, 1, 1, 0)
    [first] = bronze.events()
    shutil.rmtree(bronze.root / "checkpoints")
    bronze.land([record(KEY, flattened("d", ROW, 78), 2)])
    assert bronze.ingest().counts == (3, 1, 1, 0)
    rows = sorted(bronze.events(), key=lambda row: row["kafka_offset"])
    assert [row["kafka_offset"] for row in rows] == [1, 2]
    assert rows[0] == first
    assert rows[1]["ingest_batch"] > first["ingest_batch"]
    assert len(bronze.rejected()) == 1


def test_batch_says_when_and_the_partition_follows_it(bronze: Bronze) -> None:
    bronze.land([record(KEY, FLAT, 1)])
    before = datetime.now(UTC)
    bronze.ingest()
    [row] = bronze.events()
    said = datetime.strptime(f"{row['ingest_batch']}000", "%Y%m%d%H%M%S%f")
    assert before - timedelta(seconds=1) < said.replace(tzinfo=UTC) < datetime.now(UTC)
    assert row["ingest_date"] == said.strftime("%Y-%m-%d")
    assert before <= row["ingested_at"] <= datetime.now(UTC)


def test_second_ingest_refuses_and_names_the_process(bronze: Bronze) -> None:
    bronze.land([record(KEY, FLAT, 1)])
    with only_one(str(bronze.root), "ingest"):
        ingested = bronze.ingest()
    assert ingested.code == 1
    assert f"another ingest (process {os.getpid()})" in ingested.err
    assert bronze.ingest().counts == (1, 1, 0, 0)


def test_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    (tmp_path / "ingest.lock").write_text("99999999")
    with only_one(str(tmp_path), "ingest"):
        assert (tmp_path / "ingest.lock").read_text() == str(os.getpid())
        with (
            (tmp_path / "ingest.lock").open("a") as other,
            pytest.raises(BlockingIOError),
        ):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


# What is no change event


REJECTED = {
    "this is no JSON": "not JSON",
    "[1, 2]": "not an object: a change event is a JSON object",
    '"text"': "not an object: a change event is a JSON object",
    "42": "not an object: a change event is a JSON object",
    line(FLAT)[:60]: "truncated: the JSON text ends before the record does",
    line(FLAT)[:-1]: "truncated: the JSON text ends before the record does",
    line(FLAT) + line(FLAT): "not JSON: something follows the object",
    '{"order_id": 1}': "no operation: neither __op nor op says what changed",
    line(flattened("x", ROW, 1)): "unknown operation 'x'",
    line(flattened("u", ROW, None)): (
        "operation 'u' without an LSN: only a snapshot read may lack it"
    ),
    line(envelope("d", ROW, None)): (
        "operation 'd' without an LSN: only a snapshot read may lack it"
    ),
}


def test_reasons_of_rejection(bronze: Bronze) -> None:
    file = bronze.land([*REJECTED, line(FLAT)])
    ingested = bronze.ingest(
        str(bronze.landing), "--topic", TOPIC, "--max-rejected-share", "1"
    )
    assert ingested.code == 0
    assert ingested.counts == (len(REJECTED) + 1, 1, len(REJECTED), 0)
    rows = bronze.rejected()
    assert {row["value"]: row["reason"] for row in rows} == REJECTED
    for row in rows:
        assert row["topic"] == TOPIC
        assert row["source_file"] == f"file://{file}"
    assert f"rejected 1: {REJECTED['this is no JSON']}" in ingested.err
    assert len(bronze.events()) == 1


def test_rejected_records_of_a_sink_keep_their_place(bronze: Bronze) -> None:
    records = [
        record(KEY, {"order_id": 1}, 3, partition=2),
        record(KEY, "no JSON at all", 4, partition=2),
        record(KEY, [1], 5, partition=2),
    ]
    bronze.land(records)
    bronze.ingest()
    rows = sorted(bronze.rejected(), key=lambda row: row["kafka_offset"])
    assert [(row["kafka_partition"], row["kafka_offset"]) for row in rows] == [
        (2, 3),
        (2, 4),
        (2, 5),
    ]
    assert [row["reason"].partition(":")[0] for row in rows] == [
        "no operation",
        "not JSON",
        "not an object",
    ]
    for row, sent in zip(rows, records, strict=True):
        assert row["value"] == line(sent)


def test_topic_that_is_not_configured(bronze: Bronze) -> None:
    bronze.land([record(KEY, FLAT, 1, "a.b.c")])
    assert bronze.ingest().counts == (1, 0, 1, 0)
    [row] = bronze.rejected()
    assert row["reason"] == "no table: ingest/topics.toml does not list the topic 'a.b.c'"


def test_record_without_a_topic(bronze: Bronze) -> None:
    bronze.land([line(FLAT)])
    assert bronze.ingest().counts == (1, 0, 1, 0)
    [row] = bronze.rejected()
    assert row["reason"] == ("no topic: the record names none, and --topic was not given")


def test_same_bad_record_in_two_files_is_kept_twice(bronze: Bronze) -> None:
    """Without a position, a rejected record is known by its file."""
    bronze.land(["not JSON"])
    bronze.ingest()
    bronze.land(["not JSON"])
    bronze.ingest()
    assert len({row["source_file"] for row in bronze.rejected()}) == 2


SKIPPED = {
    "tombstone": record(KEY, None, 1),
    "heartbeat": record(
        {"serverName": "demo"}, {"ts_ms": 1}, 2, "__debezium-heartbeat.demo"
    ),
    "heartbeat_with_schema": record(
        wrapped({"serverName": "demo"}),
        wrapped({"ts_ms": 1}),
        3,
        "__debezium-heartbeat.d",
    ),
    "transaction_begin": record(
        {"id": "571:53195829"},
        {"status": "BEGIN", "id": "571:53195829", "event_count": None, "ts_ms": 1},
        4,
        "demo.transaction",
    ),
    "transaction_end": record(
        {"id": "571:53195829"},
        {"status": "END", "id": "571:53195829", "event_count": 2, "ts_ms": 1},
        5,
        "demo.transaction",
    ),
}


def test_tombstones_heartbeats_and_transaction_markers_are_skipped(
    bronze: Bronze,
) -> None:
    bronze.land([*SKIPPED.values(), record(KEY, FLAT, 9)])
    ingested = bronze.ingest()
    assert (ingested.code, ingested.counts) == (0, (6, 1, 0, 5))
    assert bronze.rejected() == []


def test_too_many_rejected_end_with_code_2(bronze: Bronze) -> None:
    bronze.land(["not JSON", "nor this", record(KEY, FLAT, 1)])
    ingested = bronze.ingest()
    assert ingested.code == 2
    assert "67% of a batch was rejected, more than the 50% allowed" in ingested.err
    assert len(bronze.events()) == 1
    assert len(bronze.rejected()) == 2


def test_share_of_rejected_can_be_set(bronze: Bronze) -> None:
    bronze.land(["not JSON", record(KEY, FLAT, 1), record(KEY, FLAT, 2)])
    ingested = bronze.ingest(str(bronze.landing), "--max-rejected-share", "0.1")
    assert ingested.code == 2
    assert len(bronze.events()) == 2


# Without Spark


def test_next_batch_is_now_in_utc() -> None:
    now = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
    assert next_batch(0, now) == 20260304050607089
    assert next_batch(0, now.astimezone(timezone(timedelta(hours=5)))) == (
        20260304050607089
    )


def test_next_batch_rises_when_the_clock_does_not() -> None:
    now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert next_batch(20260304050607000, now) == 20260304050607001
    assert next_batch(20270101000000000, now) == 20270101000000001


def test_topics_of_the_project() -> None:
    topics = read_topics()
    assert topics.tables[TOPIC] == "cdc_events"
    assert TOPICS_FILE.is_file()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[topics", "cannot read"),
        ("", r"\[topics\] names no topic"),
        ('[topics]\n"a" = "b"\n[tables]\n', r"unknown section \[tables\]"),
        ('[topics]\n"a" = "B-c"\n', "names the table 'B-c'"),
        ('[topics]\n"a" = 5\n', "names the table 5"),
        ('[topics]\n"a" = "rejected_events"\n', "is the quarantine"),
        ('[topics]\n"a" = "b"\n[epochs]\n"c" = 1\n', "which .topics. lacks"),
        ('[topics]\n"a" = "b"\n[epochs]\n"a" = -1\n', "the epoch of 'a' is -1"),
        ('[topics]\n"a" = "b"\n[epochs]\n"a" = true\n', "the epoch of 'a' is True"),
        ('[topics]\n"a" = "b"\n[epochs]\n"a" = "1"\n', "the epoch of 'a' is '1'"),
    ],
)
def test_topics_file_that_is_wrong(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=said):
        read_topics(file)


def test_topics_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        read_topics(tmp_path / "topics.toml")


@pytest.mark.parametrize(
    ("value", "root"), [(None, ".lake"), ("", ".lake"), ("/data/x/", "/data/x")]
)
def test_lake_is_where_the_environment_says(
    value: str | None, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set to nothing is not set, as in make and the profile."""
    monkeypatch.delenv("LAKE_METASTORE", raising=False)
    monkeypatch.delenv("LAKE_ROOT", raising=False)
    if value is not None:
        monkeypatch.setenv("LAKE_ROOT", value)
    assert lake_root() == root
    warehouse = spark_settings(PROJECT / "profiles/profiles.yml")["spark.sql.warehouse.dir"]
    assert warehouse.replace("//", "/") == f"{root}/warehouse"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("/", "name a folder"),
        ("/data/my lake", "Hudi cannot find again: /data/my lake"),
        ("50%", "Hudi cannot find again"),
        ("it's", "Hudi cannot find again"),
        ("s3a://bucket/a b", "Hudi cannot find again"),
    ],
)
def test_lake_that_hudi_would_not_find_is_refused(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_ROOT", value)
    with pytest.raises(UserError, match=said):
        lake_root()


@pytest.mark.parametrize(
    ("command", "selects"),
    [
        ("build", False),
        ("run --threads 2", False),
        ("run --vars '{a: s}'", False),
        ("build -s orders+", True),
        ("build -sorders", True),
        ("build --select=orders+", True),
        ("build --exclude orders", True),
    ],
)
def test_selection_of_the_user_is_not_added_to(command: str, selects: bool) -> None:
    assert Build(command, retries=False).selects is selects


def test_open_quote_of_a_command_is_named() -> None:
    with pytest.raises(UserError, match="No closing quotation"):
        Build("run --vars '{a: 1}", retries=False)
