"""Rows to fill the dashboard's page with."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

from cdc_lakehouse.serving.dashboard.content import NO_MONTH, Content, Freshness
from tests.support.records import Row

# Names are input; each of these would do harm somewhere if it were taken for markup.
COMPANY = "</script><script>alert(1)</script>"
SHIPPER = "<img src=x onerror=alert(2)>"
CATEGORY = '" onmouseover="alert(3)'
COUNTRY = "<b>Bold &amp; co</b>"
# This would be shown as a formula.
DOLLARS = "$x^2$ & $5 for $6"
RENDERED = datetime(2026, 1, 1, tzinfo=UTC)
EMPTY = Content([], [], [], [], [], [], {}, {}, {})


def customer(rank: int, revenue: str | None, **columns: Any) -> Row:
    """A row of gold.revenue_by_customer with one order."""
    amount = None if revenue is None else Decimal(revenue)
    return {
        "customer_id": f"C{rank}",
        "company_name": f"Company {rank}",
        "country": "Germany",
        "count_orders": 1,
        "count_items": 1,
        "total_quantity": Decimal("1.00"),
        "revenue": amount,
        "revenue_share": amount and amount / 100,
        "revenue_rank": rank,
        "avg_order_quantity": Decimal("1.0000"),
        "avg_order_revenue": amount,
        **columns,
    }


def month(first: date, revenue: str | None) -> Row:
    """A row of gold.revenue_by_month with two orders."""
    amount = None if revenue is None else Decimal(revenue)
    return {"order_month": first, "count_orders": 2, "count_items": 6, "revenue": amount}


def category(rank: int, revenue: str | None, **columns: Any) -> Row:
    """A row of gold.revenue_by_category."""
    amount = None if revenue is None else Decimal(revenue)
    return {
        "category_name": f"Category {rank}",
        "count_products": 10,
        "total_quantity": Decimal("1000.00"),
        "revenue": amount,
        "revenue_share": amount and amount / 10_000,
        "revenue_rank": rank,
        **columns,
    }


def shipment(shipper: int, **columns: Any) -> Row:
    """A row of gold.late_shipments: one of two was late."""
    return {
        "ship_country": "Germany",
        "shipper_id": shipper,
        "shipper_name": f"Shipper {shipper}",
        "count_shipped": 2,
        "count_late": 1,
        "late_share": Decimal("0.5"),
        "avg_days_late": Decimal("3.0"),
        **columns,
    }


def wait(first: date, hours: str | None) -> Row:
    """A row of gold.order_waits: of three orders two were placed, one has changed twice."""
    return {
        **{"order_month": first, "count_orders": 3, "count_placed": 2},
        **{"count_shipped": 2 if hours else 0, "count_changed": 1, "count_line_changes": 2},
        "avg_hours_to_ship": hours and Decimal(hours),
    }


def full_content() -> Content:
    """Rows of every kind, markup in a name of each kind, and every notice."""
    customers = [
        customer(
            rank,
            f"{(23 - rank) ** 2}.25",
            revenue_share=Decimal((23 - rank) ** 2 / 3800).quantize(Decimal("0.000001")),
            count_orders=1 + (22 - rank) ** 2 // 4,
            avg_order_quantity=Decimal(20 + rank * 7 % 50),
        )
        for rank in range(1, 23)
    ]
    customers[0] |= {"company_name": COMPANY, "country": COUNTRY}
    customers[1]["company_name"] = DOLLARS
    countries = {COUNTRY: 3, "Austria": 2, DOLLARS: 1, "Norway": 0}
    shippers = {1: "Speedy Express", 2: DOLLARS, 3: SHIPPER}
    return Content(
        customers,
        [
            month(NO_MONTH, "70.00"),
            *(month(date(1996, number, 1), f"{number**3}.50") for number in range(7, 13)),
        ],
        [
            category(1, "8000.75", category_name=CATEGORY),
            category(2, "1500"),
            category(3, "300"),
        ],
        [
            shipment(
                number,
                ship_country=country,
                shipper_name=shippers[number],
                count_shipped=3,
                count_late=late if number == 3 else late // 2,
            )
            for (country, late), number in product(countries.items(), shippers)
        ],
        [
            wait(NO_MONTH, "1.5"),
            wait(date(1996, 7, 1), "36.0"),
            wait(date(1996, 8, 1), None),
        ],
        freshness=[Freshness("silver.orders", RENDERED, RENDERED, RENDERED)],
        outdated={"gold.revenue_by_month": ["silver.order_items", "silver.orders"]},
        rejected={f"reason {number}": 9 - number for number in range(7)},
        without_key={"order_id: 'x1' is no int": 1},
    )
