"""A project as ``init`` and ``docs/package.md`` write it, which uses the package."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT, new_project
from tests.support.records import Record, flattened, record


def files() -> dict[str, str]:
    """The page's files, by path."""
    page = (PROJECT / "docs/package.md").read_text(encoding="utf-8")
    found = re.findall(r"^`([\w/.]+)`[^`]*:\n\n```\w+\n(.*?)```$", page, re.DOTALL | re.M)
    return dict(found)


def payment(op: str, key: int, lsn: int, amount: str) -> Record:
    """A change of a payment."""
    row = {"payment_id": key, "amount": amount}
    value = flattened(op, row, lsn, table="payments")
    return record({"payment_id": key}, value, lsn, topic="shop.public.payments")


def payments(lake: Lake) -> dict[int, tuple[Any, ...]]:
    """The amount of each payment, whether it is deleted, and what its type cannot hold."""
    columns = ("amount", "is_deleted", "untyped_columns")
    return {
        row["payment_id"]: tuple(row[name] for name in columns)
        for row in lake.rows("silver.payments")
    }


def test_package_builds_the_tables_of_another_project(
    tmp_path: Path, new_lake: NewLake
) -> None:
    """A first build, an increment, a full refresh; none of Northwind's models is there.

    A project without a table for rejected rows is refused.
    """
    shop = new_project(tmp_path / "shop")
    for name, text in files().items():
        (shop / name).parent.mkdir(parents=True, exist_ok=True)
        (shop / name).write_text(text)
    lake = new_lake(shop / "topics.toml")

    def build(*events: Record) -> dict[str, Any]:
        lake.land(events)
        assert lake.ingest().code == 0
        return lake.dbt("build", project=shop)

    answer = build(
        payment("c", 1, 10, "1.50"),
        payment("c", 2, 20, "2.50"),
        payment("c", 3, 30, "dear"),
        payment("u", 1, 40, "9.90"),
        payment("d", 2, 50, "2.50"),
    )
    built = answer["nodes"]
    models = {name for name, node in built.items() if node["kind"] == "model"}
    assert models == {
        *("stg_payments", "payments", "rejected_rows", "paid_by_size", "rejected_records")
    }
    assert answer["said"] == []
    first = {
        1: (Decimal("9.90"), False, []),
        2: (None, True, None),
        3: (None, False, ["amount"]),
    }
    assert payments(lake) == first
    assert lake.rows("silver.rejected_rows") == []
    paid = {row["is_large"]: row["amount"] for row in lake.rows("gold.paid_by_size")}
    assert paid == {True: Decimal("9.90")}
    assert build(payment("c", 4, 60, "4.00"), payment("u", 2, 45, "7.00"))["said"] == []
    assert payments(lake) == first | {4: (Decimal("4.00"), False, [])}
    lake.dbt("build", "--full-refresh", project=shop)
    assert payments(lake) == first | {4: (Decimal("4.00"), False, [])}
    # What Athena reads.
    for table in ("silver.payments", "silver.rejected_rows", "gold.paid_by_size"):
        assert lake.tables.properties(table)["hoodie.table.version"] == "6", table

    (shop / "models/silver/rejected_rows.sql").unlink()
    refused = lake.try_dbt("build", project=shop)
    assert not refused["success"]
    said = str([refused["error"], refused["said"], refused["nodes"]])
    assert (
        "no model 'rejected_rows', where rejected rows of 'stg_payments' would go" in said
    )
