"""Gold in Glue and S3 as Athena's engine reads it, beside Spark and the source itself.

PostgreSQL, Debezium, Kafka and Trino are real; moto's server is used for S3 and Glue.
"""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.serving.dashboard.content import OPTIONAL
from cdc_lakehouse.serving.gold import KEYS as GOLD
from cdc_lakehouse.serving.manifest import Manifest
from lab.stack.northwind import NorthwindStack
from tests.support.aws import Aws, rows
from tests.support.project import PROJECT, copy_project, replace_once
from tests.support.source import QUESTIONS, answers, gold_rows
from tests.support.trino_server import Trino

pytestmark = pytest.mark.timeout(900)

ANALYSES = sorted(
    path.name
    for path in (PROJECT / "analyses").glob("*.sql")
    if path.stem not in OPTIONAL  # their tables are not built here
)
TOPICS = [f"demo.datalake.{table}" for table in ("cdc_events", "customers", "products")]
DELETED_ORDER = 10260
# What PostgreSQL knows as the tables that the analyses read.
ITEMS_AS_SILVER = """
    create schema lake_gold;
    create schema lake_silver;
    create table lake_silver.orders as
        select order_id, order_date, false as is_deleted from datalake.orders;
    create table lake_silver.order_items as
        select
            items.order_id, items.customer_id, items.product_id,
            order_details.unit_price::text::numeric as unit_price,
            items.quantity,
            order_details.discount::text::numeric as discount,
            items.revenue, false as is_deleted
        from items
        join datalake.order_details using (order_id, product_id);
"""
CHANGES = (
    "update datalake.order_details set quantity = quantity + 1 where order_id = 10250",
    "delete from datalake.order_details where order_id = 10251",
    "delete from datalake.orders where order_id = 10251",
    "update datalake.orders set order_date = null where order_id = 10253",
)
IN_SPARK = """
import json, sys
from cdc_lakehouse.spark.session import spark_session
spark = spark_session(has_catalogue=False)
for layer, table in json.loads(sys.argv[1]):
    spark.sql(f"create database if not exists lake_{layer}")
    location = f"s3a://lake/live/warehouse/{layer}.db/{table}"
    spark.read.format("hudi").load(location).createOrReplaceTempView(f"{layer}_{table}")
found = [
    [[str(value) for value in row] for row in spark.sql(query).collect()]
    for query in json.loads(sys.argv[2])
]
print(json.dumps(found))
"""


def plain(value: Any) -> Any:
    """A value as text, numbers without their scale."""
    try:
        return str(Decimal(str(value)).normalize())
    except InvalidOperation:
        return str(value).rstrip(" ")


def plain_rows(rows: list[list[Any]]) -> list[list[Any]]:
    return [[plain(value) for value in row] for row in rows]


class Lake:
    """The lake on S3 of a stack's events, and what is run on it."""

    def __init__(self, stack: NorthwindStack, aws: Aws, local: Path) -> None:
        self.stack = stack
        self.environment = {**os.environ, **aws.lake("live", local)}
        self.places = ("--target-path", f"{local}/target", "--log-path", f"{local}/logs")
        self.manifest = local / "target/manifest.json"

    def run(self, *words: str, cwd: Path = PROJECT, hudi: str = "") -> str:
        version = {"HUDI_VERSION": hudi} if hudi else {}
        done = subprocess.run(
            [sys.executable, *words],
            cwd=cwd,
            env={**self.environment, "PYTHONPATH": str(cwd), **version},
            capture_output=True,
            text=True,
            timeout=540,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout

    def change(self, *statements: str, build: str = "run") -> None:
        """Change the source in one transaction, and bring that to gold."""
        with closing(self.stack.connect_to_source()) as connection, connection:
            for statement in statements:
                connection.cursor().execute(statement)
        self.stack.wait_until_caught_up(timeout=180)
        self.run(
            *("-m", "ingest", "kafka", "--bootstrap-servers", self.stack.bootstrap_servers),
            *("--topic", *TOPICS, "--then-build", " ".join((build, *self.places))),
        )

    def dbt(self, *arguments: str, cwd: Path = PROJECT) -> None:
        words = ("-m", "dbt.cli.main", *arguments, "--quiet", "--profiles-dir", "profiles")
        self.run(*words, *self.places, cwd=cwd)

    def register(self, *arguments: str) -> str:
        manifest = ("--manifest", str(self.manifest))
        return self.run("-m", "cdc_lakehouse", "glue", *manifest, *arguments)

    def queries(self) -> dict[str, str]:
        """The analyses as Athena gets them."""
        manifest = Manifest.read(self.manifest)
        return {
            name: manifest.render(PROJECT / "analyses" / name, "lake") for name in ANALYSES
        }

    def spark(self, queries: list[str], hudi: str = "") -> list[list[list[Any]]]:
        """The queries' rows as Spark has them, of Hudi's version."""
        relations = Manifest.read(self.manifest).relations()
        tables = [(each.layer, each.name) for each in relations if each.layer != "bronze"]
        asked = [
            query.replace("lake_gold.", "gold_").replace("lake_silver.", "silver_")
            for query in queries
        ]
        words = ("-c", IN_SPARK, json.dumps(tables), json.dumps(asked))
        found: list[list[list[Any]]] = json.loads(
            self.run(*words, hudi=hudi).splitlines()[-1]
        )
        return found


@pytest.fixture(scope="module")
def lake(
    s3_jars: None,
    stack: NorthwindStack,
    aws: Aws,
    tmp_path_factory: pytest.TempPathFactory,
) -> Lake:
    """The source's rows in gold on S3 and in Glue, one order deleted."""
    lake = Lake(stack, aws, tmp_path_factory.mktemp("lake"))
    lake.change(
        *(
            f"delete from datalake.{table} where order_id = {DELETED_ORDER}"
            for table in ("order_details", "orders")
        )
    )
    lake.register()
    return lake


def assert_equal_to_source(lake: Lake, trino: Trino) -> None:
    """Every gold table, and every analysis, in Trino and in PostgreSQL."""
    with closing(lake.stack.connect_to_source()) as connection:
        expected = answers(connection)
        for table in GOLD:
            found = trino.table(f"lake_gold.{table}")
            assert gold_rows(found, table) == expected[table], table
        with connection.cursor() as cursor:
            cursor.execute((QUESTIONS / "_items.sql").read_text())
            cursor.execute(ITEMS_AS_SILVER)
            for table in GOLD:
                question = (QUESTIONS / f"{table}.sql").read_text()
                cursor.execute(f"create table lake_gold.{table} as {question}")
            for name, query in lake.queries().items():
                cursor.execute(query)
                answer = plain_rows([list(row) for row in cursor])
                assert plain_rows(trino.rows(query)) == answer, name
                assert answer, name
        connection.rollback()


def assert_equal_to_spark(lake: Lake, trino: Trino) -> None:
    """Every analysis in Trino and in Spark."""
    queries = lake.queries()
    in_spark = dict(zip(queries, lake.spark(list(queries.values())), strict=True))
    for name, query in queries.items():
        assert plain_rows(in_spark[name]) == plain_rows(trino.rows(query)), name


def test_tables_are_registered_once(lake: Lake, aws: Aws) -> None:
    output = lake.register("--prefix", "first")
    dates = {row["ingest_date"] for row in rows("live", "bronze.cdc_events")}
    assert f"first_bronze.cdc_events: new table, {len(dates)} new partitions" in output
    glue = aws.client("glue")
    layers = {
        "bronze": {"cdc_events", "customers", "products", "rejected_events"},
        "silver": {"customers", "order_items", "orders", "products", "rejected_rows"},
        "gold": {*GOLD, "order_items"},
    }
    for layer, names in layers.items():
        found = glue.get_tables(DatabaseName=f"first_{layer}")["TableList"]
        assert {table["Name"] for table in found} == names
    again = lake.register("--prefix", "first")
    assert {line.split()[0] for line in again.splitlines()} == {"unchanged"}


def test_every_engine_answers_as_the_source_does(lake: Lake, trino: Trino) -> None:
    assert_equal_to_source(lake, trino)
    assert_equal_to_spark(lake, trino)
    order = f"lake_silver.orders where order_id = {DELETED_ORDER}"
    assert trino.rows(f"select is_deleted from {order}") == [[True]]
    operations = [row["op"] for row in rows("live", "bronze.cdc_events")]
    assert "d" in operations
    counted = trino.rows("select op, count(*) from lake_bronze.cdc_events group by op")
    assert dict(counted) == Counter(operations)


def test_hudi_as_athena_documents_it_reads_gold(lake: Lake) -> None:
    """Hudi 0.15.0, the newest that Athena's own documentation names."""
    lake.run("-m", "cdc_lakehouse", "setup", hudi="0.15.0")
    live = {table: rows("live", f"gold.{table}") for table in GOLD}
    # By name: a table with a text as its key has Hudi's own key beside it.
    queries = [
        f"select {', '.join(live[table][0])} from lake_gold.{table}" for table in GOLD
    ]
    in_spark = lake.spark(queries, "0.15.0")
    for table, found in zip(GOLD, in_spark, strict=True):
        expected = [[*row.values()] for row in live[table]]
        assert sorted(plain_rows(found)) == sorted(plain_rows(expected)), table


STATE = """
    select
        (select count(*) from lake_gold.revenue_by_customer),
        (select sum(revenue) from lake_gold.revenue_by_customer)
"""


@contextmanager
def reader(trino: Trino) -> Iterator[list[Any]]:
    """What gold shows in a loop, as to a dashboard while a build runs."""
    seen: list[Any] = []
    is_done = threading.Event()

    def read() -> None:
        try:
            while not is_done.is_set():
                seen.append(trino.rows(STATE))
        except BaseException as error:
            seen.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        is_done.set()
        thread.join()


def test_changes_and_a_full_refresh_while_gold_is_read(lake: Lake, trino: Trino) -> None:
    """Each query sees the old state or the new one, never a part of one."""
    states = [trino.rows(STATE)]
    with reader(trino) as seen:
        lake.change(*CHANGES)
        states.append(trino.rows(STATE))
        assert_equal_to_source(lake, trino)
        lake.dbt("run", "--full-refresh", "-s", "orders+")
        states.append(trino.rows(STATE))
        assert_equal_to_source(lake, trino)
    assert_equal_to_spark(lake, trino)
    assert states[0] != states[1] == states[2]
    assert len(seen) > 20
    assert [each for each in seen if each not in states] == []


def test_new_column_of_a_model_reaches_glue(
    lake: Lake, trino: Trino, tmp_path: Path
) -> None:
    copy = copy_project(tmp_path / "project")
    replace_once(
        copy / "models/gold/revenue_by_month.sql",
        "select * from revenue_by_month",
        "select *, cast(revenue / count_orders as decimal(20, 2)) as avg_revenue"
        " from revenue_by_month",
    )
    line = "delete from datalake.order_details where order_id = 10252"
    lake.change(line, build="run --select staging silver")
    lake.dbt("run", "-s", "revenue_by_month", cwd=copy)
    output = lake.register()
    assert "lake_gold.revenue_by_month: new column avg_revenue decimal(20,2)" in output
    [[found]] = trino.rows(
        "select max(avg_revenue * count_orders - revenue) from lake_gold.revenue_by_month"
    )
    assert abs(found) < 1
