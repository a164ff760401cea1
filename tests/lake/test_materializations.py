"""dbt's own words in a project of a user's models: what they mean, and what is refused.

One lake and one small project go through all of it. ``orders`` folds change events;
``sizes`` is a ``cdc_merge`` model that folds none; ``by_customer`` is a gold table; ``log``
is dbt's own incremental model.
"""

import json
import tomllib
from collections import Counter
from decimal import Decimal
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import Record, flattened, record
from tests.support.small_project import add_gold, set_columns, small_project, write_model

COLUMNS = {"order_id": "int", "customer_id": "bpchar", "freight": "int"}
MODELS = tomllib.loads(Path(__file__).with_name("materializations.toml").read_text())
APPENDS = {"materialized": "incremental", "incremental_strategy": "append"}


def order(offset: int, op: str, key: int, **row: Any) -> Record:
    """An order's change."""
    row = {"order_id": key, "customer_id": "ALFKI", "freight": 10 * key} | row
    return record({"order_id": key}, flattened(op, row, offset), offset)


def set_sizes(lake: Lake, columns: str, name: str = "sizes", **settings: Any) -> None:
    """Have the model ``sizes``, or another, select some columns, with some settings."""
    text = MODELS["sizes"].replace("COLUMNS", columns)
    write_model(lake.project, f"silver/{name}", text, unique_key="order_id", **settings)


def ingest(lake: Lake, *events: Record) -> None:
    lake.land(events)
    assert lake.ingest().code == 0


def freights(lake: Lake, table: str = "silver.sizes") -> dict[int, Any]:
    """The column ``freight`` of a table, by order."""
    return {row["order_id"]: row["freight"] for row in lake.rows(table)}


@pytest.fixture(scope="module")
def built(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The lake after each kind of run."""
    project = small_project(tmp_path_factory.mktemp("materializations") / "project")
    lake = new_lake(project=project)
    set_columns(project, COLUMNS)
    set_sizes(lake, "order_id, freight, ingest_batch")
    add_gold(project)
    write_model(project, "log", MODELS["log"], file_format="parquet", **APPENDS)

    def found() -> tuple[dict[int, Any], dict[str, int]]:
        """The freights, which both silver tables have, and the rows of gold."""
        assert freights(lake, "silver.orders") == freights(lake)
        gold = lake.rows("gold.by_customer")
        return freights(lake), {row["customer_id"]: row["orders"] for row in gold}

    def log() -> list[list[str]]:
        return lake.sql("select * from silver.log order by order_id, freight")

    # --empty creates the tables, reads nothing, and leaves what arrived to the next run.
    ingest(lake, order(1, "c", 1), order(2, "c", 2), order(3, "c", 3))
    lake.dbt("run", "--empty")
    assert found() == ({}, {})
    lake.dbt("run")
    assert found() == ({1: 10, 2: 20, 3: 30}, {"ALFKI": 3})
    ingest(lake, order(4, "u", 1, freight=11), order(5, "c", 4))
    before = lake.tables.instants()
    lake.dbt("run", "--empty")
    # dbt's own incremental model would have no rows then.
    lake.dbt("run", "--empty", "--full-refresh", "--exclude", "log")
    assert lake.tables.instants() == before
    assert found()[0] == {1: 10, 2: 20, 3: 30}
    lake.dbt("run")
    assert found()[0] == {1: 11, 2: 20, 3: 30, 4: 40}
    after = lake.tables.instants()
    for table in ("silver.orders", "silver.sizes"):
        assert len(after[table]) == len(before[table]) + 1

    # Without news there is no commit.
    lake.dbt("run", "-s", "path:models/staging", "path:models/silver", "path:models/gold")
    assert lake.tables.instants() == after

    # dbt's own incremental model appends; a full refresh gives every row. Of a model that
    # folds nothing it replaces the rows, too.
    assert log() == [["1", "10"], ["2", "20"], ["3", "30"], ["4", "40"]]
    set_sizes(lake, "order_id, freight + 1 as freight, ingest_batch")
    lake.dbt("run", "--full-refresh", "-s", "log", "sizes")
    assert log() == [["1", "11"], ["2", "20"], ["3", "30"], ["4", "40"]]
    assert freights(lake) == {1: 12, 2: 21, 3: 31, 4: 41}
    return lake


def test_contract_and_changes_of_columns(built: Lake) -> None:
    lake = built
    contract = lake.project / "models" / "silver" / "sizes.yml"
    set_sizes(lake, "order_id, freight")
    contract.write_text(MODELS["contract"].replace("TYPE", "string"))
    assert "freight" in lake.dbt_error("run", "--full-refresh", "-s", "sizes")
    assert freights(lake)[1] == 12
    contract.write_text(MODELS["contract"].replace("TYPE", "int"))
    lake.dbt("run", "--full-refresh", "-s", "sizes")
    assert freights(lake)[1] == 11
    contract.unlink()

    # A column that the model no longer has keeps its values.
    set_sizes(lake, "order_id, ingest_batch")
    ingest(lake, order(7, "u", 1, freight=99), order(8, "c", 5))
    lake.dbt("run", "-s", "orders", "sizes")
    assert freights(lake, "silver.orders")[1] == 99
    assert freights(lake) == {1: 11, 2: 20, 3: 30, 4: 40, 5: None}
    for offset, mode in enumerate(("ignore", "append_new_columns"), 9):
        columns = f"order_id, freight, ingest_batch, 'new' as {mode}_column"
        set_sizes(lake, columns, on_schema_change=mode)
        ingest(lake, order(offset, "u", 2, freight=offset))
        lake.dbt("run", "-s", "orders", "sizes")
        rows = {row["order_id"]: row for row in lake.rows("silver.sizes")}
        found = (rows[2]["freight"], rows[2].get(f"{mode}_column"))
        assert found == (offset, None if mode == "ignore" else "new")
        assert rows[3].get(f"{mode}_column") is None
    set_sizes(lake, "order_id, 1 as other", on_schema_change="fail")
    ingest(lake, order(11, "u", 3, freight=33))
    reported = lake.dbt_error("run", "-s", "stg_orders", "orders", "sizes")
    assert "(on_schema_change: fail)" in reported
    assert (freights(lake, "silver.orders")[3], freights(lake)[3]) == (33, 30)


DROP = "dbt run-operation drop_table --args '{table: silver.sizes}'"


def test_settings_and_tables_that_are_refused(built: Lake) -> None:
    lake = built
    refused = {
        "incremental_strategy": "merge",
        "partition_by": "order_id",
        "file_format": "parquet",
        "on_schema_change": "sync_all_columns",
        "merge_update_columns": ["freight"],
        "recompute_by": "freight",
    }
    for setting, value in refused.items():
        set_sizes(lake, "order_id, freight", f"odd_{setting}", **{setting: value})
    nodes = lake.try_dbt("run", "-s", "odd_*")["nodes"]
    for setting in refused:
        assert f"setting '{setting}' is" in nodes[f"odd_{setting}"]["message"]
    set_sizes(lake, "order_id, string(freight) as freight, ingest_batch")
    reported = lake.dbt_error("run", "--full-refresh", "-s", "sizes")
    assert "column freight is int in the table and string in the model" in reported
    assert DROP in reported
    folding = "select * from {{ ref('stg_orders') }}"
    write_model(lake.project, "silver/sizes", folding, unique_key="order_id")
    reported = lake.dbt_error("run", "-s", "stg_orders", "sizes")
    assert "silver.sizes lacks the column cdc_state. Drop" in reported
    assert DROP in reported


def test_wider_number_and_new_column_reach_a_table_while_it_is_read(built: Lake) -> None:
    """By an increment, which leaves null what was before; a full refresh fills it."""
    lake, large = built, 5_000_000_000
    narrow = COLUMNS | {"price": "decimal(6,2)"}
    set_columns(lake.project, narrow)
    ingest(lake, order(20, "u", 1, freight=large, price="123456.7890", note="1"))
    lake.dbt("run", "-s", "stg_orders", "orders")

    def found() -> dict[int, tuple[Any, ...]]:
        names = ("freight", "price", "note")
        rows = lake.rows("silver.orders")
        return {row["order_id"]: tuple(map(row.get, names)) for row in rows}

    before = found()
    assert before[1] == (None, None, None)
    wide = {"freight": "bigint", "price": "decimal(12,4)", "note": "string"}
    set_columns(lake.project, narrow | wide)
    ingest(lake, order(21, "u", 2, freight=large, price="0.5", note="2"))
    counts: list[int] = []
    is_done = Event()

    def read() -> None:
        while not is_done.is_set():
            counts.append(len(lake.rows("silver.orders")))

    reader = Thread(target=read)
    reader.start()
    try:
        lake.dbt("run", "-s", "stg_orders", "orders")
        increment = found()
        lake.dbt("run", "--full-refresh", "-s", "stg_orders", "orders")
    finally:
        is_done.set()
        reader.join()
    assert set(counts) == {len(before)} and len(counts) > 10
    assert (increment[1][0], increment[1][2]) == (None, None)
    assert found()[1] == (large, Decimal("123456.7890"), "1")
    assert found()[2] == increment[2] == (large, Decimal("0.5000"), "2")
    assert lake.sql("select max(freight) from silver.orders") == [[str(large)]]


def test_groups_that_changed_are_recomputed(built: Lake) -> None:
    """All are after a delete, without their past, and where another build wrote, too.

    The rows of another input, with the same keys, change nothing.
    """
    lake, kinds, plain = built, [], "select 1"
    set_sizes(lake, "order_id, customer_id, ingest_batch", "others")
    clean = "call run_clean(table => 'silver.orders', trigger_max_commits => 1,"
    clean += " clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)"
    delete = "delete from silver.orders where order_id = 3"
    move = "update silver.orders set customer_id = 'B' where order_id = 1"
    text = (file := lake.project / "models/gold/by_customer.sql").read_text()
    other = "left join (select order_id as other_id from {{ ref('others') }})"
    text = text.replace("where", f"{other} on order_id = other_id where")
    for number, hook in enumerate([plain, plain, move, plain, delete, plain, plain, clean]):
        file.write_text(text.replace("config(", f'config(pre_hook=["{hook}"], '))
        ingest(lake, order(30 + number, "u", 1, customer_id=f"C{number}"))
        lake.dbt("run", "-s", "stg_orders", "orders", "others", "by_customer")
        gold = {row["customer_id"]: row["orders"] for row in lake.rows("gold.by_customer")}
        assert gold == Counter(row["customer_id"] for row in lake.rows("silver.orders"))
        kinds.append("replace" in lake.tables.instants()["gold.by_customer"][-1])
    assert kinds == [True, False, False, True, True, True, False, True]


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
    seed = project / "seeds/rates.csv"
    seed.parent.mkdir()
    (project / "models/others.yml").write_text(MODELS["other_sources"])
    for name, text in MODELS["read"].items():
        settings = {"unique_key": "order_id", "full_refresh": name == "told"}
        write_model(project, f"gold/reads_{name}", text, **settings)
    for kind, of_kind in MODELS["through"].items():
        for name, text in of_kind.items():
            stored = "hudi" if name == "a_hudi_table" else "parquet"
            write_model(
                project, f"gold/{name}", text, materialized=kind, file_format=stored
            )
    merged = {name: MODELS["read"][name] for name in MODELS["merges"]}
    merged["merged_seed"] = "select order_id, freight from {{ ref('merges_seed') }}"
    for name, text in merged.items():
        write_model(project, f"silver/merges_{name}", text, unique_key="order_id")
    tables = [f"gold.reads_{name}" for name in MODELS["read"]]
    tables += [f"silver.merges_{name}" for name in merged]
    found: dict[str, list[Any]] = {table: [] for table in tables}

    def build() -> None:
        lake.dbt("build", "--vars", "{cdc_lakehouse_recorded_events: true}")
        for table in tables:
            ((freight,),) = ([row["freight"]] for row in lake.rows(table))
            found[table].append(freight)

    seed.write_text("rate\n2\n")
    lake.sql("create table prices using parquet as select 5 as price")
    lake.sql(
        "create table hudi_prices using hudi tblproperties (primaryKey = 'order_id')"
        " as select 1 as order_id, 5 as price"
    )
    for event in (order(1, "c", 1), order(2, "u", 1, freight=11)):
        lake.land([event, "{}"])
        lake.ingest()
        build()
    seed.write_text("rate\n3\n")
    lake.sql("insert overwrite prices select 6 as price")
    lake.sql("update hudi_prices set price = 6")
    view = MODELS["through"]["view"]["a_view"].replace(
        "freight", "freight + 100 as freight"
    )
    write_model(project, "gold/a_view", view, materialized="view")
    build()
    instants = lake.tables.instants()
    assert {
        table: (
            [sorted({*each}).index(one) if "clock" in table else one for one in each],
            len(instants[table]),
        )
        for table, each in found.items()
    } == snapshot


def test_children_of_an_array(new_lake: NewLake, tmp_path: Path) -> None:
    """Of a table and an array of one's own: what is taken out of the array is marked."""
    project = small_project(tmp_path / "project")
    write_model(project, "silver/stops", MODELS["children"], unique_key="stop_id")
    lake = new_lake(project=project)
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
                row["stop_id"]: None if row["is_deleted"] else (row["kilos"], row["at"])
                for row in lake.rows("silver.stops")
            }
        )
    assert found == [
        {"1-Oslo": (1500, {"dock": 7}), "1-Riga": (2000, None)},
        {"1-Oslo": None, "1-Riga": (3000, None), "1-Riga#2": (4000, None)},
        {"1-Oslo": None, "1-Riga": None, "1-Riga#2": None},
    ]
    assert "'eager'" in str(lake.sql("show create table silver.stops"))


# dbt's own ``incremental`` over silver, as its users write it first, in Hudi's format

STRATEGIES: dict[str, str] = MODELS["strategies"]
# A microbatch asks for rows by their time.
EVENT_TIME = "models: [{name: orders, config: {event_time: changed_at}}]"
DAY = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-02")
FIRST = {(1, 10, False), (2, 20, False), (3, 30, False)}
LAST = {(1, 10, False), (2, 22, False), (3, None, True), (4, 40, False)}
LAST_OF_ALL = dict.fromkeys(STRATEGIES, LAST)
Rows = dict[str, set[tuple[int, int | None, bool]]]


@pytest.mark.thorough
def test_each_strategy_means_what_dbt_says(new_lake: NewLake, tmp_path: Path) -> None:
    """A change that arrives late has lost in silver; the tables are of version 6."""
    project = small_project(tmp_path / "project")
    set_columns(project, {"order_id": "int", "freight": "int"})
    for strategy, settings in STRATEGIES.items():
        text = MODELS["incremental"].replace("STRATEGY", strategy)
        model = project / f"models/silver/by_{strategy}.sql"
        model.write_text(text.replace("SETTINGS", settings))
    (project / "models/silver/orders.yml").write_text(EVENT_TIME)
    lake = new_lake(project=project)
    models = ("-s", *(f"by_{strategy}" for strategy in STRATEGIES), *DAY)

    def rows() -> Rows:
        found: Rows = {}
        for strategy in STRATEGIES:
            all_rows = lake.rows(f"silver.by_{strategy}")
            names = ("order_id", "freight", "is_deleted")
            found[strategy] = {tuple(row[name] for name in names) for row in all_rows}
            assert len(found[strategy]) == len(all_rows)
        return found

    def build(*events: Record) -> None:
        lake.build(events, "-s", "path:models/staging", "orders")
        lake.dbt("run", *models)

    build(order(1, "c", 1), order(2, "c", 2), order(3, "c", 3))
    assert rows() == dict.fromkeys(STRATEGIES, FIRST)
    build(order(12, "u", 2, freight=22), order(13, "d", 3), order(14, "c", 4))
    assert rows() == LAST_OF_ALL | {"append": FIRST | LAST}
    build(order(11, "u", 2, freight=21))
    assert rows() == LAST_OF_ALL | {"append": FIRST | LAST}
    lake.dbt("run", "--full-refresh", *models)
    assert rows() == LAST_OF_ALL
    for strategy in STRATEGIES:
        properties = lake.tables.properties(f"silver.by_{strategy}")
        assert properties["hoodie.table.version"] == "6", strategy
