"""The analyses of a table's past, and what they answer in Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT
from tests.support.records import START_MS, Record, flattened, record
from tests.support.small_project import TOPICS, set_columns, small_project
from tests.support.stories import ORDER

COLUMNS = {
    "order_id": "int",
    "customer_id": "bpchar",
    "order_date": "date",
    "shipped_date": "date",
}
ANALYSES = "analyses/history"
WITH_HISTORY = ("--vars", json.dumps({"cdc_lakehouse_history": True}))
HOUR_MS = 3_600_000


def order(offset: int, op: str, key: int, customer: str | None = None) -> Record:
    """An order's change, its position the offset."""
    row: dict[str, Any] = {"order_id": key}
    if op != "d":
        row |= {"customer_id": customer, "order_date": 1, "shipped_date": None}
    return record({"order_id": key}, flattened(op, row, offset), offset)


class Past:
    """A project with the analyses, and its lake."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake = lake
        self.folder = small_project(folder)
        set_columns(self.folder, COLUMNS)
        shutil.copytree(PROJECT / ANALYSES, self.folder / ANALYSES)

    def build(self, *events: Record) -> str:
        """Bring events to silver; the commit that they came to."""
        self.lake.land(events)
        assert self.lake.ingest().code == 0
        self.lake.dbt("run", project=self.folder)
        newest = self.lake.tables.instants()["silver.orders"][-1]
        return newest.partition(".")[0]

    def answer(self, name: str, **variables: Any) -> list[list[str]]:
        """The rows of an analysis, as ``dbt compile`` writes it."""
        said = ("--vars", str(variables)) if variables else ()
        done = self.lake.dbt("compile", "-s", name, *said, project=self.folder)
        (file,) = Path(done["target"]).glob(f"compiled/*/{ANALYSES}/{name}.sql")
        return self.lake.sql(file.read_text())


@pytest.fixture(scope="module")
def past(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Past:
    folder = tmp_path_factory.mktemp("history")
    topics = folder / "topics.toml"
    topics.write_text(TOPICS)
    return Past(new_lake(topics), folder / "project")


def test_past_of_a_table_is_read_by_analyses(past: Past) -> None:
    first = past.build(order(1, "c", 1, "ALFKI"), order(2, "c", 2, "BONAP"))
    second = past.build(order(3, "u", 1, "CACTU"), order(4, "d", 2), order(5, "c", 3, "X"))

    before = [["1", "ALFKI"], ["2", "BONAP"]]
    after = [["1", "CACTU"], ["3", "X"]]
    for as_of, expected in (
        ({"as_of": first}, before),
        ({"as_of": second}, after),
        ({}, after),
    ):
        rows = past.answer("orders_as_of", **as_of)
        assert [row[:2] for row in rows] == expected, as_of

    changed = past.answer("orders_changed_between", changed_from=first, changed_to=second)
    assert [row[:4] for row in changed] == [
        ["1", "u", "False", "CACTU"],
        ["2", "d", "True", "None"],
        ["3", "c", "False", "X"],
    ]
    since_then = past.answer("orders_changed_between", changed_from=second)
    assert since_then == []

    history = past.answer("order_history", order_id=1)
    assert [(row[0], row[6]) for row in history] == [("c", "ALFKI"), ("u", "CACTU")]


def version(op: str, key: int, hour: int, lines: int, shipped: int | None) -> Record:
    """A change of one of Northwind's orders, some hours after the first."""
    items = json.dumps([{"product_id": 11, "quantity": lines}])
    row = {**ORDER, "order_id": key, "order_items": items, "shipped_date": shipped}
    position = 100 * key + hour
    value = flattened(op, row, position, START_MS + hour * HOUR_MS)
    return record({"order_id": key}, value, position)


def test_history_answers_how_long_orders_waited(new_lake: NewLake) -> None:
    """Northwind's own history, its data tests, and the analysis that reads it."""
    lake = new_lake()
    models = ("-s", "path:models/staging", "orders_history", *WITH_HISTORY)
    lake.build([version("c", 1, 0, 3, None), version("c", 2, 1, 1, None)], *models)
    lake.build([version("u", 1, 4, 5, None), version("u", 1, 36, 5, 10_000)], *models)
    lake.dbt("test", "-s", "orders_history", *WITH_HISTORY)

    versions = sorted(lake.rows("silver.orders_history"), key=lambda row: row["valid_from"])
    assert [(row["history_id"], row["is_current"]) for row in versions] == [
        ("1#1", False),
        ("2#1", True),
        ("1#2", False),
        ("1#3", True),
    ]
    done = lake.dbt("compile", "-s", "order_waits", *WITH_HISTORY)
    (file,) = Path(done["target"]).glob(f"compiled/*/{ANALYSES}/order_waits.sql")
    assert lake.sql(file.read_text()) == [["2026-01", "2", "1", "36.0", "1", "1"]]
