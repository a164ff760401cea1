"""The dashboard of a lake that was built now: what the page has is what gold has."""

import subprocess
import sys

import pytest

from cdc_lakehouse.serving.dashboard.content import ORDERS, read_content
from lab.demo.landing import land
from tests.conftest import NewLake
from tests.support.scenario import order

# The page is written by a process that must not load these.
WRITE = (
    "import sys; from cdc_lakehouse.cli import main;"
    "assert main(['dashboard']) == 0;"
    "assert not {'pyspark', 'dbt', 'pandas'} & sys.modules.keys()"
)


@pytest.mark.thorough
def test_page_has_what_gold_has(new_lake: NewLake) -> None:
    """The demonstration's events, an order without a date, and two bad records."""
    lake = new_lake()
    land(lake.landing)
    undated = order("c", 90_001, 99_000_000, 0, order_date=None, partition=1)
    lake.land([undated, order("c", "x9", 99_000_001, 1, partition=1), "no JSON"])
    assert lake.ingest().code == 0
    lake.dbt("run", "--vars", "{cdc_lakehouse_history: true}")
    write = [sys.executable, "-c", WRITE]
    said = subprocess.check_output(write, env=lake.environment(), text=True)
    assert said.startswith(f"wrote {lake.root}/dashboard.html (")

    content = read_content(lake.root)
    shown = (content.customers, content.months, content.categories, content.shipments)
    for (name, key), rows in zip(ORDERS.items(), (*shown, content.waits), strict=True):
        assert len(rows) > 1
        assert rows == sorted(lake.rows(f"gold.{name}"), key=key)
    assert len(content.freshness) == len(ORDERS) + 4
    for fresh in content.freshness:
        newest = max(lake.tables.instants()[fresh.table])
        assert f"{fresh.written_at:%Y%m%d%H%M%S%f}"[:17] == newest[:17]
        if fresh.table.startswith("silver."):
            rows = lake.rows(fresh.table)
            assert fresh.changed_at == max(row["changed_at"] for row in rows)
            assert fresh.ingested_at == max(row["ingested_at"] for row in rows)
    assert content.outdated == {}
    [no_event] = lake.rows("bronze.rejected_events")
    [without_key] = lake.rows("silver.rejected_rows")
    assert content.rejected == {no_event["reason"]: 1}
    assert content.without_key == {without_key["reason"]: 1}
    page = (lake.root / "dashboard.html").read_text(encoding="utf-8")
    assert content.customers[0]["company_name"] in page
