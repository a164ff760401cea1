"""Every PostgreSQL type, from a real Debezium to silver: its value, or a rejection."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lab.stack.northwind import NorthwindStack
from tests.conftest import NewLake
from tests.support import types_doc
from tests.support.lake import Lake
from tests.support.project import copy_project
from tests.support.types_matrix import OWN_TYPES, TYPES, Type, Value
from tests.support.types_outcomes import (
    Outcome,
    cases,
    outcomes_of,
    sent_text,
    stored_rows,
    wrong_ways,
)
from tests.support.types_source import UNCHANGED, TypesSource, declare, unchanged_columns

pytestmark = pytest.mark.timeout(900)

# No value of these types is long enough to be stored beside its row.
SHORT = {
    *("character(5)", "int4range", "int8range", "daterange", "tsrange", "tstzrange"),
}


@pytest.fixture(scope="module")
def source(stack: NorthwindStack) -> Iterator[TypesSource]:
    source = TypesSource(stack, TYPES)
    try:
        source.create()
        source.create_unchanged()
        source.register(source.configurations())
        yield source
    finally:
        source.remove()


@pytest.fixture(scope="module")
def built(
    source: TypesSource, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> Lake:
    """After the snapshot's build and an increment."""
    project = copy_project(tmp_path_factory.mktemp("types") / "project")
    topics = source.topics() | {f"types_string.types.{name}": name for name in UNCHANGED}
    columns = {name: row.declared for name, row in unchanged_columns(TYPES).items()}
    promised_less = {
        name: declared.removesuffix(" full") for name, declared in columns.items()
    }
    others = {"unchanged": promised_less, "unchanged_full": columns}
    selected = declare(project, TYPES, topics, others)
    lake = new_lake()
    # Of every value: two rows in the snapshot; then an insert and an update.
    count = 2 * sum(len(row.all_values) for row in TYPES) + len(UNCHANGED)
    for has_snapshot in (False, True):
        if has_snapshot:
            source.change()
            source.change_unchanged()
        source.wait_until_caught_up()
        ingested = lake.ingest_kafka(
            *("--bootstrap-servers", source.stack.bootstrap_servers),
            *("--topics", str(project / "topics.toml"), "--topic", *topics),
        )
        assert (ingested.code, ingested.counts) == (0, (count, count, 0, 0)), ingested.err
        # Some values stop the build of their table, which their own tests show.
        lake.try_dbt("run", *selected, project=project)
    return lake


@pytest.fixture(scope="module")
def outcomes(source: TypesSource, built: Lake) -> dict[int, Outcome]:
    """What became of every value, by key."""
    return outcomes_of(TYPES, source.texts(), built)


@pytest.fixture(scope="module")
def unchanged(built: Lake) -> dict[str, str | None]:
    """What an update of another column brought of a long value, by type."""
    [event] = [row for row in built.rows("bronze.unchanged") if row["op"] == "u"]
    columns = unchanged_columns(TYPES)
    return {row.sql: sent_text(event["value"], name) for name, row in columns.items()}


@pytest.mark.parametrize(("row", "value"), cases(TYPES))
def test_silver_has_the_value_or_names_its_column(
    outcomes: dict[int, Outcome], row: Type, value: Value
) -> None:
    """By a snapshot, an insert and an update."""
    assert wrong_ways(TYPES, row, value, outcomes) == {}


def test_types_are_named_as_by_the_catalogue(source: TypesSource) -> None:
    """But for the types that the source defines itself, which have other names there."""
    found = source.catalogue()
    expected = {
        number: row.catalogue
        for number, row in enumerate(TYPES)
        if row.sql.removesuffix("[]") not in OWN_TYPES
    }
    assert {number: found[number] for number in expected} == expected


def test_unchanged_value_is_kept_or_needs_the_full_identity(
    source: TypesSource, built: Lake, unchanged: dict[str, str | None]
) -> None:
    """Of a type of which Debezium sends null, silver loses the value without it."""
    texts = source.unchanged_texts()
    wrong: dict[str, set[str]] = {}
    for table in UNCHANGED:
        silver = stored_rows(built, table)[1]
        assert silver["op"] == "u" and not silver["untyped_columns"]
        wrong[table] = {
            row.sql
            for name, row in unchanged_columns(TYPES).items()
            if not row.form.is_same(silver[name], texts[name])
        }
    null = {sql for sql, sent in unchanged.items() if sent == "null"}
    assert wrong == {"unchanged": null, "unchanged_full": set()}
    rows = unchanged_columns(TYPES).values()
    assert null == {row.sql for row in rows if row.declared.endswith(" full")}


def test_matrix_has_a_long_value_of_each_type_that_may_be_stored_beside_the_row(
    source: TypesSource,
) -> None:
    with source.cursor() as cursor:
        cursor.execute(
            "select attrelid::regclass::text || '.' || attname from pg_attribute"
            " where attstorage in ('x', 'e') and attnum > 0"
        )
        stored = {name for (name,) in cursor.fetchall()}
    known = {_bare(row) for row in unchanged_columns(TYPES).values()}
    assert {
        row.catalogue
        for row in TYPES
        if f"{source.tables.table(row)}.{row.column}" in stored
        and not all(value.wrong_today for value in row.values)
        and _bare(row) not in known
    } == SHORT


def _bare(row: Type) -> str:
    return re.sub(r"\(.*\)", "", row.catalogue)


def test_documentation_shows_what_this_run_found(
    outcomes: dict[int, Outcome], unchanged: dict[str, str | None]
) -> None:
    types_doc.check(types_doc.POSTGRESQL, outcomes, unchanged)
