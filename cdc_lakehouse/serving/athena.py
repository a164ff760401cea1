"""A query file in Athena, its rows on the screen."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import click
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
)

from cdc_lakehouse.command import STYLE, complain, version
from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.serving.aws import aws_errors
from cdc_lakehouse.serving.manifest import Manifest, catalogue_options

SECONDS_BETWEEN_POLLS = 0.5
SECONDS_BETWEEN_SIGNS = 5
Row = list[str | None]


class Athena:
    """A work group of Athena.

    Args:
        work_group: its name.
        output_location: the ``s3://`` folder that results go to; None where the work
            group names its own.
    """

    def __init__(self, work_group: str, output_location: str | None) -> None:
        self.client = boto3.client("athena")
        self.work_group = work_group
        self.output_location = output_location

    def run(
        self,
        sql: str,
        literals: Sequence[str] = (),
        *,
        seconds: float = math.inf,
        say: Callable[[str], None] = complain,
    ) -> str:
        """Run a query to its end; stop it if it cannot be waited for.

        Args:
            sql: the query.
            literals: what Athena takes for its question marks, as SQL writes values.
            seconds: how long it may take.
            say: what says meanwhile that it takes long.

        Returns:
            The query's id.

        Raises:
            UserError: Athena could not run it; the message is Athena's.
            TimeoutError: it took longer.
        """
        place = (
            {"ResultConfiguration": {"OutputLocation": self.output_location}}
            if self.output_location
            else {}
        )
        values = {"ExecutionParameters": list(literals)} if literals else {}
        query: str = self.client.start_query_execution(
            QueryString=sql, WorkGroup=self.work_group, **place, **values
        )["QueryExecutionId"]
        try:
            self._wait(query, seconds, say)
        except UserError:
            raise  # it has ended
        except BaseException:
            with contextlib.suppress(BotoCoreError, ClientError):
                self.client.stop_query_execution(QueryExecutionId=query)
            raise
        return query

    def rows(self, query: str) -> Iterator[Row]:
        """The names of a query's columns, then its rows, as text; None is null."""
        pages = self.client.get_paginator("get_query_results").paginate(
            QueryExecutionId=query
        )
        is_first = True
        for page in pages:
            result = page["ResultSet"]
            if is_first:
                is_first = False
                names = [
                    column["Name"] for column in result["ResultSetMetadata"]["ColumnInfo"]
                ]
                yield [*names]
                # Athena repeats the names as the first row of a select's first page.
                if result["Rows"] and _values(result["Rows"][0]) == names:
                    result["Rows"].pop(0)
            for row in result["Rows"]:
                yield _values(row)

    def _wait(self, query: str, seconds: float, say: Callable[[str], None]) -> None:
        start = said = time.monotonic()
        while True:
            execution = self.client.get_query_execution(QueryExecutionId=query)
            status = execution["QueryExecution"]["Status"]
            if status["State"] == "SUCCEEDED":
                return
            if status["State"] in ("FAILED", "CANCELLED"):
                reason = status.get("StateChangeReason", "Athena gives no reason")
                may_pass = status.get("AthenaError", {}).get("Retryable", False)
                kind = TransientError if may_pass else UserError
                raise kind(f"the query {status['State'].lower()}: {reason}")
            now = time.monotonic()
            if now - start > seconds:
                raise TimeoutError
            if now - said >= SECONDS_BETWEEN_SIGNS:
                said = now
                say(f"{status['State'].lower()} for {now - start:.0f} s")
            time.sleep(SECONDS_BETWEEN_POLLS)


def _values(row: dict[str, Any]) -> Row:
    return [value.get("VarCharValue") for value in row["Data"]]


def table_lines(rows: list[Row]) -> Iterator[str]:
    """Rows under their names, in columns; numbers to the right."""
    if not any(rows):
        yield "no rows"
        return
    # The rows of a statement that is no select may be shorter than its columns.
    columns = list(itertools.zip_longest(*rows))
    texts = [[_printable(value) for value in column] for column in columns]
    widths = [max(map(_width, column)) for column in texts]
    numeric = [
        len(column) > 1 and all(_is_number(value) for value in column[1:])
        for column in columns
    ]
    for number, row in enumerate(zip(*texts, strict=True)):
        cells = []
        for text, width, to_the_right in zip(row, widths, numeric, strict=True):
            space = " " * (width - _width(text))
            cells.append(space + text if to_the_right else text + space)
        yield "  ".join(cells).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)


def _printable(value: str | None) -> str:
    """A value in one line; what would steer the terminal is written out."""
    if value is None:
        return "null"
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) == "Cc"
        else character
        for character in value
    )


def _width(text: str) -> int:
    """How many places of a terminal a text takes."""
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def _is_number(value: str | None) -> bool:
    try:
        float(value or "0")
    except ValueError:
        return False
    return True


@click.command("athena", context_settings=STYLE)
@version
@click.argument("file", type=click.Path(path_type=Path))
@catalogue_options
@click.option(
    "--work-group", metavar="NAME", default="primary", help="Athena's work group."
)
@click.option(
    "--output-location",
    metavar="S3_URL",
    help="Where results go, if the work group names no place.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
def command(
    file: Path,
    prefix: str,
    manifest_file: Path,
    work_group: str,
    output_location: str | None,
    as_json: bool,
) -> None:
    """Run a query file in Athena; print its rows.

    FILE is SQL with ref() for the tables' names, such as those in analyses/.
    """
    with aws_errors():
        sql = Manifest.read(manifest_file).render(file, prefix)
        athena = Athena(work_group, output_location)
        rows = list(athena.rows(athena.run(sql)))
    if as_json:
        names, *found = rows
        objects = [dict(itertools.zip_longest(names, row)) for row in found]
        click.echo(json.dumps(objects, indent=2))
        return
    for line in table_lines(rows):
        click.echo(line)
