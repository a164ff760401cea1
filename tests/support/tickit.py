"""TICKIT's rows and answers at its sources, in the form of silver and gold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from examples.tickit.gold import KEYS as GOLD
from examples.tickit.source.stack import FOLDER, PROJECT, TABLES, TickitStack, copy_rows
from lab.stack.mariadb import statements
from tests.support.mariadb_source import plain
from tests.support.records import Row

QUESTIONS = PROJECT / "answers"
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
Rows = dict[Any, Row]


def source_tables() -> Iterator[tuple[str, str]]:
    """Database and table of every table."""
    for name, tables in TABLES.items():
        yield from ((name, table) for table in tables)


def source_rows(stack: TickitStack, name: str, table: str) -> Rows:
    """The rows of a table at its source, by key."""
    with closing(stack.connect_to(name)) as connection:
        return _query(connection, f"select * from {name}.{table}", SILVER[table][1])


def answers(stack: TickitStack) -> dict[str, Rows]:
    """What PostgreSQL answers to gold's questions, all tables in one database."""
    with closing(stack.postgres.connect()) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("drop database if exists answers")
            cursor.execute("create database answers")
    with closing(stack.postgres.connect(dbname="answers")) as connection:
        with connection.cursor() as cursor:
            cursor.execute("create domain datetime as timestamp")  # MariaDB's name
            for name in TABLES:
                for statement in statements((FOLDER / f"{name}.sql").read_text()):
                    cursor.execute(statement)
            for name, table in source_tables():
                rows = stack.execute(name, f"select * from {name}.{table}")
                copy_rows(cursor, f"{name}.{table}", rows)
        return {
            table: _query(connection, (QUESTIONS / f"{table}.sql").read_text(), key)
            for table, key in GOLD.items()
        }


def lake_rows(rows: list[Row], key: str) -> Rows:
    """The live rows of a table of silver, or the rows of one of gold, by key."""
    live = [row for row in rows if not row.get("is_deleted")]
    return {
        plain(row[key]): {name: plain(value) for name, value in row.items()} for row in live
    }


def differences(expected: Rows, found: Rows) -> list[tuple[Any, Row | None, Row | None]]:
    """The keys whose rows differ in a column of the source's, with both rows."""
    columns = next(iter(expected.values())).keys()
    shown = {key: {name: row.get(name) for name in columns} for key, row in found.items()}
    return [
        (key, expected.get(key), shown.get(key))
        for key in expected.keys() | shown.keys()
        if expected.get(key) != shown.get(key)
    ]


def _query(connection: Any, statement: str, key: str) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, map(plain, row), strict=True)) for row in cursor.fetchall()]
    return {row[key]: row for row in rows}
