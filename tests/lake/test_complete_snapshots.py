"""A lost replication slot: rows that a complete snapshot lacks were deleted meanwhile.

Every table that takes part has a scenario of its own:

- ``orders``: the events of a second snapshot are built first, and the snapshot is named by
  a later build.
- ``customers``: the build that brings the snapshot names it, too.
- ``products``: the source was restored, so that its LSNs started again, in a new epoch.

Markers of ``cdc-lakehouse resync`` are tested in a lake of their own:

- ``orders``: a snapshot whose marker arrives before half of its reads.
- ``customers``: a table that was emptied.
- ``products``: a snapshot that was cut off, and then another, that was not.
"""

from __future__ import annotations

import json

import pytest

from tests.conftest import NewLake
from tests.support.lake import TOPICS_FILE
from tests.support.records import START_MS, Record, flattened, record
from tests.support.scenario import Scenario, customer, order, product

pytestmark = pytest.mark.thorough

FIRST, SECOND, RESTORED = 100, 200, 500
VARIABLE: dict[str, int | list[int]] = {
    "cdc_events": SECOND,
    "customers": [SECOND],
    "products": RESTORED,
}
MODELS = ("orders", "order_items", "customers", "products")
PRODUCTS_TOPIC = "demo.datalake.products"

BEFORE: list[Record] = [
    order("r", 1, FIRST, 0),
    order("r", 2, FIRST, 1),
    order("r", 3, FIRST, 2),
    order("c", 5, 120, 3),
    order("d", 7, 130, 4),
    # The second snapshot finds nothing in this partition.
    order("r", 20, FIRST, 0, partition=1),
    order("c", 21, 110, 1, partition=1),
    customer("r", "READ", FIRST, 0),
    customer("c", "AGAIN IN IT", 120, 3),
    customer("c", "AGAIN AFTER", 130, 4),
    customer("c", "READ LATE", 131, 5),
    customer("c", "BOTH", 132, 6),
    product("c", 1, 1_000, 0),
    product("c", 2, 1_100, 1),
]
# Orders 3, 5, 20 and 21 were deleted while the slot was lost. Order 4 was inserted by a
# transaction that was open when the snapshot was taken, 6 by one after it; 2 has changed
# since.
WHILE_READING: list[Record] = [
    order("r", 1, SECOND, 10, customer_id="BONAP"),
    order("r", 2, SECOND, 11),
    order("c", 4, 190, 12),
    order("c", 6, 210, 13),
    order("u", 2, 220, 14, customer_id="CHOPS"),
    customer("r", "READ", SECOND, 10),
    customer("c", "AGAIN IN IT", 120, 12),
    product("r", 1, RESTORED, 10),
    product("c", 4, 510, 11),
]
# Order 3 is inserted anew, 5 by a transaction that was open when the snapshot was taken.
AFTERWARDS: list[Record] = [
    order("c", 3, 300, 20, customer_id="DUMON"),
    order("c", 5, 195, 21, customer_id="EASTC"),
    customer("c", "AGAIN AFTER", 130, 30),
    customer("r", "READ LATE", SECOND, 31),
    customer("c", "BOTH", 132, 32),
    customer("r", "BOTH", SECOND, 33),
]
LIVE_ORDERS = {1, 2, 4, 6}


def named(snapshots: object) -> tuple[str, str]:
    """The variable ``cdc_lakehouse_complete_snapshots``."""
    return ("--vars", json.dumps({"cdc_lakehouse_complete_snapshots": snapshots}))


@pytest.fixture(scope="module")
def scenario(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A lake whose second snapshots have been named as complete."""
    topics = tmp_path_factory.mktemp("topics") / "topics.toml"
    text = TOPICS_FILE.read_text()
    topics.write_text(text)
    lake = new_lake(topics)
    scenario = Scenario(lake)
    lake.build(BEFORE, "-s", "path:models/staging", *MODELS)
    scenario.keep("first snapshot", *MODELS)

    assert "[epochs]\n" in text
    epoch = f'[epochs]\n"{PRODUCTS_TOPIC}" = 1\n'
    topics.write_text(text.replace("[epochs]\n", epoch))
    # Customers are left out: the build that reads their snapshot also names it.
    lake.build(WHILE_READING, "-s", "orders", "products")
    scenario.keep("second snapshot", "orders", "products")
    lake.dbt("run", "-s", *MODELS, *named(VARIABLE))
    scenario.keep("named", *MODELS)
    return scenario


@pytest.fixture(scope="module")
def continued(scenario: Scenario) -> Scenario:
    """The same lake rebuilt, with more events, and rebuilt again without the variable."""
    lake = scenario.lake
    lake.dbt("run", "--full-refresh", "-s", "orders", "order_items", *named(VARIABLE))
    scenario.keep("rebuilt", "orders", "order_items")
    lake.build(AFTERWARDS, "-s", "orders", "customers", *named(VARIABLE))
    scenario.keep("afterwards", "orders", "customers")
    lake.dbt("run", "--full-refresh", "-s", "orders", "customers")
    scenario.keep("rebuilt without the variable", "orders", "customers")
    return scenario


def test_rows_that_the_snapshot_lacks_are_deleted(scenario: Scenario) -> None:
    """But not those of a transaction that was open meanwhile, or of a later one."""
    assert scenario.live("second snapshot", "orders") == LIVE_ORDERS | {3, 5, 20, 21}
    assert scenario.live("named", "orders") == LIVE_ORDERS
    rows = scenario.rows("named", "orders")
    for key in (3, 5, 7):
        assert (rows[key]["op"], rows[key]["source_lsn"]) == ("r", SECOND)
        assert rows[key]["customer_id"] is None
    assert rows[1]["customer_id"] == "BONAP"
    assert rows[2]["customer_id"] == "CHOPS"
    assert scenario.live("named", "order_items") == LIVE_ORDERS


def test_a_snapshot_is_applied_once(scenario: Scenario) -> None:
    before = scenario.lake.tables.instants()
    scenario.lake.dbt("run", "-s", *MODELS, *named(VARIABLE))
    assert scenario.lake.tables.instants() == before


def test_a_full_refresh_gives_the_same(continued: Scenario) -> None:
    assert continued.live("rebuilt", "orders") == LIVE_ORDERS
    assert continued.live("rebuilt", "order_items") == LIVE_ORDERS


@pytest.mark.parametrize("step", ["afterwards", "rebuilt without the variable"])
def test_a_missing_row_can_come_back(step: str, continued: Scenario) -> None:
    """By a later insert, or by one of a transaction that is still open now."""
    rows = continued.rows(step, "orders")
    assert rows[3]["customer_id"] == "DUMON"
    assert rows[5]["customer_id"] == "EASTC"
    assert rows[7]["is_deleted"]
    assert continued.live(step, "orders") == LIVE_ORDERS | {3, 5}


def test_a_redelivered_event_does_not_revive_a_row(continued: Scenario) -> None:
    """Neither amid the snapshot's reads nor after the build that names it."""
    everyone = {"READ", "AGAIN IN IT", "AGAIN AFTER", "READ LATE", "BOTH"}
    assert continued.live("first snapshot", "customers") == everyone
    assert continued.live("named", "customers") == {"READ"}
    # The two others have been read by the snapshot, and the read arrived late.
    known = {"READ", "READ LATE", "BOTH"}
    assert continued.live("afterwards", "customers") == known
    # What was applied once is applied again, whether or not the variable still names it.
    assert continued.live("rebuilt without the variable", "customers") == known


def test_a_partition_that_the_snapshot_found_empty(scenario: Scenario) -> None:
    assert scenario.live("first snapshot", "orders") == {1, 2, 3, 5, 20, 21}
    rows = scenario.rows("named", "orders")
    assert [rows[key]["is_deleted"] for key in (20, 21)] == [True, True]


def test_rows_of_an_earlier_epoch_are_missing_too(scenario: Scenario) -> None:
    assert scenario.live("second snapshot", "products") == {1, 2, 4}
    assert scenario.live("named", "products") == {1, 4}


@pytest.mark.parametrize(
    ("snapshots", "message"),
    [
        (
            {"cdc_events": 150},
            "position 0000000000000096 of bronze.cdc_events, which holds no snap",
        ),
        ({"orders": SECOND}, "names 'orders', which is no bronze table; known: cdc_ev"),
        ({"cdc_events": ["x200"]}, "gives 'x200' for cdc_events; a position is a text of"),
        (
            [200],
            "cdc_lakehouse_complete_snapshots' is [200]; it maps a bronze table to the po",
        ),
    ],
)
def test_a_wrong_snapshot_stops_the_build(
    snapshots: object, message: str, scenario: Scenario
) -> None:
    before = scenario.lake.tables.instants()
    answer = scenario.lake.try_dbt("run", "-s", *MODELS, *named(snapshots))
    assert not answer["success"]
    assert any(message in text for text in [str(answer["error"]), *answer["said"]])
    assert scenario.lake.tables.instants() == before


MARKED = ("--vars", "cdc_lakehouse_resync: true")
MARKERS_TOPIC = "demo.datalake.complete_snapshots"
RESYNCED = ("orders", "order_items", "customers", "products")


def marker(table: str, count: int, lsn: int, offset: int) -> Record:
    """What a snapshot reads of the table ``complete_snapshots``."""
    row = {
        "id": f"resync-{offset}",
        "topic": f"demo.datalake.{table}",
        "bronze_table": table,
        "row_count": count,
    }
    value = flattened("r", row, lsn, table="complete_snapshots")
    return record({"id": row["id"]}, value, offset, topic=MARKERS_TOPIC)


@pytest.fixture(scope="module")
def resynced(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A lake whose tables were read again by ``resync``, over several builds."""
    topics = tmp_path_factory.mktemp("topics") / "topics.toml"
    line = f'[topics]\n"{MARKERS_TOPIC}" = "complete_snapshots"\n'
    topics.write_text(TOPICS_FILE.read_text().replace("[topics]\n", line))
    lake = new_lake(topics)
    scenario = Scenario(lake)
    steps: dict[str, list[Record]] = {
        "before": [
            *(order("r", key, FIRST, key) for key in (1, 2, 3, 4)),
            *(customer("c", f"C{key}", FIRST + key, key) for key in (1, 2)),
            *(product("c", key, FIRST + key, key) for key in (1, 2, 3, 4)),
        ],
        # Order 2 and products 3 and 4 are gone. Order 3 is deleted after the snapshot, and
        # order 5 inserted by a transaction that was open when it was taken.
        "markers": [
            marker("cdc_events", 3, SECOND, 1),
            marker("products", 2, SECOND, 2),
            order("r", 1, SECOND, 10, customer_id="BONAP"),
            order("r", 3, SECOND, 11),
            order("c", 5, 195, 13),
            product("r", 1, SECOND, 10),
            marker("customers", 0, SECOND, 3),
            # Its transaction was open when the snapshot found no row.
            record(
                {"customer_id": "OPEN"},
                flattened(
                    *("c", {"customer_id": "OPEN"}, 195),
                    ts_ms=START_MS + 1,
                    table="customers",
                ),
                15,
                topic="demo.datalake.customers",
            ),
        ],
        # The rest of the orders' reads. The other snapshot of the products is a new one.
        "reads": [
            order("r", 4, SECOND, 12),
            order("d", 3, 230, 14),
            marker("products", 2, 250, 4),
            product("r", 1, 250, 11),
            product("r", 2, 250, 12),
        ],
        # Also in another transaction than the one that emptied the table.
        "later": [customer("c", "C2", 300, 20), order("u", 4, 310, 21)],
    }
    for step, events in steps.items():
        lake.build(events, "-s", "path:models/staging", *RESYNCED, *MARKED)
        scenario.keep(step, *RESYNCED)
    return scenario


def test_a_marker_waits_for_its_reads(resynced: Scenario) -> None:
    assert resynced.live("markers", "orders") == {1, 2, 3, 4, 5}
    assert resynced.live("reads", "orders") == {1, 4, 5}
    assert resynced.live("reads", "order_items") == {1, 4, 5}
    assert resynced.rows("reads", "orders")[1]["customer_id"] == "BONAP"


def test_a_snapshot_that_was_cut_off_deletes_nothing(resynced: Scenario) -> None:
    """The next one does."""
    assert resynced.live("markers", "products") == {1, 2, 3, 4}
    assert resynced.live("reads", "products") == {1, 2}


def test_rows_of_an_emptied_table_are_deleted(resynced: Scenario) -> None:
    assert resynced.live("markers", "customers") == {"OPEN"}
    assert resynced.live("later", "customers") == {"OPEN", "C2"}


def test_a_marker_is_applied_once(resynced: Scenario) -> None:
    """And costs one statement then, to see a new one."""
    lake = resynced.lake
    before = lake.tables.instants()
    models = ("-s", "path:models/staging", *RESYNCED)
    marked = lake.dbt("run", *models, *MARKED)["statements"]
    plain = lake.dbt("run", *models)["statements"]
    assert lake.tables.instants() == before
    assert len(marked) <= len(plain) + 1, "\n".join(marked)


def test_a_full_refresh_applies_markers_again(resynced: Scenario) -> None:
    """Also where the tables were dropped, and with them what they had applied."""
    lake = resynced.lake
    lake.dbt("run", "--full-refresh", "-s", *RESYNCED, *MARKED)
    resynced.keep("rebuilt", *RESYNCED)
    for table in ("orders", "customers"):
        lake.sql(f"drop table silver.{table} purge")
    lake.dbt("run", "-s", *RESYNCED, *MARKED)
    resynced.keep("created again", *RESYNCED)
    for table in RESYNCED:
        expected = resynced.live("later", table)
        assert resynced.live("rebuilt", table) == expected, table
        assert resynced.live("created again", table) == expected, table
