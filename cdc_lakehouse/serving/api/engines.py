"""Who answers: this machine, by DuckDB over the lake's files, or Athena."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.api.questions import Question, Statement, duckdb_over
from cdc_lakehouse.serving.athena import Athena
from cdc_lakehouse.serving.aws import aws_errors
from cdc_lakehouse.serving.gold import table_at
from cdc_lakehouse.storage.tables import read_columns

Rows = Sequence[Sequence[Any]]
# Runs a statement for at most so many seconds; raises UserError and TimeoutError.
Engine = Callable[[Question, Statement, float], Rows]
# Athena answers in text.
FROM_TEXT: dict[type | None, Callable[[str], Any]] = {
    bool: lambda text: text == "true",
    int: int,
    Decimal: Decimal,
    float: float,
    datetime: datetime.fromisoformat,
}


def answer_here(
    lake: Path | str, question: Question, statement: Statement, seconds: float
) -> Rows:
    """Run a statement over the lake's files in this process.

    Args:
        lake: its folder, or its ``s3://`` URL.
        question: what the statement asks.
        statement: SQL and values.
        seconds: how long it may take.
    """
    end = time.monotonic() + seconds
    tables = {
        name: read_columns(table_at(lake, place)) for name, place in question.places.items()
    }
    with duckdb_over(tables) as connection:
        alarm = threading.Timer(end - time.monotonic(), connection.interrupt)
        alarm.start()
        try:
            sql, values = statement
            answer = connection.sql(sql, params=values).to_arrow_table()
        except duckdb.InterruptException as error:
            raise TimeoutError from error
        except duckdb.Error as error:
            raise UserError(str(error)) from error
        finally:
            alarm.cancel()
            alarm.join()  # so that it finds the connection open
    return list(zip(*(column.to_pylist() for column in answer.columns), strict=True))


def answer_in_athena(
    athena: Athena, question: Question, statement: Statement, seconds: float
) -> Rows:
    """Run a statement in Athena, its values as parameters of the execution.

    Args:
        athena: a work group.
        question: what the statement asks.
        statement: SQL and values.
        seconds: how long it may take.
    """
    sql, values = statement
    literals = [literal(value) for value in values]
    with aws_errors():
        query = athena.run(sql, literals, seconds=seconds, say=lambda message: None)
        _, *rows = athena.rows(query)
    read = [FROM_TEXT.get(column.kind, str) for column in question.columns]
    return [
        [None if text is None else get(text) for get, text in zip(read, row, strict=True)]
        for row in rows
    ]


def literal(value: Any) -> str:
    """A value as Athena's parameters write it; of text only a quote is special there."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        at = value.astimezone(UTC) if value.tzinfo else value
        return f"timestamp '{at:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, date):
        return f"date '{value}'"
    return format(value, "f") if isinstance(value, Decimal) else str(value).lower()
