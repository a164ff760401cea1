"""What became of the values of the types' matrix, as the documentation shows it."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_lakehouse.serving.api.questions import duckdb_over
from cdc_lakehouse.sources.types import PAGES
from cdc_lakehouse.storage.tables import open_table, read_columns
from tests.support.lake import Lake
from tests.support.project import PROJECT
from tests.support.types_matrix import Matrix, Type, Value, Way

LONGEST = 44
NAMES = {"postgresql": "PostgreSQL", "mariadb": "MariaDB"}
# The line behind which a page has its matrix.
BEGIN = "<!-- matrix: made by "
# DuckDB's text of a date or a time, in PostgreSQL's form.
TEXT = r"regexp_replace(cast({0} as varchar), '(.*) \(BC\)(.*)', '\1\2 BC') as {0}"


@dataclass(frozen=True)
class Outcome:
    """What became of a value on one of its ways."""

    is_right: bool  # silver holds it as the source has it, or null by right
    sent: str | None  # what Debezium sent, None where it left the column out
    fate: str  # what silver holds, or why it does not


# By the key of the value's row.
Outcomes = dict[int, Outcome]


def outcomes_of(types: list[Type], texts: dict[int, str | None], lake: Lake) -> Outcomes:
    """What became in a lake of every value; the texts are the source's."""
    found: Outcomes = {}
    for table in sorted({row.group for row in types}):
        newest: dict[int, Any] = {}
        bronze = lake.rows(f"bronze.{table}")
        for event in sorted(bronze, key=lambda event: event["kafka_offset"]):
            newest[int(re.findall(r"\d+", event["key"])[0])] = event
        stored = stored_rows(lake, table)
        for row in (each for each in types if each.group == table):
            for value, key in ((v, row.key(v, way)) for v in row.all_values for way in Way):
                of_key = stored.get(key, {})
                silver = of_key.get(row.column)
                fate, is_right = _code(silver), row.form.is_same(silver, texts[key])
                if row.column in of_key.get("untyped_columns", ()):
                    # By right it is null then.
                    fate, is_right = "untyped", value.is_untyped and silver is None
                elif value.is_untyped or not of_key:
                    fate, is_right = fate if of_key else "no row", False
                sent = sent_text(newest[key]["value"], row.column)
                found[key] = Outcome(is_right, sent, fate)
    return found


def stored_rows(lake: Lake, name: str) -> dict[int, dict[str, Any]]:
    """The rows of a silver table by key; dates and times as PostgreSQL writes them.

    Python's own dates and times end at the years 1 and 9999.
    """
    if f"silver.{name}" not in lake.tables.names():
        return {}
    table = read_columns(open_table(str(lake.tables.path(f"silver.{name}"))))
    columns = ", ".join(
        TEXT.format(each.name) if pa.types.is_temporal(each.type) else each.name
        for each in table.schema
    )
    with duckdb_over({"silver.types": table}) as connection:
        found = connection.sql(f"select {columns} from silver.types")
        rows = found.to_arrow_table().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row for row in rows}


def sent_text(value: str, column: str) -> str | None:
    """The text of a field as it stands in an event, flattened or not."""
    row = value.partition('"after":')[2] or value
    rest = row.partition(f'"{column}":')[2]
    return rest[: json.JSONDecoder().raw_decode(rest)[1]] if rest else None


def check(matrix: Matrix, outcomes: Outcomes, unchanged: Mapping[str, str | None]) -> None:
    """Compare what a run found with the data, and with a page of the documentation.

    Args:
        matrix: the types of the page.
        outcomes: what became of every value.
        unchanged: what an update of another column brings of a long value, by type; of the
            others it brings the value.

    With WRITE_TYPES_DOC=1 in the environment, write the page instead.
    """
    surprises = [
        (row.sql, row.declared, value, ways)
        for row in matrix.types
        for value in row.all_values
        for ways in [[outcomes[row.key(value, way)] for way in Way]]
        if all(outcome.is_right for outcome in ways) == bool(value.wrong_today)
    ]
    assert surprises == []
    file = PROJECT / PAGES[matrix.database]
    text = file.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    head = f"| {NAMES[matrix.database]} | Debezium sends | declare | silver holds |"
    tables = [
        f"\n## {title}\n\n{head} unchanged |\n|---|---|---|---|---|\n"
        + "".join(_line(row, outcomes, unchanged) for row in rows)
        for title, rows in matrix.sections.items()
    ]
    found = "".join([before, begin, rest.partition("\n")[0], "\n", *tables])
    if os.environ.get("WRITE_TYPES_DOC"):
        file.write_text(found, encoding="utf-8")
    else:
        assert text == found, f"{file} is out of date: run with WRITE_TYPES_DOC=1"


def _line(row: Type, outcomes: Outcomes, unchanged: Mapping[str, str | None]) -> str:
    first = row.values[0]
    outcome = outcomes[row.key(first, Way.INSERT)]
    sent = "no such field"
    if outcome.sent is not None:
        sent = f"{_code(outcome.sent)} for {_code(first.text)}"
    cells = (
        row.name or _code(row.sql),
        sent,
        _code(row.declared),
        "; ".join(_held(row, outcomes)),
        _code(unchanged[row.sql]) if row.sql in unchanged else "the value",
    )
    return f"| {' | '.join(cells)} |\n"


def _held(row: Type, outcomes: Outcomes) -> list[str]:
    """What silver holds of a row's values, and what it does not."""
    is_held = False
    untyped: list[Value] = []
    faults: dict[str, dict[str, list[Value]]] = {}
    for value in row.all_values:
        if value.wrong_today:
            fates = faults.setdefault(value.wrong_today, {})
            fates.setdefault(_fate(row, value, outcomes), []).append(value)
        elif value.is_untyped:
            untyped.append(value)
        elif value.text is not None:
            is_held = True
    cells = [row.form.description] if is_held else []
    if untyped:
        cells.append(f"untyped: {_codes(untyped)}")
    for reason, fates in faults.items():
        texts = [f"{_codes(values)}: {fate}" for fate, values in fates.items()]
        cells.append(f"**wrong today:** {', '.join(texts)} ({reason})")
    return cells


def _fate(row: Type, value: Value, outcomes: Outcomes) -> str:
    """What became of a value that is wrong, where the ways differ, in each."""
    fates = {way: outcomes[row.key(value, way)].fate for way in Way}
    if len(set(fates.values())) == 1:
        return fates[Way.SNAPSHOT]
    return ", ".join(f"{fate} by {way.name.lower()}" for way, fate in fates.items())


def _codes(values: Sequence[Value]) -> str:
    return ", ".join(_code(value.text) for value in values)


def _code(value: Any) -> str:
    """A value as Markdown's code, short and without characters that a table cannot have."""
    if value is None:
        return "null"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    if not text.isprintable():
        text = ascii(text)[1:-1]
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    text = text.replace("|", "\\|")
    return f"`{text}`" if text else "an empty text"
