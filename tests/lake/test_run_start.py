"""What a run decides before its models: which bronze tables, and up to which batch."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import UNAVAILABLE, Record
from tests.support.scenario import customer, order
from tests.support.small_project import small_project

pytestmark = pytest.mark.thorough

# A model of two bronze tables, and one that reads it.
TWO_TABLES = Path(__file__).with_name("two_tables")


def ingest(lake: Lake, *events: Record) -> None:
    lake.land(events)
    assert lake.ingest().code == 0


@pytest.fixture(scope="module")
def names(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The lake of a model that reads two bronze tables."""
    project = small_project(tmp_path_factory.mktemp("names") / "project")
    shutil.copytree(TWO_TABLES, project, dirs_exist_ok=True)
    return new_lake(project=project)


def test_batch_that_two_tables_share_is_read_of_both(names: Lake) -> None:
    """A run may see it in one of them, before the ingest commits it to the other."""
    names.build([order("c", 1, 1, 1), customer("c", "FIRST", 1, 1)])
    names.build([order("c", 2, 2, 2)])
    events = names.rows("bronze.cdc_events")
    [batch] = {row["ingest_batch"] for row in events if row["kafka_offset"] == 2}
    ingest(names, customer("c", "LATE", 2, 2))
    names.sql(f"update bronze.customers set ingest_batch = {batch} where kafka_offset = 2")
    names.dbt("run")
    expected = {"order 1", "customer FIRST", "order 2", "customer LATE"}
    for table in ("silver.names", "silver.lengths"):
        assert {row["name_id"] for row in names.rows(table)} == expected, table


@contextmanager
def commit_of_a_clock_ahead(lake: Lake, table: str, ahead: timedelta) -> Iterator[str]:
    """Have the newest commit of a table be of a time ahead; what errors say of it."""
    timeline = lake.tables.path(table) / ".hoodie"
    newest = max(timeline.glob("*commit"))
    at = datetime.now(UTC) + ahead
    copy = timeline / f"{at.strftime('%Y%m%d%H%M%S%f')[:-3]}{newest.suffix}"
    shutil.copy(newest, copy)
    lake.release()
    try:
        until = f"{at:%Y-%m-%d %H:%M:%S} UTC"
        yield f"newest commit of {table}, and what is written before {until}"
    finally:
        copy.unlink()
        lake.release()


def test_nothing_is_written_by_a_clock_that_is_behind(names: Lake) -> None:
    """A reader would not see it. Each layer has its own writers, and their clocks."""
    hour = timedelta(hours=1)
    names.build([order("c", 20, 20, 20), customer("c", "EARLY", 20, 20)])
    names.land([order("c", 21, 21, 21), customer("c", "THEN", 21, 21)])
    with commit_of_a_clock_ahead(names, "bronze.customers", hour) as said:
        before = names.rows("bronze.cdc_events")
        refused = names.ingest()
        assert (refused.code, names.rows("bronze.cdc_events")) == (75, before)
        assert said in refused.err
        names.dbt("run")
    assert names.ingest().code == 0
    with commit_of_a_clock_ahead(names, "silver.names", hour) as said:
        assert said in names.dbt_error("run")
        ingest(names, order("c", 22, 22, 22))
    names.dbt("run")
    with commit_of_a_clock_ahead(names, "silver.names", timedelta(seconds=3)):
        names.build([order("c", 23, 23, 23)])
    found = {row["name_id"] for row in names.rows("silver.names")}
    assert {f"order {key}" for key in range(20, 24)} | {"customer THEN"} <= found
    for table in ("bronze.customers", "silver.names"):
        assert names.tables.properties(table)["hoodie.table.timeline.timezone"] == "UTC"


def test_tables_of_others_are_left_alone(names: Lake, tmp_path: Path) -> None:
    """Also where they lack our columns; a source's name at another place ends the run."""
    names.sql("create table bronze.theirs using parquet as select 1 as precious")
    names.dbt("run")
    assert names.sql("select precious from bronze.theirs") == [["1"]]
    names.sql("drop table bronze.theirs")

    names.sql("drop table bronze.customers")
    place = tmp_path / "customers"
    names.sql(
        f"create table bronze.customers using parquet location '{place}'"
        " as select 1 as precious"
    )
    said = names.dbt_error("run")
    ours = names.root / "warehouse" / "bronze.db" / "customers"
    assert f"a table bronze.customers at file:{place}" in said
    assert f"the ingest writes to file:{ours}" in said
    assert names.sql("select precious from bronze.customers") == [["1"]]
    names.sql("drop table bronze.customers")
    names.dbt("run")


def test_increment_of_four_models_is_24_statements(new_lake: NewLake) -> None:
    """Six are dbt's own. Order lines read the changed orders, whose columns are wide, once.

    The lines that are gone need the same orders.
    """
    lake = new_lake()
    models = ("-s", "stg_orders", "orders", "order_items", "revenue_by_customer")
    lake.build([order("c", 1, 100, 0), order("u", 1, 120, 2)], *models)
    late = order("u", 1, 110, 1)
    ingest(lake, order("c", 2, 130, 3), late)
    statements = lake.dbt("run", *models)["statements"]
    assert len(lake.rows("silver.order_items")) == 2
    assert len(statements) <= 24, "\n".join(statements)
    [query] = [
        text[text.index("using parquet") + len("using parquet") :]
        for text in statements
        if "insert overwrite directory" in text and "order_items" in text.split("\n")[0]
    ]
    lake.sql("set spark.sql.maxPlanStringLength=1000000")
    [[plan]] = lake.sql(f"explain {query}")
    # Equal exchanges are computed once, which the plan before it runs does not show.
    scans = re.findall(r"FileScan HudiFileGroup spark_catalog.silver.orders\[(.*?)\]", plan)
    assert len(scans) == 2
    assert len({re.sub(r"#\d+L?", "", scan) for scan in scans}) == 1


def test_rows_that_may_wait_are_searched_for_where_there_may_be_some(
    new_lake: NewLake,
) -> None:
    """It reads the whole table; that a value is carried is recorded before it is stored."""
    lake = new_lake()
    models = ("-s", "stg_orders", "orders")

    def statements_after(*events: Record) -> list[str]:
        ingest(lake, *events)
        said: list[str] = lake.dbt("run", *models)["statements"]
        return said

    def searches(statements: list[str]) -> bool:
        return any("from silver.orders" in s and "limit 1" in s for s in statements)

    lake.build([order("c", 1, 100, 0), order("u", 1, 120, 2)], *models)
    assert not searches(statements_after(order("u", 1, 110, 1)))

    statements = statements_after(
        order("c", 2, 130, 3), order("u", 2, 140, 4, employee=UNAVAILABLE)
    )
    [raised] = [at for at, text in enumerate(statements) if "lakehouse.carries" in text]
    [stored] = [at for at, text in enumerate(statements) if "insert into silver.o" in text]
    assert raised < stored

    assert searches(statements_after(order("u", 1, 105, 5)))

    lake.build([order("u", 2, 150, 6)], *models)
    lake.dbt("run", "--full-refresh", *models)
    assert not searches(statements_after(order("u", 1, 106, 7)))
