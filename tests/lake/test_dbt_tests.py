"""dbt's own tests of Northwind and TICKIT: unit tests pass, data tests fail on wrong rows.

Neither reads what a build wrote. A unit test needs the columns of the tables that it
replaces; a data test reads a few rows that are made up here, each wrong in one way. So the
tables of silver and gold are views, in a lake of each.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT, TICKIT
from tests.support.records import Row

# Of a model that unit tests replace: its columns are not those of a staging model.
ORDER_ITEMS = {
    **{"order_item_id": "string", "order_id": "int", "product_id": "int"},
    **{"customer_id": "string", "unit_price": "decimal(12,4)", "quantity": "decimal(10,2)"},
    **{"discount": "decimal(6,4)", "revenue": "decimal(20,4)", "is_deleted": "boolean"},
    "source_lsn": "bigint",
}
ORDERS_HISTORY = """
select *, 1 as version_number, timestamp'2024-01-01' as valid_from from staging.stg_orders
"""

LINE: Row = {
    **{"order_id": 1, "product_id": 11, "customer_id": "ALFKI", "is_deleted": False},
    **{"unit_price": 14, "quantity": 12, "discount": 0, "revenue": 168},
}
INCOMPLETE: dict[str, Row] = {
    "no product": {"product_id": None},
    "no revenue": {"revenue": None},
    "no quantity": {"quantity": None},
    "quantity of 0": {"quantity": 0},
    "no price": {"unit_price": None},
    "price below 0": {"unit_price": -1},
    "no discount": {"discount": None},
    "discount below 0": {"discount": -0.5},
    "discount above 1": {"discount": 1.5},
}
# What a row that is deleted must not keep.
DATA = {
    "orders": (
        *("customer_id", "order_date", "required_date", "shipped_date", "order_items"),
        *("products", "customer", "employee", "shipper", "shipment", "updated_at"),
    ),
    "order_items": ("customer_id", "unit_price", "quantity", "discount", "revenue"),
    "customers": (
        *("company_name", "contact_name", "contact_title", "address", "city", "region"),
        *("postal_code", "country", "phone", "fax"),
    ),
    "products": (
        *("product_name", "supplier_id", "category_id", "quantity_per_unit"),
        *("unit_price", "units_in_stock", "units_on_order", "reorder_level"),
        "discontinued",
    ),
}


def deleted(table: str, key: str) -> list[Row]:
    """A row that kept nothing, one for each column that was kept, one that may be live."""
    return [
        {key: "empty", "is_deleted": True},
        *(
            {key: f"kept {name}", "is_deleted": True, name: LINE.get(name, "x")}
            for name in DATA[table]
        ),
        {key: "unknown", "is_deleted": None},
    ]


ANSWER: Row = {"count_orders": 1, "count_items": 1, "total_quantity": 1, "revenue": 1}
NORTHWIND: dict[str, list[Row]] = {
    "silver.orders": [
        {"order_id": "1", "is_deleted": False},
        *deleted("orders", "order_id"),
    ],
    "silver.order_items": [
        {**LINE, "order_item_id": "right"},
        {**LINE, "order_item_id": "free", "unit_price": 0, "discount": 1, "revenue": 0},
        *({**LINE, "order_item_id": key, **row} for key, row in INCOMPLETE.items()),
        {**LINE, "order_item_id": "of no order", "order_id": 404},
        {**LINE, "order_item_id": "of nobody", "customer_id": None},
        *deleted("order_items", "order_item_id"),
    ],
    "silver.customers": [
        {"customer_id": "live", "is_deleted": False, "company_name": "x"},
        *deleted("customers", "customer_id"),
    ],
    "silver.products": [
        {"product_id": "live", "is_deleted": False, "product_name": "x"},
        *deleted("products", "product_id"),
    ],
    "silver.rejected_rows": [{"reason": "soon is no date"}, {"reason": "soon is no date"}],
    "gold.revenue_by_customer": [
        {"customer_id": "ALFKI", **ANSWER, "country": "Spain", "revenue_share": 0.9},
        {"customer_id": "BONAP", **ANSWER, "country": "France", "revenue_share": 0},
        {"customer_id": "CHOPS", **ANSWER, "country": "Italy", "revenue_share": 0},
    ],
    "gold.revenue_by_product": [{"revenue": 4, "total_quantity": 5, "revenue_share": 1.1}],
    "gold.revenue_by_category": [{"revenue": 6, "total_quantity": 7, "revenue_share": 0.8}],
    "gold.revenue_by_month": [{"revenue": 8, "count_orders": 9, "count_items": 10}],
    "gold.revenue_by_employee": [{"revenue": 11, "count_orders": 12, "revenue_share": 2}],
    "gold.late_shipments": [
        {"late_shipment_id": "none", "late_share": 0},
        {"late_shipment_id": "all", "late_share": 1},
        {"late_shipment_id": "more than all", "late_share": 1.5},
        {"late_shipment_id": "less than none", "late_share": -0.5},
    ],
    "staging.expected_revenue_by_customer": [
        {"customer_id": "ALFKI", **ANSWER, "country": "Germany"},
        {"customer_id": "BONAP", **ANSWER, "country": "France"},
        {"customer_id": "DRACD", **ANSWER, "country": "Italy"},
    ],
}


def totals(sales: int, tickets: int, revenue: int, commission: int) -> list[Row]:
    """The row of a table of TICKIT's gold."""
    names = ("count_sales", "tickets_sold", "revenue", "commission")
    return [dict(zip(names, (sales, tickets, revenue, commission), strict=True))]


TICKETS: dict[str, list[Row]] = {
    "silver.tickit_sales": [
        {"qtysold": 1, "pricepaid": 2, "commission": 3, "is_deleted": False},
        {"qtysold": 4, "pricepaid": 5, "commission": 6, "is_deleted": False},
        {"qtysold": 90, "pricepaid": 90, "commission": 90, "is_deleted": True},
    ],
    "gold.sales_by_event": totals(11, 12, 13, 14),
    "gold.sales_by_category": totals(21, 22, 23, 24),
    "gold.sales_by_venue": totals(31, 32, 33, 34),
    "gold.sales_by_city": totals(41, 42, 43, 44),
    "gold.sales_by_month": totals(51, 52, 53, 54),
    "gold.best_buyers": [
        {"count_sales": 61, "tickets_bought": 62, "total_paid": 63, "commission": 64}
    ],
    "gold.best_sellers": totals(71, 72, 73, 74),
}
MADE_UP = {PROJECT: NORTHWIND, TICKIT: TICKETS}
# They enable every model and test.
VARIABLES = {
    PROJECT: (
        *("cdc_lakehouse_unit_tests", "cdc_lakehouse_history"),
        "cdc_lakehouse_recorded_events",
    ),
    TICKIT: ("tickit_unit_tests",),
}
# What of its rows is looked at, of each singular data test.
LOOKED_AT = {
    "assert_deleted_rows_hold_no_data": "table_name, row_key",
    "assert_live_order_lines_are_complete": "order_item_id",
    "assert_no_row_was_rejected": "*",
    "assert_recorded_events_give_expected_answers": "customer_id, expected_customer_id",
    "assert_revenue_adds_up": "inline(totals)",
    "assert_shares_are_shares": "share_of",
    "assert_ticket_sales_add_up": "inline(totals)",
}
# Those of columns that are not of a key, each with a wrong row above.
OF_COLUMNS = {
    "not_null_order_items_customer_id": "warn",
    "relationships_order_items_order_id__order_id__ref_orders_": "fail",
}


@dataclass
class Ran:
    """A project's tables as views of rows that are made up, and its singular data tests."""

    folder: Path
    lake: Lake
    tests: dict[str, str]
    data: dict[str, Any]

    def test(self, *arguments: str) -> dict[str, Any]:
        """``dbt test``, which may fail."""
        variables = json.dumps(dict.fromkeys(VARIABLES[self.folder], True))
        words = ("--vars", variables, "--indirect-selection", "eager")
        return self.lake.try_dbt("test", *arguments, *words, project=self.folder)


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
def ran(request: pytest.FixtureRequest, new_lake: NewLake) -> Ran:
    """The data tests, on the rows that are made up."""
    folder: Path = request.param
    files = [*(folder / ("tests/dbt" if folder == PROJECT else "tests")).glob("*.sql")]
    lake = new_lake(folder / "topics.toml")
    lake.land(["not JSON"])
    assert lake.ingest().counts == (1, 0, 1, 0)
    variables = json.dumps(dict.fromkeys(VARIABLES[folder], True))
    models = ("-s", "path:models/staging", "--vars", variables)
    staged = lake.dbt("run", *models, project=folder)
    views = {
        f"silver.{view.removeprefix('stg_')}": f"select * from staging.{view}"
        for _, view, _ in lake.sql("show views in staging")
    }
    if folder == PROJECT:
        views["silver.order_items"] = no_rows(ORDER_ITEMS)
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
    for table, rows in MADE_UP[folder].items():
        described = lake.sql(f"describe {table}") if table in views else []
        types = {name: type for name, type, _ in described}
        lake.sql(f"create or replace view {table} as {query(rows, types)}")
    ran = Ran(folder, lake, {file.stem: "" for file in files}, {})
    of_columns = OF_COLUMNS if folder == PROJECT else ()
    ran.data = ran.test("-s", "test_type:singular", *of_columns)
    compiled = Path(ran.data["target"]) / "compiled"
    for file in files:
        (found,) = compiled.glob(f"*/{file.relative_to(folder)}")
        ran.tests[file.stem] = found.read_text()
    return ran


def test_unit_tests_pass(ran: Ran) -> None:
    """Every gold model has one."""
    answer = ran.test("-s", "test_type:unit")
    known = manifest(answer)
    tests = [test["name"] for test in known["unit_tests"].values()]
    found = {name: node for name, node in answer["nodes"].items() if name in tests}
    assert sorted(found) == sorted(tests), "a test did not run, or two have one name"
    for node in found.values():
        assert node["status"] == "pass", node["message"]
    files = {file.stem for file in (ran.folder / "models/gold").rglob("*.sql")}
    gold = {test["model"] for test in known["unit_tests"].values()} & files
    assert gold == files


def test_data_tests_find_the_wrong_rows(ran: Ran, snapshot: SnapshotAssertion) -> None:
    """Each of them, those that are made up above."""
    nodes = ran.data["nodes"]
    ended = {test: nodes[test]["status"] for test in nodes if nodes[test]["kind"] == "test"}
    found = {}
    for test, sql in ran.tests.items():
        rows = ran.lake.sql(f"select {LOOKED_AT[test]} from ({sql})")
        found[test] = [ended.pop(test), *sorted(", ".join(row) for row in rows)]
        assert len(found[test]) > 1
    assert found == snapshot
    assert ended == (OF_COLUMNS if ran.folder == PROJECT else {})
    for test in ended:
        assert nodes[test]["message"].startswith("Got 1 result,"), test
