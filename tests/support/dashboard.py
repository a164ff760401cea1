"""Content to fill the dashboard's page with: the rows of ``dashboard.yml``."""

from datetime import UTC, datetime
from pathlib import Path

import yaml

from cdc_lakehouse.serving.dashboard.content import Content, Freshness

RENDERED = datetime(2026, 1, 1, tzinfo=UTC)
TABLES = {
    name: [dict(zip(table["columns"].split(), row, strict=True)) for row in table["rows"]]
    for name, table in yaml.safe_load(
        Path(__file__).with_suffix(".yml").read_text(encoding="utf-8")
    ).items()
}
FULL = Content(
    **TABLES,
    freshness=[Freshness("silver.orders", RENDERED, RENDERED, RENDERED)],
    outdated={"gold.revenue_by_month": ["silver.order_items", "silver.orders"]},
    rejected={f"reason {number}": 9 - number for number in range(7)},
    without_key={"order_id: 'x1' is no int": 1},
)
COMPANY = FULL.customers[0]["company_name"]
COUNTRY, SHIPPER = (FULL.shipments[1][name] for name in ("ship_country", "shipper_name"))
