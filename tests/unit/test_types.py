"""The types that staging models declare are in data, each with a row in the matrix."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from decimal import Decimal

import pytest
from jinja2 import Environment

from cdc_lakehouse.sources.types import (
    UnsupportedTypeError,
    declared_type,
    names,
    read_types,
)
from ingest.events import LONG_NUMBER, SHORT_NUMBERS, UP_TO_LONG_NUMBER
from tests.support import mariadb_types, types_matrix
from tests.support.project import PROJECT
from tests.support.types_matrix import PRECISE, Type

MATRICES = {"postgresql": types_matrix.TYPES, "mariadb": mariadb_types.TYPES}
MODES = [("postgresql", "string"), ("postgresql", "precise"), ("mariadb", "string")]
# A column of these stops the connector: no row of the matrix can have one.
STOPPING = {"inet4", "inet6"}


def rows_of(database: str, decimal_mode: str) -> list[Type]:
    """The rows of a matrix whose values a connector of a mode sends."""
    is_precise = decimal_mode == "precise"
    return [row for row in MATRICES[database] if (row.group == PRECISE) == is_precise]


def name_of(database: str, decimal_mode: str, row: Type) -> str:
    """The name by which the data have a row's type."""
    types, _ = read_types(database, decimal_mode)
    return next(name for name in names(row.catalogue) if name in types)


@pytest.mark.parametrize(("database", "decimal_mode"), MODES)
def test_data_and_matrix_have_the_same_types(database: str, decimal_mode: str) -> None:
    types, _ = read_types(database, decimal_mode)
    tested = {
        name_of(database, decimal_mode, row) for row in rows_of(database, decimal_mode)
    }
    if decimal_mode == "precise":
        others, _ = read_types(database, "string")
        types = {name: types[name] for name in types if types[name] != others[name]}
    assert tested == types.keys() - STOPPING


@pytest.mark.parametrize(("database", "decimal_mode"), MODES)
def test_first_row_of_a_type_declares_its_default(database: str, decimal_mode: str) -> None:
    first: dict[str, Type] = {}
    for row in rows_of(database, decimal_mode):
        first.setdefault(row.catalogue, row)
    for name, row in first.items():
        try:
            expected = declared_type(database, name, decimal_mode=decimal_mode)
        except UnsupportedTypeError:
            continue
        assert (name, row.declared) == (name, expected)


@pytest.mark.parametrize(("database", "decimal_mode"), MODES)
def test_types_without_a_default_lose_values(database: str, decimal_mode: str) -> None:
    """And the others do not lose all of them."""
    types, reasons = read_types(database, decimal_mode)
    for row in rows_of(database, decimal_mode):
        name = name_of(database, decimal_mode, row)
        wrong = [bool(value.wrong_today) for value in row.values]
        if types[name] in reasons:
            assert any(wrong), row
        elif row.declared == declared_type(
            database, row.catalogue, decimal_mode=decimal_mode
        ):
            assert not all(wrong), row


@pytest.mark.parametrize("database", MATRICES)
@pytest.mark.parametrize("decimal_mode", ["string", "precise", "double"])
def test_staging_models_know_each_type(database: str, decimal_mode: str) -> None:
    types, reasons = read_types(database, decimal_mode)
    macro = (PROJECT / "macros/events/_check_change_table.sql").read_text(encoding="utf-8")
    known = set(re.findall(r"'(\w+)'", macro.partition("types = [")[2].partition("]")[0]))
    decimal = r"decimal\((p,s|\d+,\d+)\)( base64)?|timestamp\([0-3]\)"
    assert {
        declared
        for declared in types.values()
        if declared.removesuffix(" full") not in known | reasons.keys()
        and not re.fullmatch(decimal, declared)
    } == set()
    assert not reasons.keys() & known


@pytest.mark.parametrize(
    ("database", "source_type", "expected"),
    [
        ("postgresql", "numeric(10,2)", "decimal(10,2)"),
        ("postgresql", "numeric(3,-2)", "decimal(5,0)"),
        ("postgresql", "numeric(3,5)", "decimal(5,5)"),
        ("postgresql", "numeric(38,0)", "decimal(38,0)"),
        ("postgresql", "numeric(39,0)", "string"),
        ("postgresql", "numeric(37,-2)", "string"),
        ("postgresql", "numeric(1,39)", "string"),
        ("postgresql", "numeric", "string"),
        ("postgresql", "numeric(10,2)[]", "json full"),
        ("postgresql", "bit(1)", "boolean"),
        ("postgresql", "bit(10)", "string full"),
        ("postgresql", "character varying", "string"),
        ("postgresql", "character varying(20)", "string"),
        ("postgresql", "time(0) without time zone", "bigint"),
        ("postgresql", "timestamp(3) without time zone", "timestamp(3)"),
        ("postgresql", "timestamp(4) without time zone", "timestamp"),
        ("postgresql", "timestamp(3) without time zone[]", "json full"),
        ("mariadb", "tinyint(1)", "boolean"),
        ("mariadb", "tinyint(4)", "int"),
        ("mariadb", "int(10) unsigned", "bigint"),
        ("mariadb", "int(10) unsigned zerofill", "bigint"),
        ("mariadb", "decimal(65,30)", "string"),
        ("mariadb", "decimal(10,2) unsigned zerofill", "decimal(10,2)"),
        ("mariadb", "datetime(6)", "timestamp"),
        ("mariadb", "enum('a','(1,2)','c)')", "string"),
    ],
)
def test_parameters(database: str, source_type: str, expected: str) -> None:
    assert declared_type(database, source_type) == expected


def test_decimals_of_the_default_mode_are_base64() -> None:
    def precise(source_type: str) -> str:
        return declared_type("postgresql", source_type, decimal_mode="precise")

    assert precise("numeric(10,2)") == "decimal(10,2) base64"
    assert precise("money") == "decimal(19,2) base64"
    assert precise("bigint") == "bigint"
    for lossy in ("numeric", "numeric(39,0)", "numeric(3,-2)", "numeric(10,2)[]"):
        with pytest.raises(UnsupportedTypeError, match=r"decimal\.handling\.mode=string"):
            precise(lossy)


@pytest.mark.parametrize(
    ("database", "source_type", "error"),
    [
        ("postgresql", "tsquery", "leaves the column out; docs/types.md"),
        ("postgresql", "composite", "leaves the column out"),
        ("postgresql", "enum[]", "sends null"),
        ("mariadb", "inet6", "stops the connector; docs/types-mysql.md"),
        (
            "postgresql",
            "geometry(Point,4326)",
            "is not in cdc_lakehouse/sources/types/postgresql.toml",
        ),
        ("mariadb", "vector(3)", "is not in cdc_lakehouse/sources/types/mariadb.toml"),
    ],
)
def test_reasons(database: str, source_type: str, error: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=re.escape(error)) as caught:
        declared_type(database, source_type)
    assert f"'{source_type}'" in str(caught.value)


# What may stand around a number of JSON: objects, arrays, other numbers, texts.
AROUND = (
    '{"a":%s}',
    '{"at":"2024-02-29T12:00:00.123456Z","a": %s,"b":-19.9}',
    '{"ts_ns":1795227018272000000,"a":[0.5,%s]}',
    '[[1,"a\\"1.5"],\t%s\t]',
    '{"a":{"b":[\n%s\n,{"c":1e-7}]},"id":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}',
)
DIGITS = "1234567890123456789"


def numbers() -> Iterator[str]:
    """JSON's numbers about the lengths from which on a double rounds them."""
    wholes = ("0", "7", *(DIGITS[:count] for count in (2, 13, 14, 15, 16, 17, 19)))
    fractions = ("", *("." + DIGITS[-count:] for count in (1, 2, 13, 14, 15, 16, 17)))
    exponents = ("", "e0", "E5", "e-12", "E+99", "e100", "e-100", "E+0400")
    for parts in itertools.product(("", "-"), wholes, fractions, exponents):
        yield "".join(parts)


def test_numbers_that_a_double_rounds_are_told_from_others() -> None:
    """In a text by one expression, and the number itself by another."""
    for number in numbers():
        is_whole = re.fullmatch("-?[0-9]+", number) is not None
        is_long = re.match(LONG_NUMBER, number) is not None
        assert is_long or is_whole or Decimal(repr(float(number))) == Decimal(number)
        for around in AROUND:
            text = around % number
            assert json.loads(text, strict=False)
            assert (re.search(SHORT_NUMBERS, text) is None) is is_long, text
            found = re.match(UP_TO_LONG_NUMBER.removeprefix(r"\G"), text)
            assert (found and found[2]) == (number if is_long else None)
            assert is_long or re.search(SHORT_NUMBERS, json.dumps({"text": text}))


def test_staging_models_have_the_ingest_s_patterns_of_numbers() -> None:
    macro = (PROJECT / "macros/events/_exact_numbers.sql").read_text(encoding="utf-8")
    sql = Environment().from_string(macro + "{{ _exact_numbers('key') }}").render()
    found = [text.replace("\\\\", "\\") for text in re.findall(r"'([^'$]*\$?)'", sql)]
    assert {SHORT_NUMBERS, UP_TO_LONG_NUMBER} <= {*found}
