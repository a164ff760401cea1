"""Every type of PostgreSQL and MariaDB, from a real Debezium to silver: its value, or a
rejection.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date

import pytest

from cdc_lakehouse.sources.types import declared_type
from lab.stack.mariadb import statements
from lab.stack.northwind import NorthwindStack
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.mariadb import MariaDBSource
from tests.support.records import Row
from tests.support.types_doc import Outcomes, check, outcomes_of, sent_text, stored_rows
from tests.support.types_matrix import FOLDER, MARIADB, POSTGRESQL, PRECISE
from tests.support.types_source import (
    UNCHANGED,
    TypesTables,
    long_types,
    types_project,
    types_source,
    wide_column,
)

pytestmark = pytest.mark.timeout(900)

TYPES = POSTGRESQL.types
LONG = {wide_column(row): row for row in long_types(TYPES)}
# A value that the server's strict mode refuses is a type's value, too.
NOT_STRICT = "set session sql_mode = ''"


@dataclass
class Found:
    """The tables of a database, and what became of each of their values, by key.

    Attributes:
        unchanged: what an update of another column brought of a long value, by type.
    """

    tables: TypesTables
    lake: Lake
    outcomes: Outcomes
    unchanged: dict[str, str | None] = field(default_factory=dict)


def events_of(lake: Lake, table: str) -> list[Row]:
    return sorted(lake.rows(f"bronze.{table}"), key=lambda row: row["kafka_offset"])


@pytest.fixture(scope="module")
def postgresql(
    stack: NorthwindStack, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Found]:
    """After the snapshot's build and an increment."""
    topics = {
        f"types_{'precise' if row.group == PRECISE else 'string'}.types.{row.table}": (
            row.group
        )
        for row in TYPES
    }
    topics |= {f"types_string.types.{name}": name for name in UNCHANGED}
    columns = {name: row.declared for name, row in LONG.items()}
    promised_less = {name: text.removesuffix(" full") for name, text in columns.items()}
    others = {"unchanged": promised_less, "unchanged_full": columns}
    folder = tmp_path_factory.mktemp("types") / "project"
    project = types_project(folder, TYPES, topics, **others)
    lake = new_lake(project=project)
    with types_source(stack, TYPES) as (source, tables):
        for name, captured in (
            ("types_string", rf"types\.(?!{PRECISE}_).*"),
            ("types_precise", rf"types\.{PRECISE}_.*"),
        ):
            config = source.configuration(name, captured)
            config["publication.name"] = source.name
            if name == "types_precise":
                del config["decimal.handling.mode"]
            source.configure(name, config)
        # Of every value: two rows in the snapshot; then an insert and an update.
        count = 2 * sum(len(row.all_values) for row in TYPES) + len(UNCHANGED)
        for has_snapshot in (False, True):
            if has_snapshot:
                tables.change()
                for table in UNCHANGED:
                    source.execute(f"update types.{table} set n = 2")
            source.wait_until_caught_up()
            assert lake.follow(stack.bootstrap_servers, *topics) == (count, count, 0, 0)
            # Some values stop the build of their table, which their own tests show.
            lake.try_dbt("run")
        [event] = [row for row in lake.rows("bronze.unchanged") if row["op"] == "u"]
        sent = {row.sql: sent_text(event["value"], name) for name, row in LONG.items()}
        yield Found(tables, lake, outcomes_of(TYPES, tables.texts(), lake), sent)


@pytest.fixture(scope="module")
def mariadb(
    mariadb_source: MariaDBSource,
    new_lake: NewLake,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Found]:
    """After the snapshot's build and an increment."""
    mariadb_source.create("types", *statements((FOLDER / "mariadb.sql").read_text()))
    connection = mariadb_source.server.connect(
        database="types", autocommit=True, init_command=NOT_STRICT
    )
    types = MARIADB.types
    with closing(connection), connection.cursor() as cursor:
        tables = TypesTables(types, cursor)
        tables.create()
        tables.create_wide("unchanged", {row: row.values[0].text for row in types})
        topics = {f"types.types.{row.table}": row.group for row in types}
        topics |= {f"types.types.{name}": name for name in ("unchanged", "zero_dates")}
        folder = tmp_path_factory.mktemp("types") / "project"
        project = types_project(folder, types, topics)
        mariadb_source.follow("types")
        lake = new_lake(project=project)
        for has_snapshot in (False, True):
            if has_snapshot:
                tables.change()
                for statement in statements((FOLDER / "mariadb_changes.sql").read_text()):
                    cursor.execute(statement)
            mariadb_source.wait_until_caught_up()
            lake.follow(mariadb_source.stack.bootstrap_servers, *topics)
            lake.dbt("run")
        yield Found(tables, lake, outcomes_of(types, tables.texts(), lake))
    mariadb_source.connect.remove("types")


def test_types_of_postgresql_are_as_documented(postgresql: Found) -> None:
    """By a snapshot, an insert and an update, silver has a value or names its column."""
    check(POSTGRESQL, postgresql.outcomes, postgresql.unchanged)


def test_types_of_mariadb_are_as_documented(mariadb: Found) -> None:
    """The same of MariaDB's."""
    check(MARIADB, mariadb.outcomes, mariadb.unchanged)


# PostgreSQL's alone.


def test_types_of_postgresql_are_named_as_by_the_catalogue(postgresql: Found) -> None:
    """But for the types that the source defines itself, which have other names there."""
    own = {row.sql for row in TYPES if row.name}
    named = postgresql.tables.named(
        "select relname, attname, format_type(atttypid, atttypmod)"
        " from pg_attribute join pg_class on pg_class.oid = attrelid"
        " where relnamespace = 'types'::regnamespace"
    )
    assert {
        row.sql: name
        for row, name in named.items()
        if row.sql.removesuffix("[]") not in own and name != row.catalogue
    } == {}


def test_unchanged_value_is_kept_or_needs_the_full_identity(postgresql: Found) -> None:
    """Of a type of which Debezium sends null, silver loses the value without it."""
    cursor = postgresql.tables.cursor
    texts = ", ".join(row.form.sql.format(name) for name, row in LONG.items())
    cursor.execute(f"select {texts} from types.unchanged")
    source = dict(zip(LONG, cursor.fetchone(), strict=True))
    wrong: dict[str, set[str]] = {}
    for table in UNCHANGED:
        silver = stored_rows(postgresql.lake, table)[1]
        assert silver["op"] == "u" and not silver["untyped_columns"]
        wrong[table] = {
            row.sql
            for name, row in LONG.items()
            if not row.form.is_same(silver[name], source[name])
        }
    null = {sql for sql, sent in postgresql.unchanged.items() if sent == "null"}
    assert wrong == {"unchanged": null, "unchanged_full": set()}
    assert null == {row.sql for row in LONG.values() if row.declared.endswith(" full")}


# MariaDB's alone.


def test_zero_date_takes_the_default_of_a_column_that_is_not_null(mariadb: Found) -> None:
    """Or the first day of 1970: nothing can tell it from the value."""
    after = json.loads(events_of(mariadb.lake, "zero_dates")[1]["value"])["after"]
    days = (date(2020, 1, 2) - date(1970, 1, 1)).days
    assert (after["day"], after["month"]) == (days, 0)


def test_truncate_is_an_event(mariadb: Found) -> None:
    """As the shipped connector sends it: without a key, with a position.

    A statement that the log has as such is none.
    """
    _, _, event = events_of(mariadb.lake, "zero_dates")
    assert (event["op"], event["key"]) == ("t", None)
    assert re.fullmatch(r"\d{10}/\d{10}/\d{10}", event["source_position"])


def test_update_of_another_column_brings_every_value(mariadb: Found) -> None:
    events = events_of(mariadb.lake, "unchanged")
    read, update = (json.loads(event["value"])["after"] for event in events)
    assert len(read) == len(MARIADB.types) + 2
    assert update == read | {"n": 2}


def test_types_of_mariadb_are_named_as_by_the_catalogue(mariadb: Found) -> None:
    """But for ``json``, which is a ``longtext`` there."""
    named = mariadb.tables.named(
        "select table_name, column_name, column_type from information_schema.columns"
        " where table_schema = 'types'"
    )
    found = {row.sql: declared_type("mariadb", name) for row, name in named.items()}
    expected = {row.sql: declared_type("mariadb", row.catalogue) for row in named}
    assert found == expected | {"json": "string"}
