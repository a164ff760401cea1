"""The types of the databases, their extremes, and how each is declared in a staging model.

They are data: ``tests/support/types``. Each row becomes a column of a source table, named
after the declared type (``as_decimal_10_2``), and each value a row that fills only that
column. So one silver table, with a column for each declared type, has room for all source
tables, and one rejected value hides no other.
"""

import base64
import json
import re
import struct
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any

from cdc_lakehouse.sources.types import declared_type

FOLDER = Path(__file__).parent / "types"
# The group of the types that a second connector of PostgreSQL captures, whose
# `decimal.handling.mode` is the default, `precise`. The first has `string`. No other type
# arrives differently in the two modes.
PRECISE = "precise"
DAYS_OF_400_YEARS = 146_097
SECONDS_OF_A_DAY = 86_400
UNIX_EPOCH = date(1970, 1, 1)


# How a value in silver is compared with the source's text. Dates and times come from
# Parquet as numbers, because Python's own types end at the years 1 and 9999.


def _date_text(days: int) -> str:
    """A day since 1970 as PostgreSQL writes it."""
    cycles, rest = divmod(days, DAYS_OF_400_YEARS)
    day = UNIX_EPOCH + timedelta(days=rest)
    year = day.year + 400 * cycles
    if year > 0:
        return f"{year:04d}-{day:%m-%d}"
    return f"{1 - year:04d}-{day:%m-%d} BC"


def _timestamp_text(microseconds: int, zone: str = "") -> str:
    """Microseconds since 1970 as PostgreSQL writes them."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    days, second = divmod(seconds, SECONDS_OF_A_DAY)
    day, _, era = _date_text(days).partition(" ")
    time = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{day} {_short(f'{time}.{fraction:06d}')}{zone} {era}".rstrip()


def _short(text: str) -> str:
    """A time without the zeros at the end of its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _single(number: float | str) -> str:
    """A number in single precision."""
    return repr(struct.unpack("f", struct.pack("f", float(number)))[0])


def _bits(text: str) -> int:
    return int.from_bytes(base64.b64decode(text), "little")


def _geometry_numbers(text: str) -> list[float]:
    """The numbers of a geometry in Debezium's JSON."""
    shape = json.loads(text)
    if "center" in shape:
        return [shape["center"]["x"], shape["center"]["y"], shape["radius"]]
    if "x" in shape or "a" in shape:
        return [shape[name] for name in ("x", "y", "a", "b", "c") if name in shape]
    # The coordinates of a line or of a polygon's only ring in Well-Known Binary.
    binary = base64.b64decode(shape["wkb"])
    is_polygon = int.from_bytes(binary[1:5], "little") == 3
    # A polygon repeats its first point at its end.
    numbers = binary[13:-16] if is_polygon else binary[9:]
    return list(struct.unpack(f"<{len(numbers) // 8}d", numbers))


# By kind, what makes silver's value comparable, and what makes the source's text so.
COMPARED: dict[str, tuple[Callable[[Any], Any], Callable[[str], Any]]] = {
    "text": (str, str),
    "boolean": (str, lambda text: str(text not in ("0", "false"))),
    "whole": (int, int),
    "decimal": (Decimal, Decimal),
    "double": (repr, lambda text: repr(float(text))),
    "single": (_single, _single),
    "date": (_date_text, str),
    "timestamp": (_timestamp_text, _short),
    "timestamptz": (lambda value: _timestamp_text(value, "+00"), str),
    "utc_time": (lambda text: text.replace("Z", "+00"), str),
    "json": (json.loads, json.loads),
    "jsons": (
        lambda text: [item and json.loads(item) for item in json.loads(text)],
        json.loads,
    ),
    "bits": (_bits, lambda text: int(text, 2)),
    "varying_bits": (lambda text: f"{_bits(text):b}" if text else "", str),
    "bytes": (
        lambda text: base64.b64decode(text).hex(),
        lambda text: text.removeprefix("\\x").lower(),
    ),
    "geometry": (
        _geometry_numbers,
        lambda text: [float(number) for number in re.findall(r"-?[\d.]+", text)],
    ),
    "wkb": (
        lambda text: base64.b64decode(json.loads(text)["wkb"]).hex(),
        str.lower,
    ),
}
DATES = ("date", "timestamp", "timestamptz")


@dataclass(frozen=True)
class Form:
    """How silver holds a value, and how that is compared with the source."""

    kind: str
    sql: str  # gives the source's text of a column
    description: str = "the same"

    def is_same(self, silver: Any, source: str | None) -> bool:
        """Whether a value in silver is the source's."""
        if silver is None or source is None:
            return silver is None and source is None
        of_silver, of_source = COMPARED[self.kind]
        return bool(of_silver(silver) == of_source(source))


@dataclass(frozen=True)
class Value:
    """A value of a type: the source's input, or None."""

    text: str | None
    # The declared type cannot hold it, so that the row has null and names the column.
    is_untyped: bool = False
    # What this version does wrong, as the reason of a strict ``xfail``.
    wrong_today: str = ""


class Way(IntEnum):
    """How a value comes to the lake."""

    SNAPSHOT = 1
    INSERT = 2
    UPDATE = 3


@dataclass(frozen=True)
class Type:
    """A type of a source as somebody declares it: a row of the matrix."""

    number: int
    sql: str
    catalogue: str  # the type as the source's catalogue writes it
    declared: str  # the type in the staging model
    values: tuple[Value, ...]  # to try, beside null
    form: Form
    group: str  # the silver table
    table: str  # the source table, the first of its group without a column of that name
    input: str  # the expression that makes a value of its text
    long: str | None  # a value that is stored beside the row, if one is long enough
    name: str  # for the documentation

    @property
    def column(self) -> str:
        """The value column."""
        return column_of(self.declared)

    @property
    def all_values(self) -> list[Value]:
        """The values to try, with null, which every type has, as the last."""
        return [*self.values, Value(None)]

    def key(self, value: Value, way: Way) -> int:
        """The key of a value's row."""
        return self.number * 1000 + self.all_values.index(value) * 10 + way


def column_of(declared: str) -> str:
    """The value column of a declared type."""
    return "as_" + re.sub(r"\W+", "_", declared).strip("_")


class Matrix:
    """The types of a database, by section of the documentation.

    Args:
        database: ``postgresql`` or ``mariadb``.
    """

    def __init__(self, database: str) -> None:
        self.database = database
        self._data = tomllib.loads((FOLDER / f"{database}.toml").read_text("utf-8"))
        self._places: Counter[tuple[str, str]] = Counter()
        self._count = 0
        self.own_types: dict[str, str] = self._data.get("own_types", {})
        self.sections = {
            title: [found for row in rows for found in self._types(row)]
            for title, rows in self._data["sections"].items()
        }
        self.types = [row for rows in self.sections.values() for row in rows]

    def _types(self, row: dict[str, Any]) -> Iterator[Type]:
        """The types of a line of the data, each as a row of its own."""
        listed = row["sql"] if isinstance(row["sql"], list) else [row["sql"]]
        group = row.get("group", self._data["group"])
        for sql in listed:
            catalogue = self._catalogue_name(sql)
            declared = row.get("declared") or declared_type(
                self.database,
                catalogue,
                decimal_mode="precise" if group == PRECISE else "string",
            )
            place = (group, column_of(declared))
            values = (*self._values(row),)
            name = re.split(r"\W", sql)[0]
            yield Type(
                number=self._count,
                sql=sql,
                catalogue=catalogue,
                declared=declared,
                values=values,
                form=self._form(row.get("form"), declared),
                group=group,
                table=f"{group}_{self._places[place]}",
                input=self._data.get("inputs", {}).get(name, "%s"),
                long=self._long(sql, values[0].text or ""),
                name=self.own_types.get(sql, ""),
            )
            self._places[place] += 1
            self._count += 1

    def _values(self, row: dict[str, Any]) -> Iterator[Value]:
        for name in ("values", "wrong", "untyped", "wrong_untyped"):
            listed = row.get(name, [])
            by_reason = listed if isinstance(listed, dict) else {"": listed}
            for reason, texts in by_reason.items():
                for text in texts:
                    if isinstance(text, dict):
                        text = text["text"] * text["times"]
                    wrong_today = self._data["reasons"][reason] if reason else ""
                    yield Value(text, "untyped" in name, wrong_today)

    def _form(self, name: str | None, declared: str) -> Form:
        """A form by its name, or the one that a declared type has."""
        text = self._data["text"]
        if element := self._data.get("elements", {}).get(name):
            listed = f"select {element['sql']} from unnest({{}}) with ordinality"
            return Form(
                "json",
                f"to_json(array({listed} as item(x, n) order by n))::text",
                f"JSON array of {element['description']}",
            )
        if name:
            return Form(**{"kind": "text", "sql": text} | self._data["forms"][name])
        kind = re.split(r"\W", declared)[0]
        if kind == "timestamptz" and self.database == "mariadb":
            kind = "timestamp"  # the server's text has no zone
        return Form(kind if kind in COMPARED and kind != "json" else "text", text)

    def _catalogue_name(self, sql: str) -> str:
        """The type as the source's catalogue writes it."""
        written = self._data["catalogue"]
        if self.database == "mariadb":
            return str(written.get(sql, sql))
        element = sql.removesuffix("[]")
        name, parenthesis, parameters = element.partition("(")
        found = str(written.get(name, name + "{}")).format(parenthesis + parameters)
        return found + sql.removeprefix(element)

    def _long(self, sql: str, first: str) -> str | None:
        if self._catalogue_name(sql).endswith("[]"):
            return "{" + ",".join([first[1:-1]] * 30) + "}"
        found: str | None = self._data.get("long", {}).get(sql)
        return found


POSTGRESQL, MARIADB = Matrix("postgresql"), Matrix("mariadb")
