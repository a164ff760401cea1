"""Every PostgreSQL type, from a real Debezium to silver: its value, or a rejection.

Some of the tables come to a second lake, whose project only commands wrote.
"""

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from cdc_lakehouse.cli import main
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.sources.types import declared_type
from lab.stack.northwind import NorthwindStack
from tests.conftest import NewLake
from tests.support import types_doc
from tests.support.lake import Lake
from tests.support.project import PROJECT, copy_project, new_project
from tests.support.types_matrix import POSTGRESQL, Type, Value
from tests.support.types_outcomes import (
    Outcomes,
    cases,
    outcomes_of,
    sent_text,
    stored_rows,
    wrong_ways,
)
from tests.support.types_source import UNCHANGED, TypesSource, declare, unchanged_columns

pytestmark = pytest.mark.timeout(900)

TYPES = POSTGRESQL.types
LONG = unchanged_columns(TYPES)
# No value of these types is long enough to be stored beside its row.
SHORT = {
    *("character(5)", "int4range", "int8range", "daterange", "tsrange", "tstzrange"),
}
# How many tables `add` declares.
TABLES = 12


def default_type(row: Type) -> str | None:
    """The type that ``add`` declares for a row's; None where it refuses it."""
    try:
        return declared_type("postgresql", row.catalogue)
    except UserError:
        return None


def tables_to_add() -> list[str]:
    """Tables whose types have one to declare."""
    refused = {row.table for row in TYPES if default_type(row) is None}
    listed = {row.table: None for row in TYPES if row.group in ("types", "old_dates")}
    return [table for table in listed if table not in refused][:TABLES]


ADDED = [row for row in TYPES if row.table in tables_to_add()]


@dataclass
class Copy:
    """A project, its lake, the topics that it reads and what of it is built."""

    lake: Lake
    project: Path
    topics: list[str]
    selected: list[str]

    def build(self, source: TypesSource) -> int:
        """Bring what Kafka has to silver; how many records there were."""
        ingested = self.lake.ingest_kafka(
            *("--bootstrap-servers", source.stack.bootstrap_servers),
            *("--topics", str(self.project / "topics.toml"), "--topic", *self.topics),
        )
        read, *_, rejected, skipped = ingested.counts
        assert (ingested.code, rejected, skipped) == (0, 0, 0), ingested.err
        # Some values stop the build of their table, which their own tests show.
        self.lake.try_dbt("run", *self.selected, project=self.project)
        return read


@pytest.fixture(scope="module")
def source(stack: NorthwindStack) -> Iterator[TypesSource]:
    source = TypesSource(stack, TYPES)
    try:
        source.create()
        source.create_unchanged()
        for name, config in source.configurations().items():
            source.configure(name, config)
        yield source
    finally:
        source.remove()


@pytest.fixture(scope="module")
def shop(source: TypesSource, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has only what makes it use the package, and what `add` wrote."""
    folder = new_project(tmp_path_factory.mktemp("declared") / "shop")
    connector = folder / "connector.json"
    config = source.configuration("declared", "") | {"publication.name": source.name}
    connector.write_text(json.dumps(config, indent=2))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in source.environment().items():
            patch.setenv(name, value)
        patch.chdir(folder)
        places = ("--connector", connector.name)
        assert main(["add", *(f"types.{name}" for name in tables_to_add()), *places]) == 0
        with redirect_stdout(io.StringIO()) as said:
            assert main(["diff", *places]) == 3
    # The publication has all tables.
    assert {line.partition(": ")[2] for line in said.getvalue().splitlines()} == {
        "not modelled"
    }
    source.configure("declared", json.loads(connector.read_text()))
    return folder


@pytest.fixture(scope="module")
def copies(
    source: TypesSource,
    shop: Path,
    new_lake: NewLake,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Copy]:
    """After the snapshot's build and an increment."""
    project = copy_project(tmp_path_factory.mktemp("types") / "project")
    topics = source.topics() | {f"types_string.types.{name}": name for name in UNCHANGED}
    columns = {name: row.declared for name, row in LONG.items()}
    promised_less = {name: text.removesuffix(" full") for name, text in columns.items()}
    others = {"unchanged": promised_less, "unchanged_full": columns}
    selected = declare(project, TYPES, topics, others)
    declared = [f"declared.types.{table}" for table in tables_to_add()]
    copies = [
        Copy(new_lake(), project, [*topics], selected),
        Copy(new_lake(shop / "topics.toml"), shop, declared, []),
    ]
    # Of every value: two rows in the snapshot; then an insert and an update.
    count = 2 * sum(len(row.all_values) for row in TYPES) + len(UNCHANGED)
    for has_snapshot in (False, True):
        if has_snapshot:
            source.change()
            source.change_unchanged()
        source.wait_until_caught_up()
        read, _ = [copy.build(source) for copy in copies]
        assert read == count
    return copies


@pytest.fixture(scope="module")
def built(copies: list[Copy]) -> Lake:
    return copies[0].lake


@pytest.fixture(scope="module")
def outcomes(source: TypesSource, built: Lake) -> Outcomes:
    """What became of every value, by key."""
    return outcomes_of(TYPES, source.texts(), built)


@pytest.fixture(scope="module")
def unchanged(built: Lake) -> dict[str, str | None]:
    """What an update of another column brought of a long value, by type."""
    [event] = [row for row in built.rows("bronze.unchanged") if row["op"] == "u"]
    return {row.sql: sent_text(event["value"], name) for name, row in LONG.items()}


@pytest.mark.parametrize(("row", "value"), cases(TYPES))
def test_silver_has_the_value_or_names_its_column(
    outcomes: Outcomes, row: Type, value: Value
) -> None:
    """By a snapshot, an insert and an update."""
    assert wrong_ways(row, value, outcomes) == {}


def test_tables_that_add_declared_equal_their_source(
    source: TypesSource, copies: list[Copy]
) -> None:
    """But for the values that the matrix knows as wrong, or holds by another type."""
    found = outcomes_of(ADDED, source.texts(), copies[1].lake, by_source_table=True)
    assert all(outcome.is_stored for outcome in found.values())
    assert {
        f"{row.sql} {value.text}": wrong
        for row in ADDED
        for value in row.all_values
        if row.declared == default_type(row) and not value.wrong_today
        for wrong in [wrong_ways(row, value, found)]
        if wrong
    } == {}


def test_types_are_named_as_by_the_catalogue(source: TypesSource) -> None:
    """But for the types that the source defines itself, which have other names there."""
    named = dict(zip(TYPES, source.catalogue(), strict=True))
    assert {
        row.sql: name
        for row, name in named.items()
        if row.sql.removesuffix("[]") not in POSTGRESQL.own_types and name != row.catalogue
    } == {}


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
            for name, row in LONG.items()
            if not row.form.is_same(silver[name], texts[name])
        }
    null = {sql for sql, sent in unchanged.items() if sent == "null"}
    assert wrong == {"unchanged": null, "unchanged_full": set()}
    assert null == {row.sql for row in LONG.values() if row.declared.endswith(" full")}


def test_matrix_has_a_long_value_of_each_type_that_may_be_stored_beside_the_row(
    source: TypesSource,
) -> None:
    stored = source.execute(
        "select relname, attname from pg_attribute join pg_class on pg_class.oid = attrelid"
        " where attstorage in ('x', 'e') and attnum > 0"
    )
    known = {_bare(row) for row in LONG.values()}
    assert {
        row.catalogue
        for row in TYPES
        if (row.table, row.column) in stored
        and not all(value.wrong_today for value in row.values)
        and _bare(row) not in known
    } == SHORT


def _bare(row: Type) -> str:
    return re.sub(r"\(.*\)", "", row.catalogue)


def test_documentation_shows_what_this_run_found(
    outcomes: Outcomes, unchanged: dict[str, str | None]
) -> None:
    types_doc.check(POSTGRESQL, outcomes, unchanged)


@pytest.mark.parametrize("name", ["source-tables", "source-mariadb"])
def test_server_that_does_not_answer_is_worth_another_try(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("PG", "MYSQL_"):
        monkeypatch.setenv(f"{variable}HOST", "127.0.0.1")
    for variable in ("PGPORT", "MYSQL_TCP_PORT"):
        monkeypatch.setenv(variable, "1")
    connector = str(PROJECT / f"connectors/{name}.json")
    assert main(["add", "shop", "--connector", connector]) == 75
    assert "catalogue: " in capsys.readouterr().err
