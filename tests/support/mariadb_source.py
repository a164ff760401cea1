"""The databases of the tests with MariaDB: a table for each type, and a shop in a storm."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from lab.stack.mariadb import MariaDBServer
from tests.support.mariadb_types import input_of
from tests.support.project import copy_project, write_rejected_rows
from tests.support.records import Row
from tests.support.types_matrix import Type
from tests.support.types_tables import TypesTables

Rows = dict[tuple[Any, ...], Row]
# A visit's note, from when it had it, and until when.
Version = tuple[str, datetime, datetime | None]

# A value that the server's strict mode refuses is a type's value, too.
NOT_STRICT = "set session sql_mode = ''"


class MariaDBTypes:
    """The tables of the types' matrix in a database of a server.

    Args:
        server: the server; the database is there.
        database: its name.
        types: the rows of the matrix.
    """

    def __init__(self, server: MariaDBServer, database: str, types: Sequence[Type]) -> None:
        self.server = server
        self.database = database
        self.tables = _Tables(types)

    def topics(self, prefix: str) -> dict[str, str]:
        """The silver table of every topic of a connector."""
        return {
            f"{prefix}.{self.database}.{self.tables.table(row)}": row.group
            for row in self.tables.types
        }

    def create(self) -> None:
        """Make the tables with the rows that the snapshot reads."""
        with self._cursor() as cursor:
            self.tables.create(cursor)

    def create_unchanged(self) -> None:
        """Make a table with a row that has a value of each type."""
        rows = self.tables.types
        columns = [f"c{number} {row.sql} null" for number, row in enumerate(rows)]
        with self._cursor() as cursor:
            cursor.execute(
                f"create table unchanged (id int primary key, n int, {', '.join(columns)})"
            )
            cursor.execute(
                f"insert into unchanged values (1, 1, {', '.join(map(input_of, rows))})",
                [row.values[0].text for row in rows],
            )

    def change_unchanged(self) -> None:
        """Update another column of that row."""
        with self._cursor() as cursor:
            cursor.execute("update unchanged set n = 2")

    def change(self) -> None:
        """Insert and update while the connector streams."""
        with self._cursor() as cursor:
            self.tables.change(cursor)

    def catalogue(self) -> list[str]:
        """The type of each row of the matrix as MariaDB's catalogue writes it."""
        found = []
        with self._cursor() as cursor:
            for row in self.tables.types:
                cursor.execute(
                    "select column_type from information_schema.columns"
                    " where table_schema = %s and table_name = %s and column_name = %s",
                    (self.database, self.tables.table(row), row.column),
                )
                found.append(cursor.fetchone()[0])
        return found

    def texts(self) -> dict[int, str | None]:
        """The server's own text of every value, by key."""
        with self._cursor() as cursor:
            return self.tables.texts(cursor)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor that commits each statement."""
        connection = self.server.connect(
            database=self.database, autocommit=True, init_command=NOT_STRICT
        )
        with closing(connection), connection.cursor() as cursor:
            yield cursor


class _Tables(TypesTables):
    def column(self, row: Type) -> str:
        """MariaDB's timestamps are not null by default."""
        return f"{super().column(row)} null"

    def input(self, row: Type) -> str:
        return input_of(row)


# A shop of three tables, whose rows a storm changes.

SHOP = """
    create table customers (
        customer_id varchar(10) primary key,
        name varchar(80) not null,
        notes mediumtext
    );
    create table orders (
        order_id int unsigned primary key,
        customer_id varchar(10),
        ordered_on date,
        shipped_at datetime(6),
        freight decimal(10,2),
        state enum('new', 'packed', 'sent') not null default 'new',
        flags set('gift', 'fragile', 'express'),
        reference bigint unsigned,
        details json,
        updated_at timestamp(3) not null default current_timestamp(3)
            on update current_timestamp(3)
    );
    create table order_lines (
        order_id int unsigned,
        product_id smallint unsigned,
        quantity int unsigned not null,
        unit_price decimal(12,4) not null,
        primary key (order_id, product_id)
    );
    create table visits (visit_id int primary key, note varchar(10));
    insert into visits select seq, 'old' from seq_101_to_130;
    insert into customers select concat('C', seq), concat('Käse ', seq), repeat('n', seq)
        from seq_1_to_60;
    insert into orders (order_id, customer_id, ordered_on, reference)
        select seq, concat('C', 1 + seq % 60), date '2026-01-01' + interval seq day,
            18446744073709551615 - seq
        from seq_1_to_300;
    insert into order_lines select seq, 1 + seq % 7, seq % 5, seq / 8 from seq_1_to_300
"""
# By table: key, columns in the declared types.
TABLES: dict[str, tuple[list[str], dict[str, str]]] = {
    "customers": (
        ["customer_id"],
        {"customer_id": "string", "name": "string", "notes": "string"},
    ),
    "orders": (
        ["order_id"],
        {
            "order_id": "bigint",
            "customer_id": "string",
            "ordered_on": "date",
            "shipped_at": "timestamp",
            "freight": "decimal(10,2)",
            "state": "string",
            "flags": "string",
            "reference": "decimal(20,0) base64",
            "details": "json",
            "updated_at": "timestamptz",
        },
    ),
    "order_lines": (
        ["order_id", "product_id"],
        {
            "order_id": "bigint",
            "product_id": "int",
            "quantity": "bigint",
            "unit_price": "decimal(12,4)",
        },
    ),
    "visits": (["visit_id"], {"visit_id": "int", "note": "string"}),
}
HISTORY = """
{{ config(materialized='cdc_history', unique_key='history_id') }}

{{ row_history(ref('stg_visits')) }}
"""


def write_shop(folder: Path, topic_prefix: str) -> Path:
    """A project with the shop's tables, the visits' history, and a topics file."""
    copy_project(folder)
    models = folder / "models"
    for layer in ("staging", "silver", "gold"):
        for file in sorted((models / layer).rglob("*"), reverse=True):
            if file.is_file() and file.name != "_position_columns.md":
                file.unlink()
    tests = (folder / "tests/dbt").glob("*.sql")
    for file in [*(folder / "analyses").rglob("*.sql"), *tests]:
        file.unlink()
    for table, (key, columns) in TABLES.items():
        meta: dict[str, Any] = {"key": key[0], "columns": columns}
        if len(key) > 1:
            meta |= {"key": "line_id", "key_columns": key}
        (models / f"staging/stg_{table}.sql").write_text(
            f"{{{{ config(meta={meta}) }}}}\n\n"
            f"{{{{ change_events(source('bronze', '{table}')) }}}}\n"
        )
        (models / f"silver/{table}.sql").write_text(
            f"{{{{ config(unique_key='{meta['key']}') }}}}\n\n"
            f"{{{{ current_rows(ref('stg_{table}')) }}}}\n"
        )
    (models / "silver/visits_history.sql").write_text(HISTORY)
    write_rejected_rows(models)
    source = {
        "name": "bronze",
        "schema": "bronze",
        "tables": [{"name": table} for table in TABLES],
    }
    # YAML takes JSON as it is.
    (models / "staging/sources.yml").write_text(json.dumps({"sources": [source]}))
    set_epoch(folder, topic_prefix, 0)
    return folder


def topics_of(topic_prefix: str) -> list[str]:
    """The topics of the shop's tables."""
    return [f"{topic_prefix}.{table}" for table in TABLES]


def set_epoch(project: Path, topic_prefix: str, epoch: int) -> None:
    """Write the topics file of a shop, all of its topics in an epoch."""
    lines = ["[topics]"]
    lines += [f'"{topic_prefix}.{table}" = "{table}"' for table in TABLES]
    lines += ["[epochs]", *(f'"{topic}" = {epoch}' for topic in topics_of(topic_prefix))]
    (project / "topics.toml").write_text("\n".join(lines) + "\n")


def source_rows(server: MariaDBServer, database: str, table: str) -> Rows:
    """The rows of a table at the source, by key."""
    key, columns = TABLES[table]
    # JSON is a text there; times come without their zone.
    found = server.execute(f"select {', '.join(columns)} from {database}.{table}")
    rows = [dict(zip(columns, map(plain, row), strict=True)) for row in found]
    return {tuple(row[name] for name in key): row for row in rows}


def silver_rows(rows: list[Row], table: str) -> Rows:
    """The live rows of a silver table in the source's columns, by key."""
    key, columns = TABLES[table]
    live = [row for row in rows if not row["is_deleted"]]
    found = [{name: plain(row[name]) for name in columns} for row in live]
    return {tuple(row[name] for name in key): row for row in found}


def plain(value: Any) -> Any:
    """A value without the differences that mean nothing: scale, and the zone of UTC."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value).normalize()
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=None)
    return value


class Visits:
    """Changes of the visits, each at a second that is known.

    One session commits each statement. Another one, which changes other rows, commits
    several at once, later than statements that ran after its own.

    Args:
        server: the server.
        database: where the table is.
    """

    def __init__(self, server: MariaDBServer, database: str) -> None:
        self.server = server
        self.database = database
        self.random = random.Random(45)
        self.at = datetime(2026, 1, 1, tzinfo=UTC)
        self.states: dict[int, list[tuple[str | None, datetime]]] = {}

    def change(self, statements: int) -> None:
        """Run statements, some of which change nothing."""
        sessions = [
            self.server.connect(
                database=self.database,
                autocommit=autocommit,
                # Neither locks what the other one may insert.
                init_command="set session transaction isolation level read committed",
            )
            for autocommit in (True, False)
        ]
        for step in range(statements):
            number = step % 2
            with sessions[number].cursor() as cursor:
                # A clock may step back.
                self.at += timedelta(seconds=self.random.choice((0, 0, 0, 1, 2, -1)))
                cursor.execute("set timestamp = %s", (self.at.timestamp(),))
                self._change(cursor, range(30 * number, 30 * number + 30))
            if step % 7 == 0:
                sessions[1].commit()
        for session in sessions:
            session.commit()
            session.close()

    def _change(self, cursor: Any, visits: Sequence[int]) -> None:
        visit, other = self.random.sample(visits, 2)
        had, note = self.note(visit), self.random.choice("abc")
        kind = self.random.choice(["note", "note", "note", "delete", "move"])
        if had is None:
            cursor.execute("insert into visits values (%s, %s)", (visit, note))
            self._became(visit, note)
        elif kind == "delete":
            cursor.execute("delete from visits where visit_id = %s", (visit,))
            self._became(visit, None)
        elif kind == "move" and self.note(other) is None:
            cursor.execute(
                "update visits set visit_id = %s where visit_id = %s", (other, visit)
            )
            self._became(visit, None)
            self._became(other, had)
        else:
            cursor.execute("update visits set note = %s where visit_id = %s", (note, visit))
            self._became(visit, note)

    def note(self, visit: int) -> str | None:
        """What a visit has now."""
        return self.states[visit][-1][0] if visit in self.states else None

    def _became(self, visit: int, note: str | None) -> None:
        if note != self.note(visit):
            self.states.setdefault(visit, []).append((note, self.at))

    def versions(self) -> dict[int, list[Version]]:
        """What each visit had, and when; none begins after the next one."""
        found: dict[int, list[Version]] = {}
        for visit, states in self.states.items():
            end = None
            for note, at in reversed(states):
                begin = min(at, end or at)
                if note is not None:
                    found.setdefault(visit, []).insert(0, (note, begin, end))
                end = begin
        return found


def change_shop(connection: Any, draw: random.Random) -> None:
    """The changes of one transaction."""
    with connection.cursor() as cursor:
        for _ in range(draw.choice((1, 1, 2, 3))):
            draw.choices(CHANGES, WEIGHTS)[0](cursor, draw)


def _order(cursor: Any, draw: random.Random) -> Any:
    cursor.execute(
        "select order_id from orders where order_id >= %s order by order_id limit 1",
        (draw.randint(1, 1_500),),
    )
    row = cursor.fetchone()
    return row[0] if row else None


def _insert_order(cursor: Any, draw: random.Random) -> None:
    order_id = draw.randint(301, 3_000)
    cursor.execute(
        "insert ignore into orders (order_id, customer_id, ordered_on, freight, flags,"
        " reference, details) values (%s, %s, %s, %s, %s, %s, %s)",
        (
            order_id,
            draw.choice((None, "C1", "C2", "C3")),
            draw.choice((None, "1998-05-20", "2026-02-28")),
            draw.randint(0, 99_999) / 100,
            draw.choice((None, "", "gift", "gift,express")),
            draw.choice((None, draw.getrandbits(64))),
            json.dumps({"text": 'The "Cracker" \\ \n 😀', "n": draw.randint(1, 9)}),
        ),
    )
    _write_lines(cursor, draw, order_id)


def _write_lines(cursor: Any, draw: random.Random, order_id: int) -> None:
    """Replace, insert or change lines, several rows by one statement."""
    lines = [
        (order_id, product_id, draw.randint(1, 99), draw.randint(1, 99_999) / 1_000)
        for product_id in draw.sample(range(1, 40), draw.choice((1, 2, 4)))
    ]
    cursor.executemany(
        draw.choice(
            (
                "replace into order_lines values (%s, %s, %s, %s)",
                "insert into order_lines values (%s, %s, %s, %s)"
                " on duplicate key update quantity = quantity + 1",
            )
        ),
        lines,
    )


def _update_order(cursor: Any, draw: random.Random) -> None:
    column, value = draw.choice(
        (
            ("shipped_at", draw.choice((None, "2026-05-20 23:59:59.123456"))),
            ("state", draw.choice(("new", "packed", "sent"))),
            ("freight", draw.randint(0, 99_999) / 100),
            ("reference", draw.getrandbits(64)),
        )
    )
    cursor.execute(
        f"update orders set {column} = %s where order_id = %s",
        (value, _order(cursor, draw)),
    )


def _update_many(cursor: Any, draw: random.Random) -> None:
    """Change many rows by one statement: they differ in the row of a position only."""
    begin = draw.randint(1, 1_500)
    cursor.execute(
        "update orders set freight = %s where order_id between %s and %s",
        (draw.randint(0, 999) / 100, begin, begin + 40),
    )


def _move_orders(cursor: Any, draw: random.Random) -> None:
    """Change the keys of neighbours by one statement, from the highest on."""
    begin = _order(cursor, draw) or 0
    cursor.execute(
        "update ignore orders set order_id = order_id + 1"
        " where order_id between %s and %s order by order_id desc",
        (begin, begin + draw.choice((0, 3, 8))),
    )


def _delete_order(cursor: Any, draw: random.Random) -> None:
    order_id = _order(cursor, draw)
    cursor.execute("delete from order_lines where order_id = %s", (order_id,))
    cursor.execute("delete from orders where order_id = %s", (order_id,))


def _replace_order(cursor: Any, draw: random.Random) -> None:
    """Delete an order and insert it again, in one transaction."""
    order_id = _order(cursor, draw)
    if order_id is not None:
        cursor.execute("delete from orders where order_id = %s", (order_id,))
        cursor.execute(
            "insert into orders (order_id, customer_id) values (%s, 'C9')", (order_id,)
        )


def _change_customer(cursor: Any, draw: random.Random) -> None:
    cursor.execute(
        "update customers set name = %s where customer_id = %s",
        (f"Söhne {draw.randint(1, 99)}", f"C{draw.randint(1, 60)}"),
    )


def _rename_customer(cursor: Any, draw: random.Random) -> None:
    """Change a key, and leave the wide column alone."""
    cursor.execute(
        "update ignore customers set customer_id = %s where customer_id = %s",
        (f"C{draw.randint(1, 99)}", f"C{draw.randint(1, 99)}"),
    )


CHANGES = (
    _insert_order,
    _update_order,
    _update_many,
    _move_orders,
    _delete_order,
    _replace_order,
    _change_customer,
    _rename_customer,
)
WEIGHTS = (24, 24, 4, 8, 12, 8, 8, 6)
