"""Records that test the ingest's parser, and what must hold of the rows that it makes.

Hypothesis makes the records, a job of Spark files thousands of them at once
(``tests.support.parser``), and plain Python checks each row.
"""

import base64
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.records import TOPIC, Row, envelope, flattened, record

OPERATIONS = {"c", "u", "d", "r", "t"}
TABLE = "cdc_events"
MAX_LONG = 2**63 - 1

_file = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
OUR_NAMES: list[str] = _file["names"]
NUMBERS = [*_file["numbers"], "9" * 400, "1" * 1001]
# Of those, the ones that are a position; a line end after it does no harm.
POSITIONS = {
    text: int(digits)
    for text in NUMBERS
    if re.fullmatch(r'-?0|[1-9]\d*|"\d+(\\n)?"', text)
    and int(digits := text.strip('"').removesuffix("\\n")) <= MAX_LONG
}

# A record of the sink; its white space is not that of a line.
_SINK_START = '{"key":{"id":1},"value":'
ROW = {"order_id": 1, "employee": '{"a": "Käse \\"x\\" } {", "b": [1, null]}'}
FLAT = flattened("u", ROW, 77)
ENVELOPE = envelope("u", ROW, 77)


@dataclass(frozen=True)
class Case:
    """A record, and what must become of it where that is certain."""

    text: bytes  # a line of a file, or a value of Kafka's
    # a table or ``skipped``; None where only the general rules hold
    destination: str | None = None
    expected: Row = field(default_factory=dict)  # values that the row must have


def line(value: Any) -> str:
    """A value as a line of JSON."""
    return json.dumps(value, ensure_ascii=False)


def sink(value: str, metadata: str | None = None) -> str:
    """A record of the S3 sink, with a value that is JSON already."""
    metadata = metadata or line(record(None, None, 5)["metadata"])
    return f'{_SINK_START}{value},"headers":{{}},"metadata":{metadata}}}'


def shapes(value: Any) -> list[str]:
    """An event as each source writes it."""
    wrapped = {"schema": {"type": "struct", "fields": []}, "payload": value}
    return [
        form
        for each in (value, wrapped)
        for form in (line(each), sink(line(each)), sink(line(line(each))))
    ]


def case(text: str, destination: str | None = None, **expected: Any) -> Case:
    """A case of text that has no line end in it, which would make two lines of it."""
    return Case(_one_line(text.encode(errors="replace")), destination, expected)


def _one_line(text: bytes) -> bytes:
    return text.replace(b"\n", b"").replace(b"\r", b"")


# Cases that are always the same


def truncations() -> Iterator[Case]:
    """Every beginning of an event; with a schema around it, every seventh."""
    reason = "truncated: the JSON text ends before the record does"
    for form in (*shapes(FLAT), *shapes(ENVELOPE)):
        text = form.encode()
        for end in range(1, len(text), 7 if "payload" in form else 1):
            yield Case(text[:end], "rejected_events", {"reason": reason})


def numbers() -> Iterator[Case]:
    """Every form of a number, wherever the parser reads one."""
    for text in NUMBERS:
        for op in ("u", "r"):
            position = POSITIONS.get(text)
            if op == "r" and position is None and text != "null":
                yield case(f'{{"__op":"{op}","__lsn":{text}}}')
                continue
            expected = {"op": op, "source_lsn": position}
            if op == "u" and position is None:
                expected = {}
            destination = TABLE if expected else "rejected_events"
            yield case(f'{{"__op":"{op}","__lsn":{text}}}', destination, **expected)
            source = f'{{"lsn":{text},"table":"cdc_events"}}'
            yield case(f'{{"op":"{op}","source":{source}}}', destination, **expected)
        yield case(f'{{"__op":"u","__lsn":1,"__source_ts_ms":{text}}}')
        yield case(f'{{"op":"u","source":{{"lsn":1,"ts_ms":{text}}}}}')
        for name in ("partition", "offset", "timestamp"):
            metadata = line(record(None, None, 5)["metadata"] | {name: "NUMBER"})
            yield case(sink(line(FLAT), metadata.replace('"NUMBER"', text)))
            yield case(sink(line(line(FLAT)), metadata.replace('"NUMBER"', text)))
        yield case(sink(f'{{"__op":"u","__lsn":1,"a":{text}}}'))
        yield case(text)


def extremes() -> Iterator[Case]:
    """Long lines, deep ones, and bytes that are no text."""
    good = '{"__op":"u","__lsn":1,"a":%s}'
    yield case(f'{{"__op":"{"x" * 10_000}","__lsn":1}}', "rejected_events")
    yield case(good % f'"{"x" * 2_000_000}"', TABLE, op="u", source_lsn=1)
    yield case(sink(good % f'"{"x" * 2_000_000}"'), TABLE, op="u", kafka_offset=5)
    for depth in (100, 400):
        nested = "[" * depth + "]" * depth
        for text in (good % nested, sink(good % nested), sink(line(good % nested))):
            yield case(text, TABLE, op="u", source_lsn=1)
    for depth in (1_500, 10_000):
        for nested in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
            for text in (nested, good % nested, sink(good % nested), sink(nested)):
                yield case(text, "rejected_events")
            yield case(sink(line(good % nested)), "rejected_events")
            yield case(sink(line(FLAT), f'{{"topic":"{TOPIC}","a":{nested}}}'))
    for piece in ("[", "]", "{", "}", '"', "\\", '{"a":', "9", "-", "\x00", "\u2028"):
        yield case(piece * (100_000 // len(piece)), "rejected_events")
    for start in (b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2, b"\xff\xfe", b"\xfe\xff"):
        yield Case(start + b"\x00", "rejected_events")
        yield Case(start + line(FLAT).encode())
        yield Case(start + _one_line(line(FLAT).encode("utf-16-le")), "rejected_events")
    for byte in range(256):
        if byte not in b"\n\r ":
            yield Case(bytes([byte]))
            yield Case(b'{"__op":"u","__lsn":1,"a":"' + bytes([byte]) + b'"}')
            yield Case(bytes([byte]) + line(FLAT).encode())
    for code in ("d800", "dc00", "dfff", "0000", "ffff", "fffe", "feff", "202e"):
        yield case(good % f'"\\u{code}"', TABLE, op="u", source_lsn=1)
        yield case(sink(good % f'"\\u{code}"'), TABLE, op="u", source_lsn=1)
        yield case(sink(line(good % f'"\\u{code}"')), TABLE, op="u", source_lsn=1)


# Cases that Hypothesis generates

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["c", "u", "d", "t", "BEGIN", "END", "null", "{", "}", TOPIC])
)
_names = st.sampled_from(OUR_NAMES) | st.text(max_size=4)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=8,
)
_reserved = st.sampled_from(["__op", "__lsn", "op", "source", "payload", "schema"])
_members = st.lists(st.tuples(_names | _reserved, _values), max_size=5)


def _object(members: Sequence[tuple[str, Any]]) -> str:
    """A JSON object that may have a member twice."""
    return "{" + ",".join(f"{line(name)}:{line(value)}" for name, value in members) + "}"


@st.composite
def _good_events(draw: st.DrawFn) -> Case:
    """An event whose columns are named as ours: it is written, whatever they hold."""
    op = draw(st.sampled_from(sorted(OPERATIONS)))
    lsn = draw(st.integers(0, MAX_LONG))
    columns = draw(st.dictionaries(_names, _values, max_size=6))
    if draw(st.booleans()):
        event: dict[str, Any] = columns | flattened(op, {}, lsn)
    else:
        event = envelope(op, columns, lsn)
    form = draw(st.sampled_from(shapes(event)))
    return case(
        form,
        TABLE,
        op=op,
        source_lsn=lsn,
        source_table="datalake.cdc_events",
        topic=TOPIC,
        kafka_offset=5 if form.startswith(_SINK_START) else None,
    )


@st.composite
def _mutations(draw: st.DrawFn) -> Case:
    """An event in which some bytes are replaced, removed or doubled."""
    text = bytearray(draw(st.sampled_from(shapes(FLAT) + shapes(ENVELOPE))).encode())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 6))
        new = draw(
            st.binary(max_size=3)
            | st.sampled_from([b'"', b"{", b"}", b"[", b"]", b"\\", b",", b":", b"null"])
            | st.just(bytes(text[at : at + 20]))
        )
        text[at : at + length] = new
    return Case(_one_line(bytes(text)))


_any_record: st.SearchStrategy[Case] = st.one_of(
    st.binary(max_size=40).map(lambda text: Case(_one_line(text))),
    st.text(max_size=40).map(case),
    _values.map(line).map(case),
    _members.map(_object).map(case),
    _members.map(lambda members: case(sink(_object(members)))),
    _members.map(lambda members: case(sink(line(_object(members))))),
    _members.map(lambda members: case(sink(line(FLAT), _object(members)))),
)


def generated(count: int, seed: int) -> list[Case]:
    """Cases that Hypothesis generates from a seed: ``count`` of each of three kinds."""
    kinds = (_any_record, _good_events(), _mutations())
    return [each for kind in kinds for each in examples(kind, count, seed)]


# What must hold


def problem(case: Case, row: Row | None, *, is_kafka: bool = False) -> str | None:
    """What is wrong with the row of a case; None where nothing is."""
    try:
        _check(case, row, is_kafka)
    except AssertionError as error:
        return f"{str(error).splitlines()[0]}: {case.text[:200]!r} became {row}"[:1_000]
    return None


def _check(case: Case, row: Row | None, is_kafka: bool) -> None:
    # Decoders differ in how many replacement characters stand for one malformed sequence.
    text = re.sub("\ufffd+", "\ufffd", case.text.decode(errors="replace"))
    if not is_kafka:
        text = text.removeprefix("\ufeff").strip(" ")
    if row is None:
        assert text == "" and not is_kafka, "lost"
        return
    destination, reason = row["destination"], row["reason"]
    assert destination in (TABLE, "customers", "products", "rejected_events", "skipped")
    assert re.fullmatch("[0-9a-f]{32}", row["event_id"]), "no id"
    if is_kafka and case.text.startswith(b"\0"):
        # As Avro begins: kept as its bytes.
        kept = json.loads(row["record"])["undecoded"]["value"]
        assert base64.b64decode(kept) == case.text, "not verbatim"
        assert destination == "rejected_events"
        return
    assert re.sub("\ufffd+", "\ufffd", row["record"]) == text, "not verbatim"
    assert bool(reason) == (destination == "rejected_events"), "reason"
    assert len(reason or "") < 200, "a reason that cannot be printed"
    if destination == "skipped":
        assert _may_be_skipped(row), "a change event is skipped"
    elif destination != "rejected_events":
        _check_written(row)
    if case.destination is not None and not is_kafka:
        assert destination == case.destination, f"not in {case.destination}"
        for name, value in case.expected.items():
            assert row[name] == value, f"{name} is not {value!r}"


def _check_written(row: Row) -> None:
    assert row["op"] in OPERATIONS, "op"
    assert row["source_lsn"] is not None or row["op"] == "r", "no position"
    assert row["source_lsn"] is None or 0 <= row["source_lsn"] <= MAX_LONG, "position"
    assert row["source_epoch"] == 0, "epoch"
    for name in ("source_ts", "kafka_timestamp"):
        year = re.match(r"(\d{4})-", row[name] or "2026-")
        assert year and 1970 <= int(year[1]) <= 9999, f"{name} out of range"
    event = json.loads(row["value"])
    if "__op" not in event and "op" not in event:
        event = event["payload"]
    op = event.get("__op")
    assert (event.get("op") if op is None else op) == row["op"], "another op"


def _may_be_skipped(row: Row) -> bool:
    """Whether it has no value, or that of a heartbeat or of a transaction's marker."""
    value = row["value"]
    if value is None or value.strip(" ") in ("", "null"):
        # No value was there: in the sink's record, too.
        whole = json.loads(row["record"].strip(" ") or "null")
        found = whole.get("value") if isinstance(whole, dict) else None
        return found is None or (
            isinstance(found, str) and found.strip(" ") in ("", "null")
        )
    body = json.loads(value)
    payload = body.get("payload") if isinstance(body.get("payload"), dict) else {}
    if payload and body.get("schema") is not None:
        body = payload
    if body.get("__op") is not None or body.get("op") is not None:
        return False
    is_heartbeat = ["ts_ms"] in (list(body), list(payload)) or (
        row["topic"] or ""
    ).startswith("__debezium-heartbeat")
    return is_heartbeat or (body.get("status") in ("BEGIN", "END") and "id" in body)


def problems(
    cases: Sequence[Case], rows: Sequence[Row | None], *, is_kafka: bool = False
) -> str:
    """What is wrong with the rows of cases: how many, and the shortest ten."""
    found = [
        (len(case.text), text)
        for case, row in zip(cases, rows, strict=True)
        if (text := problem(case, row, is_kafka=is_kafka)) is not None
    ]
    if not found:
        return ""
    return "\n".join(
        [f"{len(found)} of {len(cases)}:", *(t for _, t in sorted(found)[:10])]
    )
