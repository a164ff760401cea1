"""What the ingest's parser makes of a record.

All records are parsed in a few jobs, without a table (``tests.support.parser``). One ingest
writes the worst of them.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.log import quoted
from ingest.batches import VARIABLE
from ingest.topics import Topics
from tests.support.bad_records import (
    FLAT,
    Case,
    case,
    extremes,
    generated,
    line,
    numbers,
    problems,
    sink,
    truncations,
)
from tests.support.lake import TOPICS_FILE, Lake
from tests.support.parser import KafkaRecord, Text, classify, decode
from tests.support.records import START_MS, TOPIC, Row, envelope, flattened, record

KEY = {"order_id": 1}
ROW = {"order_id": 1, "customer_id": "ALFKI", "employee": '{"a": "Käse \\"x\\""}'}
EVENT = '{"__op":"c","__lsn":1}'
MILLISECOND = 1_767_225_600_123
# What the sink adds to a record, here in the record itself.
ELSEWHERE = {"topic": "demo.datalake.customers", "partition": 3, "offset": 9}
FORMS = {"flattened": flattened, "envelope": envelope}
TEXTS = tomllib.loads(Path(__file__).with_name("records.toml").read_text())


def wrapped(value: Any) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": []}, "payload": value}


NAMED: dict[str, Any] = {
    "read without an LSN": record(KEY, flattened("r", ROW, None), 1),
    "truncate": record(None, envelope("t", None, 9), 1),
    "unknown operation": flattened("x", ROW, 1),
    "flattened update without an LSN": flattened("u", ROW, None),
    "envelope of a delete without an LSN": envelope("d", ROW, None),
    "unlisted topic": record(KEY, FLAT, 1, "a.b.c"),
}


def named() -> Iterator[tuple[str, str]]:
    """An event in each shape, with what the sink adds, in the record itself or not."""
    for form, make in FORMS.items():
        value = make("u", ROW, 77, MILLISECOND)
        for name, each in {
            form: value,
            f"{form} with a schema": wrapped(value),
            f"{form} with metadata": {**value, "metadata": ELSEWHERE},
        }.items():
            yield f"bare {name}", line(each)
            yield f"nested {name}", line(record(KEY, each, 5))
            yield f"text {name}", line(record(line(KEY), line(each), 5))
        for op in "cudr":
            yield f"{form} {op}", line(record(KEY, make(op, ROW, 9), 1))
        yield f"{form} of another table", line(make("c", ROW, 1, table="heartbeat"))
    for name, each in NAMED.items():
        yield name, line(each)
    yield from TEXTS["skipped"].items()
    for number, text in enumerate((FLAT_TEXT[:60], FLAT_TEXT[:-1])):
        yield f"truncated {number}", text
    for between in ("", ", "):
        yield f"twice{between}", FLAT_TEXT + between + FLAT_TEXT
    for text in TEXTS["lines"]:
        yield text, text
    for value in TEXTS["values"]:
        yield f"value {value}", sink(value)
    for place in TEXTS["places"]:
        yield place, sink(EVENT, f'{{"topic":"{TOPIC}",{place}}}')
    for place in TEXTS["places of a time"]:
        for time in TEXTS["times"]:
            text = place.replace("TIME", str(time))
            yield text, text


FLAT_TEXT = line(FLAT)
# What is not of a record alone, or what the other columns are made of.
LEFT_OUT = {"event_id", "source_file", "record", "headers"}
# The same each time; tests/servers/test_history_seeds.py has fresh ones.
SEED = 20_261_121


def test_record(lake: Lake, snapshot: SnapshotAssertion) -> None:
    """Each is kept as it came, and what is read out of it is as reviewed."""
    records = dict(named())
    rows = classify(lake, list(records.values()))
    found = {}
    for (name, text), row in zip(records.items(), rows, strict=True):
        assert row is not None
        assert row["record"] == text
        said = {n: v for n, v in row.items() if v is not None and n not in LEFT_OUT}
        found[name] = line(dict(sorted(said.items())))
    assert found == snapshot


OF_A_TOPIC: dict[str, tuple[str, str, bool]] = TEXTS["of_a_topic"]


def test_topic_carries_events_of_its_own_tables(lake: Lake) -> None:
    listed = ["shard_1", "orders_*", "datalake.items", "other.lines"]
    tables = {topic: "cdc_events" for topic, _, _ in OF_A_TOPIC.values()}
    topics = Topics(tables, epochs={}, source_tables={"demo.public.routed": listed})
    records = [
        line(record(KEY, FLAT | {"__table": table or None}, 1, topic=topic))
        for topic, table, _ in OF_A_TOPIC.values()
    ]
    rows = classify(lake, records, topics=topics)
    taken = [row is not None and row["destination"] == "cdc_events" for row in rows]
    assert dict(zip(OF_A_TOPIC, taken, strict=True)) == {
        name: is_own for name, (_, _, is_own) in OF_A_TOPIC.items()
    }


# Positions

# Operations and the `source` of events as Debezium's pages on each connector document it,
# without what the ingest does not read; those that are rejected are changed in one way:
# https://debezium.io/documentation/reference/stable/connectors/
POSITIONS: dict[str, list[tuple[str, Row]]] = json.loads(
    Path(__file__).with_name("positions.json").read_text()
)
NAMINGS = ("envelope", "names", "source_names")


def change(op: str, source: Row, form: str) -> Row:
    """A change in Debezium's envelope, or flattened with either way to name its fields."""
    if form == "envelope":
        where = {**source, "ts_ms": START_MS, "table": "cdc_events"}
        return envelope(op, {"id": 1}, None) | {"source": where}
    prefix = "__" if form == "names" else "__source_"
    return {
        "id": 1,
        "__op": op,
        "__table": "cdc_events",
        "__source_ts_ms": START_MS,
        **{f"{prefix}{name}": value for name, value in source.items()},
    }


@pytest.mark.parametrize("log", POSITIONS)
def test_position_of_a_connector(log: str, lake: Lake, snapshot: SnapshotAssertion) -> None:
    """Or the reason why an event has none, the same in each form."""
    texts = [json.dumps(change(*case, form)) for form in NAMINGS for case in POSITIONS[log]]
    names = ("destination", "reason", "op", "source_table", "source_position", "source_lsn")
    found = []
    for row in classify(lake, texts):
        assert row is not None
        found.append({name: row[name] for name in names if row[name] is not None})
    count = len(POSITIONS[log])
    assert found == found[:count] * len(NAMINGS)
    cases = [f"{op} {json.dumps(source)}" for op, source in POSITIONS[log]]
    assert dict(zip(cases, found[:count], strict=True)) == snapshot

    # Of one width, they sort as the numbers in them do.
    widths = {
        (source["connector"], len(row["source_position"]))
        for (_, source), row in zip(POSITIONS[log], found[:count], strict=True)
        if "source_position" in row
    }
    assert len(widths) == len({connector for connector, _ in widths}) > 0


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a byte that is not UTF-8 becomes U+FFFD in an accepted event, and a line of"
    " tabs is parsed as an object without members",
)
@pytest.mark.parametrize(
    ("text", "destination"),
    [(b'{"__op":"c","__lsn":1,"a":"\xff"}', "rejected_events"), ("\t", None)],
)
def test_known_defects(lake: Lake, text: Text, destination: str | None) -> None:
    [row] = classify(lake, [text])
    assert (row and row["destination"]) == destination


# The parser under fire


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Records that break something, each followed by an event that must be written."""
    return [
        *truncations(),
        *numbers(),
        *extremes(),
        *generated(250, SEED),
        case(EVENT, "cdc_events", op="c", source_lsn=1),
    ]


@pytest.fixture(scope="module")
def parsed(lake: Lake, cases: list[Case]) -> list[Row | None]:
    return classify(lake, [case.text for case in cases])


def test_every_record_has_one_place(
    lake: Lake, cases: list[Case], parsed: list[Row | None]
) -> None:
    """None is lost, none is filed twice, and each row is what its destination promises.

    Nor is a value of Kafka's.
    """
    assert problems(cases, parsed) == ""
    chosen = cases[::5]
    values = decode(lake, [KafkaRecord(each.text) for each in chosen], None)
    assert problems(chosen, values, is_kafka=True) == ""


def test_ingest_under_fire(
    lake: Lake, cases: list[Case], parsed: list[Row | None], tmp_path: Path
) -> None:
    """The tables hold what the parser filed, and readers that are not Spark can read it.

    Read is written, rejected, skipped and what was written already. Of the many truncations
    a few are there.
    """
    few = range(0, len(list(truncations())), 40)
    chosen = [*few, *range(few.stop, len(cases))]
    file, topics = tmp_path / "cases.json", tmp_path / "topics.toml"
    file.write_bytes(b"".join(cases[number].text + b"\n" for number in chosen))
    # Records of one offset that differ in their times look like a topic that was recreated.
    topics.write_text(f'{TOPICS_FILE.read_text()}"{TOPIC}" = []\n')
    options = ("--topic", TOPIC, "--topics", str(topics), "--max-rejected-share", "1")
    ingested = lake.ingest(str(file), *options)
    rows = [row for number in chosen if (row := parsed[number]) is not None]

    filed = Counter(row["destination"] for row in rows)
    rejected, skipped = filed.pop("rejected_events"), filed.pop("skipped")
    written = len({row["event_id"] for row in rows if row["destination"] in filed})
    counts = (filed.total() + rejected + skipped, written, rejected, skipped)
    assert (ingested.code, ingested.counts) == (0, counts)
    kinds: dict[str, list[str]] = {}
    for reason in (row["reason"] for row in rows if row["reason"]):
        kinds.setdefault(VARIABLE.sub("…", reason), []).append(reason)
    for kind, reasons in kinds.items():
        said = f"{kind} (such as " if len(set(reasons)) > 1 else f"{quoted(reasons[0])}\n"
        assert f"warning: rejected {len(reasons)}: {said}" in ingested.err

    place = ("topic", "kafka_partition", "kafka_offset", "key")
    of_event = ("event_id", *place, "value", "op", "source_lsn", "source_table")

    def values(rows: list[Row], names: tuple[str, ...]) -> list[tuple[Any, ...]]:
        return [tuple(row[name] for name in names) for row in rows]

    for table in ("cdc_events", "customers", "products"):
        expected = [row for row in rows if row["destination"] == table]
        found = values(lake.rows(f"bronze.{table}"), of_event)
        assert {*found} == {*values(expected, of_event)}
        assert len(found) == len({*found})
    expected = [row for row in rows if row["reason"]]
    of_rejected = values(expected, (*place, "record", "reason"))
    found = values(lake.rows("bronze.rejected_events"), (*place, "value", "reason"))
    assert {*found} <= {*of_rejected}
    # Records of a file that have the same place, key and value are one record.
    assert len(found) == len({*values(expected, (*place, "value"))})
    files = {row["source_file"] for row in lake.rows("bronze.rejected_events")}
    assert files == {f"file://{file}"}
