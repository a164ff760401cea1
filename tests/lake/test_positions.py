"""The positions that the ingest makes of what each connector says, and those it rejects."""

import json
import random
from typing import Any

import pytest

from ingest.positions import CONNECTORS
from tests.support.lake import Lake
from tests.support.parser import classify
from tests.support.records import START_MS, Row

Source = dict[str, Any]

# The `source` of events as Debezium's pages on each connector document it, without what the
# ingest does not read: https://debezium.io/documentation/reference/stable/connectors/
POSTGRESQL = {"connector": "postgresql", "lsn": 24_023_128}
MYSQL = {"connector": "mysql", "file": "mysql-bin.000003", "pos": 484, "row": 0}
MARIADB = {"connector": "mariadb", "file": "binlog.000042", "pos": 9_876, "row": 12}
SQLSERVER = {
    "connector": "sqlserver",
    "change_lsn": "00000027:00000ac0:0002",
    "commit_lsn": "00000027:00000ac0:0007",
    "event_serial_no": "2",
}
SQLSERVER_READ = {
    "connector": "sqlserver",
    "change_lsn": None,
    "commit_lsn": "00000025:00000d98:00a2",
    "event_serial_no": None,
}
POSITIONS: list[tuple[str, Source, str]] = [
    ("c", POSTGRESQL, "00000000016e9058"),
    ("u", MYSQL, "0000000003/0000000484/0000000000"),
    ("d", MARIADB, "0000000042/0000009876/0000000012"),
    ("r", MYSQL | {"snapshot": "last"}, "0000000003/0000000484/0000000000"),
    ("c", MYSQL | {"file": "a.b.2147483647"}, "2147483647/0000000484/0000000000"),
    ("c", MYSQL | {"pos": 4_294_967_295}, "0000000003/4294967295/0000000000"),
    ("u", SQLSERVER, "00000027:00000ac0:0007/00000027:00000ac0:0002/0000000002"),
    (
        "d",
        SQLSERVER
        | {"commit_lsn": "00000027:00000AC0:000B", "change_lsn": "00000027:00000AC0:000A"},
        "00000027:00000ac0:000b/00000027:00000ac0:000a/0000000002",
    ),
    ("r", SQLSERVER_READ, "00000025:00000d98:00a2/00000000:00000000:0000/0000000000"),
]
# A read that says nothing of its place is ordered by its offset.
NO_POSITIONS: list[Source] = [
    {"connector": "postgresql", "lsn": None},
    {"connector": "mysql"},
    {"connector": "sqlserver", "change_lsn": None, "commit_lsn": None},
]
BINLOG = (
    "a binlog position: a file name that ends with its number, a position of 32 bits and a"
    " row"
)
COMMIT = "a commit LSN: commit LSN, change LSN and serial number"
LSN = "an LSN: a number of 63 bits"
# Invalid positions, and what they should have been.
NONE: list[tuple[str, Source, str, str]] = [
    ("c", {"lsn": 2**63}, str(2**63), LSN),
    ("r", {"lsn": "x"}, "x", LSN),
    ("u", MYSQL | {"row": None}, "mysql-bin.000003 484", BINLOG),
    ("r", MYSQL | {"file": "mysql-bin"}, "mysql-bin 484 0", BINLOG),
    ("c", MYSQL | {"file": "b.2147483648"}, "b.2147483648 484 0", BINLOG),
    ("c", MYSQL | {"pos": -1}, "mysql-bin.000003 -1 0", BINLOG),
    ("c", MYSQL | {"pos": 2**32}, "mysql-bin.000003 4294967296 0", BINLOG),
    (
        *("u", SQLSERVER | {"event_serial_no": "x"}),
        *("00000027:00000ac0:0007 00000027:00000ac0:0002 x", COMMIT),
    ),
    (
        *("u", SQLSERVER | {"commit_lsn": "00000027:00000ac0"}),
        *("00000027:00000ac0 00000027:00000ac0:0002 2", COMMIT),
    ),
    (
        *("u", SQLSERVER | {"change_lsn": "NULL"}),
        *("00000027:00000ac0:0007 NULL 2", COMMIT),
    ),
]
LACKING: list[tuple[str, Source, str]] = [
    ("u", {}, "an LSN"),
    ("u", {"connector": "mysql"}, "a binlog position"),
    ("c", SQLSERVER_READ, "a commit LSN"),
    ("u", SQLSERVER | {"event_serial_no": None}, "a commit LSN"),
]
REJECTED: list[tuple[str, Source, str]] = [
    *((op, source, f"'{text}' is not {what}") for op, source, text, what in NONE),
    *(
        (op, source, f"operation '{op}' without {what}: only a snapshot read may lack it")
        for op, source, what in LACKING
    ),
    (
        "c",
        {"connector": "oracle", "scn": "2122184"},
        "unknown connector 'oracle': the ingest knows the positions of "
        + ", ".join(CONNECTORS),
    ),
]
FORMS = ("envelope", "names", "source_names")


def event(op: str, source: Source, form: str) -> Row:
    """A change in Debezium's envelope, or flattened with either way to name its fields."""
    if form == "envelope":
        row = {"id": 1}
        return {
            "op": op,
            "before": row if op == "d" else None,
            "after": None if op == "d" else row,
            "source": {**source, "ts_ms": START_MS, "table": "cdc_events"},
        }
    prefix = "__" if form == "names" else "__source_"
    return {
        "id": 1,
        "__op": op,
        "__table": "cdc_events",
        "__source_ts_ms": START_MS,
        **{f"{prefix}{name}": value for name, value in source.items()},
    }


# Of each event the operation, the source and what becomes of it.
CASES: list[tuple[str, Source, Row]] = [
    *(
        (op, source, {"source_position": position, "source_lsn": source.get("lsn")})
        for op, source, position in POSITIONS
    ),
    *(
        ("r", source, {"source_position": None, "source_lsn": None})
        for source in NO_POSITIONS
    ),
    *((op, source, {"reason": reason}) for op, source, reason in REJECTED),
]


@pytest.fixture(scope="module")
def rows(lake: Lake) -> dict[str, list[Row | None]]:
    events = [event(op, source, form) for form in FORMS for op, source, _ in CASES]
    found = classify(lake, [json.dumps(value) for value in events])
    return {form: found[at * len(CASES) :] for at, form in enumerate(FORMS)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_position_of_a_connector(
    rows: dict[str, list[Row | None]], form: str, number: int
) -> None:
    row, (op, _, expected) = rows[form][number], CASES[number]
    assert row is not None
    taken = {"reason": None, "op": op, "source_table": "cdc_events"}
    wanted = expected if "reason" in expected else taken | expected
    assert {name: row[name] for name in wanted} == wanted
    assert (row["destination"] == "rejected_events") == ("reason" in expected)


def test_positions_sort_as_the_log_does(lake: Lake) -> None:
    """Random places of each log: their texts sort as their numbers do."""
    draw = random.Random(20_261_122)

    def size() -> int:
        return draw.getrandbits(draw.choice((1, 4, 16, 31)))

    binlog = sorted({(size(), size(), size()) for _ in range(200)})
    lsns = [f"{size():08x}:{size():08x}:{draw.getrandbits(16):04x}" for _ in range(30)]
    changes = sorted(
        {
            (*(int(part, 16) for part in f"{commit}:{change}".split(":")), serial)
            for commit in lsns[:10]
            for change in lsns
            for serial in (1, 2, 10)
        }
    )
    sources = [
        MYSQL | {"file": f"b.{file:06d}", "pos": pos, "row": row}
        for file, pos, row in binlog
    ]
    sources += [
        SQLSERVER
        | {
            "commit_lsn": "{:08x}:{:08x}:{:04x}".format(*change[:3]),
            "change_lsn": "{:08x}:{:08x}:{:04x}".format(*change[3:6]),
            "event_serial_no": change[6],
        }
        for change in changes
    ]
    found = classify(
        lake, [json.dumps(event("u", source, "envelope")) for source in sources]
    )
    positions = [row["source_position"] for row in found if row is not None]
    assert None not in positions
    for part in (positions[: len(binlog)], positions[len(binlog) :]):
        assert part == sorted(set(part))
