"""The analyses of a table's past, and what they answer in Spark."""

import json
import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

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
ORDERED = (date(1970, 1, 1) + timedelta(days=ORDER["order_date"])).replace(day=1)


def order(offset: int, op: str, key: int, hour: int, customer: str | None = None) -> Record:
    """An order's change, its position the offset, some hours after the first."""
    row: dict[str, Any] = {"order_id": key}
    if op != "d":
        row |= {"customer_id": customer, "order_date": 1, "shipped_date": None}
    value = flattened(op, row, offset, START_MS + hour * HOUR_MS)
    return record({"order_id": key}, value, offset)


def at(hour: float) -> str:
    """A time some hours after the first change, in UTC."""
    moment = datetime.fromtimestamp(START_MS / 1000 + hour * 3600, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def answer(lake: Lake, project: Path, name: str, **variables: Any) -> list[list[str]]:
    """The rows of an analysis, as ``dbt compile`` writes it."""
    said = ("--vars", json.dumps({"cdc_lakehouse_history": True, **variables}))
    done = lake.dbt("compile", "-s", name, *said, project=project)
    (file,) = Path(done["target"]).glob(f"compiled/*/{ANALYSES}/{name}.sql")
    return lake.sql(file.read_text())


def test_past_of_a_table_is_read_by_analyses(new_lake: NewLake, tmp_path: Path) -> None:
    """At times between two changes, whenever they were built."""
    topics = tmp_path / "topics.toml"
    topics.write_text(TOPICS)
    lake, project = new_lake(topics), small_project(tmp_path / "project")
    set_columns(project, COLUMNS)
    shutil.copytree(PROJECT / ANALYSES, project / ANALYSES)
    history = PROJECT / "models/silver/history/orders_history.sql"
    shutil.copy(history, project / "models/silver")
    for events in (
        [order(1, "c", 1, 1, "ALFKI"), order(2, "c", 2, 1, "BONAP")],
        [
            *(order(3, "u", 1, 3, "CACTU"), order(4, "d", 2, 3)),
            *(order(5, "c", 3, 3, "X"), order(6, "u", 1, 5, "LATER")),
        ],
    ):
        lake.land(events)
        assert lake.ingest().code == 0
        lake.dbt("run", *WITH_HISTORY, project=project)
    before = [["1", "ALFKI"], ["2", "BONAP"]]
    between = [["1", "CACTU"], ["3", "X"]]
    after = [["1", "LATER"], ["3", "X"]]
    for as_of, expected in (
        ({"as_of": at(0.9)}, []),
        ({"as_of": at(1)}, before),
        ({"as_of": at(2.9)}, before),
        ({"as_of": at(3)}, between),
        ({"as_of": at(9)}, after),
        ({}, after),
    ):
        rows = answer(lake, project, "orders_as_of", **as_of)
        assert [row[:2] for row in rows] == expected, as_of

    name = "orders_changed_between"
    changed = answer(lake, project, name, changed_from=at(1), changed_to=at(4))
    assert [(*row[:3], *row[4:]) for row in changed] == [
        ("1", "c", "ALFKI", at(1), at(3)),
        ("1", "u", "CACTU", at(3), at(5)),
        ("2", "c", "BONAP", at(1), at(3)),
        ("3", "c", "X", at(3), "None"),
    ]
    assert answer(lake, project, name, changed_from=at(5)) == []
    versions = answer(lake, project, "order_history", order_id=1)
    assert [(*row[:3], row[5]) for row in versions] == [
        ("1", "c", at(1), "ALFKI"),
        ("2", "u", at(3), "CACTU"),
        ("3", "u", at(5), "LATER"),
    ]


def version(op: str, key: int, hour: int, lines: int, shipped: int | None) -> Record:
    """A change of one of Northwind's orders, some hours after the first."""
    items = json.dumps([{"product_id": 11, "quantity": lines}])
    row = {**ORDER, "order_id": key, "order_items": items, "shipped_date": shipped}
    position = 100 * key + hour
    value = flattened(op, row, position, START_MS + hour * HOUR_MS)
    return record({"order_id": key}, value, position)


def test_history_answers_how_long_orders_waited(new_lake: NewLake) -> None:
    """Northwind's own history, its data tests, and the gold table that reads it."""
    lake = new_lake()
    models = ("-s", "path:models/staging", "+order_waits", *WITH_HISTORY)
    lake.build([version("c", 1, 0, 3, None), version("c", 2, 1, 1, None)], *models)
    lake.build([version("u", 1, 4, 5, None), version("u", 1, 36, 5, 10_000)], *models)
    lake.dbt("test", "-s", "orders_history", "order_waits", *WITH_HISTORY)

    versions = sorted(lake.rows("silver.orders_history"), key=lambda row: row["valid_from"])
    assert [(row["history_id"], row["is_current"]) for row in versions] == [
        ("1#1", False),
        ("2#1", True),
        ("1#2", False),
        ("1#3", True),
    ]
    [waits] = lake.rows("gold.order_waits")
    assert waits == {
        **{"order_month": ORDERED, "count_orders": 2, "count_placed": 2},
        **{"count_shipped": 1, "avg_hours_to_ship": Decimal("36.0")},
        **{"count_changed": 1, "count_line_changes": 1},
    }
