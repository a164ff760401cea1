"""Real change events: silver ends as the source's own rows, gold as their sums."""

import csv
import datetime as dt
import gzip
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlfluff.core import FluffConfig, Linter

from lab.demo.landing import EVENTS, recorded, sink_envelope
from tests.conftest import NewLake
from tests.support.lake import SILVER, Lake
from tests.support.project import CAPTURES, PROJECT
from tests.support.records import Row
from tests.support.source import JSON_COLUMNS, Rows, live_rows

KEYS = {"orders": "order_id", "customers": "customer_id", "products": "product_id"}
# Of gold one table; all of it is built by the full refresh.
UP_TO_GOLD = [*SILVER, "revenue_by_customer"]
BUILD = ["build", *UP_TO_GOLD, "--indirect-selection", "cautious"]
TRUTH = {"orders": "northwind", "customers": "customers", "products": "products"}


class Built:
    """What a lake holds after one of its builds."""

    def __init__(self, lake: Lake, answer: dict[str, Any]) -> None:
        tables = lake.tables.names()
        self.rows = {table: lake.rows(table) for table in tables}
        self.properties = {table: lake.tables.properties(table) for table in tables}
        self.instants = lake.tables.instants()
        self.nodes: dict[str, dict[str, Any]] = answer["nodes"]
        self.statements: list[str] = answer["statements"]


def truth(name: str) -> Rows:
    """The source table's rows after the last recorded event, by key."""
    found = {}
    with gzip.open(CAPTURES / f"{TRUTH[name]}_truth.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            row |= {k: Decimal(str(v)) for k, v in row.items() if type(v) is float}
            if "updated_at" in row:
                row["updated_at"] = dt.datetime.fromisoformat(row["updated_at"])
            found[(row[KEYS[name]],)] = row
    return found


def of_silver(name: str, built: Built, source: Rows) -> Rows:
    """The live rows of a silver table as the truth files have them."""
    (columns, *_) = source.values()
    rows = built.rows[f"silver.{name}"]
    json_columns = JSON_COLUMNS if name == "orders" else ()
    found = live_rows(rows, KEYS[name], columns=columns, json_columns=json_columns)
    assert len(found) == sum(not row["is_deleted"] for row in rows)
    for row in found.values():
        for column, value in row.items():
            if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
                row[column] = str(value)
    return found


@dataclass
class Northwind:
    """The lake of the recorded events in their flattened form, build after build."""

    lake: Lake
    first: Built
    increment: Built
    nothing_new: Built


@pytest.fixture(scope="module")
def northwind(new_lake: NewLake) -> Northwind:
    """Builds after the snapshots, the changes, and nothing."""
    lake = new_lake()
    builds = []
    for changed in (False, True):
        for capture in sorted(EVENTS.glob("*.jsonl.gz")):
            lake.land(
                sink_envelope(line)
                for line in recorded(capture)
                if (json.loads(line["value"])["__op"] != "r") == changed
            )
        assert lake.ingest().code == 0
        # Gold and data tests cost as much as silver: once is enough.
        arguments = BUILD if changed else ["run", *SILVER]
        builds.append(Built(lake, lake.dbt(*arguments)))
    builds.append(Built(lake, lake.dbt("run", *UP_TO_GOLD)))
    return Northwind(lake, *builds)


@pytest.fixture(scope="module")
def refreshed(northwind: Northwind) -> Built:
    """The same lake, built from scratch."""
    return Built(northwind.lake, northwind.lake.dbt("build", "--full-refresh"))


@pytest.fixture(params=["increment", pytest.param("refreshed", marks=pytest.mark.thorough)])
def built(request: pytest.FixtureRequest, northwind: Northwind) -> Built:
    """What increments led to, and what a full refresh did."""
    if request.param == "increment":
        return northwind.increment
    found: Built = request.getfixturevalue("refreshed")
    return found


@pytest.mark.parametrize("name", KEYS)
def test_silver_equals_the_source(name: str, built: Built) -> None:
    source = truth(name)
    assert of_silver(name, built, source) == source


@pytest.mark.thorough
def test_orders_from_envelopes_equal_the_source(new_lake: NewLake) -> None:
    """By a build and an increment; Spark generates code here, as it does for users."""
    lake = new_lake(generates_code=True)
    records = [*recorded(CAPTURES / "northwind_envelope.jsonl.gz")]
    counts = []
    for part in (records[:400], records[400:]):
        lake.land(sink_envelope(line) for line in part)
        counts.append(lake.ingest().counts)
        answer = lake.dbt("run", "-s", "stg_orders", "orders", "order_items")
    assert [sum(each) for each in zip(*counts, strict=True)] == [846, 843, 0, 3]
    source = truth("orders")
    assert of_silver("orders", Built(lake, answer), source) == source


def answers() -> dict[str, Row]:
    """Revenue and counts of each customer, computed from the source's rows."""
    found: dict[str, Row] = {}
    for order in truth("orders").values():
        row = found.setdefault(
            order["customer_id"],
            {"revenue": 0, "total_quantity": 0, "count_orders": 0, "count_items": 0},
        )
        row["count_orders"] += 1
        for line in order["order_items"]:
            names = ("unit_price", "quantity", "discount")
            price, quantity, discount = (Decimal(str(line[name])) for name in names)
            row["revenue"] += price * quantity * (1 - discount)
            row["total_quantity"] += quantity
            row["count_items"] += 1
    return found


def test_revenue_of_the_customers_is_that_of_the_source(built: Built) -> None:
    rows = built.rows["gold.revenue_by_customer"]
    gold = {row["customer_id"]: row for row in rows}
    expected = answers()
    assert {
        key: {name: row[name] for name in expected[key]} for key, row in gold.items()
    } == expected
    ranked = sorted(rows, key=lambda row: row["revenue_rank"])
    revenue = [row["revenue"] for row in ranked]
    assert revenue == sorted(revenue, reverse=True)
    assert abs(sum(row["revenue_share"] for row in ranked) - 1) < Decimal("1e-6")
    assert ranked[0]["company_name"] == "QUICK-Stop"
    shares = [sum(row["revenue_share"] for row in ranked[:count]) for count in (3, 20)]
    assert [round(share, 3) for share in shares] == [Decimal("0.253"), Decimal("0.629")]
    rare = sorted(row["customer_id"] for row in rows if row["buys"] == "rarely and well")
    assert rare == ["BOLID", "EASTC", "FOLIG", "SEVES", "SIMOB"]
    lines = built.rows.get("gold.order_items")  # of the full refresh
    assert lines is None or sum(row["revenue"] for row in lines) == sum(revenue)


def test_expected_answers_are_the_sources(northwind: Northwind) -> None:
    """The seed is of the source's rows, and the lake agrees with it."""
    seed = (PROJECT / "seeds/expected_revenue_by_customer.csv").read_text(encoding="utf-8")
    customers = truth("customers")
    assert {
        it["customer_id"]: (Decimal(it["revenue"]), int(it["count_items"]), it["country"])
        for it in csv.DictReader(seed.splitlines())
    } == {
        key: (row["revenue"], row["count_items"], customers[(key,)]["country"])
        for key, row in answers().items()
    }
    test = "assert_recorded_events_give_expected_answers"
    answer = northwind.lake.dbt(
        *("build", "-s", "expected_revenue_by_customer", test),
        *("--vars", "{cdc_lakehouse_recorded_events: true}"),
        *("--indirect-selection", "eager"),
    )
    assert answer["nodes"][test]["status"] == "pass"


def test_sqlfluff_lints_what_the_macros_make(northwind: Northwind) -> None:
    """Of each kind of statement of a model the longest, but for Hudi's procedures.

    Not judged is the layout of a text that loops make, and that names are quoted, as they
    may be any, stars, and limits of what is asked for whether there is any.
    """
    longest: dict[tuple[str, str], str] = {}
    for text in [*northwind.first.statements, *northwind.increment.statements]:
        node, verb = re.findall(r"(?s)/\*(.*?)\*/\s*(\w+)", text)[0]
        if verb != "call":
            longest[node, verb] = max(text, longest.get((node, verb), ""), key=len)
    models = ("stg_orders", "orders", "order_items", "rejected_rows", "revenue_by_customer")
    config = FluffConfig.from_path(
        str(PROJECT),
        overrides={
            "templater": "raw",
            "rules": "capitalisation,convention,ambiguous",
            "exclude_rules": "convention.quoted_literals,AM04,AM09",
        },
    )
    wrong = {
        violation.desc(): node
        for (node, _), text in longest.items()
        if re.search(rf'"model\.cdc_lakehouse\.({"|".join(models)})"', node)
        for violation in Linter(config).lint_string(text).get_violations()
    }
    assert wrong == {}


def test_tables_are_copy_on_write_of_version_6(built: Built) -> None:
    """Athena and Trino read no other; a write without the option upgrades silently."""
    layers = {table.partition(".")[0] for table in built.properties}
    assert layers == {"bronze", "silver", "gold"}
    for table, properties in built.properties.items():
        assert properties["hoodie.table.version"] == "6", table
        assert properties["hoodie.table.type"] == "COPY_ON_WRITE", table


def test_increment_is_one_commit_a_table_and_nothing_new_is_none(
    northwind: Northwind,
) -> None:
    """Builds leave no rows in scratch."""
    for table in ("silver.orders", "silver.order_items", "silver.customers"):
        before = northwind.first.instants[table]
        after = northwind.increment.instants[table]
        assert len(after) == len(before) + 1, table
    assert northwind.nothing_new.instants == northwind.increment.instants
    assert northwind.nothing_new.rows == northwind.increment.rows
    assert northwind.nothing_new.properties == northwind.increment.properties
    assert northwind.lake.tables.path("staging.scratch").is_dir()
    assert northwind.lake.tables.count_scratch_rows() == 0


def test_hudi_says_what_its_commits_wrote(northwind: Northwind) -> None:
    """Its time travel and its incremental read, as docs/history.md asks for them."""
    instants = [
        max(built.instants["silver.orders"]).partition(".")[0]
        for built in (northwind.first, northwind.increment)
    ]
    page = (PROJECT / "docs/history.md").read_text()
    *_, as_of, changes = re.findall(r"^```sql\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    time = re.compile(r"(?<=')\d{4}[^']*")
    assert northwind.lake.sql(time.sub(instants[0], as_of)) == [["10253", "HANAR"]]
    assert northwind.lake.sql(time.sub(instants[1], as_of)) == [["10253", "ALFKI"]]
    places = iter(instants)
    rows = northwind.lake.sql(time.sub(lambda _: next(places), changes))
    assert [row[0] for row in rows if row[2] == "True"] == ["10250", "10252"]
    kept = [" ".join(row[:2]) for row in rows if row[2] == "False"]
    assert kept[:4] == ["10248 VINET", "10249 TOMSP", "10251 VICTE", "10253 ALFKI"]
    assert kept[4:] == ["11077 RATTC", "11078 RICSU", "20000 SUPRD"]


@pytest.mark.thorough
def test_full_refresh_replaces_all_rows_in_one_commit(
    northwind: Northwind, refreshed: Built
) -> None:
    """So that no reader finds a table gone."""
    for table in ("silver.orders", "silver.customers"):
        before, after = ({*it.instants[table]} for it in (northwind.nothing_new, refreshed))
        assert after > before
        assert [each.partition(".")[2] for each in after - before] == ["replacecommit"]


def test_data_tests_pass(built: Built) -> None:
    tests = {
        name: node["status"] for name, node in built.nodes.items() if node["kind"] == "test"
    }
    assert {*tests.values()} == {"pass"}, tests


def test_bronze_holds_every_recorded_event(northwind: Northwind) -> None:
    first = northwind.first.rows["bronze.cdc_events"]
    assert [row["op"] for row in first] == ["r"] * 829
    rows = northwind.increment.rows
    names = ("cdc_events", "customers", "products", "rejected_events")
    counts = dict(zip((f"bronze.{name}" for name in names), (843, 98, 82, 0), strict=True))
    assert {name: len(rows[name]) for name in rows if name[:7] == "bronze."} == counts
    events = rows["bronze.cdc_events"]
    places = {(row["kafka_partition"], row["kafka_offset"]) for row in events}
    assert len(places) == 843


@pytest.mark.thorough
def test_documentation_is_of_what_is_there(northwind: Northwind, refreshed: Built) -> None:
    """``dbt docs generate``: gold's columns as they are."""
    target = Path(northwind.lake.dbt("docs", "generate", "--static")["target"])
    assert (target / "static_index.html").stat().st_size > 1_000_000
    manifest = json.loads((target / "manifest.json").read_text())
    catalog = json.loads((target / "catalog.json").read_text())
    assert catalog["errors"] is None
    nodes = manifest["nodes"].items()
    models = {name: node for name, node in nodes if node["resource_type"] == "model"}
    gold = {name: node for name, node in models.items() if node["schema"] == "gold"}
    assert len(gold) == 7
    for name, node in gold.items():
        # Spark's catalogue has its own names for two types, and Hudi adds columns.
        found = {
            column: {"long": "bigint", "integer": "int"}.get(entry["type"], entry["type"])
            for column, entry in catalog["nodes"][name]["columns"].items()
            if not column.startswith("_hoodie_")
        }
        described = {
            column: entry["data_type"]
            for column, entry in node["columns"].items()
            if entry["description"]
        }
        assert found == described, name
