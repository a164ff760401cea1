"""The PostgreSQL types, their extremes, and how each is declared in a staging model.

To add a type, add it to ``connectors/types`` and a row to a section. The first row of each
type declares what the data say; later ones may declare another. Each row becomes a column
of a source table, named after the declared type (``as_decimal_10_2``), and each value a row
that fills only that column. So one silver table, with a column for each declared type, has
room for all source tables, and one rejected value hides no other.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from cdc_lakehouse.sources.types import declared_type

DAYS_OF_400_YEARS = 146_097
SECONDS_OF_A_DAY = 86_400
UNIX_EPOCH = date(1970, 1, 1)


# How a value in silver is compared with PostgreSQL's text. Dates and times come from
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
    if fraction:
        time += f".{fraction:06d}".rstrip("0")
    return f"{day} {time}{zone} {era}".rstrip()


def single(number: float) -> str:
    """A number in single precision."""
    return repr(struct.unpack("f", struct.pack("f", number))[0])


def _wkb_numbers(text: str) -> list[float]:
    """The coordinates of a line or of a polygon's only ring in Well-Known Binary."""
    binary = base64.b64decode(text)
    is_polygon = int.from_bytes(binary[1:5], "little") == 3
    # A polygon repeats its first point at its end.
    numbers = binary[13:-16] if is_polygon else binary[9:]
    return list(struct.unpack(f"<{len(numbers) // 8}d", numbers))


def _geometry_numbers(text: str) -> list[float]:
    """The numbers of a geometry in Debezium's JSON."""
    shape = json.loads(text)
    if "center" in shape:
        return [shape["center"]["x"], shape["center"]["y"], shape["radius"]]
    if "x" in shape or "a" in shape:
        return [shape[name] for name in ("x", "y", "a", "b", "c") if name in shape]
    return _wkb_numbers(shape["wkb"])


@dataclass(frozen=True)
class Form:
    """How silver holds a value, and how that is compared with PostgreSQL.

    Attributes:
        description: for the documentation.
        silver: makes silver's value comparable.
        source: makes PostgreSQL's text comparable.
        sql: the expression that gives PostgreSQL's text of a column.
    """

    description: str = "the same"
    silver: Callable[[Any], Any] = str
    source: Callable[[str], Any] = str
    sql: str = "{}::text"

    def is_same(self, silver: Any, source: str | None) -> bool:
        """Whether a value in silver is PostgreSQL's."""
        if silver is None or source is None:
            return silver is None and source is None
        return bool(self.silver(silver) == self.source(source))


def _json_form(description: str, sql: str = "to_json({})::text") -> Form:
    return Form(description, silver=json.loads, source=json.loads, sql=sql)


def _array_form(description: str, element: str) -> Form:
    """An array whose elements Debezium sends in another form than PostgreSQL does."""
    elements = (
        f"select {element} from unnest({{}}) with ordinality as item(x, n) order by n"
    )
    return _json_form(f"JSON array of {description}", f"to_json(array({elements}))::text")


TEXT = Form()
BOOLEAN = Form(silver=lambda value: str(value).lower())
DECIMAL = Form(silver=Decimal, source=Decimal)
DOUBLE = Form(silver=repr, source=lambda text: repr(float(text)))
SINGLE = Form(silver=single, source=lambda text: single(float(text)))
DATE = Form(silver=_date_text)
TIMESTAMP = Form(silver=_timestamp_text)
TIMESTAMPTZ = Form(silver=lambda value: _timestamp_text(value, "+00"))
FORMS = {
    "boolean": BOOLEAN,
    "date": DATE,
    "decimal": DECIMAL,
    "double": DOUBLE,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
}

MONEY = Form(silver=Decimal, source=Decimal, sql="{}::numeric::text")
ONE_BIT = Form(silver=lambda value: str(int(value)))
BYTES = Form(
    "base64 of the bytes", silver=lambda text: "\\x" + base64.b64decode(text).hex()
)
BITS = Form(
    "base64 of the bits, lowest byte first",
    silver=lambda text: int.from_bytes(base64.b64decode(text), "little"),
    source=lambda text: int(text, 2),
)
VARYING_BITS = Form(
    BITS.description,
    silver=lambda text: (
        f"{int.from_bytes(base64.b64decode(text), 'little'):b}" if text else ""
    ),
)
MILLISECONDS = Form("milliseconds", sql="round(extract(epoch from {}) * 1000)::text")
MICROSECONDS = Form("microseconds", sql="round(extract(epoch from {}) * 1000000)::text")
TIME_IN_UTC = Form(
    "the time in UTC with `Z`, without its offset",
    silver=lambda text: text.replace("Z", "+00"),
    # `at time zone` would make 00:00:00 of 24:00:00.
    sql="case when extract(timezone from {0}) = 0 then {0}::text"
    " else ({0} at time zone 'UTC')::text end",
)
ADDRESS = Form(sql="format('%s', {})")
HSTORE = _json_form("JSON object", "hstore_to_json({})::text")
ARRAY = _json_form("JSON array")
TEXTS = _json_form("JSON array of texts", "to_json({}::text[])::text")
DAYS = _array_form("days since 1970", "x - date '1970-01-01'")
TIMES = _array_form("microseconds", "(extract(epoch from x) * 1000000)::bigint")
INSTANTS = _array_form(
    "ISO texts in UTC", """to_char(x at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
)
BASE64S = _array_form("base64 texts", "encode(x, 'base64')")
JSON_TEXTS = _array_form("JSON texts", "x::text")
HSTORES = Form(
    "JSON array of JSON texts",
    silver=lambda text: [item and json.loads(item) for item in json.loads(text)],
    source=json.loads,
    sql="to_json(array(select hstore_to_json(x) from unnest({}) x))::text",
)
OIDS = _json_form("JSON array", "to_json({}::bigint[])::text")
MONEYS = _array_form("texts", "x::numeric::text")
GEOMETRY = Form(
    "JSON with the coordinates, or with Well-Known Binary in base64",
    silver=_geometry_numbers,
    source=lambda text: [float(number) for number in re.findall(r"-?[\d.]+", text)],
)


@dataclass(frozen=True)
class Value:
    """A value of a type.

    Attributes:
        text: PostgreSQL's input; None is null.
        is_untyped: whether the declared type cannot hold it, so that the row has null and
            names the column.
        wrong_today: what this version does wrong, as the reason of a strict ``xfail``.
    """

    text: str | None
    is_untyped: bool = False
    wrong_today: str = ""


def untyped(*texts: str, wrong_today: str = "") -> list[Value]:
    """Values that the declared type cannot hold."""
    return [Value(text, is_untyped=True, wrong_today=wrong_today) for text in texts]


def wrong(reason: str, *texts: str | None) -> list[Value]:
    """Values that silver should hold, and does not hold today."""
    return [Value(text, wrong_today=reason) for text in texts]


@dataclass(frozen=True)
class Type:
    """A PostgreSQL type as somebody declares it.

    Attributes:
        sql: the type in the source.
        catalogue: the type as the source's catalogue writes it.
        declared: the type in the staging model.
        values: the values to try, beside null.
        form: how silver holds it, where that is not the declared type's own form.
        group: the silver table. Values that stop the build of a table have one of their
            own.
        null: null, which every type has.
    """

    sql: str
    catalogue: str
    declared: str
    values: list[Value]
    form: Form
    group: str
    null: Value

    @property
    def column(self) -> str:
        """The value column."""
        return "as_" + re.sub(r"\W+", "_", self.declared).strip("_")

    @property
    def all_values(self) -> list[Value]:
        """The values to try, with null as the last."""
        return [*self.values, self.null]


# The types that the source defines itself, for the documentation.
OWN_TYPES = {
    "counts": "a domain of `int[]`",
    "email": "a domain of `citext`",
    "labels": "a domain of `text[]`",
    "mood": "an enum",
    "pair": "a composite type",
    "positive_int": "a domain of `int`",
    "price": "a domain of `numeric(10,2)`",
}

# How PostgreSQL's catalogue writes a type, {} being the parameters; in place of a type that
# the source defines, what `declared_type` takes.
CATALOGUE_NAMES = {
    "char": "character{}",
    "counts": "integer[]",
    "email": "citext",
    "labels": "text[]",
    "mood": "enum",
    "pair": "composite",
    "positive_int": "integer",
    "price": "numeric(10,2)",
    "time": "time{} without time zone",
    "timestamp": "timestamp{} without time zone",
    "timestamptz": "timestamp{} with time zone",
    "timetz": "time{} with time zone",
    "varchar": "character varying{}",
}


def catalogue_name(sql: str) -> str:
    """The type as PostgreSQL's catalogue writes it."""
    element = sql.removesuffix("[]")
    name, parenthesis, parameters = element.partition("(")
    found = CATALOGUE_NAMES.get(name, name + "{}").format(parenthesis + parameters)
    return found + sql.removeprefix(element)


# The group of the types that the second connector captures, whose
# `decimal.handling.mode` is the default, `precise`. The first has `string`. No other type
# arrives differently in the two modes.
PRECISE = "precise"


def _row(
    sql: str,
    *values: str | list[Value],
    declared: str | None = None,
    form: Form | None = None,
    group: str = "types",
) -> Type:
    """A row of the matrix; a plain text is a value that silver holds.

    Args:
        sql: the type in the source.
        values: the values to try.
        declared: the type in the staging model, where it is not the one that
            ``connectors/types`` has.
        form: how silver holds it, where that is not the declared type's own form.
        group: the silver table.
    """
    found: list[Value] = []
    for value in values:
        found += [Value(value)] if isinstance(value, str) else value
    catalogue = catalogue_name(sql)
    if declared is None:
        mode = "precise" if group == PRECISE else "string"
        declared = declared_type("postgresql", catalogue, decimal_mode=mode)
    own_form = FORMS.get(declared.partition("(")[0], TEXT)
    return Type(sql, catalogue, declared, found, form or own_form, group, Value(None))


# What is wrong today, where several values have the same reason.

LEFT_OUT = (
    "Debezium leaves out columns of a type that it does not know, and silver holds null"
)
SENT_AS_NULL = "Debezium sends null for a value that is not null"
NUMERIC_NAMES = "Debezium names it NAN, POSITIVE_INFINITY or NEGATIVE_INFINITY"
ROUNDED = "a digit beyond the declared scale is rounded away"
MANY_DIGITS = "Debezium sends more than 38 digits, and no decimal holds them"
PRECISE_NULL = "Debezium sends null for NaN and infinity in the default decimal mode"
ENCODED_TODAY = "silver holds Debezium's encoding and not the number"
SATURATED = "Debezium sends the limit of 64 bits, and the model reads it as a value"

ODD_TEXTS = (
    *("plain", "", " leading", "trailing ", "007", "NaN", "null", "[1]", '{"a": 1}'),
    *(r"\u0041", "\u2028\u00a0\u200b", "\U0001f600", "e\u0301", "\u05e9\u05dc\u05d5\u05dd"),
    *("\x01\x7f\t\n\r\"\\'", "\ufffd\uffff\U0010ffff", "a" * 20_000),
)
TIMES_OF_DAY = ("12:34:56.123456", "00:00:00", "23:59:59.999999", "24:00:00")

NUMBERS = [
    _row("smallint", "-32768", "0", "32767"),
    _row(*("smallint", "-32768", "0", "32767"), group="smallints", declared="smallint"),
    _row("integer", "-2147483648", "0", "2147483647"),
    _row(
        *("bigint", "-9223372036854775808", "0"),
        *("9007199254740993", "9223372036854775807"),
    ),
    _row("bigint", "-9223372036854775808", "9007199254740993", declared="string"),
    _row("bigint", "2147483647", untyped("2147483648"), declared="int"),
    _row("oid", "0", "4294967295"),
    _row(
        *("real", "0.1", "16777217", "-0", "1e-45", "1.1754944e-38"),
        *("3.4028235e38", "NaN", "Infinity", "-Infinity"),
        form=SINGLE,
    ),
    _row(
        *("double precision", "0.1", "123456789012345678", "-0", "5e-324"),
        *("2.2250738585072014e-308", "1.7976931348623157e308", "1e22"),
        *("NaN", "Infinity", "-Infinity"),
    ),
    _row(
        "real",
        "19.9",
        "-0.15",
        untyped("1e30", "NaN", "Infinity"),
        declared="decimal(10,4)",
    ),
    _row("positive_int", "5"),
]

DECIMALS_AS_TEXT = [
    _row(
        *("numeric(10,2)", "19.90", "0", "-0.01", "99999999.99"),
        *("-26588.24", untyped("NaN")),
    ),
    _row(
        *("numeric(38,18)", "0.000000000000000001"),
        "99999999999999999999.999999999999999999",
        "-99999999999999999999.999999999999999999",
    ),
    _row("numeric(38,0)", "-26588", "9" * 38, "-" + "9" * 38),
    _row("numeric(3,-2)", "100", "-99900"),
    _row("numeric(3,5)", "0.00999"),
    _row("numeric(50,10)", "9" * 40 + "." + "9" * 10),
    _row(
        *("numeric", "19.90", "-1.500", "1e-20", "1e40"),
        wrong(NUMERIC_NAMES, "NaN", "Infinity", "-Infinity"),
    ),
    _row(
        *("numeric", "19.90", "0", "-1.500", "1234"),
        "0.000000000000000001",
        wrong(ROUNDED, "1e-19"),
        untyped("1e20", "NaN", "Infinity", "-Infinity"),
        declared="decimal(38,18)",
    ),
    _row(
        *("money", "19.90", "-92233720368547758.08"),
        "92233720368547758.07",
        form=MONEY,
    ),
    _row("price", "1.50"),
    _row("numeric(10,2)[]", "{1.50,NULL}", form=TEXTS),
    _row("numeric[]", "{1.50,NULL}", form=TEXTS),
]

DECIMALS_AS_BASE64 = [
    _row(
        "numeric(10,2)",
        *("19.90", "0", "-0.01", "99999999.99", "-99999999.99"),
        "-26588.24",  # in base64, four digits
        untyped("NaN", wrong_today=PRECISE_NULL),
        group=PRECISE,
    ),
    _row(
        *("numeric(38,18)", "0.000000000000000001"),
        "99999999999999999999.999999999999999999",
        "-99999999999999999999.999999999999999999",
        group=PRECISE,
    ),
    _row(
        *("numeric(38,0)", "-26588", "9" * 38, "-" + "9" * 38),
        group=PRECISE,
    ),
    _row(
        *("numeric(3,-2)", wrong(MANY_DIGITS, "100", "-99900")),
        group=PRECISE,
        declared="decimal(5,0) base64",
    ),
    _row("numeric(3,5)", "0.00999", group=PRECISE),
    _row(
        *("numeric", "19.90", "0", "-1.500", "1234"),
        "0.000000000000000001",
        wrong(ROUNDED, "1e-19"),
        untyped("1e20"),
        untyped("NaN", "Infinity", "-Infinity", wrong_today=PRECISE_NULL),
        group=PRECISE,
        declared="decimal(38,18) base64",
    ),
    _row(
        "numeric",
        wrong(ENCODED_TODAY, "19.90", "-1.500", "1e-20", "1e40"),
        wrong(PRECISE_NULL, "NaN", "Infinity", "-Infinity"),
        group=PRECISE,
        declared="string",
    ),
    _row(
        *("money", "19.90", "-92233720368547758.08"),
        "92233720368547758.07",
        form=MONEY,
        group=PRECISE,
    ),
    _row("price", "1.50", group=PRECISE),
    _row(
        *("numeric(10,2)[]", wrong(ENCODED_TODAY, "{1.50,NULL}")),
        form=TEXTS,
        group=PRECISE,
        declared="json",
    ),
    _row(
        *("numeric[]", wrong(ENCODED_TODAY, "{1.50,NULL}")),
        form=TEXTS,
        group=PRECISE,
        declared="json",
    ),
]

DATES_AND_TIMES = [
    _row("date", "2024-02-29", "1970-01-01", "1582-10-15", "9999-12-31"),
    _row(
        *("date", "1582-10-04", "0001-01-01", "5874897-12-31"),
        wrong("a snapshot sends a day ten days later than a stream", "1582-10-14"),
        wrong(
            "a snapshot sends another day than a stream", "0044-03-15 BC", "4713-01-01 BC"
        ),
        untyped("infinity", "-infinity"),
        group="old_dates",
    ),
    *(
        _row(
            f"timestamp({precision})",
            *("2024-02-29 23:59:59.123456", "1900-01-01 00:00:00", "9999-12-31 23:59:59"),
            *("1970-01-01 00:00:00", "1969-12-31 23:59:59.999999"),
        )
        for precision in range(4)
    ),
    _row(
        *("timestamp(3)", "2024-02-29 23:59:59.123456", "1899-12-31 23:59:59"),
        *("0044-03-15 00:00:00 BC", "294276-12-31 00:00:00"),
        form=MILLISECONDS,
        declared="bigint",
    ),
    *(
        _row(
            *(f"timestamp({precision})", "2024-02-29 23:59:59.123456"),
            *("1969-12-31 23:59:59.999999", "1900-01-01 00:00:00", "9999-12-31 23:59:59"),
        )
        for precision in (4, 5, 6)
    ),
    _row(
        *("timestamp", "1899-12-31 23:59:59", "1582-10-14 00:00:00"),
        *("0001-01-01 00:00:00", "0044-03-15 00:00:00 BC", "294246-12-31 00:00:00"),
        untyped("294276-12-31 00:00:00", "infinity", "-infinity"),
        group="old_timestamps",
    ),
    *(
        _row(
            f"timestamptz({precision})",
            *("2024-02-29 23:59:59.123456+05:30", "1969-12-31 23:59:59.999999+00"),
            *("1900-01-01 00:00:00+00", "9999-12-31 23:59:59+00"),
            untyped("infinity", "-infinity"),
        )
        for precision in (0, 3, 6)
    ),
    _row(
        *("timestamptz", "1899-12-31 23:59:59+00"),
        *("1582-10-14 00:00:00+00", "0001-01-01 00:00:00+00", "0044-03-15 00:00:00+00 BC"),
        "294246-12-31 00:00:00+00",
        untyped("294276-12-31 00:00:00+00"),
        group="old_timestamps",
    ),
    *(
        _row(f"time({precision})", *TIMES_OF_DAY, form=MILLISECONDS)
        for precision in range(4)
    ),
    *(
        _row(f"time({precision})", *TIMES_OF_DAY, form=MICROSECONDS)
        for precision in (4, 5, 6)
    ),
    *(
        _row(
            *(f"timetz({precision})", "12:34:56.123456+05:30", "00:00:00+00"),
            *("23:59:59.999999-15:59", "24:00:00+00"),
            form=TIME_IN_UTC,
        )
        for precision in (0, 6)
    ),
    _row(
        *("interval", "1 day 02:03:04.000005", "0", "-1 year"),
        wrong("Debezium counts a month as 30.4375 days, PostgreSQL as 30", "1 month"),
        untyped("178000000 years", wrong_today=SATURATED),
        form=MICROSECONDS,
    ),
]

TEXTUAL = [
    _row(
        *("text", *ODD_TEXTS),
        wrong(
            "Debezium's placeholder for an unavailable value is taken for one",
            "__debezium_unavailable_value",
        ),
    ),
    _row("varchar(20)", "ab  ", "", "\u65e5\u672c"),
    _row("char(5)", "ab", "", "\u65e5\u672c"),
    _row("bpchar", "ab", ""),
    _row("citext", "MiXed"),
    _row("email", "A@b"),
    _row("name", wrong(f"{SENT_AS_NULL}, in a stream", "abc"), declared="string"),
    _row('"char"', "a"),
    _row("mood", "sad", "it's, ok"),
    _row("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "0" * 32),
    _row(
        *("inet", "192.168.1.5", "192.168.1.5/24", "::1", "2001:db8::/32"),
        form=ADDRESS,
    ),
    _row("cidr", "192.168.0.0/16", "10", "2001:db8::/32"),
    _row("macaddr", "08:00:2B:01:02:03"),
    _row("macaddr8", "08:00:2b:01:02:03:04:05"),
    _row("xml", '<a b="1">\u00e9</a>'),
    _row("json", '{"a":  1, "a": 2}', "null", "1e400", "[]"),
    _row("jsonb", '{"a":  1, "b": 12345678901234567890.10}', "null", '"x"'),
    _row("hstore", "a=>1, b=>NULL", "", 'c=>"\u00e9"', form=HSTORE),
    _row("ltree", "a.b"),
    _row("isbn", "978-0-393-04002-9"),
    _row("tsvector", "'fat':1A 'rat':2"),
    _row("tsquery", wrong(LEFT_OUT, "'fat' & 'rat'"), declared="string"),
    _row("jsonpath", wrong(LEFT_OUT, '$."a"'), declared="string"),
    _row("pg_lsn", wrong(LEFT_OUT, "16/B374D848"), declared="string"),
    _row("xid8", wrong(LEFT_OUT, "18446744073709551615"), declared="string"),
    _row("pair", wrong(LEFT_OUT, "(1,a)"), declared="string"),
    _row("cube", wrong(LEFT_OUT, "(1, 2)"), declared="string"),
]

BITS_AND_BYTES = [
    _row("boolean", "true", "false"),
    _row("bit(1)", "1", "0", form=ONE_BIT),
    _row("bit(12)", "100000000011", "000000000001", "0" * 12, form=BITS),
    _row(
        *("bit varying(12)", "101", "100000000011", ""),
        wrong("Debezium drops leading zeros, and with them the length", "0101", "0"),
        form=VARYING_BITS,
    ),
    _row("bit(400)", "10" * 200, form=BITS),
    _row("bit varying", "101", form=VARYING_BITS),
    _row("bytea", r"\x00ff", r"\x", r"\xd76df8", form=BYTES),
]

RANGES = [
    _row("int4range", "[1,5)", "empty", "(,)"),
    _row("int8range", "[1,9223372036854775807)"),
    _row("numrange", "[1.5,2.50]"),
    _row("daterange", "[2024-01-01,)", "[0044-03-15 BC,infinity)"),
    _row("tsrange", "[2024-01-01 00:00,2024-02-01 00:00)"),
    _row("tstzrange", "[2024-01-01 00:00+00,infinity)"),
    _row("int4multirange", wrong(LEFT_OUT, "{[1,3),[5,7)}"), declared="string"),
]

ARRAYS = [
    _row("smallint[]", "{1,NULL}", form=ARRAY),
    _row(
        *("integer[]", "{1,NULL,-2147483648}", "{}"),
        wrong("Debezium sends null for each inner array", "{{1,2},{3,4}}"),
        form=ARRAY,
    ),
    _row("bigint[]", "{9223372036854775807,NULL}", form=ARRAY),
    _row("oid[]", "{4294967295,NULL}", form=OIDS),
    _row("real[]", "{0.1,NaN,NULL}", form=ARRAY),
    _row("double precision[]", "{0.1,NaN,Infinity,NULL}", form=ARRAY),
    _row("boolean[]", "{t,f,NULL}", form=ARRAY),
    _row("text[]", '{a,NULL,"NULL","","x,y","\u00e9"}', "{}", form=ARRAY),
    _row("varchar(5)[]", "{a,NULL}", form=ARRAY),
    _row("char(3)[]", "{a,NULL}", form=ARRAY),
    _row("citext[]", "{A,NULL}", form=ARRAY),
    _row("uuid[]", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,NULL}", form=ARRAY),
    _row("inet[]", "{10.0.0.1,NULL}", form=ARRAY),
    _row("mood[]", wrong(SENT_AS_NULL, "{sad,NULL}"), form=ARRAY, declared="json"),
    _row("date[]", "{2024-02-29,NULL}", form=DAYS),
    _row("timestamp[]", '{"2024-02-29 23:59:59.123456",NULL}', form=TIMES),
    _row("timestamptz[]", '{"2024-02-29 23:59:59.123456+00"}', form=INSTANTS),
    _row("time[]", "{12:34:56,NULL}", form=TIMES),
    _row("interval[]", wrong(LEFT_OUT, "{1 day,NULL}"), form=TIMES, declared="json"),
    _row("bytea[]", r'{"\\x00ff",NULL}', form=BASE64S),
    _row("bit(3)[]", wrong(SENT_AS_NULL, "{101,NULL}"), form=ARRAY, declared="json"),
    _row("json[]", "{1,NULL}", form=JSON_TEXTS),
    _row("jsonb[]", r'{"{\"a\": 1}",NULL}', form=JSON_TEXTS),
    _row("xml[]", wrong(LEFT_OUT, "{<a/>,NULL}"), form=JSON_TEXTS, declared="json"),
    _row("hstore[]", '{"a=>1",NULL}', form=HSTORES),
    _row("int4range[]", '{"[1,5)",NULL}', form=ARRAY),
    _row("labels", "{a,NULL}", form=ARRAY, declared="json full"),
    _row("counts", "{1,NULL}", form=ARRAY, declared="json full"),
    _row("money[]", wrong(LEFT_OUT, "{1.5,NULL}"), form=MONEYS, declared="json"),
]

GEOMETRIES = [
    _row("point", "(1.5,-2)", form=GEOMETRY),
    _row("line", "{1,2,3}", form=GEOMETRY),
    _row("lseg", "[(0,0),(1,1)]", form=GEOMETRY),
    _row("path", "[(0,0),(1,1)]", form=GEOMETRY),
    _row("polygon", "((0,0),(1,1),(1,0))", form=GEOMETRY),
    _row("circle", "<(0,0),5>", form=GEOMETRY),
]

SECTIONS = {
    "Numbers": NUMBERS,
    "Decimals with `decimal.handling.mode=string`": DECIMALS_AS_TEXT,
    "Decimals with the default `decimal.handling.mode`": DECIMALS_AS_BASE64,
    "Dates and times with the default `time.precision.mode`": DATES_AND_TIMES,
    "Texts and identifiers": TEXTUAL,
    "Bits and bytes": BITS_AND_BYTES,
    "Ranges": RANGES,
    "Arrays": ARRAYS,
    "Geometries": GEOMETRIES,
}
TYPES = [row for rows in SECTIONS.values() for row in rows]

# A value that is long enough of each type that PostgreSQL may store beside the row (TOAST).
X = "x" * 99
POINTS = ",".join(f"({number},{number % 5})" for number in range(20))
LONG = {
    "text": X,
    "numeric": "9" * 99,
    "varchar(20)": "\U0001f600" * 20,
    "bpchar": X,
    "citext": X,
    "email": X,
    "xml": f"<a>{X}</a>",
    "json": f'{{"a": "{X}"}}',
    "jsonb": f'{{"a": "{X}"}}',
    "hstore": f"a=>{X}",
    "ltree": ".".join(["abc"] * 20),
    "tsvector": f"'{X}':1",
    "bit(400)": "10" * 200,
    "bit varying": "10" * 200,
    "bytea": r"\x" + "00ff" * 50,
    "numrange": f"[1.5,{'9' * 99}]",
    "path": f"[{POINTS}]",
    "polygon": f"({POINTS})",
}


def long_text(row: Type) -> str | None:
    """A value that PostgreSQL stores beside the row; None of a type of short values."""
    first = row.values[0].text or ""
    if row.catalogue.endswith("[]"):
        return "{" + ",".join([first[1:-1]] * 30) + "}"
    return LONG.get(row.sql)
