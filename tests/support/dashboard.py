"""Rows to fill the dashboard's page with."""

from datetime import UTC, date, datetime
from typing import Any

from cdc_lakehouse.serving.dashboard.content import NO_MONTH, Content, Freshness
from tests.support.records import Row

# Names are input; each of these would do harm somewhere if it were taken for markup.
COMPANY = "</script><script>alert(1)</script>"
SHIPPER = "<img src=x onerror=alert(2)>"
CATEGORY = '" onmouseover="alert(3)'
COUNTRY = "<b>Bold &amp; co</b>"
RENDERED = datetime(2026, 1, 1, tzinfo=UTC)


def rows(columns: str, *values: tuple[Any, ...]) -> list[Row]:
    """Rows of some columns."""
    return [dict(zip(columns.split(), row, strict=True)) for row in values]


def customer(rank: int) -> tuple[Any, ...]:
    """A row of gold.revenue_by_customer."""
    revenue, orders = (23 - rank) ** 2, 1 + (22 - rank) ** 2 // 4
    names = (f"C{rank}", COMPANY if rank == 1 else f"Company {rank}", COUNTRY)
    sums = (600 - rank, 9000 - rank, revenue, revenue / 3795)
    return (*names, orders, *sums, rank, 20 + rank * 7 % 50, revenue / 2)


FULL = Content(
    customers=rows(
        "customer_id company_name country count_orders count_items total_quantity revenue"
        " revenue_share revenue_rank avg_order_quantity avg_order_revenue",
        *map(customer, range(1, 23)),
    ),
    months=rows(
        "order_month count_orders count_items revenue",
        (NO_MONTH, 2, 6, 70),
        (date(1996, 7, 1), 3, 7, 400.5),
        (date(1996, 8, 1), 4, 8, None),
        (date(1996, 9, 1), 5, 9, 1201.5),
    ),
    categories=rows(
        "category_name count_products total_quantity revenue revenue_share revenue_rank",
        (CATEGORY, 11, 1001, 8000.75, 0.8, 1),
        ("Tea", 12, 1002, 2000.25, 0.2, 2),
    ),
    # One shipper more than have a colour of their own.
    shipments=rows(
        "ship_country shipper_id shipper_name count_shipped count_late late_share"
        " avg_days_late",
        ("Austria", 1, SHIPPER, 9, 0, 0, None),
        (COUNTRY, 1, SHIPPER, 10, 1, 0.1, 2.5),
        *((COUNTRY, key, f"S{key}", 20, key, key / 20, 2.25) for key in range(2, 8)),
        ("Norway", 2, "S2", 60, 50, 5 / 6, 1.5),
    ),
    waits=rows(
        "order_month count_orders count_placed count_shipped count_changed"
        " count_line_changes avg_hours_to_ship",
        (NO_MONTH, 5, 4, 3, 1, 2, 1.5),
        (date(1996, 7, 1), 6, 5, 4, 2, 3, 36),
    ),
    freshness=[Freshness("silver.orders", RENDERED, RENDERED, RENDERED)],
    outdated={"gold.revenue_by_month": ["silver.order_items", "silver.orders"]},
    rejected={f"reason {number}": 9 - number for number in range(7)},
    without_key={"order_id: 'x1' is no int": 1},
)
