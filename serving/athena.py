"""``python -m serving.athena FILE``: a query file in Athena, its rows on the screen."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
)

from lake.errors import UserError
from serving.manifest import Manifest, add_options

SECONDS_BETWEEN_LOOKS = 0.5
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

    def run(self, sql: str) -> str:
        """Run a query to its end; stop it if it cannot be waited for.

        Returns:
            The query's id.

        Raises:
            UserError: Athena could not run it; the message is Athena's.
        """
        place = (
            {"ResultConfiguration": {"OutputLocation": self.output_location}}
            if self.output_location
            else {}
        )
        query: str = self.client.start_query_execution(
            QueryString=sql, WorkGroup=self.work_group, **place
        )["QueryExecutionId"]
        try:
            self._wait(query)
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

    def _wait(self, query: str) -> None:
        start = said = time.monotonic()
        while True:
            execution = self.client.get_query_execution(QueryExecutionId=query)
            status = execution["QueryExecution"]["Status"]
            if status["State"] == "SUCCEEDED":
                return
            if status["State"] in ("FAILED", "CANCELLED"):
                reason = status.get("StateChangeReason", "Athena gives no reason")
                raise UserError(f"the query {status['State'].lower()}: {reason}")
            now = time.monotonic()
            if now - said >= SECONDS_BETWEEN_SIGNS:
                said = now
                print(
                    f"athena: {status['State'].lower()} for {now - start:.0f} s",
                    file=sys.stderr,
                )
            time.sleep(SECONDS_BETWEEN_LOOKS)


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


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 where the query succeeded."""
    parser = argparse.ArgumentParser(
        prog="python -m serving.athena",
        description="Run a query file in Athena; print its rows.",
    )
    parser.add_argument("file", type=Path, help="SQL with ref(), such as analyses/…")
    parser.add_argument("--work-group", default="primary", help="(default: primary)")
    parser.add_argument(
        "--output-location",
        metavar="S3_URL",
        help="where results go, if the work group does not say",
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        sql = Manifest.read(options.manifest).render(options.file, options.prefix)
        athena = Athena(options.work_group, options.output_location)
        rows = list(athena.rows(athena.run(sql)))
    except (UserError, BotoCoreError, ClientError) as error:
        print(f"athena: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("athena: the query was stopped", file=sys.stderr)
        return 130
    for line in table_lines(rows):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
