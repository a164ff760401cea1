"""Every PostgreSQL type, from a real Debezium to silver: its value, or a rejection."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from connectors.stack.stack import Stack
from tests.conftest import NewLake
from tests.support import types_doc
from tests.support.project import copy_project
from tests.support.types_matrix import TYPES, Type, Value
from tests.support.types_source import (
    Outcome,
    TypesSource,
    Way,
    declare,
    is_right,
    outcomes_of,
    row_id,
)

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def source(stack: Stack) -> Iterator[TypesSource]:
    source = TypesSource(stack, TYPES)
    try:
        source.create()
        source.register()
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


def cases() -> list[Any]:
    """Every value, with a readable name; a strict xfail where it is wrong today."""
    found = []
    for row in TYPES:
        for number, value in enumerate(row.all_values):
            known = [pytest.mark.xfail(strict=True, reason=value.wrong_today)]
            text = "null" if value.text is None else ascii(value.text)[1:25]
            name = f"{row.group}-{row.sql}-{row.declared}-{number}-{text}"
            marks = known if value.wrong_today else []
            found.append(pytest.param(row, value, marks=marks, id=name))
    return found


@pytest.mark.parametrize(("row", "value"), cases())
def test_silver_has_the_value_or_it_is_rejected(
    outcomes: dict[int, Outcome], row: Type, value: Value
) -> None:
    """By a snapshot, an insert and an update."""
    found = {way: outcomes[row_id(TYPES, row, value, way)] for way in Way}
    faults = {
        way.name.lower(): outcome
        for way, outcome in found.items()
        if not is_right(row, value, outcome)
    }
    assert not faults


def test_documentation_shows_what_this_run_found(outcomes: dict[int, Outcome]) -> None:
    """With WRITE_TYPES_DOC=1 in the environment, the test writes the documentation."""
    text = types_doc.POSTGRESQL.file.read_text(encoding="utf-8")
    found = types_doc.replace_matrix(text, types_doc.POSTGRESQL, outcomes)
    if os.environ.get("WRITE_TYPES_DOC"):
        types_doc.POSTGRESQL.file.write_text(found, encoding="utf-8")
    else:
        assert text == found, "docs/types.md is out of date: run with WRITE_TYPES_DOC=1"
