"""TICKIT: three databases, each through Debezium, Avro and Kafka, joined in one lake."""

import json
from collections.abc import Collection, Iterator
from contextlib import chdir, closing
from decimal import Decimal
from pathlib import Path

import pytest

from cdc_lakehouse.serving.api.engines import answer_here
from cdc_lakehouse.serving.api.questions import questions_of
from cdc_lakehouse.serving.manifest import Manifest
from examples.tickit.gold import KEYS as GOLD
from examples.tickit.source.generator import Tickit
from examples.tickit.source.stack import (
    FOLDER,
    PROJECT,
    TABLES,
    TOPICS,
    TickitStack,
    copy_rows,
)
from lab.stack.mariadb import statements
from tests.support.lake import Lake
from tests.support.required import required
from tests.support.source import Rows, asked, live_rows, plain

pytestmark = pytest.mark.thorough

SCALE = 0.01
# Silver's table of every table of the sources, and the column that is its key.
SILVER = {
    "category": ("tickit_categories", "catid"),
    "event": ("tickit_events", "eventid"),
    "venue": ("tickit_venues", "venueid"),
    "user": ("tickit_users", "userid"),
    "date": ("tickit_dates", "dateid"),
    "listing": ("tickit_listings", "listid"),
    "sale": ("tickit_sales", "salesid"),
}
# What happens at the sources after the first build; the sale is the walk-through's.
UPDATED_SALE, DELETED_SALE, EARLY, NEW = 7, 8, 100_000, 100_001
CHANGES = {
    "ecomm": f"""
        update sale set qtysold = 2, pricepaid = 1234.56 where salesid = {UPDATED_SALE};
        delete from sale where salesid = {DELETED_SALE};
        insert into listing select 100000, 1, 2, 3, 5, 10, 50, '2025-01-03';
        update sale set buyerid = 3 where salesid between 20 and 40;
        -- Neither the event nor the buyer is there yet.
        insert into sale select {EARLY}, 1, 1, {NEW}, {NEW}, 3, 1, 9, 1, now()""",
    "ems": """
        update ems.event set catid = 1 + catid % 11 where eventid <= 10;
        update ems.venue set venuecity = 'Cañon City' where venueid = 1""",
    "crm": "update crm.user set lastname = 'Ng-Díaz', likejazz = null where userid <= 5",
}
# How many records of each topic that makes.
CHANGED = {
    **{"tickit.ecomm.sale": 24, "tickit.ecomm.listing": 1, "tickit.ems.event": 10},
    **{"tickit.ems.venue": 1, "tickit.crm.user": 5},
}


@pytest.fixture(scope="module")
def stack(open_folder: Path) -> Iterator[TickitStack]:
    """Skips where the machine lacks what it needs; in CI that is a failure."""
    with required():
        TickitStack(open_folder, Tickit(SCALE)).require_programs()
    with TickitStack(open_folder, Tickit(SCALE)).anew() as stack:
        yield stack


def expected(stack: TickitStack) -> dict[str, Rows]:
    """The sources' tables, and what PostgreSQL answers to gold's questions.

    For that all tables are in one database.
    """
    found = {}
    with closing(stack.postgres.connect()) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("drop database if exists answers")
            cursor.execute("create database answers")
    with (
        closing(stack.postgres.connect(dbname="answers")) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("create domain datetime as timestamp")  # MariaDB's name
        for name, tables in TABLES.items():
            for statement in statements((FOLDER / f"{name}.sql").read_text()):
                cursor.execute(statement)
            for table in tables:
                rows = stack.execute(name, f"select * from {name}.{table}")
                copy_rows(cursor, f"{name}.{table}", rows)
        for table, key in GOLD.items():
            question = (PROJECT / f"answers/{table}.sql").read_text()
            found[f"gold.{table}"] = asked(connection, question, key)
    for name, tables in TABLES.items():
        for table in tables:
            silver, key = SILVER[table]
            with closing(stack.connect_to(name)) as connection:
                question = f"select * from {name}.{table}"
                found[f"silver.{silver}"] = asked(connection, question, key)
    return found


def rows_of(lake: Lake, table: str, key: str, columns: Collection[str] = ()) -> Rows:
    """The live rows of a table of silver, or the rows of one of gold, by key."""
    return live_rows(lake.rows(table), key, columns=columns)


def assert_questions_are_answered(stack: TickitStack, lake: Lake, manifest: Path) -> None:
    """The seventeen of ``analyses/``, as the API asks them and as PostgreSQL answers them.

    The database is that of ``expected``.
    """
    by_key = {f"analyses/{name.removeprefix('tickit_')}" for name, _ in SILVER.values()}
    answered: list[str] = []
    with (
        chdir(PROJECT),
        closing(stack.postgres.connect(dbname="answers")) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("create schema lake_silver")
        for name, tables in TABLES.items():
            for table in tables:
                view = f"lake_silver.{SILVER[table][0]}"
                text = f"select *, false as is_deleted from {name}.{table}"
                cursor.execute(f"create view {view} as {text}")
        for question in questions_of(Manifest.read(manifest), lake.root, "lake", print):
            if question.path.startswith("gold/"):
                continue
            cursor.execute(question.sql)
            rows = [[*map(plain, row)] for row in cursor]
            asked = {question.path: question.statement((), (), 0, len(rows) + 1)}
            expected = {question.path: rows}
            if question.path in by_key:
                path = f"{question.path}?{question.columns[0].name}="
                key = (question.columns[0].name, "", rows[-1][0])
                asked[path] = question.statement([key], (), 0, 2)
                expected[path] = rows[-1:]
            for path, statement in asked.items():
                found = answer_here(lake.root, question, statement, 60)
                assert [[*map(plain, row)] for row in found] == expected[path] != [], path
            answered += asked
    assert len(answered) == 17


def build(stack: TickitStack, lake: Lake) -> tuple[int, str]:
    """Bring what Kafka has to gold: how many events there were, and dbt's warnings.

    Every table then has the sources' rows, and the questions the sources' answers.
    """
    done = lake.ingest_kafka(
        *("--bootstrap-servers", stack.bootstrap_servers),
        *("--registry", stack.registry.url),
        *("--topics", str(PROJECT / "topics.toml"), "--topic", *TOPICS),
    )
    assert (done.code, done.counts[2]) == (0, 0), done.err
    built = lake.dbt("build", project=PROJECT)
    keys = {f"silver.{name}": key for name, key in SILVER.values()}
    keys |= {f"gold.{table}": key for table, key in GOLD.items()}
    for table, rows in expected(stack).items():
        columns = next(iter(rows.values())).keys()
        assert rows_of(lake, table, keys[table], columns) == rows, table
    assert_questions_are_answered(stack, lake, Path(built["target"], "manifest.json"))
    return done.counts[1], " ".join(built["said"])


def test_three_sources_are_joined_in_one_lake(stack: TickitStack, lake: Lake) -> None:
    """After the snapshots and after changes; an updated sale is followed to gold.

    A sale that comes before its event and its buyer counts, and is warned of.
    """
    assert build(stack, lake)[1] == ""
    before = rows_of(lake, "gold.sales_by_event", "event_id")
    ends = stack.broker.end_offsets(r"tickit\..*")
    for name, script in CHANGES.items():
        for statement in statements(script):
            stack.execute(name, statement)
    stack.wait_until_topics_hold(
        {topic: ends[f"{topic}/0"] + count for topic, count in CHANGED.items()}
    )
    written, said = build(stack, lake)
    assert written == sum(CHANGED.values())
    assert "relationships_tickit_sales_buyerid" in said
    assert "relationships_tickit_sales_eventid" in said
    after = rows_of(lake, "gold.sales_by_event", "event_id")
    assert (after[NEW,]["event_name"], after[NEW,]["revenue"]) == (None, 9)

    [event] = [
        row
        for row in lake.rows("bronze.tickit_sale")
        if row["kafka_offset"] == ends["tickit.ecomm.sale/0"]
    ]
    row = json.loads(event["value"])["after"]
    assert (row["salesid"], row["pricepaid"]) == (UPDATED_SALE, "1234.56")
    assert event["schema_id"] > 0
    sale = rows_of(lake, "silver.tickit_sales", "salesid")[UPDATED_SALE,]
    assert (sale["pricepaid"], sale["qtysold"], sale["op"]) == (Decimal("1234.56"), 2, "u")
    assert sale["source_position"] == event["source_position"]
    assert before[sale["eventid"],]["revenue"] != after[sale["eventid"],]["revenue"]

    versions = lake.rows("silver.tickit_sales_history")
    old, new = sorted(
        (row for row in versions if row["salesid"] == UPDATED_SALE),
        key=lambda row: row["version_number"],
    )
    assert (old["op"], old["valid_to"]) == ("r", new["valid_from"])
    assert (new["op"], new["is_current"], new["valid_to"]) == ("u", True, None)
    [deleted] = [row for row in versions if row["salesid"] == DELETED_SALE]
    assert not deleted["is_current"]
