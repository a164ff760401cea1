"""A project as ``init`` and ``docs/package.md`` write it, which uses the package."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT, new_project
from tests.support.records import Record, flattened, record


def files() -> dict[str, str]:
    """The page's files, by path."""
    page = (PROJECT / "docs/package.md").read_text(encoding="utf-8")
    found = re.findall(r"^`([\w/.]+)`[^`]*:\n\n```\w+\n(.*?)```$", page, re.DOTALL | re.M)
    return dict(found)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, as its user writes it."""
    folder = new_project(tmp_path_factory.mktemp("package") / "shop")
    for name, text in files().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.fixture(scope="module")
def shop_lake(shop: Path, new_lake: NewLake) -> Lake:
    """A lake with three payments, one of an odd amount."""
    lake = new_lake(shop / "topics.toml")
    lake.land(
        [
            payment("c", 1, 10, "1.50"),
            payment("c", 2, 20, "2.50"),
            payment("c", 3, 30, "dear"),
            payment("u", 1, 40, "9.90"),
            payment("d", 2, 50, "2.50"),
        ]
    )
    assert lake.ingest().code == 0
    return lake


def payment(op: str, key: int, lsn: int, amount: str) -> Record:
    """A change of a payment."""
    row = {"payment_id": key, "amount": amount}
    value = flattened(op, row, lsn, table="payments")
    return record({"payment_id": key}, value, lsn, topic="shop.public.payments")


def test_package_builds_the_tables_of_another_project(shop: Path, shop_lake: Lake) -> None:
    """A first build, an increment, a full refresh; none of Northwind's models is there."""
    answer = shop_lake.dbt("build", project=shop)
    built = answer["nodes"]
    models = {name for name, node in built.items() if node["kind"] == "model"}
    assert models == {"stg_payments", "payments", "rejected_rows", "paid_by_size"}
    assert answer["said"] == []
    assert current(shop_lake) == {
        1: (Decimal("9.90"), False),
        2: (None, True),
        3: (None, False),
    }
    untyped = {
        row["payment_id"]: row["untyped_columns"]
        for row in shop_lake.rows("silver.payments")
    }
    assert untyped == {1: [], 2: None, 3: ["amount"]}
    assert shop_lake.rows("silver.rejected_rows") == []
    paid = {row["is_large"]: row["amount"] for row in shop_lake.rows("gold.paid_by_size")}
    assert paid == {True: Decimal("9.90")}

    shop_lake.land([payment("c", 4, 60, "4.00"), payment("u", 2, 45, "7.00")])
    assert shop_lake.ingest().code == 0
    assert shop_lake.dbt("build", project=shop)["said"] == []
    found = current(shop_lake)
    assert found == {
        1: (Decimal("9.90"), False),
        2: (None, True),
        3: (None, False),
        4: (Decimal("4.00"), False),
    }
    shop_lake.dbt("build", "--full-refresh", project=shop)
    assert current(shop_lake) == found


def test_its_tables_are_of_the_version_that_athena_reads(shop_lake: Lake) -> None:
    for table in ("silver.payments", "silver.rejected_rows", "gold.paid_by_size"):
        assert shop_lake.tables.properties(table)["hoodie.table.version"] == "6", table


def test_project_without_a_table_for_rejected_rows_is_refused(
    shop: Path, shop_lake: Lake
) -> None:
    model = shop / "models/silver/rejected_rows.sql"
    text = model.read_text()
    model.unlink()
    answer: dict[str, Any] = shop_lake.try_dbt("build", project=shop)
    model.write_text(text)
    assert not answer["success"]
    said = str([answer["error"], answer["said"], answer["nodes"]])
    assert (
        "no model 'rejected_rows', where rejected rows of 'stg_payments' would go" in said
    )


def current(lake: Lake) -> dict[int, tuple[Decimal | None, bool]]:
    """The amount of each payment, and whether it is deleted."""
    return {
        row["payment_id"]: (row["amount"], row["is_deleted"])
        for row in lake.rows("silver.payments")
    }
