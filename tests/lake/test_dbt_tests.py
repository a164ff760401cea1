"""dbt's own tests of Northwind and TICKIT: unit tests pass, data tests fail on wrong rows.

Neither reads what a build wrote. A unit test needs the columns of the tables that it
replaces; a data test reads a few rows that are made up here, each wrong in one way. So the
tables of silver and gold are views, in a lake of each.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT, TICKIT
from tests.support.records import Row

ORDERS_HISTORY = """
select *, 1 as version_number, timestamp'2024-01-01' as valid_from from staging.stg_orders
"""

MADE_UP = yaml.safe_load(Path(__file__).with_name("wrong_rows.yml").read_text())
# They enable every model and test, of either project.
ENABLED = (
    *("cdc_lakehouse_unit_tests", "cdc_lakehouse_history"),
    *("cdc_lakehouse_recorded_events", "tickit_unit_tests"),
)
VARIABLES = ("--vars", json.dumps(dict.fromkeys(ENABLED, True)))
# Those of columns that are not of a key, each with a wrong row above.
OF_COLUMNS = {
    "not_null_order_items_customer_id": "warn",
    "relationships_order_items_order_id__order_id__ref_orders_": "fail",
}


def dbt_test(lake: Lake, *arguments: str) -> dict[str, Any]:
    """``dbt test``, which may fail."""
    return lake.try_dbt("test", *arguments, *VARIABLES, "--indirect-selection", "eager")


def no_rows(types: dict[str, str]) -> str:
    """A query without rows, whose columns have these types."""
    columns = ", ".join(f"cast(null as {type}) as {name}" for name, type in types.items())
    return f"select {columns} where false"


def manifest(answer: dict[str, Any]) -> dict[str, Any]:
    """What dbt knew of the project when it ran a command."""
    file = Path(answer["target"]) / "manifest.json"
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def query(rows: list[Row], types: dict[str, str]) -> str:
    """A query whose result is some rows, with the other columns that the table has.

    Where a key is a text here, so is the column.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [
        ", ".join("null" if row.get(name) is None else repr(row[name]) for name in columns)
        for row in rows
    ]
    texts = {name for row in rows for name in row if isinstance(row[name], str)}
    shown = [
        name
        if name in texts
        else f"cast({name if name in columns else 'null'} as {type}) as {name}"
        for name, type in types.items()
    ]
    values = f"values ({'), ('.join(lines)}) as rows ({', '.join(columns)})"
    return f"select {', '.join(shown or '*')} from {values}"


@pytest.fixture(scope="module", params=[PROJECT, TICKIT], ids=["northwind", "tickit"])
def lake(request: pytest.FixtureRequest, new_lake: NewLake) -> Lake:
    """A project's tables as views of rows that are made up."""
    folder: Path = request.param
    lake = new_lake(folder / "topics.toml", project=folder)
    lake.land(["not JSON"])
    assert lake.ingest().counts == (1, 0, 1, 0)
    staged = lake.dbt("run", "-s", "path:models/staging", *VARIABLES)
    views = {
        f"silver.{view.removeprefix('stg_')}": f"select * from staging.{view}"
        for _, view, _ in lake.sql("show views in staging")
    }
    if folder == PROJECT:
        views["silver.order_items"] = no_rows(MADE_UP["order_items"])
        views["silver.orders_history"] = ORDERS_HISTORY
    for name, node in manifest(staged)["nodes"].items():
        if name.startswith("model.") and node["schema"] == "gold":
            columns = node["columns"].values()
            types = {column["name"]: column["data_type"] for column in columns}
            views[f"gold.{node['alias']}"] = no_rows(types)
    for layer in ("silver", "gold"):
        lake.sql(f"create schema {layer}")
    for table, text in views.items():
        lake.sql(f"create view {table} as {text}")
    made_up: dict[str, list[Row]] = MADE_UP["tickit" if folder == TICKIT else "northwind"]
    for table, rows in made_up.items():
        described = lake.sql(f"describe {table}") if table in views else []
        types = {name: type for name, type, _ in described}
        lake.sql(f"create or replace view {table} as {query(rows, types)}")
    return lake


def test_unit_tests_pass(lake: Lake) -> None:
    """Every gold model has one."""
    answer = dbt_test(lake, "-s", "test_type:unit")
    known = manifest(answer)
    tests = [test["name"] for test in known["unit_tests"].values()]
    found = {name: node for name, node in answer["nodes"].items() if name in tests}
    assert sorted(found) == sorted(tests), "a test did not run, or two have one name"
    for node in found.values():
        assert node["status"] == "pass", node["message"]
    files = {file.stem for file in (lake.project / "models/gold").rglob("*.sql")}
    gold = {test["model"] for test in known["unit_tests"].values()} & files
    assert gold == files


def test_data_tests_find_the_wrong_rows(lake: Lake, snapshot: SnapshotAssertion) -> None:
    """Each of them, those that are made up."""
    folder = lake.project
    of_columns = OF_COLUMNS if folder == PROJECT else {}
    answer = dbt_test(lake, "-s", "test_type:singular", *of_columns)
    tests = {name: node for name, node in answer["nodes"].items() if node["kind"] == "test"}
    found = {}
    for file in (folder / ("tests/dbt" if folder == PROJECT else "tests")).glob("*.sql"):
        (compiled,) = Path(answer["target"]).glob(f"compiled/*/{file.relative_to(folder)}")
        looked_at = MADE_UP["looked_at"][file.stem]
        rows = lake.sql(f"select {looked_at} from ({compiled.read_text()})")
        status = tests.pop(file.stem)["status"]
        found[file.stem] = [status, *sorted(", ".join(row) for row in rows)]
        assert rows
    assert found == snapshot
    assert {name: node["status"] for name, node in tests.items()} == of_columns
    for node in tests.values():
        assert node["message"].startswith("Got 1 result,")
