"""dbt's own words in a project of a user's models: what they mean, and what is refused.

One lake and one small project go through all of it. ``orders`` folds change events;
``sizes`` is a ``cdc_merge`` model that folds none; ``by_customer`` is a gold table; ``log``
is dbt's own incremental model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import Record, flattened, record
from tests.support.small_project import TOPICS, set_columns, small_project

COLUMNS = {"order_id": "int", "customer_id": "bpchar", "freight": "int"}
SIZES = """
{{{{ config(unique_key='order_id', {settings}) }}}}

select {columns} from {{{{ ref('orders') }}}}
where {{{{ 'true' if not reads_increment() else arrived_in_this_run('orders') }}}}
"""
GOLD = """
{{ config(unique_key='customer_id') }}

select customer_id, count(*) as orders from {{ ref('orders') }}
where not is_deleted
group by customer_id
"""
LOG = """
{{ config(
    materialized='incremental', incremental_strategy='append', file_format='parquet'
) }}

select order_id, freight from {{ ref('orders') }}
{% if is_incremental() %}
    where order_id not in (select order_id from {{ this }})
{% endif %}
"""
CONTRACT = """
models:
  - name: sizes
    config:
      contract:
        enforced: true
    columns:
      - {{name: order_id, data_type: int}}
      - {{name: freight, data_type: {type}}}
"""


def order(offset: int, op: str, key: int, **row: Any) -> Record:
    """An order's change."""
    row = {"order_id": key, "customer_id": "ALFKI", "freight": 10 * key} | row
    return record({"order_id": key}, flattened(op, row, offset), offset)


class Project:
    """The project and its lake."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake = lake
        self.folder = small_project(folder)
        self.models = self.folder / "models"
        set_columns(self.folder, COLUMNS)
        self.set_sizes("order_id, freight, ingest_batch")
        (self.models / "gold").mkdir()
        (self.models / "gold" / "by_customer.sql").write_text(GOLD)
        (self.models / "log.sql").write_text(LOG)

    def set_sizes(self, columns: str, **settings: Any) -> None:
        """Have the model ``sizes`` select some columns, with some settings."""
        said = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        text = SIZES.format(columns=columns, settings=said)
        (self.models / "silver" / "sizes.sql").write_text(text)

    def ingest(self, *events: Record) -> None:
        """Bring events to bronze."""
        self.lake.land(events)
        assert self.lake.ingest().code == 0

    def run(self, *arguments: str) -> dict[str, Any]:
        """``dbt run``, which must succeed."""
        return self.lake.dbt("run", *arguments, project=self.folder)

    def error(self, *arguments: str) -> str:
        """What ``dbt run`` reports, which must fail."""
        answer = self.lake.try_dbt("run", *arguments, project=self.folder)
        assert not answer["success"]
        return json.dumps([answer["error"], answer["said"], answer["nodes"]])

    def freights(self, table: str) -> dict[int, Any]:
        """The column ``freight`` of a table, by order."""
        return {row["order_id"]: row["freight"] for row in self.lake.rows(table)}

    def commits(self, table: str) -> int:
        """How many commits a table has."""
        return len(self.lake.tables.instants()[table])


@pytest.fixture(scope="module")
def project(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Three orders in bronze, and nothing built."""
    folder = tmp_path_factory.mktemp("materializations")
    topics = folder / "topics.toml"
    topics.write_text(TOPICS)
    project = Project(new_lake(topics), folder / "project")
    project.ingest(order(1, "c", 1), order(2, "c", 2), order(3, "c", 3))
    return project


def test_empty_creates_the_tables_and_reads_nothing(project: Project) -> None:
    project.run("--empty")
    for table in ("silver.orders", "silver.sizes", "gold.by_customer"):
        assert project.lake.rows(table) == [], table
    project.run()
    assert project.freights("silver.orders") == {1: 10, 2: 20, 3: 30}
    assert project.freights("silver.sizes") == {1: 10, 2: 20, 3: 30}
    (gold,) = project.lake.rows("gold.by_customer")
    assert (gold["customer_id"], gold["orders"]) == ("ALFKI", 3)


def test_empty_leaves_what_arrived_to_the_next_run(project: Project) -> None:
    project.ingest(order(4, "u", 1, freight=11))
    before = {
        table: project.commits(table)
        for table in ("silver.orders", "silver.sizes", "gold.by_customer")
    }
    project.run("--empty")
    project.run("--empty", "--full-refresh")
    assert {table: project.commits(table) for table in before} == before
    assert project.freights("silver.orders")[1] == 10
    project.run()
    for table in ("silver.orders", "silver.sizes"):
        assert project.freights(table) == {1: 11, 2: 20, 3: 30}, table
        assert project.commits(table) == before[table] + 1, table


def test_run_without_news_makes_no_commit(project: Project) -> None:
    before = project.lake.tables.instants()
    project.run("-s", "path:models/staging", "path:models/silver", "path:models/gold")
    assert project.lake.tables.instants() == before


def test_incremental_model_of_dbts_own(project: Project) -> None:
    """An increment appends; a full refresh gives every row, not the last increment."""

    def log() -> list[list[str]]:
        return project.lake.sql("select * from silver.log order by order_id, freight")

    # dbt's own models have no rows after --empty with --full-refresh.
    assert log() == [["1", "11"], ["2", "20"], ["3", "30"]]
    project.ingest(order(5, "c", 4))
    project.run("-s", "orders", "log")
    assert log() == [["1", "11"], ["2", "20"], ["3", "30"], ["4", "40"]]
    project.ingest(order(6, "u", 1, freight=12))
    project.run("-s", "orders", "log")
    project.run("--full-refresh", "-s", "log")
    assert log() == [["1", "12"], ["2", "20"], ["3", "30"], ["4", "40"]]


def test_full_refresh_replaces_the_rows(project: Project) -> None:
    """Of a model that folds nothing, too."""
    project.set_sizes("order_id, freight + 1 as freight, ingest_batch")
    project.run("--full-refresh", "-s", "sizes")
    assert project.freights("silver.sizes") == {1: 13, 2: 21, 3: 31, 4: 41}


def test_contract(project: Project) -> None:
    contract = project.models / "silver" / "sizes.yml"
    project.set_sizes("order_id, freight")
    try:
        contract.write_text(CONTRACT.format(type="string"))
        assert "freight" in project.error("--full-refresh", "-s", "sizes")
        assert project.freights("silver.sizes")[1] == 13
        contract.write_text(CONTRACT.format(type="int"))
        project.run("--full-refresh", "-s", "sizes")
        assert project.freights("silver.sizes")[1] == 12
    finally:
        contract.unlink()


def test_column_that_the_model_no_longer_has_keeps_its_values(project: Project) -> None:
    project.set_sizes("order_id, ingest_batch")
    project.ingest(order(7, "u", 1, freight=99), order(8, "c", 5))
    project.run("-s", "orders", "sizes")
    assert project.freights("silver.orders")[1] == 99
    assert project.freights("silver.sizes") == {1: 12, 2: 20, 3: 30, 4: 40, 5: None}


@pytest.mark.parametrize(
    ("mode", "has_column"), [("ignore", False), ("append_new_columns", True)]
)
def test_new_column(project: Project, mode: str, has_column: bool) -> None:
    project.set_sizes(
        f"order_id, freight, ingest_batch, 'new' as {mode}_column", on_schema_change=mode
    )
    offset = 9 + has_column
    project.ingest(order(offset, "u", 2, freight=offset))
    project.run("-s", "orders", "sizes")
    rows = {row["order_id"]: row for row in project.lake.rows("silver.sizes")}
    assert rows[2]["freight"] == offset
    assert (f"{mode}_column" in rows[2]) == has_column
    if has_column:
        assert (rows[2][f"{mode}_column"], rows[3][f"{mode}_column"]) == ("new", None)


def test_change_of_columns_can_be_an_error(project: Project) -> None:
    project.set_sizes("order_id, 1 as other", on_schema_change="fail")
    project.ingest(order(11, "u", 3, freight=33))
    assert "(on_schema_change: fail)" in project.error(
        "-s", "stg_orders", "orders", "sizes"
    )
    assert project.freights("silver.orders")[3] == 33
    assert project.freights("silver.sizes")[3] == 30


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("incremental_strategy", "merge"),
        ("partition_by", "order_id"),
        ("file_format", "parquet"),
        ("on_schema_change", "sync_all_columns"),
        ("merge_update_columns", ["freight"]),
    ],
)
def test_setting_that_is_not_supported(project: Project, setting: str, value: Any) -> None:
    project.set_sizes("order_id, freight", **{setting: value})
    assert f"setting '{setting}' is" in project.error("-s", "sizes")


def test_column_of_another_type_names_the_recipe(project: Project) -> None:
    project.set_sizes("order_id, string(freight) as freight, ingest_batch")
    reported = project.error("--full-refresh", "-s", "sizes")
    assert "column freight is int in the table and string in the model" in reported
    assert "dbt run-operation drop_table --args '{table: silver.sizes}'" in reported
