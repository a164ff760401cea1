"""dbt's own words in a project of a user's models: what they mean, and what is refused.

One lake and one small project go through all of it. ``orders`` folds change events;
``sizes`` is a ``cdc_merge`` model that folds none; ``by_customer`` is a gold table; ``log``
is dbt's own incremental model.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import Record, flattened, record
from tests.support.small_project import add_gold, set_columns, small_project

MERGED = ("silver.orders", "silver.sizes", "gold.by_customer")
COLUMNS = {"order_id": "int", "customer_id": "bpchar", "freight": "int"}
SIZES = """
{{{{ config(unique_key='order_id', {settings}) }}}}

select {columns} from {{{{ ref('orders') }}}}
where {{{{ 'true' if not reads_increment() else arrived_in_this_run('orders') }}}}
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

    def __init__(self, new_lake: NewLake, folder: Path) -> None:
        self.folder = small_project(folder)
        self.lake = new_lake(project=self.folder)
        self.models = self.folder / "models"
        set_columns(self.folder, COLUMNS)
        self.set_sizes("order_id, freight, ingest_batch")
        add_gold(self.folder)
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
        return self.lake.dbt("run", *arguments)

    def error(self, *arguments: str) -> str:
        """What ``dbt run`` reports, which must fail."""
        answer = self.lake.try_dbt("run", *arguments)
        assert not answer["success"]
        return json.dumps([answer["error"], answer["said"], answer["nodes"]])

    def log(self) -> list[list[str]]:
        """The rows of dbt's own incremental model."""
        return self.lake.sql("select * from silver.log order by order_id, freight")

    def commits(self) -> dict[str, int]:
        """How many commits each table that the models merge has."""
        instants = self.lake.tables.instants()
        return {table: len(instants[table]) for table in MERGED}

    def freights(self, table: str) -> dict[int, Any]:
        """The column ``freight`` of a table, by order."""
        return {row["order_id"]: row["freight"] for row in self.lake.rows(table)}


@pytest.fixture(scope="module")
def built(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project after each kind of run."""
    folder = tmp_path_factory.mktemp("materializations") / "project"
    project = Project(new_lake, folder)
    project.ingest(order(1, "c", 1), order(2, "c", 2), order(3, "c", 3))
    silver = ("silver.orders", "silver.sizes")

    def freights() -> dict[int, Any]:
        """Of both silver tables, which have the same."""
        orders, sizes = (project.freights(table) for table in silver)
        assert orders == sizes
        return orders

    def gold() -> dict[str, int]:
        rows = project.lake.rows("gold.by_customer")
        return {row["customer_id"]: row["orders"] for row in rows}

    # --empty creates the tables, reads nothing, and leaves what arrived to the next run.
    project.run("--empty")
    assert (freights(), gold()) == ({}, {})
    project.run()
    assert (freights(), gold()) == ({1: 10, 2: 20, 3: 30}, {"ALFKI": 3})
    project.ingest(order(4, "u", 1, freight=11))
    before = project.commits()
    project.run("--empty")
    project.run("--empty", "--full-refresh")
    assert (project.commits(), freights()[1]) == (before, 10)
    project.run()
    assert freights() == {1: 11, 2: 20, 3: 30}
    assert [project.commits()[t] - before[t] for t in silver] == [1, 1]

    # Without news there is no commit.
    instants = project.lake.tables.instants()
    project.run("-s", "path:models/staging", "path:models/silver", "path:models/gold")
    assert project.lake.tables.instants() == instants

    # dbt's own incremental model appends; a full refresh gives every row. It has no rows
    # after --empty with --full-refresh.
    first = [["1", "11"], ["2", "20"], ["3", "30"]]
    assert project.log() == first
    project.ingest(order(5, "c", 4))
    project.run("-s", "orders", "log")
    assert project.log() == [*first, ["4", "40"]]
    project.ingest(order(6, "u", 1, freight=12))
    project.run("-s", "orders", "log")
    project.run("--full-refresh", "-s", "log")
    assert project.log() == [["1", "12"], *first[1:], ["4", "40"]]
    # Of a model that folds nothing it replaces the rows, too.
    project.set_sizes("order_id, freight + 1 as freight, ingest_batch")
    project.run("--full-refresh", "-s", "sizes")
    assert project.freights("silver.sizes") == {1: 13, 2: 21, 3: 31, 4: 41}
    return project


def test_contract_and_changes_of_columns(built: Project) -> None:
    project = built
    contract = project.models / "silver" / "sizes.yml"
    project.set_sizes("order_id, freight")
    contract.write_text(CONTRACT.format(type="string"))
    assert "freight" in project.error("--full-refresh", "-s", "sizes")
    assert project.freights("silver.sizes")[1] == 13
    contract.write_text(CONTRACT.format(type="int"))
    project.run("--full-refresh", "-s", "sizes")
    assert project.freights("silver.sizes")[1] == 12
    contract.unlink()

    # A column that the model no longer has keeps its values.
    project.set_sizes("order_id, ingest_batch")
    project.ingest(order(7, "u", 1, freight=99), order(8, "c", 5))
    project.run("-s", "orders", "sizes")
    assert project.freights("silver.orders")[1] == 99
    assert project.freights("silver.sizes") == {1: 12, 2: 20, 3: 30, 4: 40, 5: None}
    for offset, mode in enumerate(("ignore", "append_new_columns"), 9):
        project.set_sizes(
            f"order_id, freight, ingest_batch, 'new' as {mode}_column",
            on_schema_change=mode,
        )
        project.ingest(order(offset, "u", 2, freight=offset))
        project.run("-s", "orders", "sizes")
        rows = {row["order_id"]: row for row in project.lake.rows("silver.sizes")}
        found = (rows[2]["freight"], rows[2].get(f"{mode}_column"))
        assert found == (offset, None if mode == "ignore" else "new")
        assert rows[3].get(f"{mode}_column") is None
    project.set_sizes("order_id, 1 as other", on_schema_change="fail")
    project.ingest(order(11, "u", 3, freight=33))
    reported = project.error("-s", "stg_orders", "orders", "sizes")
    assert "(on_schema_change: fail)" in reported
    freights = [project.freights(f"silver.{name}")[3] for name in ("orders", "sizes")]
    assert freights == [33, 30]


DROP = "dbt run-operation drop_table --args '{table: silver.sizes}'"


def test_settings_and_tables_that_are_refused(built: Project) -> None:
    project = built
    for setting, value in {
        "incremental_strategy": "merge",
        "partition_by": "order_id",
        "file_format": "parquet",
        "on_schema_change": "sync_all_columns",
        "merge_update_columns": ["freight"],
    }.items():
        project.set_sizes("order_id, freight", **{setting: value})
        assert f"setting '{setting}' is" in project.error("-s", "sizes")
    project.set_sizes("order_id, string(freight) as freight, ingest_batch")
    reported = project.error("--full-refresh", "-s", "sizes")
    assert "column freight is int in the table and string in the model" in reported
    assert DROP in reported
    (project.models / "silver" / "sizes.sql").write_text(
        "{{ config(unique_key='order_id') }} select * from {{ ref('stg_orders') }}"
    )
    reported = project.error("-s", "stg_orders", "sizes")
    assert "silver.sizes lacks the column cdc_state. Drop" in reported
    assert DROP in reported


@contextmanager
def read_meanwhile(lake: Lake, table: str) -> Iterator[list[int]]:
    """Within the block, a thread counts a table's rows again and again."""
    counts: list[int] = []
    is_done = Event()

    def read() -> None:
        while not is_done.is_set():
            counts.append(len(lake.rows(table)))

    reader = Thread(target=read)
    reader.start()
    try:
        yield counts
    finally:
        is_done.set()
        reader.join()


def test_wider_number_reaches_a_table_while_it_is_read(built: Project) -> None:
    """By an increment, which leaves null what was too wide; a full refresh fills it."""
    project = built
    narrow = COLUMNS | {"price": "decimal(6,2)"}
    set_columns(project.folder, narrow)
    large = 5_000_000_000
    project.ingest(order(20, "u", 1, freight=large, price="123456.7890"))
    project.run("-s", "stg_orders", "orders")
    rows = {row["order_id"]: row for row in project.lake.rows("silver.orders")}
    assert (rows[1]["freight"], rows[1]["price"]) == (None, None)

    set_columns(project.folder, narrow | {"freight": "bigint", "price": "decimal(12,4)"})
    project.ingest(order(21, "u", 2, freight=large, price="0.5"))
    with read_meanwhile(project.lake, "silver.orders") as counts:
        project.run("-s", "stg_orders", "orders")
        increment = {row["order_id"]: row for row in project.lake.rows("silver.orders")}
        project.run("--full-refresh", "-s", "stg_orders", "orders")
    assert set(counts) == {len(rows)} and len(counts) > 10
    found = {row["order_id"]: row for row in project.lake.rows("silver.orders")}
    assert (increment[1]["freight"], increment[2]["freight"]) == (None, large)
    assert (found[1]["freight"], found[1]["price"]) == (large, Decimal("123456.7890"))
    assert (found[2]["freight"], found[2]["price"]) == (large, Decimal("0.5000"))
    assert project.lake.sql("select max(freight) from silver.orders") == [[str(large)]]


# What models read, by a name: each has order 1 and its freight.
LIVE = "select order_id, freight from {} where not is_deleted"
READ = {
    "silver": LIVE.format("{{ ref('orders') }}"),
    "ephemeral": "select order_id, freight from {{ ref('an_ephemeral') }}",
    "view_of_views": "select order_id, freight from {{ ref('a_view_of_views') }}",
    "staging": "select order_id, max_by(freight, kafka_offset) as freight"
    " from {{ ref('stg_orders') }} group by 1",
    "bronze": "select 1 as order_id, max(kafka_offset) as freight"
    " from {{ source('bronze', 'cdc_events') }}",
    "rejected": "select 1 as order_id, count(*) as freight"
    " from {{ source('bronze', 'rejected_events') }}",
    "hudi_table": "select order_id, freight from {{ ref('a_hudi_table') }}",
    "hudi_source": "select order_id, price as freight"
    " from {{ source('others', 'hudi_prices') }}",
    "gold": "select order_id, freight from {{ ref('reads_silver') }}",
    "table": "select order_id, freight from {{ ref('a_table') }}",
    "seed": "select order_id, freight * rate as freight"
    " from {{ ref('orders') }} cross join {{ ref('rates') }}",
    "source": "select 1 as order_id, price as freight"
    " from {{ source('others', 'prices') }}",
    "unseen": "select 1 as order_id, price as freight from default.prices",
    "clock": "select order_id, unix_micros(now()) as freight from {{ ref('orders') }}",
    "clock_of_view": "select order_id, seen as freight from {{ ref('a_clock') }}",
    "told": "select 1 as order_id, price as freight from default.prices"
    " -- {{ ref('orders') }}",
}
THROUGH = {
    "an_ephemeral": ("ephemeral", LIVE.format("{{ ref('orders') }}")),
    "a_view": ("view", LIVE.format("{{ ref('orders') }}")),
    "an_ephemeral_view": ("ephemeral", "select order_id, freight from {{ ref('a_view') }}"),
    "a_view_of_views": (
        "view",
        "select order_id, freight from {{ ref('an_ephemeral_view') }}",
    ),
    "a_clock": (
        "view",
        "select order_id, unix_micros(current_timestamp) as seen from {{ ref('orders') }}",
    ),
    "a_table": ("table", LIVE.format("{{ ref('orders') }}")),
    "a_hudi_table": ("table", LIVE.format("{{ ref('orders') }}")),
}
MERGES = ("view_of_views", "gold", "seed", "unseen")
OTHER_SOURCES = """
sources:
  - name: others
    schema: default
    tables:
      - name: prices
      - name: hudi_prices
"""


@pytest.mark.thorough
def test_tables_follow_what_they_read(
    new_lake: NewLake, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """A gold table for everything that can be read, and silver ones of some.

    The freight of order 1 after the first build, an event, and a change of everything but
    events, a clock's as how many it has been; and how many commits that took. None is made
    where all that a model reads is known to be the same. A view's new text takes a full
    refresh of silver.
    """
    project = small_project(tmp_path / "project")
    lake = new_lake(project=project)
    set_columns(project, COLUMNS)
    models, seeds = project / "models", project / "seeds"
    (models / "gold").mkdir()
    seeds.mkdir()
    (models / "others.yml").write_text(OTHER_SOURCES)

    def write(layer: str, name: str, text: str, **settings: Any) -> None:
        said = ", ".join(f"{k}={v!r}" for k, v in settings.items())
        config = "{{ config(unique_key='order_id', " + said + ") }}"
        (models / layer / f"{name}.sql").write_text(f"{config}\n\n{text}\n")

    for name, text in READ.items():
        write("gold", f"reads_{name}", text, full_refresh=name == "told")
    for name, (kind, text) in THROUGH.items():
        stored = "hudi" if name == "a_hudi_table" else "parquet"
        write("gold", name, text, materialized=kind, file_format=stored)
    for name in MERGES:
        write("silver", f"merges_{name}", READ[name])
    merged = "select order_id, freight from {{ ref('merges_seed') }}"
    write("silver", "merges_merged_seed", merged)
    tables = [f"gold.reads_{name}" for name in READ]
    tables += [f"silver.merges_{name}" for name in (*MERGES, "merged_seed")]
    freights: dict[str, list[Any]] = {table: [] for table in tables}

    def build() -> None:
        lake.dbt("build", "--vars", "{cdc_lakehouse_recorded_events: true}")
        for table in tables:
            ((freight,),) = ([row["freight"]] for row in lake.rows(table))
            freights[table].append(freight)

    (seeds / "rates.csv").write_text("rate\n2\n")
    lake.sql("create table prices using parquet as select 5 as price")
    lake.sql(
        "create table hudi_prices using hudi tblproperties (primaryKey = 'order_id')"
        " as select 1 as order_id, 5 as price"
    )
    lake.land([order(1, "c", 1), "{}"])
    lake.ingest()
    build()
    lake.land([order(2, "u", 1, freight=11), "{}"])
    lake.ingest()
    build()
    (seeds / "rates.csv").write_text("rate\n3\n")
    lake.sql("insert overwrite prices select 6 as price")
    lake.sql("update hudi_prices set price = 6")
    changed = THROUGH["a_view"][1].replace("freight", "freight + 100 as freight")
    write("gold", "a_view", changed, materialized="view")
    build()
    instants = lake.tables.instants()
    assert {
        table: (
            [sorted({*found}).index(one) if "clock" in table else one for one in found],
            len(instants[table]),
        )
        for table, found in freights.items()
    } == snapshot


CHILDREN = """
{{ config(unique_key='stop_id') }}

{{ child_rows(
    ref('orders'),
    array='customer',
    elements={'port': 'string', 'tons': 'decimal(6, 1)', 'at': 'struct<dock: int>'},
    id='stop_id',
    key=['order_id', 'port'],
    computed={'kilos': 'cast(tons * 1000 as int)'},
) }}
"""


def test_children_of_an_array(new_lake: NewLake, tmp_path: Path) -> None:
    """Of a table and an array of one's own: what is taken out of the array is marked."""
    folder = small_project(tmp_path / "project")
    (folder / "models" / "silver" / "stops.sql").write_text(CHILDREN)
    lake = new_lake(project=folder)
    stops = [{"port": "Oslo", "tons": 1.5, "at": {"dock": 7}}, {"port": "Riga", "tons": 2}]
    again = [{"port": "Riga", "tons": 3}, {"port": "Riga", "tons": 4}]
    found = []
    for events in (
        [order(0, "c", 1, customer=json.dumps(stops)), order(1, "c", 2, customer=None)],
        [order(2, "u", 1, customer=json.dumps(again))],
        [order(3, "d", 1)],
    ):
        lake.build(events, "-s", "+stops")
        found.append(
            {
                row["stop_id"]: None if row["is_deleted"] else row["kilos"]
                for row in lake.rows("silver.stops")
            }
        )
        if len(found) == 1:
            rows = {row["stop_id"]: row["at"] for row in lake.rows("silver.stops")}
            assert rows == {"1-Oslo": {"dock": 7}, "1-Riga": None}
    assert found == [
        {"1-Oslo": 1500, "1-Riga": 2000},
        {"1-Oslo": None, "1-Riga": 4000},
        {"1-Oslo": None, "1-Riga": None},
    ]
