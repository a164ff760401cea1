"""The type that a staging model declares for each type of a source."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cdc_lakehouse.errors import UserError

# Each data file with its page of the documentation.
PAGES = {"postgresql": "docs/types.md", "mariadb": "docs/types-mysql.md"}
MOST_DIGITS = 38  # of a decimal in Spark
PRECISION_AND_SCALE = re.compile(r"\((\d+),(-?)(\d+)\)")


class UnsupportedTypeError(UserError):
    """A type of the source for which no type is chosen; the message says why."""


def declared_type(database: str, source_type: str, *, decimal_mode: str = "string") -> str:
    """The type that a staging model declares for a column of a source.

    The choice is that of ``cdc_lakehouse/sources/types/<database>.toml``.

    Args:
        database: ``postgresql`` or ``mariadb``, the latter also for MySQL.
        source_type: the column's type as the source's catalogue writes it: PostgreSQL's
            ``format_type()``, without a schema, with ``enum`` or ``composite`` in place of
            such a type's name and the base type in place of a domain's; MariaDB's
            ``information_schema.columns.column_type``.
        decimal_mode: the connector's ``decimal.handling.mode``: ``string``, ``precise``
            (Debezium's default) or ``double``.

    Raises:
        UnsupportedTypeError: the type is unknown, or no type holds what Debezium sends.
    """
    types, reasons = read_types(database, decimal_mode)
    name = next((name for name in names(source_type) if name in types), None)
    if name is None:
        raise UnsupportedTypeError(
            f"type '{source_type}' is not in cdc_lakehouse/sources/types/{database}.toml:"
            f" declare it by hand; {PAGES[database]}"
        )
    declared = types[name]
    if declared in reasons:
        raise UnsupportedTypeError(
            f"no type to declare for '{source_type}': {reasons[declared]};"
            f" {PAGES[database]}"
        )
    if "(p,s)" in declared:
        precision, scale = _digits(source_type)
        return declared.replace("(p,s)", f"({precision},{scale})")
    return declared


@cache
def read_types(database: str, decimal_mode: str) -> tuple[dict[str, str], dict[str, str]]:
    """The data of a database.

    Returns:
        The type to declare for each name of a type, or a reason why there is none; and the
        sentence of each reason.
    """
    file = Path(__file__).with_name(f"{database}.toml")
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return content["types"] | content["decimals"][decimal_mode], content["reasons"]


def names(source_type: str) -> Iterator[str]:
    """The names by which the data may have a type, the most specific first."""
    source_type = source_type.removesuffix(" zerofill")
    yield source_type
    if _digits(source_type)[0] <= MOST_DIGITS:
        yield PRECISION_AND_SCALE.sub(r"(p,\2s)", source_type)
    yield re.sub(r"\(.*\)", "", source_type)


def _digits(source_type: str) -> tuple[int, int]:
    """Precision and scale of the decimal that holds a type, (5, 0) of ``numeric(3,-2)``."""
    found = PRECISION_AND_SCALE.search(source_type)
    if found is None:
        return 0, 0
    precision, scale = int(found[1]), int(found[2] + found[3])
    return max(precision, scale, precision - scale), max(scale, 0)
