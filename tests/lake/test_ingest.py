"""What an ingest reads, writes once, counts and prints.

The tests share one lake. Each has its own folder of files, and its own partition, so that
it knows its rows.
"""

import bz2
import gzip
import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.spark.lock import exclusive_lock
from ingest.landing import LEDGER_FILES
from tests.conftest import NewLake
from tests.support.avro import SYNC, container
from tests.support.lake import TOPICS_FILE, Ingested, Lake
from tests.support.records import START_MS, TOPIC, Record, Row, envelope, flattened, record

KEY = {"order_id": 1}
ROW = {"order_id": 1, "customer_id": "ALFKI", "employee": '{"a": "Käse \\"x\\""}'}
FLAT = flattened("u", ROW, 77, 1_767_225_600_123)


def line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def flat(partition: int, *offsets: int | None, lsn: int = 77) -> list[Record]:
    """The same change at some offsets of a partition."""
    value = FLAT | {"__lsn": lsn}
    return [record(KEY, value, offset, partition=partition) for offset in offsets]


def write(folder: Path, name: str, records: Iterable[Record | str]) -> Path:
    """A file of records in a folder that is no lake's."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    lines = [each if isinstance(each, str) else line(each) for each in records]
    file.write_text("".join(text + "\n" for text in lines), encoding="utf-8")
    return file


def bring(
    lake: Lake, folder: Path, *records: Record | str, options: Sequence[str] = ()
) -> Ingested:
    """Write the file of a folder that is no lake's, and ingest the folder."""
    write(folder, "1.json", records)
    return lake.ingest(str(folder), *options)


def events(lake: Lake, partition: int, table: str = "cdc_events") -> list[Row]:
    """The events of one partition, by their offsets."""
    rows = [
        row for row in lake.rows(f"bronze.{table}") if row["kafka_partition"] == partition
    ]
    return sorted(rows, key=lambda row: (row["kafka_offset"] is None, row["kafka_offset"]))


def rejected(lake: Lake, folder: Path) -> list[Row]:
    """The rejected records of a folder's files."""
    return [
        row
        for row in lake.rows("bronze.rejected_events")
        if str(row["source_file"]).startswith(f"file://{folder}/")
    ]


# The first ingest


@pytest.fixture(scope="module")
def bronze(lake: Lake) -> Lake:
    """The lake with its bronze tables, which the first ingest makes of an empty file."""
    lake.land([])
    ingested = lake.ingest()
    assert (ingested.code, ingested.counts) == (0, (0, 0, 0, 0))
    names = ["cdc_events", "customers", "products", "rejected_events"]
    assert lake.tables.names() == [f"bronze.{name}" for name in names]
    for table in lake.tables.names():
        assert lake.rows(table) == []
        assert lake.tables.properties(table)["hoodie.table.version"] == "6"
    return lake


# Where records are read from


def test_plain_and_gzip_files_folders_and_globs(bronze: Lake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "below" / "further").mkdir(parents=True)
    (source / "x").mkdir()
    texts = [
        line(record(KEY, flattened("c", ROW, n), n, partition=1)) + "\n" for n in range(5)
    ]
    (source / "below" / "a.json").write_text(texts[0] + "\n   \n")
    with gzip.open(source / "below" / "further" / "b.json.gz", "wt") as file:
        file.write(texts[1])
    (source / "x" / "c1.json").write_text(texts[2])
    (source / "x" / "d1.json").write_text(texts[3])
    (source / "single.json").write_text("\ufeff" + texts[4])
    ingested = bronze.ingest(
        str(source / "below"), str(source / "x" / "c*.json"), str(source / "single.json")
    )
    assert (ingested.code, ingested.counts) == (0, (4, 4, 0, 0))
    assert [row["source_lsn"] for row in events(bronze, 1)] == [0, 1, 2, 4]
    missing = bronze.ingest(str(tmp_path / "nowhere"))
    assert (missing.code, f"nothing is at {tmp_path}/nowhere" in missing.err) == (1, True)


GZIP = gzip.compress(line(record(KEY, FLAT, 1, partition=2)).encode() * 200)
LONG = line({**FLAT, "text": "x" * 50_000_000}) + "\n"
AVRO_TYPES = json.loads(Path(__file__).with_name("avro.json").read_text())
OLD, OLD_ROW = AVRO_TYPES["old"], AVRO_TYPES["row of old"]
LONG_ROW = OLD_ROW | {"customer_id": "x" * (9 << 20)}
AVRO = container(OLD, [OLD_ROW] * 20)
CUT = "it is cut off: its end is not the end of a block"
RECURSIVE = "its schema cannot be used: Found recursive reference"
WITHOUT_FIELDS = "its schema cannot be used: its records have no fields"
BROKEN = {
    "cut [1].json.gz": (GZIP[: len(GZIP) // 2], "Unexpected end of input stream"),
    "cut at its end.json.gz": (GZIP[:-4], "Unexpected end of input stream"),
    "no such.json.gz": (line(FLAT).encode(), "not a gzip file"),
    "followed.json.gz": (GZIP + b"something else", "not a gzip file"),
    "cut.json.bz2": (bz2.compress(GZIP)[:-40], "unexpected end of stream"),
    "no such.json.deflate": (b"abcd" * 9, "incorrect header check"),
    # Their first bytes say that a block of 1.6 GB follows.
    "no such.json.lz4": (b"abcd" * 9, "OutOfMemoryError"),
    "no such.json.snappy": (b"abcd" * 9, "OutOfMemoryError"),
    "not here.json.zst": (b"(\xb5/\xfd", "native zStandard library not available"),
    "long.json": (f"{{}}\n{LONG}{{}}\n".encode(), "a line is longer than 8 MiB"),
    "long.json.gz": (gzip.compress(LONG.encode()), "a line is longer than 8 MiB"),
    "long.json.bz2": (bz2.compress(LONG.encode()), "a line is longer than 8 MiB"),
    "cut.avro": (AVRO[:-60], CUT),
    "cut at the last byte.avro": (AVRO[:-1], CUT),
    "cut header.avro": (AVRO[:20], "its header is cut off or damaged"),
    "text.avro": (line(OLD_ROW).encode(), "it is no Avro file"),
    # The mark behind its block is not that of its header.
    "damaged.avro": (AVRO[: -len(SYNC)] + b"x" * len(SYNC) + SYNC, "Invalid sync!"),
    "node.avro": (container(AVRO_TYPES["node"], [{"next": None}]), RECURSIVE),
    "words.avro": (container("string", ["a"]), WITHOUT_FIELDS),
    "long.avro": (container(OLD, [LONG_ROW]), "9437184 exceeds maximum allowed"),
    "codec.avro": (AVRO.replace(b"\x08null", b"\x08zzzz"), "Unrecognized codec: zzzz"),
}


def test_unreadable_files_do_not_hold_up_the_good_ones(
    bronze: Lake, tmp_path: Path
) -> None:
    """They are named, the others are committed, and a mended one is read later."""
    for name, (content, _) in BROKEN.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "link.json").symlink_to("nowhere")
    (tmp_path / "again").symlink_to(tmp_path)
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.json"))).write_text("{}")
    (tmp_path / "empty.json.gz").touch()
    write(tmp_path / "folder.json", "good.json", flat(2, 2))
    (tmp_path / "good.avro").write_bytes(container(OLD, [OLD_ROW]))
    parquet = tmp_path / "cut.parquet"
    bronze.write_parquet(tmp_path / "good.avro", parquet, "SNAPPY")
    whole = parquet.read_bytes()
    parquet.write_bytes(whole[:-1])
    damaged = whole.replace(b"ALFKI", b"\xff" * 5, 1)
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    ingested = bronze.ingest(str(tmp_path), "--topic", TOPIC)
    assert (ingested.code, ingested.counts) == (3, (2, 2, 0, 0)), ingested.err
    said = ingested.err.strip().splitlines()
    expected = {
        **{name: why for name, (_, why) in BROKEN.items()},
        "pipe.json": "it is a pipe or a device, and no file",
        "link.json": "it is a link to nothing",
        "caf\\udce9.json": "its name is not UTF-8: rename it",
        "cut.parquet": "cut.parquet is not a Parquet file",
        "damaged.parquet": "could not verify",
    }
    for name, why in expected.items():
        [one] = [each for each in said if f"cannot read file:{tmp_path}/{name}: " in each]
        assert why in one
    assert len(said) == len(expected)
    assert [row["kafka_offset"] for row in events(bronze, 2)] == [2]

    kept = tmp_path / "cut [1].json.gz"
    for file in tmp_path.iterdir():
        if file not in (kept, tmp_path / "folder.json"):
            file.unlink()
    mended = line(record(KEY, FLAT, 5, partition=2)).encode()
    (tmp_path / "no such.json.gz").write_bytes(gzip.compress(mended))
    (tmp_path / "cut.avro").write_bytes(container(OLD, [OLD_ROW | {"__lsn": 2}]))
    again = bronze.ingest(str(tmp_path), "--topic", TOPIC)
    assert (again.code, again.counts) == (3, (2, 2, 0, 0)), again.err
    [said_again] = again.err.strip().splitlines()
    assert kept.name in said_again
    assert [row["kafka_offset"] for row in events(bronze, 2)] == [2, 5]


NAMES = (
    *("a b", "x[1]", "y{2}", "z*", "q?", "100%", "%20", "ä", "back\\slash", "a:b", "#"),
    *("a,b", "a;b", "a+b", "a\nb", "\x1b[31m", " a", "2026-01-01T00:00:00"),
)


def test_files_of_any_name_are_read_in_batches_of_a_set_size(
    bronze: Lake, tmp_path: Path
) -> None:
    """No name is a pattern. A file that grew is read again, as Confluent's sink writes."""
    files = [
        write(tmp_path, f"{name}.json", flat(17, offset))
        for offset, name in enumerate(NAMES)
    ]
    read = len(NAMES)
    too_few = sum(file.stat().st_size for file in files) - 1
    before = len(bronze.tables.instants()["bronze.cdc_events"])
    ingested = bronze.ingest(str(tmp_path), "--max-bytes", str(too_few))
    assert ingested.counts == (read, read, 0, 0)
    assert len(bronze.tables.instants()["bronze.cdc_events"]) - before == 2
    assert ingested.err.count(" MiB are read") == 2
    assert f" MiB are read: {read - 1} records, " in ingested.err
    write(tmp_path, "a b.json", flat(17, 0, read))
    assert bronze.ingest(str(tmp_path)).counts == (2, 1, 0, 0)
    assert len(events(bronze, 17)) == read + 1


def test_files_that_are_gone_are_forgotten(bronze: Lake, tmp_path: Path) -> None:
    """By folders and by globs; what no path names stays in the ledger."""
    globs = ["", "/*.json", "/[ab].js*", "/{a,b,c/d}.json", "/?.json", "/../{5,x/y}/*"]
    for number in range(len(globs)):
        write(tmp_path / f"{number}", "a.json", flat(20, number))
    kept = [f"{tmp_path}/elsewhere/b.json", f"{tmp_path}/1/b.txt", f"{tmp_path}/4/bb.json"]
    gone = [f"{tmp_path}/{number}/b.json" for number in range(len(globs))]
    ledger = bronze.root / "checkpoints" / "landing"
    shutil.rmtree(ledger, ignore_errors=True)
    ledger.mkdir(parents=True)
    # So many that the next ingest makes them one.
    paths = [*kept, *gone, *kept * LEDGER_FILES][:LEDGER_FILES]
    for number, path in enumerate(paths):
        entry = {"path": f"file:{path}", "modified": 1, "length": 1}
        (ledger / f"{number:08d}.json").write_text(line(entry) + "\n")

    named = [f"{tmp_path}/{number}{glob}" for number, glob in enumerate(globs)]
    assert bronze.ingest(*named).counts == (6, 6, 0, 0)
    [file] = ledger.glob("*.json")
    known = [json.loads(text)["path"] for text in file.read_text().splitlines()]
    there = [f"{tmp_path}/{number}/a.json" for number in range(len(globs))]
    assert sorted(known) == sorted(f"file:{path}" for path in [*kept, *there])


# The quarantine once more


def test_rejected_records_are_tried_again(bronze: Lake, tmp_path: Path) -> None:
    """After a forgotten --topic: what is an event now leaves the quarantine."""
    bare = [flattened("c", ROW, lsn) for lsn in (8_001, 8_002)]
    ingested = bring(bronze, tmp_path, *bare, "no JSON at all")
    assert (ingested.code, ingested.counts) == (3, (3, 0, 3, 0))
    without = "no topic: the record names none, and --topic was not given"
    assert f"rejected 2: {without}" in ingested.err
    waiting = len(bronze.rows("bronze.rejected_events"))

    again = bronze.retry_rejected("--topic", TOPIC)
    assert again.counts[:2] == (waiting, 2)
    rows = bronze.rows("bronze.cdc_events")
    written = [row for row in rows if row["source_lsn"] in (8_001, 8_002)]
    assert sorted(row["value"] for row in written) == sorted(map(line, bare))
    left = rejected(bronze, tmp_path)
    assert [row["value"] for row in left] == ["no JSON at all"]
    assert len(bronze.rows("bronze.rejected_events")) == waiting - 2

    instants = bronze.tables.instants()
    assert bronze.retry_rejected("--topic", TOPIC).counts[:2] == (waiting - 2, 0)
    assert bronze.tables.instants() == instants
    status = json.loads(bronze.status("--json").out)
    assert status["rejected"] == waiting - 2
    assert bronze.tables.properties("bronze.rejected_events")["hoodie.table.version"] == "6"


# Topics with events of several tables

ROUTED = tomllib.loads(Path(__file__).with_name("routed.toml").read_text())


def test_topic_carries_one_table_unless_more_are_listed(
    new_lake: NewLake, tmp_path: Path
) -> None:
    """Rows of two tables with one key would become one row. A new topic is one line."""

    def routed(topic: str, schema: str, offset: int) -> Record:
        event = FLAT | {"__table": "named" if topic.endswith(".named") else "t"}
        event |= {"__schema": None if schema == "-" else schema}
        if topic == "demo.mysql":
            place = {"__file": "binlog.000001", "__pos": 1, "__row": 0}
            event |= {"__db": schema, "__schema": None, "__connector": "mysql", **place}
        return record(KEY, event, offset, topic=topic)

    topics = tmp_path / "topics.toml"
    lake = new_lake(topics)
    for file, text in enumerate((ROUTED["topics"], ROUTED["topics"] + ROUTED["new"])):
        topics.write_text(text)
        lake.land(
            routed(topic, schema, 10 * file + offset)
            for topic, (*schemas, _) in ROUTED["landed"].items()
            for offset, schema in enumerate(schemas[file])
        )
        assert lake.ingest().code in (0, 3)
    for topic, (_, _, taken) in ROUTED["landed"].items():
        table = "shippers" if topic == "new" else topic.rpartition(".")[2]
        rows = lake.rows(f"bronze.{table}")
        assert {row["source_table"] for row in rows} == {*taken}, topic
    assert {row["source_epoch"] for row in rows} == {3}
    # Hudi's bloom filter alone would be 431 kB.
    files = (lake.root / "warehouse/bronze.db/shippers").glob("*/*.parquet")
    assert max(file.stat().st_size for file in files) < 20_000
    rows = lake.rows("bronze.rejected_events")
    assert {(row["topic"], row["reason"].split(";")[0]) for row in rows} == {
        (topic, f"of another table: '{table}'")
        for topic, tables in ROUTED["refused"].items()
        for table in tables
    }

    topics.write_text(text.replace('"listed" = ["t"]', '"listed" = ["a.t", "b.t"]'))
    assert lake.retry_rejected("--topics", str(topics)).counts[1] == 1
    names = {row["source_table"] for row in lake.rows("bronze.listed")}
    assert names == {"a.t", "b.t"}


# Deletes that are a tombstone only


def test_tombstone_without_a_delete_is_rejected(bronze: Lake, tmp_path: Path) -> None:
    """Its row lives on. One behind its delete is skipped, also in the next batch."""
    partition, other = 23, 24

    def event(op: str, key: int, offset: int, form: Any = flattened) -> Record:
        value = form(op, {"order_id": key}, 100 + offset)
        return record({"order_id": key}, value, offset, partition=partition)

    def tombstone(key: int, offset: int, partition: int = partition) -> Record:
        return record({"order_id": key}, None, offset, partition=partition)

    def lone() -> set[int]:
        """The keys of the tombstones without a delete."""
        found = (events(bronze, each, "rejected_events") for each in (partition, other))
        rows = [*chain.from_iterable(found)]
        assert {row["reason"].partition(":")[0] for row in rows} == {reason}
        return {json.loads(row["key"])["order_id"] for row in rows}

    reason = "a tombstone without a delete"
    ingested = bring(
        bronze,
        tmp_path / "first",
        *(event("c", key, key) for key in (101, 102, 103, 104)),
        *(event("d", 101, 110), tombstone(101, 111)),
        *(event("d", 102, 112, envelope), tombstone(103, 113)),
        tombstone(109, 114),
    )
    assert ingested.counts == (9, 6, 1, 2)
    assert f"warning: rejected 1: {reason}: the row lives on" in ingested.err
    assert lone() == {103}
    ingested = bring(
        bronze,
        tmp_path / "second",
        *(tombstone(102, 120), tombstone(104, 0, other)),
        # Inserted again, and then what was delivered before once more.
        *(event("c", 101, 121), event("d", 101, 122), tombstone(101, 123)),
        *(event("c", 102, 124), tombstone(102, 125), event("c", 103, 126)),
    )
    assert ingested.counts == (8, 4, 2, 2)
    assert lone() == {102, 103, 104}


# Written once

KEPT, TWICE, COPIED, RECREATED = range(10, 14)
UNPLACED = record({"order_id": "a copy without a position"}, FLAT, None)


def test_record_is_written_once(bronze: Lake, tmp_path: Path) -> None:
    """However often and in whichever file it comes; a bad one is known by its file.

    An event at another offset is another record, and so is one of a topic that was
    recreated, whose offsets start again. A checkpoint that is lost changes nothing of it.
    """

    def found() -> list[list[tuple[int, int]]]:
        """Of each partition the offsets and LSNs."""
        return [
            sorted((row["kafka_offset"], row["source_lsn"]) for row in events(bronze, each))
            for each in (KEPT, TWICE, COPIED, RECREATED)
        ]

    first = [*flat(KEPT, 1), record(KEY, envelope("u", ROW, 77), 2, partition=KEPT)]
    first += [*flat(TWICE, 1, 1, 2), *flat(RECREATED, 1, lsn=5)]
    copied = [*flat(COPIED, 1), UNPLACED]
    before = datetime.now(UTC)
    write(tmp_path, "1.json", [*first, "not JSON"])
    write(tmp_path, "1-copied.json", copied)
    with exclusive_lock(str(bronze.root), "ingest"):
        refused = bronze.ingest(str(tmp_path))
    assert refused.code == 75
    assert f"another ingest (process {os.getpid()})" in refused.err
    # Two files of nine records, of which one is another's copy and one is bad.
    assert bronze.ingest(str(tmp_path)).counts == (9, 7, 1, 0)
    after, instants = datetime.now(UTC), bronze.tables.instants()
    assert found() == [[(1, 77), (2, 77)], [(1, 77), (2, 77)], [(1, 77)], [(1, 5)]]
    row = events(bronze, KEPT)[0]
    assert bronze.ingest(str(tmp_path)).counts == (0, 0, 0, 0)
    assert bronze.tables.instants() == instants
    status = json.loads(bronze.status("--json").out)
    assert status["offsets"][f"{TOPIC}/{KEPT}"] == 2
    assert status["newest_batch"] == row["ingest_batch"]
    assert 0 < status["seconds_since"] < 600
    assert status["rejected"] == len(bronze.rows("bronze.rejected_events"))
    assert status["lag_records"] is None

    write(tmp_path, "3-copied.json", copied)
    write(tmp_path, "3.json", [*flat(TWICE, 0), *flat(RECREATED, 1, lsn=6), "not JSON"])
    assert bronze.ingest(str(tmp_path)).counts == (5, 2, 1, 0)
    twice, recreated = [(0, 77), (1, 77), (2, 77)], [(1, 5), (1, 6)]
    assert found() == [[(1, 77), (2, 77)], twice, [(1, 77)], recreated]
    shutil.rmtree(bronze.root / "checkpoints")
    write(tmp_path, "4.json", flat(KEPT, 3, lsn=78))
    assert bronze.ingest(str(tmp_path)).counts == (15, 1, 2, 0)
    assert found() == [[(1, 77), (2, 77), (3, 78)], twice, [(1, 77)], recreated]
    kept, *_, newest = events(bronze, KEPT)
    assert kept == row
    assert newest["ingest_batch"] > row["ingest_batch"]
    keys = [row["key"] for row in bronze.rows("bronze.cdc_events")]
    assert keys.count(line(UNPLACED["key"]).replace(": ", ":")) == 1
    bad = rejected(bronze, tmp_path)
    assert [row["value"] for row in bad] == ["not JSON"] * 2
    assert len({row["source_file"] for row in bad}) == 2

    # A batch is in whole milliseconds, cut off; both it and the date say when it was read.
    batch = datetime.strptime(f"{row['ingest_batch']}000", "%Y%m%d%H%M%S%f")
    batch = batch.replace(tzinfo=UTC)
    assert before - timedelta(milliseconds=1) < batch < after
    assert row["ingest_date"] == batch.strftime("%Y-%m-%d")
    assert batch <= row["ingested_at"] <= after


# A topic that was recreated, in files

STEPS = tomllib.loads(Path(__file__).with_name("recreated.toml").read_text())


def change(op: str, lsn: int, offset: Any, day: Any) -> Record:
    """A change of an order, or another topic's, written to Kafka on one of the days."""
    if op == "other":
        value = flattened("c", {"customer_id": "ALFKI"}, lsn, table="customers")
        return record(KEY, value, offset, "demo.datalake.customers")
    value = flattened(op, ROW | {"customer_id": f"{op}{offset}"}, lsn)
    time = START_MS + (day or 0) * 86_400_000 + lsn
    kafka = record(KEY, value, None if offset == "" else offset, timestamp=time)
    if day == "":
        del kafka["metadata"]["timestamp"]
    return kafka


@pytest.mark.thorough
@pytest.mark.parametrize("name", STEPS)
def test_recreated_topic_in_files(name: str, new_lake: NewLake) -> None:
    """It waits until the topics file says when it was recreated; no other topic does."""
    lake = new_lake()
    for step in STEPS[name]:
        for changes in step.get("files", ()):
            lake.land(change(*each) for each in changes)
        topics = lake.root / "topics.toml"
        topics.write_text(f"{TOPICS_FILE.read_text()}{step.get('recreated', '')}\n")
        done = lake.ingest(str(lake.landing), "--topics", str(topics))
        asked = re.findall(
            r"was recreated.*? when: (.*?)(?:  or|$)", done.err, re.MULTILINE
        )
        rows = lake.rows("bronze.cdc_events")
        written = {f"{row['kafka_offset']}:{row['topic_generation']}" for row in rows}
        found = {
            "code": done.code,
            "counts": list(done.counts),
            "asked": "\n".join(asked),
            "written": " ".join(sorted(written)),
        }
        expected = {"asked": "", **step}
        assert found == {name: expected[name] for name in found}


# The exit code


def test_too_many_rejected_end_with_code_3(bronze: Lake, tmp_path: Path) -> None:
    """The share that is too much can be set; the log can be read by a program."""
    options = ["--log-format", "json", "--max-rejected-share", "0.1"]
    ingested = bring(bronze, tmp_path, "not JSON", *flat(6, 2, 3), options=options)
    assert (ingested.code, ingested.counts) == (3, (3, 2, 1, 0))
    assert (len(events(bronze, 6)), len(rejected(bronze, tmp_path))) == (2, 1)
    warning, error = [json.loads(text) for text in ingested.err.splitlines()]
    assert (warning["level"], warning["records"]) == ("warning", 1)
    said = "33% of a batch was rejected, more than the 10% allowed;"
    assert (error["level"], said in error["message"]) == ("error", True)
    assert datetime.fromisoformat(warning["time"]).tzinfo == UTC


def test_many_rejected_records_are_a_few_lines(bronze: Lake, tmp_path: Path) -> None:
    """And what a record or the name of a file holds does nothing to a terminal or a log."""
    hostile = "\x1b[2J\n12:00:00 ingest: error: \u202e"
    bad = [{"__op": f"{number}{hostile}", "__lsn": 1} for number in range(2_000)]
    bad += [record(KEY, FLAT, 1, f"no.such.topic{hostile}", partition=22)]
    write(tmp_path, "1.json", [*bad, "not JSON", '{"__op": "not JSON'])
    (tmp_path / f"no such{hostile}.json.gz").write_bytes(b"{}")
    ingested = bronze.ingest(str(tmp_path), "--topic", TOPIC)
    assert (ingested.code, ingested.counts) == (3, (2_003, 0, 2_003, 0))
    said = ingested.err.splitlines()
    assert len(said) == 6, said
    share = "100% of a batch was rejected, more than the 50% allowed"
    assert any(share in each for each in said)
    [operations] = [each for each in said if "rejected 2000: unknown operation '…'" in each]
    assert operations.count("12:00:00") == 10
    assert any(
        "does not list the topic 'no.such.topic\\x1b[2J\\n12:00" in each for each in said
    )
    assert any(
        "/no such\\x1b[2J\\n12:00:00 ingest: error: \\u202e.json.gz: " in e for e in said
    )
    status = bronze.status().out
    assert (
        r"  no.such.topic\x1b[2J\n12:00:00 ingest: error: \u202e/22 up to offset 1"
        in status
    )
    assert all(text.isprintable() for text in [*said, *status.splitlines()])
