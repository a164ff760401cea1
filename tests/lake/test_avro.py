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
from syrupy.assertion import SnapshotAssertion

from tests.support.avro import SYNC, apicurio, confluent, container, encode, long
from tests.support.lake import Lake
from tests.support.parser import KafkaRecord as Sent
from tests.support.parser import decode
from tests.support.records import TOPIC, Row
from tests.support.registry import FakeRegistry

SCHEMAS: dict[str, Any] = json.loads(Path(__file__).with_name("avro.json").read_text())
# Connect's own types have logical types in Avro, Debezium's have names only. Old and new
# are what becomes of a table: a column is dropped, one is widened, one is added.
ORDER, OLD, NEW = (SCHEMAS[name] for name in ("order", "old", "new"))
NODE, KEY = SCHEMAS["node"], SCHEMAS["key"]
BY_ID: dict[int, Any] = {
    **{1: KEY, 2: ORDER, 3: OLD, 4: NEW, 5: SCHEMAS["envelope"], 6: "string"},
    **{7: ["null", OLD], 8: NODE, 9: SCHEMAS["twins"], 10: {"type": "nonsense"}},
}
ROW: Row = SCHEMAS["row of order"] | {"price": b"\x01\xff"}
OLD_ROW, NEW_ROW = SCHEMAS["row of old"], SCHEMAS["row of new"]


def text_of(row: Row) -> str:
    return json.dumps(row, separators=(",", ":"))


OLD_TEXT = text_of(OLD_ROW)
ORDER_BYTES, OLD_BYTES = encode(ORDER, ROW), encode(OLD, OLD_ROW)
NEW_BYTES, CHANGE_BYTES = (
    encode(NEW, NEW_ROW),
    encode(SCHEMAS["envelope"], SCHEMAS["row of envelope"]),
)
KEY_BYTES = encode(KEY, {"order_id": 1})
OLD_AVRO, KEY_AVRO = confluent(3, OLD_BYTES), confluent(1, KEY_BYTES)
KEY_TEXT = b'{"order_id":1}'
HUGE = long(1) + long(1_900_000_000) + b"ALFKI"


def header(kind: str, number: int, part: str = "value") -> dict[str, bytes]:
    return {
        f"apicurio.{part}.{kind}": struct.pack(">Q", number),
        f"apicurio.{part}.encoding": b"BINARY",
    }


BOTH_HEADERS = header("contentId", 3) | header("contentId", 1, "key")
EIGHT_BYTES = struct.pack(">Q", 3)
JSON, BINARY = ({"apicurio.value.encoding": form} for form in (b"JSON", b"BINARY"))
RECORDS: dict[str, Sent] = {
    "confluent": Sent(confluent(2, ORDER_BYTES), KEY_AVRO),
    "old": Sent(OLD_AVRO),
    "new": Sent(confluent(4, NEW_BYTES)),
    "envelope": Sent(confluent(5, CHANGE_BYTES)),
    "optional row": Sent(confluent(7, long(1) + OLD_BYTES)),
    "key that is a string": Sent(OLD_AVRO, confluent(6, encode("string", 'a"b'))),
    "key that is text": Sent(OLD_AVRO, KEY_TEXT),
    "key that is a long": Sent(OLD_AVRO, struct.pack(">Q", 65)),
    "id in a header": Sent(OLD_BYTES, headers=header("contentId", 3)),
    "header of the key": Sent(OLD_BYTES, KEY_BYTES, BOTH_HEADERS | {"other": b"x"}),
    "text": Sent(OLD_TEXT.encode(), KEY_TEXT),
    "text with an id in a header": Sent(
        OLD_TEXT.encode(), headers={"apicurio.value.globalId": EIGHT_BYTES}
    ),
    # What is skipped.
    "tombstone": Sent(None, KEY_AVRO),
    "optional row that is null": Sent(confluent(7, long(0))),
    # What is rejected.
    "unknown id": Sent(confluent(404, OLD_BYTES), KEY_AVRO),
    "unknown id of the key": Sent(OLD_AVRO, confluent(404, b"\2")),
    "byte that follows": Sent(confluent(3, OLD_BYTES + b"\0")),
    "bytes that follow": Sent(confluent(3, OLD_BYTES + b"\7" * 40)),
    "byte that is missing": Sent(confluent(3, OLD_BYTES[:-1])),
    "no bytes": Sent(confluent(3, b"")),
    "another schema's bytes": Sent(confluent(2, OLD_BYTES)),
    "length of 1.9 GB": Sent(confluent(3, HUGE)),
    "key that is cut": Sent(OLD_AVRO, confluent(6, b"\x08ab")),
    "schema of itself": Sent(confluent(8, b"\0")),
    "schema of names alike": Sent(confluent(9, b"\2\2")),
    "schema that is none": Sent(confluent(10, b"")),
    "zero byte only": Sent(b"\0\0\0"),
    "header without an id": Sent(OLD_BYTES, headers=BINARY),
    "Avro's JSON": Sent(OLD_TEXT.encode(), headers=header("contentId", 3) | JSON),
    "id of 32 bits": Sent(confluent(2**32 - 1, OLD_BYTES)),
}


@pytest.fixture(scope="module")
def registry() -> Iterator[FakeRegistry]:
    server = FakeRegistry()
    for number, schema in BY_ID.items():
        server.add(number, schema)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def decoded(lake: Lake, registry: FakeRegistry) -> dict[str, Row]:
    rows = decode(lake, list(RECORDS.values()), registry.url)
    return dict(zip(RECORDS, rows, strict=True))


def test_key_and_value_are_the_json_of_the_record(
    decoded: dict[str, Row], registry: FakeRegistry, snapshot: SnapshotAssertion
) -> None:
    """Numbers stay numbers, bytes are base64, nulls are there: as Connect's converter.

    One bad record spoils no other in its batch; each schema is fetched once.
    """
    names = ("destination", "reason", "key", "value", "schema_id", "op", "source_lsn")
    assert {
        name: {column: row[column] for column in names if row[column] is not None}
        for name, row in decoded.items()
    } == snapshot
    assert registry.asked.count("/schemas/ids/2") == 1


def test_what_cannot_be_decoded_is_rejected_with_its_bytes(
    decoded: dict[str, Row],
) -> None:
    rejected = [name for name, row in decoded.items() if row["reason"]]
    assert rejected == list(RECORDS)[list(RECORDS).index("unknown id") :]
    for name in rejected:
        sent, kept = RECORDS[name], json.loads(decoded[name]["record"])["undecoded"]
        assert base64.b64decode(kept["value"]) == sent.value
        assert sent.key is None or base64.b64decode(kept["key"]) == sent.key


def test_ids_of_apicurio(lake: Lake, registry: FakeRegistry) -> None:
    """Eight bytes and a header, with its own interface; the same number is two schemas."""
    registry.add_apicurio("globalId", 3, OLD)
    registry.add_apicurio("contentId", 3, NEW)
    rows = decode(
        lake,
        [
            Sent(apicurio(3, OLD_BYTES)),
            Sent(OLD_BYTES, headers=header("globalId", 3)),
            Sent(NEW_BYTES, headers=header("contentId", 3) | header("globalId", 8)),
            Sent(OLD_AVRO),
            Sent(apicurio(2**40, OLD_BYTES)),
        ],
        f"{registry.url}/apis/registry/v2",
    )
    assert [row["value"] for row in rows[:4]] == [
        *(OLD_TEXT, OLD_TEXT, text_of(NEW_ROW), OLD_TEXT)
    ]
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


def test_files_of_a_sink(lake: Lake, decoded: dict[str, Row], tmp_path: Path) -> None:
    """Bare values and Lenses' envelope, of several schemas; JSON lines beside them."""
    order = decoded["confluent"]["value"]
    place = {"topic": TOPIC, "partition": 0, "offset": 4, "timestamp": 1}
    (tmp_path / "a [1].avro").write_bytes(container(ORDER, [ROW]))
    (tmp_path / "b.avro").write_bytes(
        container(["null", OLD], [OLD_ROW, {**OLD_ROW, "__lsn": 3}])
    )
    (tmp_path / "c.avro").write_bytes(
        container(
            SCHEMAS["enveloped"],
            [{"key": {"order_id": 1}, "value": NEW_ROW, "metadata": place}],
        )
    )
    (tmp_path / "d.json").write_text(text_of({**OLD_ROW, "__lsn": 50}))
    ingested = lake.ingest(str(tmp_path), "--topic", TOPIC)
    assert (ingested.code, ingested.counts) == (0, (5, 5, 0, 0)), ingested.err
    rows = events(lake, range(1000))
    assert [row["source_lsn"] for row in rows] == [1, 2, 3, 50, 77]
    assert [row["kafka_offset"] for row in rows] == [None, 4, None, None, None]
    assert rows[0]["value"] == OLD_TEXT
    assert rows[1]["key"].encode() == KEY_TEXT
    assert (rows[1]["value"], rows[4]["value"]) == (text_of(NEW_ROW), order)
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
