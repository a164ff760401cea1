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


def _moment(text: str) -> tuple[str, str]:
    """A date or a time without its zone, which is UTC, and the zeros at its end."""
    whole, _, fraction = text.replace("+00", "").partition(".")
    return whole, fraction.rstrip("0")


def _single(number: float | str) -> str:
    """A number in single precision."""
    return repr(struct.unpack("f", struct.pack("f", float(number)))[0])


def _bits(text: str) -> int:
    return int.from_bytes(base64.b64decode(text), "little")


def _geometry_numbers(text: str) -> list[float]:
    """The numbers of a geometry in Debezium's JSON."""
    if named := re.findall(r'"(?:[abcxy]|radius)":(-?[\d.]+)', text):
        return [*map(float, named)]
    # The coordinates of a line or of a polygon's only ring in Well-Known Binary.
    binary = base64.b64decode(json.loads(text)["wkb"])
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
    **dict.fromkeys(("date", "timestamp", "timestamptz"), (_moment, _moment)),
    "json": (json.loads, json.loads),
    "jsons": (
        lambda text: [item and json.loads(item) for item in json.loads(text)],
        json.loads,
    ),
    "bits": (_bits, lambda text: int(text, 2)),
    "varying_bits": (lambda text: f"{_bits(text):b}" if text else "", str),
    "geometry": (
        _geometry_numbers,
        lambda text: [float(number) for number in re.findall(r"-?[\d.]+", text)],
    ),
    "wkb": (lambda text: json.loads(text)["wkb"], str),
}


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
    # What this version does wrong.
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
        self.sections = {
            title: [found for row in rows for found in self._types(row)]
            for title, rows in self._data["sections"].items()
        }
        self.types = [row for rows in self.sections.values() for row in rows]

    def _types(self, row: dict[str, Any]) -> Iterator[Type]:
        """The types of a line of the data, each as a row of its own."""
        listed = row["sql"] if isinstance(row["sql"], list) else [row["sql"]]
        group = row.get("group", self._data["group"])
        mode = "precise" if group == PRECISE else "string"
        values = (*self._values(row),)
        for sql in listed:
            catalogue = self._catalogue_name(sql)
            declared = row.get("declared") or declared_type(
                self.database, catalogue, decimal_mode=mode
            )
            place = (group, column_of(declared))
            long = self._data.get("long", {}).get(sql)
            if catalogue.endswith("[]"):
                long = "{" + ",".join([str(values[0].text)[1:-1]] * 30) + "}"
            yield Type(
                number=self._count,
                sql=sql,
                catalogue=catalogue,
                declared=declared,
                values=values,
                form=self._form(row.get("form"), declared),
                group=group,
                table=f"{group}_{self._places[place]}",
                input=self._data.get("inputs", {}).get(re.split(r"\W", sql)[0], "%s"),
                long=long,
                name=self._data.get("own_types", {}).get(sql, ""),
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
        kind = re.split(r"\W", declared)[0]
        if name or kind not in COMPARED or kind == "json":
            kind = "text"
        of_name = self._data["forms"][name] if name else {}
        return Form(**{"kind": kind, "sql": self._data["text"]} | of_name)

    def _catalogue_name(self, sql: str) -> str:
        """The type as the source's catalogue writes it."""
        written = self._data["catalogue"]
        if sql in written:
            return str(written[sql].format(""))
        name, parameters, rest = re.findall(r"([^([]+)(\(.*?\))?(.*)", sql)[0]
        return str(written.get(name, name + "{}").format(parameters) + rest)


POSTGRESQL, MARIADB = Matrix("postgresql"), Matrix("mariadb")
