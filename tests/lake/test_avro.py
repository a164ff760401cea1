"""Avro to the JSON that Connect would have written: records of Kafka, and a sink's files.

All records are decoded in one Spark job; each test looks at its own. A sink's files are in
every layout, and of Parquet, too.
"""

import base64
import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from lab.demo.landing import recorded, sink_envelope
from tests.support.avro import apicurio, confluent, container, encode, schema_of
from tests.support.lake import Lake
from tests.support.parser import KafkaRecord as Sent
from tests.support.parser import decode
from tests.support.project import CAPTURES
from tests.support.records import TOPIC, Row, compact, flattened
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
OLD_TEXT = compact(OLD_ROW)
ORDER_BYTES, OLD_BYTES = encode(ORDER, ROW), encode(OLD, OLD_ROW)
NEW_BYTES = encode(NEW, NEW_ROW)
CHANGE_BYTES = encode(SCHEMAS["envelope"], SCHEMAS["row of envelope"])
KEY_BYTES = encode(KEY, {"order_id": 1})
OLD_AVRO, KEY_AVRO = confluent(3, OLD_BYTES), confluent(1, KEY_BYTES)
KEY_TEXT = b'{"order_id":1}'
HUGE = encode("long", 1) + encode("long", 1_900_000_000) + b"ALFKI"


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
    "optional row": Sent(confluent(7, encode(BY_ID[7], OLD_ROW))),
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
    "optional row that is null": Sent(confluent(7, encode(BY_ID[7], None))),
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


def test_what_cannot_be_decoded_is_rejected_with_its_bytes(decoded: dict[str, Row]) -> None:
    rejected = [name for name, row in decoded.items() if row["reason"]]
    assert rejected == list(RECORDS)[list(RECORDS).index("unknown id") :]
    for name in rejected:
        sent, kept = RECORDS[name], json.loads(decoded[name]["record"])["undecoded"]
        assert base64.b64decode(kept["value"]) == sent.value
        assert sent.key is None or base64.b64decode(kept["key"]) == sent.key


def test_ids_of_apicurio(lake: Lake, registry: FakeRegistry) -> None:
    """Eight bytes and a header, with its own interface; the same number is two schemas."""
    registry.add_apicurio("ids/globalIds/3", OLD)
    registry.add_apicurio("ids/contentIds/3", NEW)
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
        *(OLD_TEXT, OLD_TEXT, compact(NEW_ROW), OLD_TEXT)
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


# A walk-through, recorded as `lab/demo/events` were: an order comes in without a line, and
# then its three lines, each in a transaction of its own.
STREAM = list(recorded(CAPTURES / "order_11075.jsonl.gz"))
NESTED: list[Row] = [json.loads(each["value"]) for each in STREAM]
FLAT = [flattened(each["op"], each["after"], each["source"]["lsn"]) for each in NESTED]
PLACED: list[Row] = [json.loads(sink_envelope(each)) for each in STREAM]
for each in PLACED:
    del each["headers"]  # no field, which Parquet cannot have
# Lenses' by columns and its own, Confluent's by time and its own.
LAYOUTS = {
    f"customer_id=RICSU/order_id=11075/{TOPIC}(0_832)": NESTED,
    f"topics/{TOPIC}/0/000000000832": PLACED,
    f"topics/{TOPIC}/year=2026/month=11/day=28/{TOPIC}+0+0000000829": FLAT,
    f"topics/{TOPIC}/partition=0/{TOPIC}+0+0000000829": NESTED,
}
# How Confluent's sink has Parquet written where elements of an array may be null.
NULL_ELEMENTS = {"parquet.avro.write-old-list-structure": "false"}


def land_layouts(lake: Lake, folder: Path) -> None:
    """Write the walk-through in each layout, and there in each form."""
    for name, rows in LAYOUTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        json_lines, json_gzip, avro, *parquet = (
            folder / f"{name}{ending}"
            for ending in (".json", ".json.gz", ".avro", ".gz.parquet", ".snappy.parquet")
        )
        lines = "".join(compact(row) + "\n" for row in rows).encode()
        json_lines.write_bytes(lines)
        json_gzip.write_bytes(gzip.compress(lines))
        avro.write_bytes(container(schema_of("Row", rows)[1], rows))
        for file, codec in zip(parquet, ("GZIP", "SNAPPY"), strict=True):
            lake.write_parquet(avro, file, codec)


def land_types(lake: Lake, folder: Path) -> None:
    """Write bare values and Lenses' envelope, of several schemas; JSON beside them."""
    tagged, untagged = folder / "a [1].avro", folder / "e.avro"
    tagged.write_bytes(container(ORDER, [ROW]))
    untagged.write_bytes(container(ORDER, [{**ROW, "tags": ["a"], "__lsn": 78}]))
    lake.write_parquet(tagged, folder / "a [1].parquet", "GZIP", **NULL_ELEMENTS)
    lake.write_parquet(untagged, folder / "e.parquet", "SNAPPY")
    (folder / "b.avro").write_bytes(
        container(["null", OLD], [OLD_ROW, {**OLD_ROW, "__lsn": 3}])
    )
    place = {"topic": TOPIC, "partition": 0, "offset": 4, "timestamp": 1}
    (folder / "c.avro").write_bytes(
        container(
            SCHEMAS["enveloped"],
            [{"key": {"order_id": 1}, "value": NEW_ROW, "metadata": place}],
        )
    )
    (folder / "d.json").write_text(compact({**OLD_ROW, "__lsn": 50}))


def test_files_of_a_sink(lake: Lake, decoded: dict[str, Row], tmp_path: Path) -> None:
    """Each record once, as it is known by its text or its place, in all layouts and forms.

    So Parquet has the text that Avro and JSON have, nested, flattened, and of every type.
    """
    land_layouts(lake, tmp_path)
    land_types(lake, tmp_path)
    written = len(NESTED) + len(PLACED) + len(FLAT)
    read = 5 * (written + len(NESTED))
    ingested = lake.ingest(str(tmp_path), "--topic", TOPIC)
    counts = (read + 8, written + 6, 0, 0)
    assert (ingested.code, ingested.counts) == (0, counts), ingested.err
    found = events(lake, range(30_000_000, 31_000_000))
    values = [compact(row) for row in [*NESTED, *NESTED, *FLAT]]
    assert sorted(row["value"] for row in found) == sorted(values)
    offsets = [row["kafka_offset"] for row in found if row["kafka_offset"] is not None]
    assert offsets == [each["offset"] for each in STREAM]
    items = [json.loads(row["after"]["order_items"] or "[]") for row in NESTED]
    products = [[each["product_id"] for each in some] for some in items]
    assert products == [[], [2], [2, 46], [2, 46, 76]]

    order = decoded["confluent"]["value"]
    rows = events(lake, range(1000))
    assert [row["source_lsn"] for row in rows] == [1, 2, 3, 50, 77, 78]
    assert [row["kafka_offset"] for row in rows] == [None, 4, None, None, None, None]
    assert rows[0]["value"] == OLD_TEXT
    assert rows[1]["key"].encode() == KEY_TEXT
    assert (rows[1]["value"], rows[4]["value"]) == (compact(NEW_ROW), order)
    assert {row["schema_id"] for row in rows} == {None}
    assert lake.ingest(str(tmp_path), "--topic", TOPIC).counts == (0, 0, 0, 0)
