"""A database with a table for each type of the matrix, and its way to silver."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import pyarrow as pa

from connectors.postgres.checks import REPLICATION_ROLE
from connectors.stack.processes import wait_until
from connectors.stack.stack import Stack
from lake.tables import open_table, read_columns
from tests.support.lake import Lake
from tests.support.types_matrix import PRECISE, Type, Value

DATABASE = "types"
EXTENSIONS = ("citext", "cube", "hstore", "isn", "ltree")
CREATE_TYPES = """
    create type mood as enum ('sad', 'it''s, ok');
    create type pair as (a int, b text);
    create domain positive_int as int check (value > 0);
    create domain price as numeric(10,2);
    create domain email as citext;
"""
# The two connectors; each captures the tables that its pattern names.
CONNECTORS = {
    "types_string": rf"types\.(?!{PRECISE}_).*",
    "types_precise": rf"types\.{PRECISE}_.*",
}


class Way(IntEnum):
    """How a value comes to the lake."""

    SNAPSHOT = 1
    INSERT = 2
    UPDATE = 3


@dataclass(frozen=True)
class Outcome:
    """What became of a value.

    Attributes:
        source: PostgreSQL's text of it.
        sent: what Debezium sent, None where it left the column out.
        reason: why its event was rejected, None where it was not.
        silver: what silver holds; dates and times as numbers since 1970.
        is_stored: whether silver has a row of its key.
    """

    source: str | None
    sent: str | None
    reason: str | None
    silver: Any
    is_stored: bool


def is_right(row: Type, value: Value, outcome: Outcome) -> bool:
    """Whether silver holds a value as the source has it, or it was rejected by right."""
    if value.is_rejected:
        return (outcome.reason or "").startswith(f"{row.column}: ")
    return (
        outcome.reason is None
        and outcome.is_stored
        and row.form.is_same(outcome.silver, outcome.source)
    )


def row_id(types: Sequence[Type], row: Type, value: Value, way: Way) -> int:
    """The key of a value's row."""
    return types.index(row) * 1000 + row.all_values.index(value) * 10 + way


class TypesSource:
    """The database of a stack that has the types' tables.

    Args:
        stack: whose PostgreSQL and Connect are used.
        types: the rows of the matrix.
    """

    def __init__(self, stack: Stack, types: Sequence[Type]) -> None:
        self.stack = stack
        self.types = types
        self.tables: dict[str, list[Type]] = {}
        for row in types:
            self.tables.setdefault(self._table(row), []).append(row)

    def topics(self) -> dict[str, str]:
        """The silver table of every topic."""
        return {
            f"types_{'precise' if group == PRECISE else 'string'}.types.{table}": group
            for table, (row, *_) in self.tables.items()
            for group in [row.group]
        }

    def create(self) -> None:
        """Make the database with the rows that the snapshot reads."""
        with self._cursor("postgres") as cursor:
            cursor.execute(f"create database {DATABASE}")
        with self._cursor() as cursor:
            for name in EXTENSIONS:
                cursor.execute(f"create extension {name}")
            cursor.execute(CREATE_TYPES)
            cursor.execute("create schema types")
            for table, rows in self.tables.items():
                columns = ", ".join(f"{row.column} {row.sql}" for row in rows)
                cursor.execute(
                    f"create table types.{table} (id int primary key, {columns})"
                )
            for row in self.types:
                for value in row.all_values:
                    first = row.values[0].text if value.text is None else None
                    self._insert(cursor, row, value, Way.SNAPSHOT, value.text)
                    self._insert(cursor, row, value, Way.UPDATE, first)
            cursor.execute("create publication types for all tables")
            cursor.execute(f"grant usage on schema types to {REPLICATION_ROLE}")
            cursor.execute(
                f"grant select on all tables in schema types to {REPLICATION_ROLE}"
            )

    def change(self) -> None:
        """Insert and update while the connectors stream."""
        with self._cursor() as cursor:
            for row in self.types:
                for value in row.all_values:
                    self._insert(cursor, row, value, Way.INSERT, value.text)
                    cursor.execute(
                        f"update types.{self._table(row)} set {row.column} = %s"
                        " where id = %s",
                        (value.text, row_id(self.types, row, value, Way.UPDATE)),
                    )

    def register(self) -> None:
        """Have Debezium capture the tables, and wait until it streams."""
        for name, tables in CONNECTORS.items():
            config = self.stack.configuration("source-tables") | {
                "custom.metric.tags": f"connector={name}",
                "database.dbname": DATABASE,
                "publication.name": "types",
                "slot.name": name,
                "table.include.list": tables,
                "topic.prefix": name,
            }
            if name == "types_precise":
                del config["decimal.handling.mode"]
            self.stack.connect.ask("PUT", f"/connectors/{name}/config", config)
        wait_until(self._is_streaming, 120, "the types' connectors do not stream", 0.2)

    def wait_until_caught_up(self) -> None:
        """Wait until Kafka has every change."""
        with self._cursor() as cursor:
            cursor.execute("select pg_current_wal_insert_lsn()")
            (end,) = cursor.fetchone()

            def is_caught_up() -> bool:
                cursor.execute(
                    "select bool_and(confirmed_flush_lsn >= %s)"
                    " from pg_replication_slots where database = %s",
                    (end, DATABASE),
                )
                return bool(cursor.fetchone()[0])

            wait_until(is_caught_up, 60, "the types' connectors have not caught up")

    def remove(self) -> None:
        """Remove the connectors, their slots and the database."""
        for name in CONNECTORS.keys() & self.stack.connect.states().keys():
            self.stack.connect.remove(name)
        with self._cursor("postgres") as cursor:
            cursor.execute(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots"
                " where database = %s",
                (DATABASE,),
            )
            cursor.execute(f"drop database if exists {DATABASE} with (force)")

    def texts(self) -> dict[int, str | None]:
        """PostgreSQL's own text of every value, by key."""
        found: dict[int, str | None] = {}
        with self._cursor() as cursor:
            for number, row in enumerate(self.types):
                text = row.form.sql.format(row.column)
                cursor.execute(
                    f"select id, case when {row.column} is not null then {text} end"
                    f" from types.{self._table(row)} where id / 1000 = {number}"
                )
                found.update(cursor.fetchall())
        return found

    def _insert(
        self, cursor: Any, row: Type, value: Value, way: Way, text: str | None
    ) -> None:
        cursor.execute(
            f"insert into types.{self._table(row)} (id, {row.column}) values (%s, %s)",
            (row_id(self.types, row, value, way), text),
        )

    def _table(self, row: Type) -> str:
        return source_table(self.types, row)

    def _is_streaming(self) -> bool:
        states = self.stack.connect.states()
        traces = [states[name].trace for name in CONNECTORS if name in states]
        assert not any(traces), traces
        with self._cursor() as cursor:
            cursor.execute(
                "select count(*) from pg_replication_slots where active and database = %s",
                (DATABASE,),
            )
            return bool(cursor.fetchone()[0] == len(CONNECTORS))

    @contextmanager
    def _cursor(self, database: str = DATABASE) -> Iterator[Any]:
        """A cursor that commits each statement."""
        with closing(self.stack.postgres.connect(dbname=database)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                yield cursor


def declare(project: Path, types: Sequence[Type], topics: dict[str, str]) -> list[str]:
    """Add the types' tables to a copy of the project, as the README says.

    Returns:
        What a build selects, to leave out the project's own silver tables.
    """
    groups = sorted({row.group for row in types})
    lines = "".join(f'"{topic}" = "{group}"\n' for topic, group in topics.items())
    _insert_after(project / "ingest/topics.toml", "[topics]\n", lines)
    sources = "".join(
        f"      - name: {group}\n        description: Types.\n" for group in groups
    )
    _insert_after(project / "models/staging/_sources.yml", "    tables:\n", sources)
    rejected = "".join(f"    ref('stg_{group}'),\n" for group in groups)
    _insert_after(
        project / "models/silver/rejected_rows.sql", "set staging_models = [\n", rejected
    )
    for group in groups:
        declared = {row.column: row.declared for row in types if row.group == group}
        columns = {"id": "int"} | declared
        meta = {"key": "id", "columns": columns}
        (project / f"models/staging/stg_{group}.sql").write_text(
            f"{{{{ config(meta={meta}) }}}}\n\n"
            f"{{{{ change_events(source('bronze', '{group}')) }}}}\n"
        )
        (project / f"models/silver/{group}.sql").write_text(
            "{{ config(unique_key='id') }}\n\n"
            f"{{{{ current_rows(ref('stg_{group}')) }}}}\n"
        )
    return ["-s", "path:models/staging", *groups, "rejected_rows"]


def _insert_after(file: Path, line: str, text: str) -> None:
    before = file.read_text()
    assert before.count(line) == 1
    file.write_text(before.replace(line, line + text))


def source_table(types: Sequence[Type], row: Type) -> str:
    """A row's source table: the first of its group without a column of its name."""
    before = types[: types.index(row)]
    place = (row.group, row.column)
    return f"{row.group}_{sum((it.group, it.column) == place for it in before)}"


def outcomes_of(
    types: Sequence[Type], texts: dict[int, str | None], lake: Lake
) -> dict[int, Outcome]:
    """What became of every value, by key; ``texts`` are the source's."""
    reasons = {row["event_id"]: row["reason"] for row in lake.rows("silver.rejected_rows")}
    found: dict[int, Outcome] = {}
    for group in {row.group for row in types}:
        newest: dict[int, Any] = {}
        bronze = lake.rows(f"bronze.{group}")
        for event in sorted(bronze, key=lambda event: event["kafka_offset"]):
            newest[int(re.findall(r"\d+", event["key"])[0])] = event
        stored = _stored(lake, group)
        for row in types:
            if row.group != group:
                continue
            for value in row.all_values:
                for way in Way:
                    key = row_id(types, row, value, way)
                    event = newest[key]
                    found[key] = Outcome(
                        source=texts[key],
                        sent=_sent(event["value"], row.column),
                        reason=reasons.get(event["event_id"]),
                        silver=stored.get(key, {}).get(row.column),
                        is_stored=key in stored,
                    )
    return found


def _stored(lake: Lake, group: str) -> dict[int, dict[str, Any]]:
    """The rows of a silver table by key; dates and times as days and microseconds."""
    if f"silver.{group}" not in lake.tables.names():
        return {}
    table = read_columns(open_table(str(lake.tables.path(f"silver.{group}"))))
    columns = {name: table[name] for name in table.column_names}
    for name, column in columns.items():
        if pa.types.is_date(column.type):
            columns[name] = column.cast(pa.int32())
        elif pa.types.is_timestamp(column.type):
            columns[name] = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    rows = pa.table(columns).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row for row in rows}


def _sent(value: str, column: str) -> str | None:
    """The text of a field as it stands in a flattened event."""
    rest = value.partition(f'"{column}":')[2]
    return rest[: json.JSONDecoder().raw_decode(rest)[1]] if rest else None
