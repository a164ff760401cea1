"""Avro to the JSON that Connect would have written: records of Kafka, and a sink's files.

All records are decoded in one Spark job; each test looks at its own.
"""

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.avro import SYNC, apicurio, confluent, container, encode, long, record
from tests.support.lake import Lake
from tests.support.parser import KafkaRecord as Sent
from tests.support.parser import decode
from tests.support.records import TOPIC, Row
from tests.support.registry import FakeRegistry

PLACE = {"__op": "string", "__lsn": ["null", "long"], "__table": "string"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 4}
# Connect's own types have logical types in Avro, Debezium's have names only.
ORDER = record(
    "Value",
    order_id="int",
    customer_id=["null", "string"],
    price=["null", DECIMAL],
    at={"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
    connect_at={"type": "long", "logicalType": "timestamp-millis"},
    connect_day={"type": "int", "logicalType": "date"},
    connect_time={"type": "int", "logicalType": "time-millis"},
    id={"type": "string", "logicalType": "uuid"},
    discount="float",
    rate="double",
    is_paid="boolean",
    state={"type": "enum", "name": "State", "symbols": ["open", "closed"]},
    tags={"type": "array", "items": ["null", "string"]},
    others={"type": "map", "values": "long"},
    lines={"type": "array", "items": record("Line", product_id="long")},
    **PLACE,
)
ROW: Row = {
    "order_id": 1,
    "customer_id": None,
    "price": b"\x01\xff",
    "at": 1_767_225_600_123_456,
    "connect_at": 1_767_225_600_123,
    "connect_day": 20_454,
    "connect_time": 1,
    "id": "2e0b6c2a-7d7c-4f0a-8a2e-000000000001",
    "discount": 0.05000000074505806,
    "rate": 1e22,
    "is_paid": True,
    "state": "closed",
    "tags": ["a", None, 'Käse "x"\n'],
    "others": {"k": -(2**63)},
    "lines": [{"product_id": 2**63 - 1}],
    "__op": "c",
    "__lsn": 77,
    "__table": "cdc_events",
}
ORDER_TEXT = (
    '{"order_id":1,"customer_id":null,"price":"Af8=","at":1767225600123456,'
    '"connect_at":1767225600123,"connect_day":20454,"connect_time":1,'
    '"id":"2e0b6c2a-7d7c-4f0a-8a2e-000000000001","discount":0.05,"rate":1.0E22,'
    '"is_paid":true,"state":"closed","tags":["a",null,"Käse \\"x\\"\\n"],'
    '"others":{"k":-9223372036854775808},"lines":[{"product_id":9223372036854775807}],'
    '"__op":"c","__lsn":77,"__table":"cdc_events"}'
)
# What becomes of a table: a column that is dropped, one that is widened, one that is added.
OLD = record("Value", order_id="int", customer_id="string", **PLACE)
NEW = record("Value", order_id="long", note=["null", "string"], **PLACE)
OLD_ROW = {
    **{"order_id": 1, "customer_id": "ALFKI"},
    **{"__op": "c", "__lsn": 1, "__table": "cdc_events"},
}
NEW_ROW = {
    **{"order_id": 2**40, "note": "n"},
    **{"__op": "u", "__lsn": 2, "__table": "cdc_events"},
}
ENVELOPE = record(
    "Envelope",
    before=["null", record("Row", order_id="int")],
    after=["null", "Row"],
    source=record("Source", lsn=["null", "long"], ts_ms="long", table="string"),
    op="string",
)
CHANGE = {
    "before": None,
    "after": {"order_id": 5},
    "source": {"lsn": 9, "ts_ms": 1, "table": "cdc_events"},
    "op": "u",
}
CHANGE_TEXT = (
    '{"before":null,"after":{"order_id":5},'
    '"source":{"lsn":9,"ts_ms":1,"table":"cdc_events"},"op":"u"}'
)
KEY = record("Key", order_id="int")
NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}
TWINS = {
    "type": "record",
    "name": "Twins",
    "fields": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}],
}
SCHEMAS: dict[int, Any] = {
    1: KEY,
    2: ORDER,
    3: OLD,
    4: NEW,
    5: ENVELOPE,
    6: "string",
    7: ["null", OLD],
    8: NODE,
    9: TWINS,
    10: {"type": "nonsense"},
}


def text_of(row: Row) -> str:
    return json.dumps(row, separators=(",", ":"))


OLD_TEXT, NEW_TEXT = text_of(OLD_ROW), text_of(NEW_ROW)
ORDER_BYTES = encode(ORDER, ROW)
OLD_BYTES = encode(OLD, OLD_ROW)
KEY_BYTES = encode(KEY, {"order_id": 1})
OLD_AVRO, KEY_AVRO = confluent(3, OLD_BYTES), confluent(1, KEY_BYTES)
KEY_TEXT = '{"order_id":1}'
HUGE = long(1) + long(1_900_000_000) + b"ALFKI"


def header(kind: str, number: int, part: str = "value") -> dict[str, bytes]:
    return {
        f"apicurio.{part}.{kind}": struct.pack(">Q", number),
        f"apicurio.{part}.encoding": b"BINARY",
    }


BOTH_HEADERS = header("contentId", 3) | header("contentId", 1, "key")
EIGHT_BYTES = struct.pack(">Q", 3)
JSON, BINARY = ({"apicurio.value.encoding": form} for form in (b"JSON", b"BINARY"))
# Records with the key, the value and the schema's id that they have then.
GOOD: dict[str, tuple[Sent, str | None, str, int | None]] = {
    "confluent": (Sent(confluent(2, ORDER_BYTES), KEY_AVRO), KEY_TEXT, ORDER_TEXT, 2),
    "old": (Sent(OLD_AVRO), None, OLD_TEXT, 3),
    "new": (Sent(confluent(4, encode(NEW, NEW_ROW))), None, NEW_TEXT, 4),
    "envelope": (Sent(confluent(5, encode(ENVELOPE, CHANGE))), None, CHANGE_TEXT, 5),
    "optional row": (Sent(confluent(7, long(1) + OLD_BYTES)), None, OLD_TEXT, 7),
    "key that is a string": (
        Sent(OLD_AVRO, confluent(6, encode("string", 'a"b'))),
        *('"a\\"b"', OLD_TEXT, 3),
    ),
    "key that is text": (Sent(OLD_AVRO, KEY_TEXT.encode()), KEY_TEXT, OLD_TEXT, 3),
    "key that is a long": (
        Sent(OLD_AVRO, struct.pack(">Q", 65)),
        *("\0" * 7 + "A", OLD_TEXT, 3),
    ),
    "id in a header": (
        Sent(OLD_BYTES, headers=header("contentId", 3)),
        *(None, OLD_TEXT, 3),
    ),
    "header of the key": (
        Sent(OLD_BYTES, KEY_BYTES, BOTH_HEADERS | {"other": b"x"}),
        *(KEY_TEXT, OLD_TEXT, 3),
    ),
    "text": (Sent(OLD_TEXT.encode(), KEY_TEXT.encode()), KEY_TEXT, OLD_TEXT, None),
    "text with an id in a header": (
        Sent(OLD_TEXT.encode(), headers={"apicurio.value.globalId": EIGHT_BYTES}),
        *(None, OLD_TEXT, None),
    ),
}
SKIPPED = {
    "tombstone": Sent(None, KEY_AVRO),
    "optional row that is null": Sent(confluent(7, long(0))),
}
NO_ID = "Avro value: there is no schema id, or Avro's JSON follows"
BYTES = "Avro value: the bytes are not what schema 3 says"
CANNOT = "Avro value: schema {} cannot be used: {}".format
RECURSIVE = "Found recursive reference in Avro schema, which can not be processed by Spark:"
# Records that are rejected, with the reason.
BAD = {
    "unknown id": (
        Sent(confluent(404, OLD_BYTES), KEY_AVRO),
        "Avro value: the registry has no schema 404",
    ),
    "unknown id of the key": (
        Sent(OLD_AVRO, confluent(404, b"\2")),
        "Avro key: the registry has no schema 404",
    ),
    "byte that follows": (Sent(confluent(3, OLD_BYTES + b"\0")), BYTES),
    "bytes that follow": (Sent(confluent(3, OLD_BYTES + b"\7" * 40)), BYTES),
    "byte that is missing": (Sent(confluent(3, OLD_BYTES[:-1])), BYTES),
    "no bytes": (Sent(confluent(3, b"")), BYTES),
    "another schema's bytes": (
        Sent(confluent(2, OLD_BYTES)),
        "Avro value: the bytes are not what schema 2 says",
    ),
    "length of 1.9 GB": (Sent(confluent(3, HUGE)), BYTES),
    "key that is cut": (
        Sent(OLD_AVRO, confluent(6, b"\x08ab")),
        "Avro key: the bytes are not what schema 6 says",
    ),
    "schema of itself": (Sent(confluent(8, b"\0")), CANNOT(8, RECURSIVE)),
    "schema of names alike": (
        Sent(confluent(9, b"\2\2")),
        CANNOT(9, "names of fields differ in case only"),
    ),
    "schema that is none": (
        Sent(confluent(10, b"")),
        CANNOT(10, '"nonsense" is not a defined name'),
    ),
    "zero byte only": (Sent(b"\0\0\0"), NO_ID),
    "header without an id": (Sent(OLD_BYTES, headers=BINARY), NO_ID),
    "Avro's JSON": (Sent(OLD_TEXT.encode(), headers=header("contentId", 3) | JSON), NO_ID),
    "id of 32 bits": (Sent(confluent(2**32 - 1, OLD_BYTES)), NO_ID),
}
RECORDS = {name: case[0] for name, case in GOOD.items()} | SKIPPED
RECORDS |= {name: case[0] for name, case in BAD.items()}


@pytest.fixture(scope="module")
def registry() -> Iterator[FakeRegistry]:
    server = FakeRegistry()
    for number, schema in SCHEMAS.items():
        server.add(number, schema)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def decoded(lake: Lake, registry: FakeRegistry) -> dict[str, Row]:
    rows = decode(lake, list(RECORDS.values()), registry.url)
    return dict(zip(RECORDS, rows, strict=True))


@pytest.mark.parametrize("name", GOOD)
def test_key_and_value_are_the_json_of_the_record(
    decoded: dict[str, Row], name: str
) -> None:
    """Numbers stay numbers, bytes are base64, nulls are there: as Connect's converter."""
    row, (_, key, value, schema_id) = decoded[name], GOOD[name]
    assert (row["key"], row["value"], row["record"]) == (key, value, value)
    assert row["schema_id"] == schema_id


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_decoded_is_rejected_with_its_bytes(
    decoded: dict[str, Row], name: str
) -> None:
    row, (sent, reason) = decoded[name], BAD[name]
    assert (row["destination"], row["key"]) == ("rejected_events", None)
    assert row["reason"].rstrip(".").startswith(reason)
    kept = json.loads(row["record"])["undecoded"]
    assert base64.b64decode(kept["value"]) == sent.value
    if sent.key is not None:
        assert base64.b64decode(kept["key"]) == sent.key


def test_every_other_record_is_decoded(
    decoded: dict[str, Row], registry: FakeRegistry
) -> None:
    """One bad record spoils no other in its batch; each schema is fetched once."""
    assert {name for name, row in decoded.items() if row["reason"]} == BAD.keys()
    skipped = {n for n, row in decoded.items() if row["destination"] == "skipped"}
    assert skipped == SKIPPED.keys()
    places = {n: (decoded[n]["op"], decoded[n]["source_lsn"]) for n in ("new", "envelope")}
    assert places == {"new": ("u", 2), "envelope": ("u", 9)}
    assert registry.asked.count("/schemas/ids/2") == 1


def test_ids_of_apicurio(lake: Lake, registry: FakeRegistry) -> None:
    """Eight bytes and a header, with its own interface; the same number is two schemas."""
    registry.add_apicurio("globalId", 3, OLD)
    registry.add_apicurio("contentId", 3, NEW)
    new = encode(NEW, NEW_ROW)
    rows = decode(
        lake,
        [
            Sent(apicurio(3, OLD_BYTES)),
            Sent(OLD_BYTES, headers=header("globalId", 3)),
            Sent(new, headers=header("contentId", 3) | header("globalId", 8)),
            Sent(OLD_AVRO),
            Sent(apicurio(2**40, OLD_BYTES)),
        ],
        f"{registry.url}/apis/registry/v2",
    )
    assert [row["value"] for row in rows[:4]] == [OLD_TEXT, OLD_TEXT, NEW_TEXT, OLD_TEXT]
    # No registry comes so far: the upper half is taken for four bytes.
    assert rows[4]["reason"] == "Avro value: the registry has no schema 256"


def test_without_a_registry_avro_is_rejected_and_text_is_not(lake: Lake) -> None:
    avro, text = decode(lake, [RECORDS["old"], RECORDS["text"]], None)
    assert avro["reason"] == "Avro value: --registry says where its schema is"
    assert json.loads(avro["record"])["undecoded"].keys() == {"value", "headers"}
    assert text["value"] == OLD_TEXT


# Files


def events(lake: Lake, numbers: range) -> list[Row]:
    """The events whose LSNs are of a test's own numbers, in their order."""
    rows = [row for row in lake.rows("bronze.cdc_events") if row["source_lsn"] in numbers]
    return sorted(rows, key=lambda row: row["source_lsn"])


def test_files_of_a_sink(lake: Lake, tmp_path: Path) -> None:
    """Bare values and Lenses' envelope, of several schemas; JSON lines beside them."""
    metadata = record("M", topic="string", partition="int", offset="long", timestamp="long")
    enveloped = record("E", key=["null", KEY], value=["null", NEW], metadata=metadata)
    place = {"topic": TOPIC, "partition": 0, "offset": 4, "timestamp": 1}
    (tmp_path / "a [1].avro").write_bytes(container(ORDER, [ROW]))
    (tmp_path / "b.avro").write_bytes(
        container(["null", OLD], [OLD_ROW, {**OLD_ROW, "__lsn": 3}])
    )
    (tmp_path / "c.avro").write_bytes(
        container(
            enveloped, [{"key": {"order_id": 1}, "value": NEW_ROW, "metadata": place}]
        )
    )
    (tmp_path / "d.json").write_text(text_of({**OLD_ROW, "__lsn": 50}))
    ingested = lake.ingest(str(tmp_path), "--topic", TOPIC)
    assert (ingested.code, ingested.counts) == (0, (5, 5, 0, 0)), ingested.err
    rows = events(lake, range(1000))
    assert [row["source_lsn"] for row in rows] == [1, 2, 3, 50, 77]
    assert [row["kafka_offset"] for row in rows] == [None, 4, None, None, None]
    assert rows[0]["value"] == OLD_TEXT
    assert (rows[1]["key"], rows[1]["value"]) == ('{"order_id":1}', NEW_TEXT)
    assert rows[4]["value"] == ORDER_TEXT
    assert {row["schema_id"] for row in rows} == {None}
    assert lake.ingest(str(tmp_path), "--topic", TOPIC).counts == (0, 0, 0, 0)


def test_unreadable_avro_files_do_not_hold_up_the_good_ones(
    lake: Lake, tmp_path: Path
) -> None:
    row = {**OLD_ROW, "__lsn": 1001}
    good = container(OLD, [row] * 20)
    files = {
        "good.avro": container(OLD, [row]),
        "cut.avro": good[:-60],
        "cut header.avro": good[:20],
        "cut at the last byte.avro": good[:-1],
        "text.avro": OLD_TEXT.encode(),
        "damaged.avro": good.replace(SYNC, b"x" * 16).replace(b"x" * 16, SYNC, 1) + SYNC,
        "node.avro": container(NODE, [{"next": None}]),
        "words.avro": container("string", ["a"]),
        "long.avro": container(OLD, [{**row, "customer_id": "x" * (9 << 20)}]),
        "codec.avro": good.replace(b"\x08null", b"\x08zzzz"),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    ingested = lake.ingest(str(tmp_path), "--topic", TOPIC)
    assert (ingested.code, ingested.counts) == (3, (1, 1, 0, 0)), ingested.err
    said = ingested.err
    assert said.count("cannot read") == len(files) - 1
    assert "node.avro: its schema cannot be used: Found recursive reference" in said
    assert "words.avro: its schema cannot be used: its records have no fields" in said
    assert "text.avro: it is no Avro file" in said
    assert "cut header.avro: its header is cut off or damaged" in said
    assert said.count("it is cut off: its end is not the end of a block") == 2
    assert "damaged.avro: Invalid sync!" in said
    assert "9437184 exceeds maximum allowed" in said
    assert "codec.avro: Unrecognized codec: zzzz" in said
    (tmp_path / "cut.avro").write_bytes(container(OLD, [{**OLD_ROW, "__lsn": 1005}]))
    again = lake.ingest(str(tmp_path), "--topic", TOPIC)
    assert (again.code, again.counts) == (3, (1, 1, 0, 0)), again.err
    found = events(lake, range(1000, 2000))
    assert [row["source_lsn"] for row in found] == [1001, 1005]
