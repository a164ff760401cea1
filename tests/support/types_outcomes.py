"""What became of the values of the types' matrix, and whether that is right."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from cdc_lakehouse.storage.tables import open_table, read_columns
from tests.support.lake import Lake
from tests.support.types_matrix import Matrix, Type, Value, Way


@dataclass(frozen=True)
class Outcome:
    """What became of a value."""

    source: str | None  # the database's text of it
    sent: str | None  # what Debezium sent, None where it left the column out
    silver: Any  # what silver holds; dates and times as numbers since 1970
    is_stored: bool  # silver has a row of its key
    is_untyped: bool  # that row names the column as one that its type cannot hold


Outcomes = dict[int, Outcome]


def is_right(row: Type, value: Value, outcome: Outcome) -> bool:
    """Whether silver holds a value as the source has it, or null by right."""
    if value.is_untyped:
        return outcome.is_untyped and outcome.silver is None
    return (
        outcome.is_stored
        and not outcome.is_untyped
        and row.form.is_same(outcome.silver, outcome.source)
    )


def wrong_ways(row: Type, value: Value, outcomes: Outcomes) -> dict[str, Outcome]:
    """The ways by which a value came to silver wrongly, with what became of it."""
    found = {way.name.lower(): outcomes[row.key(value, way)] for way in Way}
    return {
        name: outcome
        for name, outcome in found.items()
        if not is_right(row, value, outcome)
    }


def cases(*matrices: Matrix) -> list[Any]:
    """Every value, with a readable name; a strict xfail where it is wrong today."""
    found = []
    for matrix in matrices:
        for row in matrix.types:
            for number, value in enumerate(row.all_values):
                why, raised = value.wrong_today, AssertionError
                known = pytest.mark.xfail(strict=True, raises=raised, reason=why)
                text = "null" if value.text is None else ascii(value.text)[1:25]
                name = f"{row.group}-{row.sql}-{row.declared}-{number}-{text}"
                name = re.sub(r"\s+", "_", name)
                marks = [known] if why else []
                found.append(pytest.param(matrix, row, value, marks=marks, id=name))
    return found


def outcomes_of(
    types: Sequence[Type], texts: dict[int, str | None], lake: Lake
) -> Outcomes:
    """What became in a lake of every value, by key; the texts are the source's."""
    found: Outcomes = {}
    for table in sorted({row.group for row in types}):
        newest: dict[int, Any] = {}
        bronze = lake.rows(f"bronze.{table}")
        for event in sorted(bronze, key=lambda event: event["kafka_offset"]):
            newest[int(re.findall(r"\d+", event["key"])[0])] = event
        stored = stored_rows(lake, table)
        for row in (each for each in types if each.group == table):
            for key in (row.key(value, way) for value in row.all_values for way in Way):
                of_key = stored.get(key, {})
                found[key] = Outcome(
                    source=texts[key],
                    sent=sent_text(newest[key]["value"], row.column),
                    silver=of_key.get(row.column),
                    is_stored=key in stored,
                    is_untyped=row.column in of_key.get("untyped_columns", ()),
                )
    return found


def stored_rows(lake: Lake, name: str) -> dict[int, dict[str, Any]]:
    """The rows of a silver table by key; dates and times as days and microseconds."""
    if f"silver.{name}" not in lake.tables.names():
        return {}
    table = read_columns(open_table(str(lake.tables.path(f"silver.{name}"))))
    columns = {name: table[name] for name in table.column_names}
    for name, column in columns.items():
        if pa.types.is_date(column.type):
            columns[name] = column.cast(pa.int32())
        elif pa.types.is_timestamp(column.type):
            columns[name] = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    rows = pa.table(columns).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row for row in rows}


def sent_text(value: str, column: str) -> str | None:
    """The text of a field as it stands in an event, flattened or not."""
    row = value.partition('"after":')[2] or value
    rest = row.partition(f'"{column}":')[2]
    return rest[: json.JSONDecoder().raw_decode(rest)[1]] if rest else None
