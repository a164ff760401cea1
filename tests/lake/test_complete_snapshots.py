"""A lost replication slot: what a complete snapshot lacked was deleted meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest.config import TOPICS_FILE
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import TOPIC, Record, flattened, record
from tests.support.stories import ORDER

SILVER = ("-s", "path:models/staging", "path:models/silver")
FIRST, SECOND = 100, 200


def change(
    op: str, key: int, lsn: int, offset: int, customer: str = "ALFKI", partition: int = 0
) -> Record:
    row = {**ORDER, "order_id": key, "customer_id": customer}
    return record({"order_id": key}, flattened(op, row, lsn), offset, partition=partition)


def named(**snapshots: int | list[str] | list[int]) -> tuple[str, str]:
    return ("--vars", json.dumps({"complete_snapshots": snapshots}))


def live(lake: Lake, table: str = "orders") -> set[int]:
    rows = lake.rows(f"silver.{table}")
    return {row["order_id"] for row in rows if not row["is_deleted"]}


@pytest.fixture(scope="module")
def told(new_lake: NewLake) -> Lake:
    """Two snapshots; order 3, and 5 from the stream, were deleted while the slot was lost.

    Order 4 was inserted by a transaction that was open when the second was taken, and 6 by
    one after it; 2 has changed since.
    """
    lake = new_lake()
    lake.land(
        [
            change("r", 1, FIRST, 0),
            change("r", 2, FIRST, 1),
            change("r", 3, FIRST, 2),
            change("c", 5, 120, 3),
            change("d", 7, 130, 4),
        ]
    )
    assert lake.ingest().code == 0
    lake.dbt("run", *SILVER)
    lake.land(
        [
            change("r", 1, SECOND, 10, customer="BONAP"),
            change("r", 2, SECOND, 11),
            change("c", 4, 190, 12),
            change("c", 6, 210, 13),
            change("u", 2, 220, 14, customer="CHOPS"),
        ]
    )
    assert lake.ingest().code == 0
    lake.dbt("run", *SILVER)
    assert live(lake) == {1, 2, 3, 4, 5, 6}
    lake.dbt("run", *SILVER, *named(cdc_events=SECOND))
    return lake


def test_what_the_snapshot_lacked_is_deleted(told: Lake) -> None:
    rows = {row["order_id"]: row for row in told.rows("silver.orders")}
    assert live(told) == {1, 2, 4, 6}
    for key in (3, 5, 7):
        assert (rows[key]["op"], rows[key]["source_lsn"]) == ("r", SECOND)
        assert rows[key]["customer_id"] is None
    assert rows[1]["customer_id"] == "BONAP"
    assert rows[2]["customer_id"] == "CHOPS"
    assert live(told, "order_items") == {1, 2, 4, 6}


def test_it_is_taken_in_once(told: Lake) -> None:
    before = told.tables.instants()
    told.dbt("run", *SILVER, *named(cdc_events=[SECOND]))
    assert told.tables.instants() == before


def test_a_full_refresh_gives_the_same(told: Lake) -> None:
    told.dbt("run", "--full-refresh", *SILVER, *named(cdc_events=SECOND))
    assert live(told) == {1, 2, 4, 6}
    assert live(told, "order_items") == {1, 2, 4, 6}


def test_a_missing_row_can_come_back(told: Lake) -> None:
    """By a later insert, or by one of a transaction that is still open now."""
    told.land(
        [
            change("c", 3, 300, 20, customer="DUMON"),
            change("c", 5, 195, 21, customer="EASTC"),
        ]
    )
    assert told.ingest().code == 0
    for refresh in ([], ["--full-refresh"]):
        told.dbt("run", *refresh, *SILVER, *named(cdc_events=SECOND))
        rows = {row["order_id"]: row for row in told.rows("silver.orders")}
        assert rows[3]["customer_id"] == "DUMON"
        assert rows[5]["customer_id"] == "EASTC"
        assert rows[7]["is_deleted"]


def build(lake: Lake, *records: Record, arguments: tuple[str, ...] = ()) -> set[int]:
    """Bring records to silver; the orders that live then."""
    lake.land(records)
    assert lake.ingest().code == 0
    lake.dbt("run", *SILVER, *arguments)
    return live(lake)


def test_what_is_delivered_again_does_not_raise_the_dead(new_lake: NewLake) -> None:
    lake = new_lake()
    build(lake, change("r", 1, FIRST, 0), change("c", 5, 120, 3), change("c", 6, 130, 4))
    snapshot = (change("r", 1, SECOND, 10), change("c", 5, 120, 12))
    assert build(lake, *snapshot, arguments=named(cdc_events=SECOND)) == {1}
    assert build(lake, change("c", 6, 130, 30)) == {1}
    # What was taken in once holds, whether or not the variable still says it.
    lake.dbt("run", "--full-refresh", *SILVER)
    assert live(lake) == {1}
    # A read of the snapshot that comes to bronze after the build that named it.
    assert build(lake, change("r", 6, SECOND, 31)) == {1, 6}
    lake.dbt("run", "--full-refresh", *SILVER)
    assert live(lake) == {1, 6}


def test_a_partition_that_the_snapshot_found_empty(new_lake: NewLake) -> None:
    lake = new_lake()
    build(
        lake,
        change("r", 20, FIRST, 0, partition=1),
        change("c", 21, 110, 1, partition=1),
    )
    read = change("r", 1, SECOND, 10)
    assert build(lake, read, arguments=named(cdc_events=SECOND)) == {1}


def test_rows_of_an_earlier_epoch_are_missing_too(
    new_lake: NewLake, tmp_path: Path
) -> None:
    topics = tmp_path / "topics.toml"
    text = TOPICS_FILE.read_text()
    topics.write_text(text)
    lake = new_lake(topics)
    build(lake, change("c", 1, 1_000, 0), change("c", 2, 1_100, 1))
    topics.write_text(f'{text}\n"{TOPIC}" = 1\n')
    restored = (change("r", 1, 500, 10), change("c", 4, 510, 11))
    assert build(lake, *restored) == {1, 2, 4}
    lake.dbt("run", *SILVER, *named(cdc_events=500))
    assert live(lake) == {1, 4}


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        (named(cdc_events=150), "LSN 150 of bronze.cdc_events, which holds no snapshot"),
        (named(orders=SECOND), "names 'orders', which is no bronze table; known: cdc_ev"),
        (named(cdc_events=["x200"]), "gives 'x200' for cdc_events; an LSN is a whole numb"),
        (
            ("--vars", "{complete_snapshots: [200]}"),
            "variable 'complete_snapshots' is [200]; it maps a bronze table to the LSN",
        ),
    ],
)
def test_what_is_no_snapshot_stops_the_build(
    variable: tuple[str, str], said: str, told: Lake
) -> None:
    before = told.tables.instants()
    answer = told.try_dbt("run", *SILVER, *variable)
    assert not answer["success"]
    assert any(said in text for text in [str(answer["error"]), *answer["said"]])
    assert told.tables.instants() == before
