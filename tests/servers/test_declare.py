"""A dbt project that only commands wrote: from a real catalogue and a real stream."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_lakehouse.cli import main
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.sources.types import declared_type
from lab.stack.northwind import NorthwindStack
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT, new_project
from tests.support.types_matrix import TYPES, Type
from tests.support.types_outcomes import Outcome, is_right, stored_rows
from tests.support.types_source import DATABASE, TypesSource
from tests.support.types_tables import Way, row_id, source_table

pytestmark = pytest.mark.timeout(900)

TABLES = 12


def chosen() -> list[Type]:
    """Rows of the matrix with the type that is chosen by default, in a dozen tables."""
    found: list[Type] = []
    places: Counter[tuple[str, str]] = Counter()
    for row in TYPES:
        place = (row.group, row.column)
        is_default = row.group in ("types", "old_dates") and row.declared == _default(row)
        if is_default and places[place] < TABLES:
            places[place] += 1
            found.append(row)
    return found


def _default(row: Type) -> str | None:
    try:
        return declared_type("postgresql", row.catalogue)
    except UserError:
        return None


@pytest.fixture(scope="module")
def types() -> list[Type]:
    return chosen()


@pytest.fixture(scope="module")
def source(stack: NorthwindStack, types: list[Type]) -> Iterator[TypesSource]:
    found = TypesSource(stack, types)
    try:
        found.create()
        yield found
    finally:
        found.remove()


@pytest.fixture(scope="module")
def shop(source: TypesSource, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, which has only what makes it use the package, after `add`."""
    folder = new_project(tmp_path_factory.mktemp("declared") / "shop")
    config = source.stack.configuration("source-tables") | {
        "database.dbname": DATABASE,
        "publication.name": "types",
        "slot.name": "declared",
        "table.include.list": "",
        "topic.prefix": "declared",
    }
    (folder / "connector.json").write_text(json.dumps(config, indent=2))
    with pytest.MonkeyPatch.context() as patch:
        postgres = source.stack.postgres
        for name, value in {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(postgres.port),
            "PGDATABASE": DATABASE,
            "PGUSER": "postgres",
            "PGPASSWORD": postgres.password,
        }.items():
            patch.setenv(name, value)
        places = (
            "--project-dir",
            str(folder),
            "--connector",
            str(folder / "connector.json"),
        )
        assert main(["add", "types", *places]) == 0
        assert main(["diff", *places]) == 0
    return folder


@pytest.fixture(scope="module")
def built(source: TypesSource, shop: Path, new_lake: NewLake) -> Lake:
    """After the snapshot's build and an increment, by the connector that `add` changed."""
    source.register({"declared": json.loads((shop / "connector.json").read_text())})
    lake = new_lake(shop / "topics.toml")
    topics = [f"declared.types.{name}" for name in tables(source)]
    for has_snapshot in (False, True):
        if has_snapshot:
            source.change()
        source.wait_until_caught_up()
        ingested = lake.ingest_kafka(
            *("--bootstrap-servers", source.stack.bootstrap_servers),
            *("--topics", str(shop / "topics.toml"), "--topic", *topics),
        )
        assert ingested.code == 0, ingested.err
        lake.dbt("run", project=shop)
    return lake


def tables(source: TypesSource) -> list[str]:
    return sorted({source_table(source.tables.types, row) for row in source.tables.types})


def test_each_table_equals_its_source(source: TypesSource, built: Lake) -> None:
    """But for the values that the matrix knows as wrong, by a snapshot and a stream."""
    types = source.tables.types
    assert len(tables(source)) >= 10
    texts = source.texts()
    stored = {name: stored_rows(built, name) for name in tables(source)}
    wrong: list[str] = []
    for row in types:
        name = source_table(types, row)
        for value in row.all_values:
            for way in Way:
                key = row_id(types, row, value, way)
                of_key = stored[name].get(key, {})
                outcome = Outcome(
                    source=texts[key],
                    sent=None,
                    silver=of_key.get(row.column),
                    is_stored=bool(of_key),
                    is_untyped=row.column in of_key.get("untyped_columns", ()),
                )
                if not value.wrong_today and not is_right(row, value, outcome):
                    wrong.append(f"{name}.{row.column} ({row.sql}) {way.name}: {outcome}")
    assert wrong == []
    assert sum(len(rows) for rows in stored.values()) == 3 * sum(
        len(row.all_values) for row in types
    )


@pytest.mark.parametrize("database", ["postgresql", "mariadb"])
def test_server_that_does_not_answer(
    database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGHOST", "MYSQL_HOST"):
        monkeypatch.setenv(name, "127.0.0.1")
    for name in ("PGPORT", "MYSQL_TCP_PORT"):
        monkeypatch.setenv(name, "1")
    name = "source-tables" if database == "postgresql" else "source-mariadb"
    connector = str(PROJECT / f"connectors/{name}.json")
    assert main(["add", "shop", "--connector", connector]) == 75
    assert "catalogue: " in capsys.readouterr().err
