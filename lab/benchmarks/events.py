"""Synthetic outbox events in the shape of Northwind's, for lakes of any size."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

TOPIC = "demo.datalake.cdc_events"
CUSTOMERS = 91
PRODUCTS = 77
EPOCH_DAY = 9_681  # 1996-07-04, the first order's date
FIRST_LSN = 50_000_000


def order(
    order_id: int, random_: random.Random, customers: int = CUSTOMERS
) -> dict[str, Any]:
    """The outbox row of an order with one to five lines, of one of so many customers."""
    customer = random_.randrange(customers)
    employee = random_.randrange(9) + 1
    shipper = random_.randrange(3) + 1
    products = random_.sample(range(1, PRODUCTS + 1), random_.randint(1, 5))
    lines = [
        {
            "product_id": product,
            "unit_price": random_.randint(200, 9_900) / 100,
            "quantity": random_.randint(1, 60),
            "discount": random_.choice([0, 0.05, 0.1, 0.25]),
        }
        for product in products
    ]
    described = [
        {
            "product_id": product,
            "product_name": f"Product {product}",
            "category_id": product % 8,
            "category_name": f"Category {product % 8}",
            "quantity_per_unit": "24 boxes x 2 pieces",
            "supplier_id": product % 29,
        }
        for product in products
    ]
    day = EPOCH_DAY + random_.randrange(700)
    return {
        "order_id": order_id,
        "customer_id": f"C{customer:04d}",
        "order_date": day,
        "required_date": day + 28,
        "shipped_date": day + random_.randrange(40),
        "order_items": json.dumps(lines),
        "products": json.dumps(described),
        "customer": json.dumps(
            {
                "customer_id": f"C{customer:04d}",
                "company_name": f"Company {customer}",
                "country": f"Country {customer % 21}",
                "address": "Berguvsvägen 8",
            }
        ),
        "employee": json.dumps(
            {
                "employee_id": employee,
                "first_name": "Nancy",
                "last_name": f"Davolio {employee}",
                "title": "Sales Representative",
                "notes": "Education includes a BA in psychology. " * 8,
            }
        ),
        "shipper": json.dumps({"shipper_id": shipper, "company_name": f"Ship {shipper}"}),
        "shipment": json.dumps({"freight": 32.38, "ship_country": "France"}),
        "updated_at": "2026-11-21T02:09:32.924409Z",
    }


class Stream:
    """A change stream of one topic, written to landing files."""

    def __init__(self, landing: Path, seed: int = 7, customers: int = CUSTOMERS) -> None:
        self.landing = landing
        self.customers = customers
        self.random = random.Random(seed)
        self.offset = 0

    def write(self, order_ids: list[int], op: str) -> Path:
        """Land one event an order, all of one operation, as one file.

        Args:
            order_ids: the keys, in the order of their changes.
            op: ``r``, ``c`` or ``u``.

        Returns:
            The file.
        """
        file = self.landing / TOPIC / "0" / f"{self.offset:012d}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", encoding="utf-8") as lines:
            for order_id in order_ids:
                lines.write(self._line(order_id, op) + "\n")
        return file

    def _line(self, order_id: int, op: str) -> str:
        offset = self.offset
        self.offset += 1
        value = order(order_id, self.random, self.customers) | {
            "__deleted": "false",
            "__op": op,
            "__table": "cdc_events",
            "__lsn": FIRST_LSN + offset,
            "__source_ts_ms": 1_795_227_000_000 + offset,
        }
        return json.dumps(
            {
                "key": {"order_id": order_id},
                "value": value,
                "metadata": {
                    "topic": TOPIC,
                    "partition": 0,
                    "offset": offset,
                    "timestamp": 1_795_227_000_000 + offset,
                },
            }
        )
