"""What the ingest's parser makes of a record.

All records are parsed in a few jobs, without a table (``tests.support.parser``); each test
looks at its own. One ingest writes the worst of them.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

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
    texts,
    truncations,
)
from tests.support.lake import TOPICS_FILE, Ingested, Lake
from tests.support.parser import KafkaRecord, Text, classify, decode
from tests.support.records import TOPIC, Row, envelope, flattened, record

KEY = {"order_id": 1}
ROW = {"order_id": 1, "customer_id": "ALFKI", "employee": '{"a": "Käse \\"x\\""}'}
EVENT = '{"__op":"c","__lsn":1}'
MILLISECOND = 1_767_225_600_123
# What the sink adds to a record, here in the record itself.
ELSEWHERE = {"topic": "demo.datalake.customers", "partition": 3, "offset": 9}
FORMS = {"flattened": flattened, "envelope": envelope}
Named = Iterator[tuple[str, Text, Row]]


def wrapped(value: Any) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": []}, "payload": value}


def written(**expected: Any) -> Row:
    return {"destination": "cdc_events", "reason": None, **expected}


def rejected(reason: str = "", **expected: Any) -> Row:
    """A record that is rejected for a reason that begins so."""
    return {"destination": "rejected_events", "reason": reason, **expected}


def shapes() -> Named:
    """An event in each shape, with what the sink adds, in the record itself or not."""
    event = {"op": "u", "source_lsn": 77, "source_epoch": 0, "topic": TOPIC}
    event |= {"source_table": "datalake.cdc_events"}
    event |= {"source_ts": "2026-01-01 00:00:00.123"}
    place: Row = {"kafka_partition": 0, "kafka_offset": 5}
    place |= {"kafka_timestamp": "2026-01-01 00:00:00"}
    for form, make in FORMS.items():
        value = make("u", ROW, 77, MILLISECOND)
        for name, each in {
            form: value,
            f"{form} with a schema": wrapped(value),
            f"{form} with metadata": {**value, "metadata": ELSEWHERE},
        }.items():
            bare = {**dict.fromkeys(place), "key": None, "value": line(each)}
            yield f"bare {name}", line(each), written(**event, **bare)
            nested = written(**event, **place, json_key=KEY, json_value=each)
            yield f"nested {name}", line(record(KEY, each, 5)), nested
            text = line(record(line(KEY), line(each), 5))
            yield f"text {name}", text, nested
        for op in "cudr":
            made = line(record(KEY, make(op, ROW, 9), 1))
            yield f"{form} {op}", made, written(op=op, source_lsn=9)
        made = line(make("c", ROW, 1, table="heartbeat"))
        yield f"{form} of another table", made, rejected("of another table: 'datalake.he")


# A value that is text is kept verbatim; of a nested one the digits are, also beyond double:
# Debezium writes a double in its shortest form, and Spark writes it so again.
VERBATIM = '{ "__op" : "c","__lsn":1,  "x": 1.50, "big": 9223372036854775807 }'
NUMBERS = (
    '{"__op":"c","__lsn":1,"a":-9223372036854775808,"b":1.5,"c":0.1,"d":1.0E22}',
    '{"__op":"c","__lsn":1,"a":1e400}',
    '{"__op":"c","__lsn":1,"a":[-1e-400,1.5]}',
    '{"__op":"c","__lsn":1,"a":0.12345678901234567890}',
    '{"__op":"c","__lsn":1,"a\\"b":"x,1.234567890123456789",'
    '"b":{"c":[-12345678901234567890.5,"2.234567890123456789"]}}',
)


def events() -> Named:
    yield "text", line(record("k", VERBATIM, 1)), written(value=VERBATIM)
    for text in NUMBERS:
        yield f"number {text}", sink(text), written(value=text)
    read = line(record(KEY, flattened("r", ROW, None), 1))
    yield "read without an LSN", read, written(op="r", source_lsn=None)
    truncate = line(record(None, envelope("t", None, 9), 1))
    yield "truncate", truncate, written(op="t", source_lsn=9, key=None)


# Times that no change can have: Spark overflows, and Parquet or its readers refuse them.
NO_TIMES = (
    *(2**63 - 1, 9_223_372_036_854_776, -(2**63), 253_402_300_800_000),
    *(-2_208_988_800_001, -1),
)
TIMES = {0: "1970-01-01 00:00:00", 253_402_300_799_999: "9999-12-31 23:59:59.999"}
PLACES_OF_A_TIME = {
    "source_ts": '{"__op":"c","__lsn":1,"__source_ts_ms":TIME}',
    "source_ts of an envelope": '{"op":"c","source":{"lsn":1,"ts_ms":TIME}}',
    "kafka_timestamp": sink(EVENT, f'{{"topic":"{TOPIC}","offset":1,"timestamp":TIME}}'),
}


def times() -> Named:
    for place, text in PLACES_OF_A_TIME.items():
        for time in (*NO_TIMES, *TIMES):
            made = text.replace("TIME", str(time))
            expected = written(source_ts=None, kafka_timestamp=None, record=made)
            expected[place.partition(" ")[0]] = TIMES.get(time)
            yield f"{place} {time}", made, expected


FOLLOWED = "not JSON: something follows the object"
TRUNCATED = "truncated: the JSON text ends before the record does"
NO_OBJECT = "not an object: a change event is a JSON object"
NO_OPERATION = "no operation: neither __op nor op says what changed"
REJECTED = {
    "this is no JSON": "not JSON",
    **dict.fromkeys(("[1, 2]", '"text"', "42"), NO_OBJECT),
    **dict.fromkeys((line(FLAT)[:60], line(FLAT)[:-1]), TRUNCATED),
    line(FLAT) + line(FLAT): FOLLOWED,
    f"{line(FLAT)}, {line(FLAT)}": FOLLOWED,
    **{EVENT + text: "" for text in (" x", '"x"', "}", "]", ",", "\x00")},
    "{'__op':'c','__lsn':1}": "",
    '{"__op":"c","__lsn":1,"a":NaN}': "",
    '{"order_id": 1}': NO_OPERATION,
    line(flattened("x", ROW, 1)): "unknown operation 'x'",
    line(flattened("u", ROW, None)): "operation 'u' without an LSN: only a snapshot read m",
    line(envelope("d", ROW, None)): "operation 'd' without an LSN: only a snapshot read m",
    **{
        f'{{"__op":"r","__lsn":{lsn}}}': ""
        for lsn in ("-1", "1.5", "9223372036854775808", '"x"')
    },
    '{"op":"r","source":{"lsn":-1}}': "",
}
REJECTED_VALUES: dict[str, Any] = {
    "no operation": {"order_id": 1},
    "not JSON": "no JSON at all",
    "not an object": [1],
    "not JSON: something follows": f"{EVENT}\n{EVENT}",
}
NO_PLACES = (
    '"partition":0,"offset":9223372036854775808',
    '"partition":0,"offset":1.5',
    '"partition":0,"offset":-1',
    '"partition":2147483648,"offset":7',
)


def bad_ones() -> Named:
    for text, reason in REJECTED.items():
        yield f"rejected {text}", text, rejected(reason, topic=TOPIC, record=text)
    for reason, value in REJECTED_VALUES.items():
        text = line(record(KEY, value, 3, partition=2))
        place = {"kafka_partition": 2, "kafka_offset": 3}
        yield f"{reason} in a sink", text, rejected(reason, **place, record=text)
    for value in ("{x}", EVENT[:-1] + ",}"):
        yield f"sink with {value}", sink(value), rejected()
    for each in NO_PLACES:
        yield each, sink(EVENT, f'{{"topic":"{TOPIC}",{each}}}'), rejected()
    reason = "no table: topics.toml does not list the topic 'a.b.c'"
    yield "unlisted topic", line(record(KEY, FLAT, 1, "a.b.c")), rejected(reason)


HEARTBEATS = "__debezium-heartbeat.demo"
TRANSACTION = {"id": "571:53195829", "ts_ms": 1}
BEGIN, END = (TRANSACTION | {"status": status} for status in ("BEGIN", "END"))
SKIPPED = {
    "tombstone": record(KEY, None, 1),
    "heartbeat": record({"serverName": "demo"}, {"ts_ms": 1}, 2, HEARTBEATS),
    "heartbeat of another topic": record(KEY, {"ts_ms": 1}, 6),
    "heartbeat with a schema": record(
        wrapped({"serverName": "demo"}), wrapped({"ts_ms": 1}), 3, HEARTBEATS
    ),
    "begin": record({"id": "571:53195829"}, BEGIN | {"event_count": None}, 4, "t"),
    "end": record({"id": "571:53195829"}, END | {"event_count": 2}, 5, "t"),
}


def skipped() -> Named:
    for name, each in SKIPPED.items():
        yield name, line(each), {"destination": "skipped", "reason": None}


NAMED = {
    name: (text, expected)
    for some in (shapes(), events(), times(), bad_ones(), skipped())
    for name, text, expected in some
}
# The same each time; tests/servers/test_parser_seeds.py has fresh ones.
SEED = 20_261_121


@pytest.fixture(scope="module")
def named(lake: Lake) -> dict[str, Row | None]:
    """The rows of the records that have names."""
    found = classify(lake, [text for text, _ in NAMED.values()])
    return dict(zip(NAMED, found, strict=True))


@pytest.mark.parametrize("name", NAMED)
def test_record(name: str, named: dict[str, Row | None]) -> None:
    row, expected = named[name], NAMED[name][1]
    assert row is not None
    for column, value in expected.items():
        found = row[column.removeprefix("json_")]
        if column.startswith("json_"):
            found = json.loads(found)
        if column == "reason" and value is not None:
            found = found[: len(value)]
        assert found == value, column


def test_record_without_a_topic(lake: Lake) -> None:
    [row] = classify(lake, [line(FLAT)], topic=None)
    assert row is not None
    assert row["destination"] == "rejected_events"
    assert row["reason"] == "no topic: the record names none, and --topic was not given"


OF_A_TOPIC: dict[str, tuple[str, str | None, bool]] = {
    "the name's last part": ("demo.datalake.orders", "orders", True),
    "characters that a topic cannot have": ("demo.public.weird-n_me", "weird-näme", True),
    "a point in the table's name": ("demo.public.a.b", "a.b", True),
    "another table": ("demo.datalake.orders", "reorders", False),
    "a part of the name": ("demo.datalake.my_orders", "orders", False),
    "a name that says nothing": ("orders-topic", "anything", True),
    "listed": ("demo.public.routed", "shard_1", True),
    "listed by a pattern": ("demo.public.routed", "orders_2026_01", True),
    "listed with its schema": ("demo.public.routed", "items", True),
    "listed of another schema": ("demo.public.routed", "lines", False),
    "not listed": ("demo.public.routed", "routed", False),
    "none that an event names": ("demo.datalake.orders", None, True),
    "characters as numbers": ("demo.public.my_u005forders", "my_orders", True),
}


def test_topic_carries_events_of_its_own_tables(lake: Lake) -> None:
    topics = Topics(
        tables={topic: "cdc_events" for topic, _, _ in OF_A_TOPIC.values()},
        epochs={},
        source_tables={
            "demo.public.routed": ["shard_1", "orders_*", "datalake.items", "other.lines"]
        },
    )
    texts = [
        line(record(KEY, flattened("c", ROW, 1) | {"__table": table}, 1, topic=topic))
        for topic, table, _ in OF_A_TOPIC.values()
    ]
    found = classify(lake, texts, topics=topics)
    destinations = [row and row["destination"] for row in found]
    expected = [
        "cdc_events" if is_own else "rejected_events"
        for _, _, is_own in OF_A_TOPIC.values()
    ]
    assert dict(zip(OF_A_TOPIC, destinations, strict=True)) == dict(
        zip(OF_A_TOPIC, expected, strict=True)
    )


def test_reason_has_a_length_that_can_be_printed(lake: Lake) -> None:
    [row] = classify(lake, [f'{{"__op":"{"x" * 10_000}","__lsn":1}}'])
    assert row is not None
    assert len(row["reason"]) < 200


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
    return classify(lake, texts(cases))


def test_every_record_has_one_place(cases: list[Case], parsed: list[Row | None]) -> None:
    """None is lost, none is filed twice, and each row is what its destination promises."""
    assert problems(cases, parsed) == ""


def test_every_value_of_kafka_has_one_place(lake: Lake, cases: list[Case]) -> None:
    chosen = cases[::5]
    values = decode(lake, [KafkaRecord(each.text) for each in chosen], None)
    assert problems(chosen, values, is_kafka=True) == ""


@dataclass
class Written:
    """An ingest of cases from one file, and how the parser filed them."""

    file: Path
    ingested: Ingested
    rows: list[Row]


@pytest.fixture(scope="module")
def fire(
    lake: Lake,
    cases: list[Case],
    parsed: list[Row | None],
    tmp_path_factory: pytest.TempPathFactory,
) -> Written:
    """The ingest of all cases, of the many truncations of some."""
    few = range(0, len(list(truncations())), 40)
    chosen = [*few, *range(few.stop, len(cases))]
    file = tmp_path_factory.mktemp("fire") / "cases.json"
    file.write_bytes(b"".join(cases[number].text + b"\n" for number in chosen))
    # Records of one offset that differ in their times look like a topic that was recreated.
    topics = file.with_name("topics.toml")
    topics.write_text(f'{TOPICS_FILE.read_text()}"{TOPIC}" = []\n')
    options = ("--topic", TOPIC, "--topics", str(topics), "--max-rejected-share", "1")
    ingested = lake.ingest(str(file), *options)
    rows = [row for number in chosen if (row := parsed[number]) is not None]
    return Written(file, ingested, rows)


def test_counts_of_an_ingest_under_fire(fire: Written) -> None:
    """Read is written, rejected, skipped and what was written already."""
    filed = Counter(row["destination"] for row in fire.rows)
    rejected, skipped = filed.pop("rejected_events"), filed.pop("skipped")
    events = {row["event_id"] for row in fire.rows if row["destination"] in filed}
    duplicates = filed.total() - len(events)
    read = len(events) + rejected + skipped + duplicates
    assert fire.ingested.code == 0
    assert fire.ingested.counts == (read, len(events), rejected, skipped)
    kinds: dict[str, list[str]] = {}
    for row in fire.rows:
        if row["reason"]:
            kinds.setdefault(VARIABLE.sub("…", row["reason"]), []).append(row["reason"])
    for kind, reasons in kinds.items():
        said = f"{kind} (such as " if len(set(reasons)) > 1 else f"{quoted(reasons[0])}\n"
        assert f"warning: rejected {len(reasons)}: {said}" in fire.ingested.err


def test_tables_of_an_ingest_under_fire(lake: Lake, fire: Written) -> None:
    """The tables hold what the parser filed, and readers that are not Spark can read it."""
    place = ("topic", "kafka_partition", "kafka_offset", "key")
    of_event = ("event_id", *place, "value", "op", "source_lsn", "source_table")
    for table in ("cdc_events", "customers", "products"):
        expected = {
            tuple(row[name] for name in of_event)
            for row in fire.rows
            if row["destination"] == table
        }
        found = lake.rows(f"bronze.{table}")
        assert {tuple(row[name] for name in of_event) for row in found} == expected
        assert len(found) == len(expected)
    rejected = [row for row in fire.rows if row["reason"]]
    of_rejected = (*place, "value", "reason")
    found = lake.rows("bronze.rejected_events")
    assert {tuple(row[name] for name in of_rejected) for row in found} <= {
        (*(row[name] for name in place), row["record"], row["reason"]) for row in rejected
    }
    # Records of a file that have the same place, key and value are one record.
    assert len(found) == len(
        {(*(row[name] for name in place), row["value"]) for row in rejected}
    )
    assert {row["source_file"] for row in found} == {f"file://{fire.file}"}
