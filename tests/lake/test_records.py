"""What the ingest's parser makes of a record.

All records are parsed in a few jobs, without a table (``tests.support.parser``); each test
looks at its own. One ingest writes the worst of them.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.log import quoted
from ingest.batches import VARIABLE
from ingest.topics import TOPICS_FILE, Topics
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
from tests.support.lake import Ingested, Lake
from tests.support.parser import Text, classify
from tests.support.records import TOPIC, Row, envelope, flattened, record

KEY = {"order_id": 1}
ROW = {"order_id": 1, "customer_id": "ALFKI", "employee": '{"a": "Käse \\"x\\""}'}
EVENT = '{"__op":"c","__lsn":1}'
MILLISECOND = 1_767_225_600_123


def wrapped(value: Any) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": []}, "payload": value}


# The records: what each test looks at, by the name that it uses

# What the sink adds to a record, here in the record itself.
ELSEWHERE = {"topic": "demo.datalake.customers", "partition": 3, "offset": 9}
FORMS = {
    "flattened": flattened("u", ROW, 77, MILLISECOND),
    "envelope": envelope("u", ROW, 77, MILLISECOND),
    "flattened_with_schema": wrapped(flattened("u", ROW, 77, MILLISECOND)),
    "envelope_with_schema": wrapped(envelope("u", ROW, 77, MILLISECOND)),
    "flattened_with_metadata": {
        **flattened("u", ROW, 77, MILLISECOND),
        "metadata": ELSEWHERE,
    },
    "envelope_with_metadata": {
        **envelope("u", ROW, 77, MILLISECOND),
        "metadata": ELSEWHERE,
    },
}
SHAPES: dict[str, Text] = {
    f"{around} {name}": text
    for name, value in FORMS.items()
    for around, text in {
        "bare": line(value),
        "sink_nested": line(record(KEY, value, 5)),
        "sink_text": line(record(line(KEY), line(value), 5)),
    }.items()
}

VERBATIM = '{ "__op" : "c","__lsn":1,  "x": 1.50, "big": 9223372036854775807 }'
NESTED = '{"__op":"c","__lsn":1,"a":-9223372036854775808,"b":1.5,"c":0.1,"d":1.0E22}'
VALUES: dict[str, Text] = {
    "value that is text": line(record("k", VERBATIM, 1)),
    "nested value with numbers": sink(NESTED),
    "read without an LSN": line(record(KEY, flattened("r", ROW, None), 1)),
    "truncate": line(record(None, envelope("t", None, 9), 1)),
    "topic that is not configured": line(record(KEY, FLAT, 1, "a.b.c")),
}
OPERATIONS: dict[str, Text] = {
    f"{name} {op}": line(record(KEY, form(op, ROW, 9), 1))
    for name, form in {"flattened": flattened, "envelope": envelope}.items()
    for op in ("c", "u", "d", "r")
}

TRUNCATED = "truncated: the JSON text ends before the record does"
NO_OBJECT = "not an object: a change event is a JSON object"
NO_OPERATION = "no operation: neither __op nor op says what changed"
REJECTED = {
    "this is no JSON": "not JSON",
    "[1, 2]": NO_OBJECT,
    '"text"': NO_OBJECT,
    "42": NO_OBJECT,
    line(FLAT)[:60]: TRUNCATED,
    line(FLAT)[:-1]: TRUNCATED,
    line(FLAT) + line(FLAT): "not JSON: something follows the object",
    f"{line(FLAT)}, {line(FLAT)}": "not JSON: something follows the object",
    f"{line(FLAT)}}}": "not JSON: something follows the object",
    f"{line(FLAT)}]": "not JSON: something follows the object",
    '{"order_id": 1}': NO_OPERATION,
    line(flattened("x", ROW, 1)): "unknown operation 'x'",
    line(flattened("u", ROW, None)): (
        "operation 'u' without an LSN: only a snapshot read may lack it"
    ),
    line(envelope("d", ROW, None)): (
        "operation 'd' without an LSN: only a snapshot read may lack it"
    ),
}
REJECTED_OF_A_SINK = {
    line(record(KEY, {"order_id": 1}, 3, partition=2)): "no operation",
    line(record(KEY, "no JSON at all", 4, partition=2)): "not JSON",
    line(record(KEY, [1], 5, partition=2)): "not an object",
}
SKIPPED = {
    "tombstone": record(KEY, None, 1),
    "heartbeat": record(
        {"serverName": "demo"}, {"ts_ms": 1}, 2, "__debezium-heartbeat.demo"
    ),
    "heartbeat_of_another_topic": record(KEY, {"ts_ms": 1}, 6),
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

# Times that no change can have: Spark overflows, and Parquet or its readers refuse them.
NO_TIMES = {
    "overflow": 2**63 - 1,
    "first_overflow": 9_223_372_036_854_776,
    "negative_overflow": -(2**63),
    "year_10000": 253_402_300_800_000,
    "year_1899": -2_208_988_800_001,
    "kafka_has_none": -1,
}
PLACES_OF_A_TIME = {
    "__source_ts_ms": '{"__op":"c","__lsn":1,"__source_ts_ms":TIME}',
    "source.ts_ms": '{"op":"c","source":{"lsn":1,"ts_ms":TIME}}',
    "sink": sink(EVENT, f'{{"topic":"{TOPIC}","offset":1,"timestamp":TIME}}'),
}
TIMES: dict[str, Text] = {
    f"{place} {name}": text.replace("TIME", str(number))
    for place, text in PLACES_OF_A_TIME.items()
    for name, number in {**NO_TIMES, "first": 0, "last": 253_402_300_799_999}.items()
}

# Each is the smallest example of what was taken for something else once, or still is.
READS_WITHOUT_A_POSITION = {
    "negative": '{"__op":"r","__lsn":-1}',
    "fraction": '{"__op":"r","__lsn":1.5}',
    "beyond_64_bits": '{"__op":"r","__lsn":9223372036854775808}',
    "text": '{"__op":"r","__lsn":"x"}',
    "in_an_envelope": '{"op":"r","source":{"lsn":-1}}',
}
FOLLOWED = {
    "text": EVENT + " x",
    "string": EVENT + '"x"',
    "bracket": EVENT + "}",
    "comma": EVENT + ",",
    "nul": EVENT + "\x00",
    "second_event_on_a_second_line": line(record(KEY, f"{EVENT}\n{EVENT}", 1)),
}
NO_JSON = {
    "single_quotes": "{'__op':'c','__lsn':1}",
    "not_a_number": '{"__op":"c","__lsn":1,"a":NaN}',
}
LONG_NUMBERS = {
    "beyond_double": '{"__op":"c","__lsn":1,"a":1e400}',
    "below_double": '{"__op":"c","__lsn":1,"a":[-1e-400,1.5]}',
    "more_digits_than_double": '{"__op":"c","__lsn":1,"a":0.12345678901234567890}',
    "beside_a_string_of_the_same": '{"__op":"c","__lsn":1,"a\\"b":"x,1.234567890123456789",'
    '"b":{"c":[-12345678901234567890.5,"2.234567890123456789"]}}',
}
NO_PLACES = {
    "offset_beyond_64_bits": '"partition":0,"offset":9223372036854775808',
    "offset_is_a_fraction": '"partition":0,"offset":1.5',
    "negative_offset": '"partition":0,"offset":-1',
    "partition_beyond_32_bits": '"partition":2147483648,"offset":7',
}
BROKEN_VALUES = {
    "no_json": "{x}",
    "comma_at_the_end": EVENT[:-1] + ",}",
}
DEFECTS: dict[str, Text] = {
    **{f"broken {name}": sink(value) for name, value in BROKEN_VALUES.items()},
    **{f"read {name}": text for name, text in READS_WITHOUT_A_POSITION.items()},
    **{f"followed {name}": text for name, text in FOLLOWED.items()},
    **{f"no JSON {name}": text for name, text in NO_JSON.items()},
    **{f"number {name}": sink(text) for name, text in LONG_NUMBERS.items()},
    **{
        f"place {name}": sink(EVENT, f'{{"topic":"{TOPIC}",{place}}}')
        for name, place in NO_PLACES.items()
    },
    "other table flattened": line(flattened("c", ROW, 1, table="heartbeat")),
    "other table envelope": line(envelope("c", ROW, 1, table="heartbeat")),
    "no UTF-8": b'{"__op":"c","__lsn":1,"a":"\xff"}',
    "long operation": f'{{"__op":"{"x" * 10_000}","__lsn":1}}',
    "tab": "\t",
}

NAMED: dict[str, Text] = {
    **SHAPES,
    **VALUES,
    **OPERATIONS,
    **{f"rejected {text}": text for text in REJECTED},
    **{f"rejected of a sink {text}": text for text in REJECTED_OF_A_SINK},
    **{f"skipped {name}": line(value) for name, value in SKIPPED.items()},
    **TIMES,
    **DEFECTS,
}

# The same each time; tests/servers/test_parser_seeds.py has fresh ones.
SEED = 20_261_121


@pytest.fixture(scope="module")
def named(lake: Lake) -> dict[str, Row | None]:
    """The rows of the records that have names."""
    return dict(zip(NAMED, classify(lake, list(NAMED.values())), strict=True))


@pytest.fixture
def rows(named: dict[str, Row | None]) -> dict[str, Row]:
    """The same, where none is missing."""
    return {name: row for name, row in named.items() if row is not None}


# What is accepted


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("around", ["bare", "sink_nested", "sink_text"])
def test_record_shapes(around: str, name: str, rows: dict[str, Row]) -> None:
    row, value = rows[f"{around} {name}"], FORMS[name]
    assert (row["destination"], row["reason"], row["topic"]) == ("cdc_events", None, TOPIC)
    assert json.loads(row["value"]) == value
    assert (row["op"], row["source_lsn"], row["source_epoch"]) == ("u", 77, 0)
    assert row["source_table"] == "datalake.cdc_events"
    assert row["source_ts"] == "2026-01-01 00:00:00.123"
    if around == "bare":
        assert row["key"] is None
        assert row["kafka_partition"] is None
        assert row["kafka_offset"] is None
        assert row["kafka_timestamp"] is None
        assert row["value"] == line(value)
    else:
        assert json.loads(row["key"]) == KEY
        assert (row["kafka_partition"], row["kafka_offset"]) == (0, 5)
        assert row["kafka_timestamp"] == "2026-01-01 00:00:00"


def test_value_that_is_text_is_kept_verbatim(rows: dict[str, Row]) -> None:
    row = rows["value that is text"]
    assert (row["destination"], row["value"]) == ("cdc_events", VERBATIM)


def test_numbers_of_a_nested_value_keep_their_digits(rows: dict[str, Row]) -> None:
    # Debezium writes a double in its shortest form; Spark writes it so again
    row = rows["nested value with numbers"]
    assert (row["destination"], row["value"]) == ("cdc_events", NESTED)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation(name: str, rows: dict[str, Row]) -> None:
    row = rows[name]
    assert (row["destination"], row["source_lsn"]) == ("cdc_events", 9)
    assert row["op"] == name.rpartition(" ")[2]


def test_snapshot_read_without_an_lsn(rows: dict[str, Row]) -> None:
    row = rows["read without an LSN"]
    assert (row["destination"], row["op"], row["source_lsn"]) == ("cdc_events", "r", None)


def test_truncate_is_kept_as_an_event(rows: dict[str, Row]) -> None:
    row = rows["truncate"]
    assert row["destination"] == "cdc_events"
    assert (row["op"], row["source_lsn"], row["key"]) == ("t", 9, None)


@pytest.mark.parametrize("place", PLACES_OF_A_TIME)
@pytest.mark.parametrize("name", NO_TIMES)
def test_time_out_of_range_is_null(name: str, place: str, rows: dict[str, Row]) -> None:
    """An overflow ended the ingest at every run, and so did a time before 1900."""
    row = rows[f"{place} {name}"]
    assert row["destination"] == "cdc_events"
    assert (row["source_ts"], row["kafka_timestamp"]) == (None, None)
    assert str(NO_TIMES[name]) in row["record"]


@pytest.mark.parametrize("place", PLACES_OF_A_TIME)
def test_first_and_last_time(place: str, rows: dict[str, Row]) -> None:
    column = "kafka_timestamp" if place == "sink" else "source_ts"
    assert rows[f"{place} first"][column] == "1970-01-01 00:00:00"
    assert rows[f"{place} last"][column] == "9999-12-31 23:59:59.999"


# What is no change event


@pytest.mark.parametrize("text", REJECTED)
def test_reasons_of_rejection(text: str, rows: dict[str, Row]) -> None:
    row = rows[f"rejected {text}"]
    assert (row["destination"], row["reason"]) == ("rejected_events", REJECTED[text])
    assert (row["topic"], row["record"]) == (TOPIC, text)


def test_rejected_records_of_a_sink_keep_their_place(rows: dict[str, Row]) -> None:
    found = [rows[f"rejected of a sink {text}"] for text in REJECTED_OF_A_SINK]
    assert [(row["kafka_partition"], row["kafka_offset"]) for row in found] == [
        (2, 3),
        (2, 4),
        (2, 5),
    ]
    reasons = [row["reason"].partition(":")[0] for row in found]
    assert reasons == list(REJECTED_OF_A_SINK.values())
    assert [row["record"] for row in found] == list(REJECTED_OF_A_SINK)


def test_topic_that_is_not_configured(rows: dict[str, Row]) -> None:
    row = rows["topic that is not configured"]
    assert row["destination"] == "rejected_events"
    assert row["reason"] == "no table: topics.toml does not list the topic 'a.b.c'"


def test_record_without_a_topic(lake: Lake) -> None:
    [row] = classify(lake, [line(FLAT)], topic=None)
    assert row is not None
    assert row["destination"] == "rejected_events"
    assert row["reason"] == "no topic: the record names none, and --topic was not given"


@pytest.mark.parametrize("name", SKIPPED)
def test_tombstones_heartbeats_and_transaction_markers_are_skipped(
    name: str, rows: dict[str, Row]
) -> None:
    row = rows[f"skipped {name}"]
    assert (row["destination"], row["reason"]) == ("skipped", None)


# What a lenient parser takes for an event


def is_rejected(row: Row) -> bool:
    return bool(row["destination"] == "rejected_events")


@pytest.mark.parametrize("name", BROKEN_VALUES)
def test_sink_record_whose_value_is_broken_is_rejected(
    name: str, rows: dict[str, Row]
) -> None:
    assert is_rejected(rows[f"broken {name}"])


@pytest.mark.parametrize("name", READS_WITHOUT_A_POSITION)
def test_read_whose_position_is_invalid_is_rejected(
    name: str, rows: dict[str, Row]
) -> None:
    assert is_rejected(rows[f"read {name}"])


@pytest.mark.parametrize("name", ["flattened", "envelope"])
def test_event_of_another_table_is_rejected(name: str, rows: dict[str, Row]) -> None:
    row = rows[f"other table {name}"]
    assert is_rejected(row)
    assert row["reason"].startswith("of another table: 'datalake.heartbeat'")


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


@pytest.mark.parametrize("name", FOLLOWED)
def test_text_after_the_event_is_rejected(name: str, rows: dict[str, Row]) -> None:
    assert is_rejected(rows[f"followed {name}"])


@pytest.mark.parametrize("name", NO_JSON)
def test_event_that_is_no_json_is_rejected(name: str, rows: dict[str, Row]) -> None:
    assert is_rejected(rows[f"no JSON {name}"])


@pytest.mark.parametrize("name", LONG_NUMBERS)
def test_nested_number_beyond_double_is_kept(name: str, rows: dict[str, Row]) -> None:
    assert rows[f"number {name}"]["value"] == LONG_NUMBERS[name]


@pytest.mark.parametrize("name", NO_PLACES)
def test_event_whose_place_is_invalid_is_rejected(name: str, rows: dict[str, Row]) -> None:
    assert is_rejected(rows[f"place {name}"])


@pytest.mark.xfail(
    strict=True, reason="a byte that is not UTF-8 becomes U+FFFD in an accepted event"
)
def test_event_that_is_not_utf8_is_rejected(rows: dict[str, Row]) -> None:
    assert is_rejected(rows["no UTF-8"])


def test_reason_has_a_length_that_can_be_printed(rows: dict[str, Row]) -> None:
    assert len(rows["long operation"]["reason"]) < 200


@pytest.mark.xfail(
    strict=True, reason="a line of tabs is parsed as an object without members"
)
def test_line_of_white_space_is_no_record(named: dict[str, Row | None]) -> None:
    assert named["tab"] is None


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
    values = classify(lake, texts(chosen), is_kafka=True)
    assert None not in values
    assert problems(chosen, values, is_kafka=True) == ""


@dataclass
class Written:
    """An ingest of cases from one file, and how the parser filed them."""

    file: Path
    ingested: Ingested
    rows: list[Row]


@pytest.fixture(scope="module")
def written(
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


def test_counts_of_an_ingest_under_fire(written: Written) -> None:
    """Read is written, rejected, skipped and what was written already."""
    filed = Counter(row["destination"] for row in written.rows)
    rejected, skipped = filed.pop("rejected_events"), filed.pop("skipped")
    events = {row["event_id"] for row in written.rows if row["destination"] in filed}
    duplicates = filed.total() - len(events)
    read = len(events) + rejected + skipped + duplicates
    assert written.ingested.code == 0
    assert written.ingested.counts == (read, len(events), rejected, skipped)
    kinds: dict[str, list[str]] = {}
    for row in written.rows:
        if row["reason"]:
            kinds.setdefault(VARIABLE.sub("…", row["reason"]), []).append(row["reason"])
    for kind, reasons in kinds.items():
        said = f"{kind} (such as " if len(set(reasons)) > 1 else f"{quoted(reasons[0])}\n"
        assert f"warning: rejected {len(reasons)}: {said}" in written.ingested.err


def test_tables_of_an_ingest_under_fire(lake: Lake, written: Written) -> None:
    """The tables hold what the parser filed, and readers that are not Spark can read it."""
    place = ("topic", "kafka_partition", "kafka_offset", "key")
    of_event = ("event_id", *place, "value", "op", "source_lsn", "source_table")
    for table in ("cdc_events", "customers", "products"):
        expected = {
            tuple(row[name] for name in of_event)
            for row in written.rows
            if row["destination"] == table
        }
        found = lake.rows(f"bronze.{table}")
        assert {tuple(row[name] for name in of_event) for row in found} == expected
        assert len(found) == len(expected)
    rejected = [row for row in written.rows if row["reason"]]
    of_rejected = (*place, "value", "reason")
    found = lake.rows("bronze.rejected_events")
    assert {tuple(row[name] for name in of_rejected) for row in found} <= {
        (*(row[name] for name in place), row["record"], row["reason"]) for row in rejected
    }
    # Records of a file that have the same place, key and value are one record.
    assert len(found) == len(
        {(*(row[name] for name in place), row["value"]) for row in rejected}
    )
    assert {row["source_file"] for row in found} == {f"file://{written.file}"}
