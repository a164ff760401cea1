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
from tests.support.types_matrix import Type, Value, Way


@dataclass(frozen=True)
class Outcome:
    """What became of a value.

    Attributes:
        source: the database's text of it.
        sent: what Debezium sent, None where it left the column out.
        silver: what silver holds; dates and times as numbers since 1970.
        is_stored: whether silver has a row of its key.
        is_untyped: whether that row names the column as one that its type cannot hold.
    """

    source: str | None
    sent: str | None
    silver: Any
    is_stored: bool
    is_untyped: bool


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


def cases(types: Sequence[Type]) -> list[Any]:
    """Every value, with a readable name; a strict xfail where it is wrong today."""
    found = []
    for row in types:
        for number, value in enumerate(row.all_values):
            known = [
                pytest.mark.xfail(
                    strict=True, raises=AssertionError, reason=value.wrong_today
                )
            ]
            text = "null" if value.text is None else ascii(value.text)[1:25]
            name = f"{row.group}-{row.sql}-{row.declared}-{number}-{text}"
            marks = known if value.wrong_today else []
            found.append(
                pytest.param(row, value, marks=marks, id=re.sub(r"\s+", "_", name))
            )
    return found


def outcomes_of(
    types: Sequence[Type],
    texts: dict[int, str | None],
    lake: Lake,
    *,
    by_source_table: bool = False,
) -> Outcomes:
    """What became of every value, by key.

    Args:
        types: the rows of the matrix.
        texts: the source's text of every value.
        lake: where they came to.
        by_source_table: whether each source table has a table of its own in the lake.
    """
    found: Outcomes = {}
    tables: dict[str, list[Type]] = {}
    for row in types:
        tables.setdefault(row.table if by_source_table else row.group, []).append(row)
    for table, rows in tables.items():
        newest: dict[int, Any] = {}
        bronze = lake.rows(f"bronze.{table}")
        for event in sorted(bronze, key=lambda event: event["kafka_offset"]):
            newest[int(re.findall(r"\d+", event["key"])[0])] = event
        stored = stored_rows(lake, table)
        for row in rows:
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
