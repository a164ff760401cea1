"""Tables in Glue and S3 as Athena's engine reads them, beside Spark and the source itself.

PostgreSQL, Debezium, Kafka and Trino are real; moto's server is used for S3 and Glue.
"""

import json
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.serving.api.engines import answer_here, literal
from cdc_lakehouse.serving.api.questions import questions_of
from cdc_lakehouse.serving.dashboard.content import OPTIONAL
from cdc_lakehouse.serving.manifest import Manifest
from cdc_lakehouse.spark.settings import hudi_version
from lab.demo.landing import land
from lab.stack import jars
from lab.stack.northwind import NorthwindStack
from lab.stack.trino_server import Trino
from tests.support.aws import Aws, rows
from tests.support.commands import run
from tests.support.lake import TOPICS_FILE
from tests.support.project import PROJECT, expected_revenue, parsed
from tests.support.source import GOLD, QUESTIONS, answers, gold_rows
from tests.support.tables import SMALL_LAKE, Tables

pytestmark = pytest.mark.timeout(900)

ANALYSES = sorted(
    path.name
    for path in (PROJECT / "analyses").glob("*.sql")
    if path.stem not in OPTIONAL  # their tables are not built here
)
TOPICS = [f"demo.datalake.{table}" for table in ("cdc_events", "customers", "products")]
DELETED_ORDER = 10260
OURS = hudi_version()
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
print("\\n", json.dumps(found), sep="")
"""


def plain_rows(rows: list[list[Any]]) -> list[list[str]]:
    """Values as text, numbers without their scale."""

    def plain(value: Any) -> str:
        try:
            return str(Decimal(str(value)).normalize())
        except InvalidOperation:
            return str(value).rstrip(" ")

    return [[*map(plain, row)] for row in rows]


@pytest.mark.smoke
def test_from_landing_to_gold_and_trino(
    s3_jars: None, aws: Aws, trino: Trino, tmp_path: Path
) -> None:
    """The files of Lenses' sink."""
    client = aws.client("s3")
    client.create_bucket(Bucket="landing")
    land(tmp_path)
    for file in sorted(tmp_path.rglob("*.json.gz")):
        # Its own name: an offset, the first and the last timestamp.
        name = str(file.relative_to(tmp_path))
        name = name.replace(".json.gz", "_1767225600000_1767225900000.gz")
        client.upload_file(str(file), "landing", name)
    environment = aws.lake("northwind", tmp_path)
    build = f"run --target-path {tmp_path} --log-path {tmp_path}"
    files = ("s3a://landing/", "--topics", str(TOPICS_FILE))
    ingest = (sys.executable, "-m", "ingest", "files", *files)
    output = run(*ingest, "--then-build", build, "--then-glue", "s3", env=environment)
    assert "read 1023 records, wrote 1023 events, rejected 0" in output
    assert "read 0 records" in run(*ingest, env=environment)
    orders = rows("northwind", "silver.orders")
    assert sum(not row["is_deleted"] for row in orders) == 829
    gold = rows("northwind", "gold.revenue_by_customer")
    assert {row["customer_id"]: row["revenue"] for row in gold} == expected_revenue()

    answer = trino.rows("select customer_id, revenue from s3_gold.revenue_by_customer")
    assert dict(answer) == expected_revenue()
    [[deleted]] = trino.rows("select count(*) from s3_silver.orders where is_deleted")
    assert deleted == sum(row["is_deleted"] for row in orders)


# What the API asks.


def test_trino_answers_the_same_statements(aws: Aws, trino: Trino, tmp_path: Path) -> None:
    """By parameters that are written as Athena's, each value of a row among them."""
    jars.unpack(SMALL_LAKE, tmp_path)
    parsed(tmp_path / "target")
    manifest = tmp_path / "target/manifest.json"
    aws.serve(Tables(tmp_path), manifest, "api")
    compared = 0
    for question in questions_of(Manifest.read(manifest), tmp_path, "api", print):
        names = [column.name for column in question.columns if column.kind]
        whole = question.statement((), (), 0, 100)
        rows = answer_here(tmp_path, question, whole, 60)
        statements = [whole, question.statement((), [f"-{names[-1]}"], 1, 2)]
        for row in rows:
            filters = [
                (column.name, "", value)
                for column, value in zip(question.columns, row, strict=True)
                if column.kind and value is not None
            ]
            statements.append(question.statement(filters, (), 0, 100))
            compared += 1
        for sql, values in statements:
            expected = answer_here(tmp_path, question, (sql, values), 60)
            text, written = sql.replace("'", "''"), ", ".join(map(literal, values))
            found = trino.rows(f"execute immediate '{text}' using {written}")
            assert found == [list(row) for row in expected]
    assert compared > 5


# The source's rows, live.


class Lake:
    """The lake on S3 of a stack's events, and what is run on it."""

    def __init__(self, stack: NorthwindStack, aws: Aws, local: Path) -> None:
        self.stack = stack
        self.environment = aws.lake("live", local)
        self.places = ("--target-path", f"{local}/target", "--log-path", f"{local}/logs")
        self.manifest = local / "target/manifest.json"

    def run(self, *words: str, cwd: Path = PROJECT, hudi: str = OURS) -> str:
        environment = {**self.environment, "HUDI_VERSION": hudi}
        return run(sys.executable, *words, cwd=cwd, env=environment)

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

    def spark(self, queries: list[str], hudi: str = OURS) -> list[list[list[str]]]:
        """The queries' rows as Spark has them."""
        relations = Manifest.read(self.manifest).relations()
        tables = [(each.layer, each.name) for each in relations if each.layer != "bronze"]
        asked = [
            query.replace("lake_gold.", "gold_").replace("lake_silver.", "silver_")
            for query in queries
        ]
        said = self.run("-c", IN_SPARK, json.dumps(tables), json.dumps(asked), hudi=hudi)
        [line] = [line for line in said.splitlines() if line.startswith("[[")]
        return [plain_rows(rows) for rows in json.loads(line)]


@pytest.fixture(scope="module")
def lake(s3_jars: None, stack: NorthwindStack, aws: Aws, tmp_path_factory: Any) -> Lake:
    """The source's rows in gold on S3 and in Glue, one order deleted."""
    lake = Lake(stack, aws, tmp_path_factory.mktemp("lake"))
    tables = ("order_details", "orders")
    where = f"where order_id = {DELETED_ORDER}"
    lake.change(*(f"delete from datalake.{table} {where}" for table in tables))
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
            cursor.execute("create schema lake_gold")
            for table in GOLD:
                question = (QUESTIONS / f"{table}.sql").read_text()
                cursor.execute(f"create table lake_gold.{table} as {question}")
            for name, query in lake.queries().items():
                cursor.execute(query)
                answer = plain_rows([list(row) for row in cursor])
                assert plain_rows(trino.rows(query)) == answer != [], name
        connection.rollback()


def assert_equal_to_spark(lake: Lake, trino: Trino) -> None:
    """Every analysis in Trino and in Spark."""
    queries = lake.queries()
    in_trino = [plain_rows(trino.rows(query)) for query in queries.values()]
    assert lake.spark([*queries.values()]) == in_trino, [*queries]


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
    in_spark = lake.spark(queries, hudi="0.15.0")
    assert [sorted(found) for found in in_spark] == [
        sorted(plain_rows([[*row.values()] for row in live[table]])) for table in GOLD
    ]


STATE = """
    select
        (select count(*) from lake_gold.revenue_by_customer),
        (select sum(revenue) from lake_gold.revenue_by_customer)
"""


def test_changes_and_a_full_refresh_while_gold_is_read(lake: Lake, trino: Trino) -> None:
    """Each query sees the old state or the new one, never a part of one."""
    seen, states, is_done = [], [trino.rows(STATE)], threading.Event()

    def read() -> None:
        while not is_done.is_set():
            seen.append(trino.rows(STATE))

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            lake.change(*CHANGES)
            states.append(trino.rows(STATE))
            assert_equal_to_source(lake, trino)
            lake.dbt("run", "--full-refresh", "-s", "orders+")
            states.append(trino.rows(STATE))
            assert_equal_to_source(lake, trino)
        finally:
            is_done.set()
    assert reading.exception() is None
    assert_equal_to_spark(lake, trino)
    assert states[0] != states[1] == states[2]
    assert len(seen) > 20
    assert [each for each in seen if each not in states] == []
