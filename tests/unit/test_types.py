"""The types that staging models declare are in data, each with a row in the matrix."""

import itertools
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import regex  # type: ignore[import-untyped]  # it has no types here
import yaml
from jinja2 import Environment
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.sources.types import (
    UnsupportedTypeError,
    declared_type,
    names,
    read_types,
)
from ingest.events import LONG_NUMBER, SHORT_NUMBERS, UP_TO_LONG_NUMBER
from tests.support.project import PROJECT
from tests.support.types_matrix import MARIADB, POSTGRESQL, PRECISE

MATRICES = {"postgresql": POSTGRESQL.types, "mariadb": MARIADB.types}
MODES = [("postgresql", "string"), ("postgresql", "precise"), ("mariadb", "string")]
# A column of these stops the connector: no row of the matrix can have one.
STOPPING = {"inet4", "inet6"}


@pytest.mark.parametrize(("database", "decimal_mode"), MODES)
def test_matrix_has_the_types_of_the_data(database: str, decimal_mode: str) -> None:
    """The first row of a type declares its default; a type without one loses values."""
    types, reasons = read_types(database, decimal_mode)
    tested: set[str] = set()
    seen: set[str] = set()
    for row in MATRICES[database]:
        if (row.group == PRECISE) != (decimal_mode == "precise"):
            continue  # sent by a connector of another mode
        name = next(name for name in names(row.catalogue) if name in types)
        tested.add(name)
        wrong = [bool(value.wrong_today) for value in row.values]
        if types[name] in reasons:
            assert any(wrong), row
            continue
        default = declared_type(database, row.catalogue, decimal_mode=decimal_mode)
        if row.catalogue not in seen:
            assert row.declared == default, row
        seen.add(row.catalogue)
        assert row.declared != default or not all(wrong), row
    if decimal_mode == "precise":
        others, _ = read_types(database, "string")
        types = {name: types[name] for name in types if types[name] != others[name]}
    assert tested == types.keys() - STOPPING


@pytest.mark.parametrize(("database", "decimal_mode"), MODES)
def test_parameters_and_reasons(
    database: str, decimal_mode: str, snapshot: SnapshotAssertion
) -> None:
    """A numeric that the connector's mode loses has no type."""
    found = {}
    names_of = yaml.safe_load(Path(__file__).with_name("types.yml").read_text())
    for name in names_of[database]:
        try:
            found[name] = declared_type(database, name, decimal_mode=decimal_mode)
        except UnsupportedTypeError as error:
            found[name] = f"# {error}"
    assert found == snapshot


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
    """In a text by one expression, and the number itself by another.

    Not by Python's own `re`, whose possessive quantifiers are wrong in 3.11.2.
    """
    for number in numbers():
        is_whole = re.fullmatch("-?[0-9]+", number) is not None
        is_long = regex.match(LONG_NUMBER, number) is not None
        assert is_long or is_whole or Decimal(repr(float(number))) == Decimal(number)
        for around in AROUND:
            text = around % number
            assert json.loads(text, strict=False)
            assert (regex.search(SHORT_NUMBERS, text) is None) is is_long, text
            found = regex.match(UP_TO_LONG_NUMBER, text)
            assert (found and found[2]) == (number if is_long else None)
            assert is_long or regex.search(SHORT_NUMBERS, json.dumps({"text": text}))


def test_staging_models_have_the_ingest_s_patterns_of_numbers() -> None:
    macro = (PROJECT / "macros/events/_exact_numbers.sql").read_text(encoding="utf-8")
    sql = Environment().from_string(macro + "{{ _exact_numbers('key') }}").render()
    found = [text.replace("\\\\", "\\") for text in re.findall(r"'([^'$]*\$?)'", sql)]
    assert {SHORT_NUMBERS, UP_TO_LONG_NUMBER} <= {*found}
