"""Columns that Debezium leaves out or hashes, so that Kafka and bronze never have them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.records import UNAVAILABLE, Row

NAME = "masking"
SALT = "CzQMA0cB5K"
# More than a page has room for, so that PostgreSQL keeps it beside the row.
BIOGRAPHY = "a life " * 3_000
CREATE = f"""
    create schema app;
    create table app.people (
        person_id int primary key, email varchar(100), phone varchar(20),
        passport text, biography text, details jsonb
    );
    create table app.authors (author_id int primary key, biography text, rank int);
    create table app.logins (login text primary key, email text);
    alter table app.people alter column biography set storage external;
    alter table app.authors alter column biography set storage external;
    alter table app.authors replica identity full;
    create publication {NAME} for all tables;
    grant usage on schema app to {REPLICATION_ROLE};
    grant select on all tables in schema app to {REPLICATION_ROLE};
    insert into app.people values
        (1, 'a@example.org', '555-0100', 'X1', '{BIOGRAPHY}', '{{"a": 1}}');
    insert into app.authors values (1, '{BIOGRAPHY}', 1);
"""
CHANGES = """
    insert into app.people (person_id, email, passport) values (2, 'b@example.org', 'X2');
    update app.people set phone = '555-0199' where person_id = 1;
    update app.authors set rank = 2;
    insert into app.logins values ('ann', 'a@example.org');
"""


# Of each table the keys and the rows that Kafka has, in their order.
Events = dict[str, list[tuple[Row, Row]]]


def hashed(text: str, salt: str = SALT) -> str:
    return sha256((salt + text).encode()).hexdigest()


@contextmanager
def cursor(stack: NorthwindStack, database: str = NAME) -> Iterator[Any]:
    """A cursor that commits each statement."""
    with closing(stack.postgres.connect(dbname=database)) as connection:
        connection.autocommit = True
        with connection.cursor() as opened:
            yield opened


@pytest.fixture(scope="module")
def salt_in_a_file(stack: NorthwindStack) -> str:
    """A placeholder of Connect's FileConfigProvider."""
    return f"${{file:{stack.connect.placeholders}:password}}"


@pytest.fixture(scope="module")
def masked(stack: NorthwindStack, salt_in_a_file: str) -> Iterator[None]:
    """Three tables, changed while a connector masks their columns."""
    columns = "email|phone|biography|details"
    config = stack.configuration("source-tables") | {
        "column.exclude.list": r"app\.people\.passport",
        f"column.mask.hash.v2.SHA-256.with.salt.{SALT}": rf"app\.\w+\.({columns})",
        f"column.mask.hash.v2.SHA-256.with.salt.{salt_in_a_file}": r"app\.logins\.login",
        "custom.metric.tags": f"connector={NAME}",
        "database.dbname": NAME,
        "publication.name": NAME,
        "slot.name": NAME,
        "table.include.list": r"app\..*",
        "topic.prefix": NAME,
    }
    try:
        with cursor(stack, "postgres") as statements:
            statements.execute(f"create database {NAME}")
        with cursor(stack) as statements:
            statements.execute(CREATE)
            stack.connect.ask("PUT", f"/connectors/{NAME}/config", config)
            wait_until(lambda: slot_is(statements, "active"), 120, "no streaming", 0.2)
            statements.execute(CHANGES)
            statements.execute("select pg_current_wal_insert_lsn()")
            (end,) = statements.fetchone()
            has_all = f"confirmed_flush_lsn >= '{end}'"
            wait_until(lambda: slot_is(statements, has_all), 60, "not caught up", 0.2)
        yield
    finally:
        if NAME in stack.connect.states():
            stack.connect.remove(NAME)
        with cursor(stack, "postgres") as statements:
            statements.execute(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots"
                f" where database = '{NAME}'"
            )
            statements.execute(f"drop database if exists {NAME} with (force)")


def slot_is(statements: Any, condition: str) -> bool:
    statements.execute(
        f"select count(*) from pg_replication_slots where database = %s and {condition}",
        (NAME,),
    )
    return bool(statements.fetchone()[0])


@pytest.fixture(scope="module")
def events(
    stack: NorthwindStack,
    masked: None,
    new_lake: NewLake,
    tmp_path_factory: pytest.TempPathFactory,
) -> Events:
    tables = ("people", "authors", "logins")
    topics: Path = tmp_path_factory.mktemp(NAME) / "topics.toml"
    lines = "".join(f'"{NAME}.app.{table}" = "{table}"\n' for table in tables)
    topics.write_text(f"[topics]\n{lines}")
    lake = new_lake(topics)
    ingested = lake.ingest_kafka(
        *("--bootstrap-servers", stack.bootstrap_servers, "--topics", str(topics)),
        *("--topic", *(f"{NAME}.app.{table}" for table in tables)),
    )
    assert (ingested.code, ingested.counts) == (0, (6, 6, 0, 0)), ingested.err
    return {
        table: [
            (json.loads(row["key"]), json.loads(row["value"])["after"])
            for row in sorted(
                lake.rows(f"bronze.{table}"), key=lambda row: row["kafka_offset"]
            )
        ]
        for table in tables
    }


def test_excluded_column_is_in_no_record(events: Events) -> None:
    assert [key["person_id"] for key, _ in events["people"]] == [1, 2, 1]
    for _, row in events["people"]:
        assert "email" in row
        assert "passport" not in row


def test_hashed_column_is_its_salted_hash(events: Events) -> None:
    """It is cut to the length of the column; null stays null."""
    (_, read), (_, inserted), (_, updated) = events["people"]
    assert (read["email"], read["biography"]) == (
        hashed("a@example.org"),
        hashed(BIOGRAPHY),
    )
    assert (inserted["email"], inserted["phone"]) == (hashed("b@example.org"), None)
    assert updated["phone"] == hashed("555-0199")[:20]


def test_column_that_is_no_text_is_not_hashed(events: Events) -> None:
    """Debezium says nothing of it."""
    assert json.loads(events["people"][0][1]["details"]) == {"a": 1}


def test_unavailable_value_is_hashed_too(events: Events) -> None:
    """Nothing shows that it was not sent, unless the replica identity is full."""
    assert events["people"][2][1]["biography"] == hashed(UNAVAILABLE)
    assert [row["biography"] for _, row in events["authors"]] == [hashed(BIOGRAPHY)] * 2


def test_key_is_not_hashed_in_kafkas_key(events: Events, salt_in_a_file: str) -> None:
    """A config provider's placeholder is the salt itself, as it is in a setting's name."""
    ((key, row),) = events["logins"]
    assert key == {"login": "ann"}
    assert row["login"] == hashed("ann", salt_in_a_file)


def test_connect_shows_the_salt(stack: NorthwindStack, masked: None) -> None:
    shown = stack.connect.ask("GET", f"/connectors/{NAME}/config")
    assert f"column.mask.hash.v2.SHA-256.with.salt.{SALT}" in shown
