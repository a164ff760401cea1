"""MariaDB's types, their extremes, and how each is declared: as ``types_matrix``.

MySQL's are the same, but for ``uuid``, which it lacks, and for ``json``, which is a text in
MariaDB. Debezium 3.5 cannot parse ``inet4`` and ``inet6``: a table with one stops it.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

from cdc_lakehouse.sources.types import declared_type
from tests.support.types_matrix import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    Form,
    Type,
    Value,
    single,
    untyped,
    wrong,
)

CHAR = "cast({} as char)"

# What is wrong today.
ZERO_DATE = "Debezium sends null for a zero date"
ZERO_TIMESTAMP = "Debezium sends null in a snapshot, 1970-01-01 in a stream"
SIX_DIGITS = "a snapshot sends the six digits that the server prints"
COMMA = "a stream sends a member's comma with a backslash"

_FORMS = {
    "boolean": replace(BOOLEAN, source=lambda text: str(text != "0").lower(), sql=CHAR),
    "date": replace(DATE, sql=CHAR),
    "decimal": replace(DECIMAL, sql=CHAR),
    "double": replace(DOUBLE, sql=CHAR),
    "timestamp": replace(TIMESTAMP, source=lambda text: _without_zeros(text), sql=CHAR),
    "timestamptz": replace(TIMESTAMP, source=lambda text: _without_zeros(text), sql=CHAR),
}
FORM = replace(TEXT, sql=CHAR)
# A float's text has six digits; its value has more.
SINGLE = Form(
    silver=single, source=lambda text: single(float(text)), sql="cast({} * 1e0 as char)"
)
PADDED = replace(FORM, source=lambda text: str(int(text)))
BITS = Form(
    "base64 of the bits, lowest byte first",
    silver=lambda text: int.from_bytes(base64.b64decode(text), "little"),
    source=int,
    sql="cast({} + 0 as char)",
)
BIT = replace(BITS, description="the same", silver=int)
BYTES = Form(
    "base64 of the bytes",
    silver=lambda text: base64.b64decode(text).hex(),
    source=str.lower,
    sql="hex({})",
)
MICROSECONDS = Form(
    "microseconds",
    source=lambda text: str(round(float(text) * 1_000_000)),
    sql="cast(time_to_sec({}) as char)",
)
POINT = Form(
    "JSON with the coordinates, and with Well-Known Binary in base64",
    silver=lambda text: base64.b64decode(json.loads(text)["wkb"]).hex(),
    source=str.lower,
    sql="hex(st_aswkb({}))",
)
# How a value's text becomes a value, where the server does not do it by itself.
INPUTS = {
    "bit": "cast(conv(%s, 2, 10) as unsigned)",
    "binary": "unhex(%s)",
    "varbinary": "unhex(%s)",
    "tinyblob": "unhex(%s)",
    "blob": "unhex(%s)",
    "mediumblob": "unhex(%s)",
    "longblob": "unhex(%s)",
    "point": "st_geomfromtext(%s)",
}
# How MariaDB's catalogue writes a type, but for the width that it adds to an integer's.
CATALOGUE_NAMES = {
    "datetime(0)": "datetime",
    "varchar(20) character set latin1": "varchar(20)",
}


def _without_zeros(text: str) -> str:
    """A time without the zeros at the end of its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def input_of(row: Type) -> str:
    """The expression that makes a value of a type of its text."""
    return INPUTS.get(row.sql.partition("(")[0].partition(" ")[0], "%s")


def _row(
    sql: str,
    *values: str | list[Value],
    declared: str | None = None,
    form: Form | None = None,
) -> Type:
    found: list[Value] = []
    for value in values:
        found += [Value(value)] if isinstance(value, str) else value
    catalogue = CATALOGUE_NAMES.get(sql, sql)
    declared = declared or declared_type("mariadb", catalogue)
    own = _FORMS.get(declared.partition("(")[0].partition(" ")[0], FORM)
    return Type(sql, catalogue, declared, found, form or own, "mariadb_types", Value(None))


NUMBERS = [
    _row("tinyint", "-128", "0", "127"),
    _row("tinyint unsigned", "0", "255"),
    _row("tinyint(1)", "1", "0", untyped("2")),
    _row("smallint", "-32768", "32767"),
    _row("smallint unsigned", "65535"),
    _row("mediumint", "-8388608", "8388607"),
    _row("mediumint unsigned", "16777215"),
    _row("int", "-2147483648", "2147483647"),
    _row("int unsigned", "0", "4294967295"),
    _row("int unsigned", "2147483647", untyped("2147483648"), declared="int"),
    _row("int(6) unsigned zerofill", "42", "4294967295", form=PADDED),
    _row("bigint", "-9223372036854775808", "9223372036854775807"),
    _row(
        *("bigint unsigned", "0", "127", "128"),
        *("9223372036854775807", "9223372036854775808", "18446744073709551615"),
    ),
    _row("bigint unsigned", untyped("1", "18446744073709551615"), declared="bigint"),
    _row("decimal(10,2)", "19.90", "0", "-0.01", "99999999.99"),
    _row("decimal(10,2) unsigned", "0.01", "99999999.99"),
    _row(
        *("decimal(38,18)", "0.000000000000000001"),
        "-99999999999999999999.999999999999999999",
    ),
    _row("decimal(65,30)", "9" * 35 + "." + "9" * 30),
    _row(
        *("float", "0.1", wrong(SIX_DIGITS, "16777217")),
        *("-3.4e38", "1.17549e-38"),
        form=SINGLE,
    ),
    _row("double", "0.1", "1.7976931348623157e308", "-2.5e-300", "1e22"),
]
BITS_AND_BYTES = [
    _row("bit(1)", "1", "0", form=BIT),
    _row("bit(12)", "100000000011", "000000000001", "0", form=BITS),
    _row("bit(64)", "1" * 64, "1" + "0" * 63, form=BITS),
    _row("binary(4)", "00ff00aa", form=BYTES),
    _row("varbinary(20)", "", "00ff", form=BYTES),
    *(
        _row(sql, "d76df8", form=BYTES)
        for sql in ("tinyblob", "blob", "mediumblob", "longblob")
    ),
]
DATES_AND_TIMES = [
    _row(
        *("date", "2024-02-29", "1970-01-01", "1900-01-01", "9999-12-31"),
        *("1582-10-14", "1000-01-01"),
        wrong(ZERO_DATE, "0000-00-00", "2024-00-10"),
    ),
    *(
        _row(
            *(
                f"datetime({precision})",
                "2024-02-29 23:59:59",
                "1969-12-31 23:59:59",
                "9999-12-31 23:59:59",
            ),
            "1000-01-01 00:00:00",
            wrong(ZERO_DATE, "0000-00-00 00:00:00"),
        )
        for precision in range(4)
    ),
    *(
        _row(
            *(f"datetime({precision})", "2024-02-29 23:59:59.123456"),
            *("1969-12-31 23:59:59.999999", "9999-12-31 23:59:59", "1000-01-01 00:00:00"),
            wrong(ZERO_DATE, "0000-00-00 00:00:00"),
        )
        for precision in (4, 5, 6)
    ),
    _row(
        *("timestamp", "2024-02-29 23:59:59", "1970-01-01 00:00:01"),
        "2038-01-19 03:14:07",
        wrong(ZERO_TIMESTAMP, "0000-00-00 00:00:00"),
    ),
    _row("timestamp(6)", "2024-02-29 23:59:59.123456"),
    _row(
        *("time", "12:34:56", "00:00:00", "-838:59:59", "838:59:59"),
        form=MICROSECONDS,
    ),
    _row("time(6)", "12:34:56.123456", "-00:00:00.000001", form=MICROSECONDS),
    _row("year", "1901", "2155"),
]
TEXTS = [
    _row("char(5)", "ab", "", "日本"),
    _row("varchar(20)", "ab  ", "", "\U0001f600", r"\u0041", "\t\n\"\\'"),
    _row("varchar(20) character set latin1", "Käse"),
    _row("tinytext", "ab"),
    _row("text", "a" * 20_000, "null", '{"a": 1}'),
    _row("mediumtext", "ab"),
    _row("longtext", ""),
    _row(
        "enum('sad', 'it''s, ok', '')",
        "sad",
        wrong(COMMA, "it's, ok"),
        "",
        "no member",
    ),
    _row("set('a', 'b', 'c')", "", "a", "a,c", "c,a"),
    _row("json", '{"a":  1, "b": 12345678901234567890.10}', "null", '"x"', "[]"),
    _row("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    _row("point", "POINT(1.5 -2)", form=POINT),
]
SECTIONS: dict[str, Any] = {
    "Numbers": NUMBERS,
    "Bits and bytes": BITS_AND_BYTES,
    "Dates and times": DATES_AND_TIMES,
    "Texts and others": TEXTS,
}
TYPES: list[Type] = [row for rows in SECTIONS.values() for row in rows]
