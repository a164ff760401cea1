"""Every PostgreSQL type, from a real Debezium to silver: its value, or a rejection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.stack.stack import Stack
from tests.conftest import NewLake
from tests.support import types_doc
from tests.support.project import copy_project
from tests.support.types_matrix import OWN_TYPES, TYPES, Type, Value
from tests.support.types_outcomes import Outcome, cases, outcomes_of, wrong_ways
from tests.support.types_source import TypesSource, declare

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def source(stack: Stack) -> Iterator[TypesSource]:
    source = TypesSource(stack, TYPES)
    try:
        source.create()
        source.register(source.configurations())
        yield source
    finally:
        source.remove()


@pytest.fixture(scope="module")
def outcomes(
    source: TypesSource, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, Outcome]:
    """What became of every value, by key: after the snapshot's build and an increment."""
    project = copy_project(tmp_path_factory.mktemp("types") / "project")
    topics = source.topics()
    selected = declare(project, TYPES, topics)
    lake = new_lake()
    # Of every value: two rows in the snapshot; then an insert and an update.
    count = 2 * sum(len(row.all_values) for row in TYPES)
    for has_snapshot in (False, True):
        if has_snapshot:
            source.change()
        source.wait_until_caught_up()
        ingested = lake.ingest_kafka(
            *("--bootstrap-servers", source.stack.bootstrap_servers),
            *("--topics", str(project / "ingest/topics.toml"), "--topic", *topics),
        )
        assert (ingested.code, ingested.counts) == (0, (count, count, 0, 0)), ingested.err
        # Some values stop the build of their table, which their own tests show.
        lake.try_dbt("run", *selected, project=project)
    return outcomes_of(TYPES, source.texts(), lake)


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


def test_documentation_shows_what_this_run_found(outcomes: dict[int, Outcome]) -> None:
    types_doc.check(types_doc.POSTGRESQL, outcomes)
