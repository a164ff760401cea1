"""Gold in Glue and S3 as Athena's engine reads it, beside Spark and the source itself.

PostgreSQL, Debezium, Kafka and Trino are real; moto's server is used for S3 and Glue.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.serving.dashboard.content import OPTIONAL
from cdc_lakehouse.serving.gold import KEYS as GOLD
from cdc_lakehouse.serving.manifest import Manifest
from lab.stack.northwind import NorthwindStack
from tests.support.aws import Aws, rows
from tests.support.project import PROJECT, copy_project
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
IN_SPARK = """
import json, sys
from cdc_lakehouse.spark.session import spark_session
spark = spark_session(has_catalogue=False)
for layer, table, location in json.loads(sys.argv[1]):
    spark.sql(f"create database if not exists lake_{layer}")
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
        self.local = local
        self.environment = {
            **os.environ,
            **aws.lake("live", local),
            "PYTHONPATH": str(PROJECT),
        }
        self.manifest_file = local / "target" / "manifest.json"

    def run(self, *command: str, cwd: Path = PROJECT, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=cwd,
            env={**self.environment, "PYTHONPATH": str(cwd)},
            capture_output=True,
            text=True,
            timeout=540,
        )
        output = done.stdout + done.stderr
        assert done.returncode == code, output[-4000:]
        return output

    def catch_up(self, build: str = "run") -> None:
        """Bring what is committed at the source to gold."""
        self.stack.wait_until_caught_up(timeout=180)
        places = f"--target-path {self.local}/target --log-path {self.local}/logs"
        self.run(
            *("ingest", "kafka", "--bootstrap-servers", self.stack.bootstrap_servers),
            *("--topic", *TOPICS, "--then-build", f"{build} {places}"),
        )

    def dbt(self, *arguments: str, cwd: Path = PROJECT) -> None:
        places = ("--target-path", f"{self.local}/target")
        self.run(
            *("dbt.cli.main", *arguments, "--quiet", "--profiles-dir", "profiles"),
            *(*places, "--log-path", f"{self.local}/logs"),
            cwd=cwd,
        )

    def register(self, *arguments: str, code: int = 0) -> str:
        return self.run(
            "cdc_lakehouse",
            "glue",
            "--manifest",
            str(self.manifest_file),
            *arguments,
            code=code,
        )

    def queries(self) -> dict[str, str]:
        """The analyses as Athena gets them."""
        manifest = Manifest.read(self.manifest_file)
        return {
            name: manifest.render(PROJECT / "analyses" / name, "lake") for name in ANALYSES
        }

    def spark(self, queries: list[str], hudi: str | None = None) -> list[list[list[Any]]]:
        """The queries' rows as Spark has them, of Hudi's version."""
        tables = [
            (
                table.layer,
                table.name,
                f"s3a://lake/live/warehouse/{table.layer}.db/{table.name}",
            )
            for table in Manifest.read(self.manifest_file).relations()
            if table.layer != "bronze"
        ]
        asked = [
            query.replace("lake_gold.", "gold_").replace("lake_silver.", "silver_")
            for query in queries
        ]
        done = subprocess.run(
            [sys.executable, "-c", IN_SPARK, json.dumps(tables), json.dumps(asked)],
            cwd=PROJECT,
            env={**self.environment, **({"HUDI_VERSION": hudi} if hudi else {})},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        found: list[list[list[Any]]] = json.loads(done.stdout.splitlines()[-1])
        return found


@pytest.fixture(scope="module")
def lake(
    s3_jars: None,
    stack: NorthwindStack,
    aws: Aws,
    tmp_path_factory: pytest.TempPathFactory,
) -> Lake:
    """The source's rows in gold on S3, one order deleted; not in Glue yet."""
    lake = Lake(stack, aws, tmp_path_factory.mktemp("lake"))
    with (
        closing(stack.connect_to_source()) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        for table in ("order_details", "orders"):
            cursor.execute(
                f"delete from datalake.{table} where order_id = %s", (DELETED_ORDER,)
            )
        assert cursor.rowcount == 1
    lake.catch_up()
    return lake


def databases(aws: Aws, prefix: str) -> list[str]:
    """The databases of a prefix in Glue."""
    found = aws.client("glue").get_databases()["DatabaseList"]
    names = [str(database["Name"]) for database in found]
    return sorted(name for name in names if name.startswith(f"{prefix}_"))


def columns_of(aws: Aws, database: str, table: str) -> dict[str, tuple[str, str]]:
    """Types and comments of a table in Glue."""
    found = aws.client("glue").get_table(DatabaseName=database, Name=table)["Table"]
    return {
        column["Name"]: (column["Type"], column["Comment"])
        for column in found["StorageDescriptor"]["Columns"]
    }


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
    assert (
        "changed          first_bronze.cdc_events:"
        f" new table, {len(dates)} new partitions" in output
    )
    glue = aws.client("glue")
    names = {
        database: {
            table["Name"] for table in glue.get_tables(DatabaseName=database)["TableList"]
        }
        for database in databases(aws, "first")
    }
    assert names == {
        "first_bronze": {"cdc_events", "customers", "products", "rejected_events"},
        "first_silver": {"customers", "order_items", "orders", "products", "rejected_rows"},
        "first_gold": set(GOLD),
    }
    assert columns_of(aws, "first_gold", "revenue_by_month") == {
        "order_month": (
            "date",
            "Primary key, the first day of the month; 1900-01-01 for orders without a"
            " date.",
        ),
        "count_orders": ("bigint", "Orders that have at least one line."),
        "count_items": ("bigint", "Order lines."),
        "revenue": ("decimal(28,4)", "Sum of the lines' revenue."),
    }
    undescribed = [
        f"{database}.{table['Name']}.{column['Name']}"
        for database in names
        for table in glue.get_tables(DatabaseName=database)["TableList"]
        for column in [*table["StorageDescriptor"]["Columns"], *table["PartitionKeys"]]
        if not column.get("Comment")
    ]
    assert undescribed == []
    table = glue.get_table(DatabaseName="first_gold", Name="revenue_by_month")["Table"]
    assert table["StorageDescriptor"]["Location"] == (
        "s3://lake/live/warehouse/gold.db/revenue_by_month"
    )
    assert (
        table["Parameters"]["athena_enable_native_hudi_connector_implementation"] == "true"
    )

    again = lake.register("--prefix", "first")
    assert {line.split()[0] for line in again.splitlines()} == {"unchanged"}


def test_every_engine_answers_as_the_source_does(
    lake: Lake, aws: Aws, trino: Trino
) -> None:
    lake.register()
    assert_equal_to_source(lake, trino)
    assert_equal_to_spark(lake, trino)


def test_hudi_as_athena_documents_it_reads_gold(lake: Lake) -> None:
    """Hudi 0.15.0, the newest that Athena's own documentation names."""
    version = {**os.environ, "HUDI_VERSION": "0.15.0"}
    subprocess.run(
        [sys.executable, "-m", "cdc_lakehouse", "setup"],
        cwd=PROJECT,
        env=version,
        check=True,
    )
    live = {table: rows("live", f"gold.{table}") for table in GOLD}
    # By name: a table with a text as its key has Hudi's own key beside it.
    queries = [
        f"select {', '.join(live[table][0])} from lake_gold.{table}" for table in GOLD
    ]
    for table, found in zip(GOLD, lake.spark(queries, hudi="0.15.0"), strict=True):
        assert sorted(plain_rows(found)) == sorted(
            [plain(value) for value in row.values()] for row in live[table]
        )


def test_deletes_are_in_silver_and_bronze_of_trino(lake: Lake, trino: Trino) -> None:
    lake.register()
    order = f"lake_silver.orders where order_id = {DELETED_ORDER}"
    assert trino.rows(f"select is_deleted from {order}") == [[True]]
    operations = [row["op"] for row in rows("live", "bronze.cdc_events")]
    assert "d" in operations
    counted = trino.rows("select op, count(*) from lake_bronze.cdc_events group by op")
    assert dict(counted) == Counter(operations)


class Reader:
    """Queries gold in a loop, as a dashboard does while a build runs."""

    QUESTION = """
        select
            (select count(*) from lake_gold.revenue_by_customer),
            (select sum(revenue) from lake_gold.revenue_by_customer)
    """

    def __init__(self, trino: Trino) -> None:
        self.trino = trino
        self.seen: list[list[Any]] = []
        self.failure: BaseException | None = None
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _read(self) -> None:
        try:
            while not self._is_done.is_set():
                [row] = self.trino.rows(self.QUESTION)
                self.seen.append(row)
        except BaseException as error:
            self.failure = error


def test_changes_and_a_full_refresh_while_gold_is_read(lake: Lake, trino: Trino) -> None:
    """Each query sees the old state or the new one, never a part of one."""
    lake.register()
    states = trino.rows(Reader.QUESTION)
    with Reader(trino) as reader:
        with closing(lake.stack.connect_to_source()) as connection:
            with connection.cursor() as cursor:
                cursor.execute(
                    "update datalake.order_details set quantity = quantity + 1"
                    " where order_id = 10250"
                )
                cursor.execute("delete from datalake.order_details where order_id = 10251")
                cursor.execute("delete from datalake.orders where order_id = 10251")
                cursor.execute(
                    "update datalake.orders set order_date = null where order_id = 10253"
                )
            connection.commit()
        lake.catch_up()
        states += trino.rows(Reader.QUESTION)
        assert_equal_to_source(lake, trino)

        lake.dbt("run", "--full-refresh", "-s", "orders+")
        states += trino.rows(Reader.QUESTION)
        assert_equal_to_source(lake, trino)
    assert_equal_to_spark(lake, trino)
    assert states[0] != states[1] == states[2]
    assert len(reader.seen) > 20
    assert [row for row in reader.seen if row not in states] == []


def test_new_column_of_a_model_reaches_glue(
    lake: Lake, aws: Aws, trino: Trino, tmp_path: Path
) -> None:
    lake.register()
    copy = copy_project(tmp_path / "project")
    model = copy / "models/gold/revenue_by_month.sql"
    text = model.read_text()
    assert "select * from revenue_by_month" in text
    model.write_text(
        text.replace(
            "select * from revenue_by_month",
            "select *, cast(revenue / count_orders as decimal(20, 2)) as avg_revenue"
            " from revenue_by_month",
        )
    )
    with closing(lake.stack.connect_to_source()) as connection:
        with connection.cursor() as cursor:
            cursor.execute("delete from datalake.order_details where order_id = 10252")
        connection.commit()
    lake.catch_up("run --select staging silver")
    try:
        lake.dbt("run", "-s", "revenue_by_month", cwd=copy)
        output = lake.register()
        assert (
            "changed          lake_gold.revenue_by_month:"
            " new column avg_revenue decimal(20,2)" in output
        )
        [[found]] = trino.rows(
            "select max(avg_revenue * count_orders - revenue)"
            " from lake_gold.revenue_by_month"
        )
        assert abs(found) < 1
    finally:
        # A full refresh keeps the column, and the other tests compare every column.
        table = "{table: gold.revenue_by_month}"
        lake.dbt("run-operation", "drop_table", "--args", table)
        lake.dbt("run", "-s", "revenue_by_month")
        lake.register()
    assert "avg_revenue" not in columns_of(aws, "lake_gold", "revenue_by_month")
