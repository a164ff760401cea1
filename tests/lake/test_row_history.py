"""The history of rows: what each kind of event does to it, with the values that it gives.

One lake goes through the steps, each with keys of its own; a position is also the time, in
milliseconds, unless an event says otherwise. ``tests/lake/test_histories.py`` compares
histories that chance draws with the reference.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT, write_rejected_rows
from tests.support.records import (
    START_MS,
    TOPIC,
    UNAVAILABLE,
    Record,
    Row,
    envelope,
    flattened,
    record,
)
from tests.support.small_project import (
    SILVER,
    STAGING,
    TOPICS,
    set_columns,
    small_project,
)

pytestmark = pytest.mark.thorough

HISTORY = "silver.orders_history"
COLUMNS = {
    "order_id": "int",
    "customer_id": "bpchar",
    "freight": "int",
    "shipment": "string",
}
MODEL = """
{{ config(materialized='cdc_history', unique_key='history_id') }}

{{ row_history(ref('stg_orders')) }}
"""
BUILD = ("-s", "stg_orders", "orders_history")


def event(
    op: str,
    key: int,
    lsn: int | None,
    offset: int,
    freight: int | None = None,
    *,
    time: int | None = None,
    shipment: str = "sea",
    **columns: Any,
) -> Record:
    """A change of an order; a delete has nothing but the key."""
    row: Row = {"order_id": key}
    if op != "d":
        row |= {"customer_id": "ALFKI", "freight": freight, "shipment": shipment}
        row |= columns
    at = START_MS + (lsn or 0 if time is None else time)
    return record({"order_id": key}, flattened(op, row, lsn, at), offset)


def truncate(lsn: int, offset: int) -> Record:
    return record(None, envelope("t", None, lsn, START_MS + lsn), offset)


FIRST: list[Record] = [
    event("c", 1, 100, 0, 1),
    event("u", 1, 110, 1, 1),
    event("u", 1, 130, 3, 3),
    event("c", 2, 200, 4, 1),
    event("d", 2, 210, 5),
    # Order 4 was order 3, and its new row leaves the shipment out.
    event("c", 3, 300, 6, 1, shipment="air"),
    event("d", 3, 310, 8),
    event("c", 4, 310, 9, 1, shipment=UNAVAILABLE),
    event("c", 5, 500, 10, 1),
    event("r", 5, 505, 11, 2, time=520),
    event("d", 6, 600, 14),
    # The clock of the source was set back.
    event("c", 7, 700, 15, 1),
    event("u", 7, 710, 16, 2, time=650),
    # Order 9 was another before, which nobody knows yet.
    event("c", 9, 910, 19, 1, shipment=UNAVAILABLE),
    event("u", 9, 920, 20, 1, shipment="rail"),
    event("r", 10, None, 21, 1, time=1000),
    # A blocking snapshot read order 14 before the changes that it had seen were sent.
    event("c", 14, 1_400, 25, 1, shipment="air"),
    event("r", 14, 1_400, 26, 2, time=1500),
    event("u", 14, 1_410, 27, 2, shipment=UNAVAILABLE),
    # Order 16 was order 15, was deleted; order 17 takes its number.
    event("c", 15, 1_500, 29, 1, shipment="air"),
    event("d", 15, 1_510, 30),
    event("c", 16, 1_510, 31, 1, shipment=UNAVAILABLE),
    event("d", 16, 1_520, 32),
]
SECOND: list[Record] = [
    # What was sent before: a version in the middle, and one before the delete.
    event("u", 1, 120, 2, 2),
    event("c", 6, 590, 13, 1),
    event("c", 2, 220, 22, 2),
    event("u", 3, 305, 7, 1, shipment="road"),
    event("u", 4, 320, 23, 2, shipment=UNAVAILABLE),
    # Its transaction was open when order 5 was read.
    event("u", 5, 503, 24, 3, time=515),
    event("c", 8, 900, 17, 1, shipment="rail"),
    event("d", 8, 910, 18),
    event("u", 14, 1_420, 28, 2),
    event("c", 17, 1_530, 33, 1, shipment="road"),
    event("d", 17, 1_540, 34),
    event("c", 16, 1_540, 35, 1, shipment=UNAVAILABLE),
]
# All of it was delivered before.
REPEATED: list[Record] = [
    event("u", 1, 130, 30, 3),
    event("u", 1, 120, 31, 2),
    event("d", 6, 600, 32),
]
TRUNCATED: list[Record] = [truncate(2_000, 40), event("c", 2, 2_010, 41, 7)]
# It finds order 2 and no other.
SNAPSHOT: list[Record] = [
    event("c", 11, 2_900, 50, 1),
    event("r", 2, 3_000, 51, 7),
    event("u", 2, 3_010, 52, 8),
]
# The log has started again.
RESTORED: list[Record] = [event("u", 2, 50, 60, 9, time=4_000)]
LATE: list[Record] = [event("u", 1, 125, 70, 9), event("u", 2, 3_005, 71, 6)]

# Two orders have the new column, one of them a version of before.
ADDED: list[Record] = [
    event("u", 2, 60, 80, 9, time=5_000, priority=1),
    event("c", 12, 5_000, 81, 1, priority=2),
]
# It lacks order 12, and 13, of which bronze has no event any more.
READ_AGAIN: list[Record] = [event("r", 2, 6_000, 90, 9, priority=1)]
BEFORE_REMOVAL: list[Record] = [
    event("c", 20, 7_000, 100, 1, priority=1),
    event("u", 20, 7_020, 102, 3, priority=3),
    event("c", 21, 7_110, 111, 1, shipment=UNAVAILABLE, priority=7),
    event("u", 21, 7_120, 112, 1, shipment="rail", priority=7),
]
# A late event splits a version; another is one with the one before, as its key was another.
AFTER_REMOVAL: list[Record] = [
    event("u", 20, 7_010, 101, 2),
    event("c", 22, 7_100, 109, 1, shipment="rail"),
    event("d", 22, 7_110, 110),
]
WRONG = {
    "cdc_merge": "the materialization cdc_merge cannot write a history",
    "cdc_history": "setting 'unique_key' is 'order_id'; its key is 'history_id'",
}


def named(**decisions: Any) -> tuple[str, str]:
    names = {f"cdc_lakehouse_{name}": value for name, value in decisions.items()}
    return ("--vars", json.dumps(names))


def summary(row: Row) -> str:
    """A version in short: what began it, its positions, its times and its values."""

    def time(at: datetime | None) -> str:
        return "" if at is None else f"{round((at.timestamp() * 1000) - START_MS)}"

    def place(end: str) -> str:
        position, epoch = row[f"{end}_position"], row[f"{end}_epoch"]
        at = "" if position is None else str(int(position, 16))
        return f"{epoch}/{at}" if epoch else at

    values = f"{row['freight']} {row['shipment']}"
    times = f"{time(row['valid_from'])}..{time(row['valid_to'])}"
    text = f"{row['op']} {place('from')}..{place('to')} at {times}: {values}"
    return f"{text}, current" if row["is_current"] else text


class Histories:
    """A lake with a history, and what that held after each step."""

    def __init__(self, lake: Lake, project: Path) -> None:
        self.lake = lake
        self.project = project
        self.rows: dict[str, list[Row]] = {}
        self.commits: dict[str, list[str]] = {}
        self.keys_in_files: set[int] = set()

    def build(self, step: str, records: list[Record], *arguments: str) -> None:
        self.lake.land(records)
        ingested = self.lake.ingest()
        assert ingested.code == 0, ingested.err
        self.lake.dbt("run", *BUILD, *arguments, project=self.project)
        self.keep(step)

    def keep(self, step: str) -> None:
        self.rows[step] = self.lake.rows(HISTORY)
        self.commits[step] = self.lake.tables.instants()[HISTORY]

    def of(self, step: str) -> dict[int, list[str]]:
        """Of each order its versions after a step, oldest first."""
        found: dict[int, list[str]] = {}
        rows = self.rows[step]
        for row in sorted(rows, key=lambda row: (row["order_id"], row["version_number"])):
            of_order = found.setdefault(row["order_id"], [])
            of_order.append(summary(row))
            assert row["history_id"] == f"{row['order_id']}#{len(of_order)}"
        return found


@pytest.fixture(scope="module")
def histories(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Histories:
    """The lake after all steps."""
    project = small_project(tmp_path_factory.mktemp("history") / "project")
    set_columns(project, COLUMNS)
    (project / "models/silver/orders_history.sql").write_text(MODEL)
    topics = project / "topics.toml"
    topics.write_text(TOPICS)
    lake = new_lake(topics)
    found = Histories(lake, project)
    found.build("first", FIRST)
    found.build("second", SECOND)
    found.build("repeated", REPEATED)
    lake.dbt("run", "--full-refresh", *BUILD, project=project)
    found.keep("refreshed")
    truncates = named(truncates={f"{2_000:016x}": "apply"})
    found.build("truncated", TRUNCATED, *truncates)
    found.build("snapshot", SNAPSHOT, *named(complete_snapshots={"cdc_events": 3_000}))
    restored = TOPICS + f'[epochs]\n"{TOPIC}" = 1\n'
    topics.write_text(restored)
    found.build("restored", RESTORED)
    topics.write_text(TOPICS)
    before = "source_epoch = 0 and coalesce(source_lsn, 0) <= 3000"
    lake.sql(f"delete from bronze.cdc_events where {before}")
    found.build("dropped", LATE)
    key = {"table": "cdc_events", "key": '{"order_id":1}'}
    arguments = ("erase_key", "--args", json.dumps(key))
    lake.dbt("run-operation", *arguments, project=project)
    found.keep("erased")
    found.keys_in_files = {
        key
        for file in lake.tables.path(HISTORY).rglob("*.parquet")
        for key in pq.read_table(file, columns=["order_id"])["order_id"].to_pylist()
    }
    topics.write_text(restored)
    set_columns(project, COLUMNS | {"priority": "int"})
    found.build("with a column", ADDED)
    found.build("not captured", [event("c", 13, 5_100, 82, 1)])
    lake.sql("delete from bronze.cdc_events where source_lsn = 5100")
    found.build("read again", READ_AGAIN, *named(complete_snapshots={"cdc_events": 6_000}))
    return found


def test_versions_of_a_first_build(histories: Histories) -> None:
    assert histories.of("first") == {
        1: ["c 100..130 at 100..130: 1 sea", "u 130.. at 130..: 3 sea, current"],
        2: ["c 200..210 at 200..210: 1 sea"],
        3: ["c 300..310 at 300..310: 1 air"],
        4: ["c 310.. at 310..: 1 air, current"],
        5: ["c 500..505 at 500..520: 1 sea", "r 505.. at 520..: 2 sea, current"],
        6: ["d 600..600 at 600..600: None None"],
        7: ["c 700..710 at 650..650: 1 sea", "u 710.. at 650..: 2 sea, current"],
        9: ["c 910..920 at 910..920: 1 None", "u 920.. at 920..: 1 rail, current"],
        10: ["r .. at 1000..: 1 sea, current"],
        # Nothing says yet that the shipment was another.
        14: ["c 1400..1410 at 1400..1410: 1 air", "u 1410.. at 1410..: 2 sea, current"],
        15: ["c 1500..1510 at 1500..1510: 1 air"],
        16: ["c 1510..1520 at 1510..1520: 1 air"],
    }


def test_late_events_change_the_past(histories: Histories) -> None:
    """A version is split, another came before a delete; what a row inherits has changed."""
    before, after = histories.of("first"), histories.of("second")
    assert after == before | {
        1: [
            "c 100..120 at 100..120: 1 sea",
            "u 120..130 at 120..130: 2 sea",
            "u 130.. at 130..: 3 sea, current",
        ],
        2: ["c 200..210 at 200..210: 1 sea", "c 220.. at 220..: 2 sea, current"],
        3: ["c 300..305 at 300..305: 1 air", "u 305..310 at 305..310: 1 road"],
        4: ["c 310..320 at 310..320: 1 road", "u 320.. at 320..: 2 road, current"],
        5: [
            "c 500..503 at 500..515: 1 sea",
            "u 503.. at 515..: 3 sea, current",
        ],
        6: ["c 590..600 at 590..600: 1 sea"],
        8: ["c 900..910 at 900..910: 1 rail"],
        9: ["c 910.. at 910..: 1 rail, current"],
        14: [
            "c 1400..1410 at 1400..1410: 1 air",
            "u 1410..1420 at 1410..1420: 2 air",
            "u 1420.. at 1420..: 2 sea, current",
        ],
        16: [*before[16], "c 1540.. at 1540..: 1 road, current"],
        17: ["c 1530..1540 at 1530..1540: 1 road"],
    }
    # The version that order 9 has no more went with the commit that wrote the others.
    assert len(histories.commits["second"]) == len(histories.commits["first"]) + 1


def test_repeated_events_change_nothing(histories: Histories) -> None:
    assert histories.rows["repeated"] == histories.rows["second"]
    assert histories.commits["repeated"] == histories.commits["second"]


def test_a_full_refresh_gives_what_increments_gave(histories: Histories) -> None:
    without_batch = [
        [{**row, "ingest_batch": None} for row in histories.rows[step]]
        for step in ("repeated", "refreshed")
    ]
    assert without_batch[0] == without_batch[1]


def test_a_truncate_ends_every_row(histories: Histories) -> None:
    before, after = histories.of("refreshed"), histories.of("truncated")
    ended = {
        key: [
            text.replace(".. at", "..2000 at")
            .replace("..:", "..2000:")
            .removesuffix(", current")
            if text.endswith("current")
            else text
            for text in texts
        ]
        for key, texts in before.items()
    }
    assert ended[10] == ["r ..2000 at 1000..2000: 1 sea"]
    assert after == ended | {2: [*ended[2], "c 2010.. at 2010..: 7 sea, current"]}


def test_a_complete_snapshot_ends_what_it_lacks(histories: Histories) -> None:
    """A read of the same values begins no version."""
    before, after = histories.of("truncated"), histories.of("snapshot")
    assert after == before | {
        2: [
            *before[2][:-1],
            "c 2010..3010 at 2010..3010: 7 sea",
            "u 3010.. at 3010..: 8 sea, current",
        ],
        11: ["c 2900..3000 at 2900..3000: 1 sea"],
    }


def test_a_restored_source_goes_on(histories: Histories) -> None:
    before, after = histories.of("snapshot"), histories.of("restored")
    assert after == before | {
        2: [
            *before[2][:-1],
            "u 3010..1/50 at 3010..4000: 8 sea",
            "u 1/50.. at 4000..: 9 sea, current",
        ]
    }


def test_versions_outlive_their_events(histories: Histories) -> None:
    """A late event comes between versions of which bronze has no event any more."""
    before, after = histories.of("restored"), histories.of("dropped")
    assert after == before | {
        1: [
            "c 100..120 at 100..120: 1 sea",
            "u 120..125 at 120..125: 2 sea",
            "u 125..130 at 125..130: 9 sea",
            "u 130..2000 at 130..2000: 3 sea",
        ],
        2: [
            *before[2][:-3],
            "c 2010..3005 at 2010..3005: 7 sea",
            "u 3005..3010 at 3005..3010: 6 sea",
            *before[2][-2:],
        ],
    }


def test_erase_key_takes_the_history(histories: Histories) -> None:
    before, after = histories.of("dropped"), histories.of("erased")
    assert after == {key: texts for key, texts in before.items() if key != 1}
    assert histories.keys_in_files == after.keys()


def test_an_added_column_begins_a_version(histories: Histories) -> None:
    before, after = histories.of("erased"), histories.of("with a column")
    assert after == before | {
        2: [
            *before[2][:-1],
            "u 1/50..1/60 at 4000..5000: 9 sea",
            "u 1/60.. at 5000..: 9 sea, current",
        ],
        12: ["c 1/5000.. at 5000..: 1 sea, current"],
    }
    rows = {row["history_id"]: row["priority"] for row in histories.rows["with a column"]}
    of_order_2 = [rows[f"2#{number}"] for number in range(1, len(after[2]) + 1)]
    assert of_order_2 == [None] * (len(after[2]) - 1) + [1]
    assert rows["12#1"] == 2


def test_a_complete_snapshot_keeps_what_bronze_has_dropped(histories: Histories) -> None:
    """It ends the row of which no event is left, too."""
    before, after = histories.of("not captured"), histories.of("read again")
    assert before[13] == ["c 1/5100.. at 5100..: 1 sea, current"]
    assert len(before[2]) == 7
    assert after == before | {
        12: ["c 1/5000..1/6000 at 5000..6000: 1 sea"],
        13: ["c 1/5100..1/6000 at 5100..6000: 1 sea"],
    }


@pytest.mark.parametrize("materialized", WRONG)
def test_wrong_settings_are_refused(histories: Histories, materialized: str) -> None:
    model = histories.project / "models/silver/wrong.sql"
    settings = f"materialized='{materialized}', unique_key='order_id'"
    model.write_text(
        f"{{{{ config({settings}) }}}}\n\n{{{{ row_history(ref('stg_orders')) }}}}\n"
    )
    answer = histories.lake.try_dbt("run", "-s", "wrong", project=histories.project)
    model.unlink()
    assert WRONG[materialized] in answer["nodes"]["wrong"]["message"]


def test_a_removed_column_stays_with_its_versions(
    new_lake: NewLake, tmp_path: Path
) -> None:
    """Whatever their numbers are now, also where a surplus version goes."""
    project = small_project(tmp_path / "project")
    (project / "models/silver/orders_history.sql").write_text(MODEL)
    topics = project / "topics.toml"
    topics.write_text(TOPICS)
    found = Histories(new_lake(topics), project)
    set_columns(project, COLUMNS | {"priority": "int"})
    found.build("declared", BEFORE_REMOVAL)
    set_columns(project, COLUMNS)
    found.build("removed", AFTER_REMOVAL)
    assert {
        row["history_id"]: (row["freight"], row["shipment"], row["priority"])
        for row in found.rows["removed"]
        if row["order_id"] in (20, 21)
    } == {
        "20#1": (1, "sea", 1),
        "20#2": (2, "sea", None),
        "20#3": (3, "sea", 3),
        "21#1": (1, "rail", 7),
    }


NAMED = re.compile(
    r"\bas `?([a-z]\w*)\b|\b([a-z]\w*) as \(|\b([a-z]\w*) ->|'([a-z]\w*)',|\b([a-z]\w*): "
)
# Names that no column can have: a declaration with one is refused.
TAKEN = ("_check_change_table.sql", "position_columns.sql", "row_history.sql")
COLUMNS_A_TABLE = 56  # of which the text of a staging view has room
# In each table: fields of structs, which a relation called as a column would have, too.
FIELDS = ("is_known", "part", "sequence", "value")


def words_of_our_sql() -> list[dict[str, str]]:
    """What our SQL calls relations, aliases, fields and variables, as tables' columns."""
    types: dict[str, str] = {}
    for file in (PROJECT / "macros").rglob("*.sql"):
        text = re.sub(r"\{#.*?#\}", "", file.read_text(), flags=re.DOTALL)
        for *names, field, member in NAMED.findall(text):
            types |= dict.fromkeys(names, "string")
            types.setdefault(field, "int")
            types.setdefault(member, "int")
    taken: set[str] = {"order_id"}
    for name in TAKEN:
        (file,) = (PROJECT / "macros").rglob(name)
        taken |= set(re.findall(r"'(\w+)'", file.read_text()))
    names = sorted({*types} - {*taken, *FIELDS, ""})
    return [
        dict.fromkeys(FIELDS, "string")
        | {name: types[name] for name in names[at : at + COLUMNS_A_TABLE]}
        for at in range(0, len(names), COLUMNS_A_TABLE)
    ]


WORDS = words_of_our_sql()


@pytest.fixture(scope="module")
def words(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Tables and histories whose columns are called what our SQL calls things."""
    project = small_project(tmp_path_factory.mktemp("words") / "project")
    models = project / "models"
    (models / "silver/orders.sql").unlink()
    (models / "staging/stg_orders.sql").unlink()
    for number, columns in enumerate(WORDS):
        meta = {"key": "order_id", "columns": {"order_id": "int"} | columns}
        (models / f"staging/stg_words_{number}.sql").write_text(STAGING.format(meta=meta))
        current = SILVER.replace("stg_orders", f"stg_words_{number}")
        (models / f"silver/words_{number}.sql").write_text(current)
        history = MODEL.replace("stg_orders", f"stg_words_{number}")
        (models / f"silver/words_{number}_history.sql").write_text(history)
    write_rejected_rows(models)
    topics = project / "topics.toml"
    topics.write_text(TOPICS)
    lake = new_lake(topics)
    types = {name: type_ for columns in WORDS for name, type_ in columns.items()}
    types |= dict.fromkeys(FIELDS, "string")
    texts: dict[str, Any] = {
        name: "kept" for name, type_ in types.items() if type_ == "string"
    }
    numbers: dict[str, Any] = {name: 1 for name, type_ in types.items() if type_ == "int"}
    changed: dict[str, Any] = dict.fromkeys(numbers, 2)
    unsent: dict[str, Any] = dict.fromkeys(texts, UNAVAILABLE)
    for records in (
        [event("c", key, 100 + key, key, **texts, **numbers) for key in (1, 2)],
        [
            event("u", 1, 110, 10, **unsent, **changed),
            # A key change: the values are those of the previous key.
            event("d", 2, 120, 11),
            event("c", 3, 120, 12, **unsent, **numbers),
        ],
    ):
        lake.land(records)
        assert lake.ingest().code == 0
        lake.dbt("run", project=project)
    return lake


@pytest.mark.parametrize("number", range(len(WORDS)))
def test_no_name_of_ours_is_taken_for_a_column_s(number: int, words: Lake) -> None:
    """CTEs, aliases, fields and variables of all macros, in silver and in a history."""
    kept = {
        name: "kept" if type_ == "string" else 1 for name, type_ in WORDS[number].items()
    }
    changed = kept | {name: 2 for name, value in kept.items() if value == 1}
    rows = {row["order_id"]: row for row in words.rows(f"silver.words_{number}")}
    versions = {
        row["history_id"]: row for row in words.rows(f"silver.words_{number}_history")
    }
    for row, expected in [(rows[1], changed), (rows[3], kept)] + [
        (versions[f"{key}#1"], kept) for key in (1, 2, 3)
    ]:
        assert {name: row[name] for name in expected} == expected
    assert rows[2]["is_deleted"]
    last = versions["1#2"] if changed != kept else versions["1#1"]
    assert {name: last[name] for name in changed} == changed
