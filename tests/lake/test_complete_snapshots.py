"""Complete snapshots by the markers of ``cdc-lakehouse resync``, in one lake.

- ``orders``: a snapshot whose marker arrives before half of its reads.
- ``customers``: a table that was emptied.
- ``products``: a snapshot that was cut off, and then another, that was not; then one of
  another source that fills the same table, at a lower position of its own log.

Those that a variable names, and which rows either deletes, ``tests/lake/test_decisions.py``
and ``tests/lake/test_histories.py`` compare with the reference.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import TOPICS_FILE
from tests.support.records import START_MS, Record, flattened, record
from tests.support.scenario import customer, live, order, product

pytestmark = pytest.mark.thorough

FIRST, SECOND = 100, 200
MARKED = ("--vars", "cdc_lakehouse_resync: true")
MARKERS_TOPIC = "demo.datalake.complete_snapshots"
OTHER_TOPIC = "other.datalake.products"
RESYNCED = ("orders", "order_items", "customers", "products")


def marker(table: str, count: int, lsn: int, offset: int, source: str = "demo") -> Record:
    """What a snapshot reads of the table ``complete_snapshots``."""
    row = {
        "id": f"resync-{offset}",
        "topic": f"{source}.datalake.{table}",
        "bronze_table": table,
        "row_count": count,
    }
    value = flattened("r", row, lsn, table="complete_snapshots")
    return record({"id": row["id"]}, value, offset, topic=MARKERS_TOPIC)


def test_rows_that_a_snapshot_lacks_are_deleted(new_lake: NewLake, tmp_path: Path) -> None:
    """When all of its reads are there; one that was cut off deletes nothing.

    A marker is applied once, and again by a full refresh or where tables were dropped. A
    new one costs one statement to see.
    """
    topics = tmp_path / "topics.toml"
    lines = f'"{MARKERS_TOPIC}" = "complete_snapshots"\n"{OTHER_TOPIC}" = "products"\n'
    topics.write_text(TOPICS_FILE.read_text().replace("[topics]\n", "[topics]\n" + lines))
    lake = new_lake(topics)

    def found() -> dict[str, set[Any]]:
        return {table: live(lake.rows(f"silver.{table}"), table) for table in RESYNCED}

    steps: dict[str, list[Record]] = {
        "before": [
            *(order("r", key, FIRST, key) for key in (1, 2, 3, 4)),
            *(customer("c", f"C{key}", FIRST + key, key) for key in (1, 2)),
            *(product("c", key, FIRST + key, key) for key in (1, 2, 3, 4)),
            *(product("c", key, FIRST + key, key, source="other") for key in (11, 12)),
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
            customer("c", "OPEN", 195, 15, at=START_MS + 1),
        ],
        # The rest of the orders' reads. The other snapshot of the products is a new one.
        "reads": [
            order("r", 4, SECOND, 12),
            order("d", 3, 230, 14),
            # Gone, in a partition without reads, and brought after the marker.
            order("c", 6, 150, 15, partition=1),
            marker("products", 2, 250, 4),
            product("r", 1, 250, 11),
            product("r", 2, 250, 12),
        ],
        # Also in another transaction than the one that emptied the table.
        "later": [customer("c", "C2", 300, 20), order("u", 4, 310, 21)],
        # Product 12 is gone there, and this position is lower than the one applied last.
        "other source": [
            marker("products", 1, 220, 5, source="other"),
            product("r", 11, 220, 13, source="other"),
        ],
    }
    models = ("-s", "path:models/staging", *RESYNCED)
    after = {}
    for step, events in steps.items():
        lake.build(events, *models, *MARKED)
        after[step] = found()
    marked, read, later = (after[step] for step in ("markers", "reads", "later"))
    assert (marked["orders"], read["orders"]) == ({1, 2, 3, 4, 5}, {1, 4, 5})
    assert read["order_items"] == {1, 4, 5}
    last = after["other source"]
    assert marked["products"] == {1, 2, 3, 4, 11, 12}
    assert (read["products"], last["products"]) == ({1, 2, 11, 12}, {1, 2, 11})
    # Of a table that was emptied.
    assert (marked["customers"], later["customers"]) == ({"OPEN"}, {"OPEN", "C2"})

    before = lake.tables.instants()
    marked_run = lake.dbt("run", *models, *MARKED)["statements"]
    plain_run = lake.dbt("run", *models)["statements"]
    assert lake.tables.instants() == before
    assert len(marked_run) <= len(plain_run) + 1, "\n".join(marked_run)
    lake.dbt("run", "--full-refresh", "-s", *RESYNCED, *MARKED)
    assert found() == last
    for table in ("orders", "customers"):
        lake.sql(f"drop table silver.{table} purge")
    lake.dbt("run", "-s", *RESYNCED, *MARKED)
    assert found() == last
