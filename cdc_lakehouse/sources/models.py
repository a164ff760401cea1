"""The text of the files that declare a source's table, as somebody would write them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import yaml

from cdc_lakehouse.dbt.package import PACKAGE, installed_package
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.sources.catalogue import Table, quoted
from cdc_lakehouse.sources.types import declared_type

# What no column of a table may be called beside the position columns, as the macro
# _check_change_table has it.
EVENT_COLUMNS = frozenset(
    (
        *("event_id", "topic", "kafka_partition", "key", "ingest_date", "row_image"),
        *("fields", "unavailable_columns", "rejection"),
    )
)
LINE = 92
# Of a type whose null is a null, because the source sends every value.
FULL = " full"


def position_columns() -> list[str]:
    """The columns that every silver table has beside the source's."""
    file = installed_package() / "states/_position_columns.md"
    return re.findall(r"\{% docs (\w+) %\}", file.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Declaration:
    """A table as its staging model declares it.

    Attributes:
        name: of the bronze and the silver table.
        source: the table at the source, ``schema.table``.
        key: the column that names a row.
        key_columns: what it is joined of; empty where the key is one column.
        columns: each column's type.
        source_names: the name of a column in an event, where it is another.
        ignored_fields: fields that an event may have, and no column holds.
        descriptions: of the columns.
        description: of the table.
    """

    name: str
    source: str
    key: str
    key_columns: tuple[str, ...]
    columns: Mapping[str, str]
    source_names: Mapping[str, str]
    ignored_fields: tuple[str, ...]
    descriptions: Mapping[str, str]
    description: str


def declaration(
    table: Table,
    name: str,
    database: str,
    decimal_mode: str,
    left_out: frozenset[str],
    field_name: Callable[[str], str],
    names: Mapping[str, str],
) -> Declaration:
    """What to declare of a table of the source.

    Args:
        table: as the catalogue describes it.
        name: of the bronze and the silver table.
        database: ``postgresql`` or ``mariadb``.
        decimal_mode: the connector's ``decimal.handling.mode``.
        left_out: the columns that the connector leaves out.
        field_name: what a column is called in an event.
        names: what each column is called here.

    Raises:
        UserError: the table has no primary key, its changes do not bring it, or columns
            have types without a place, or send null for a value; it names them all.
    """
    if not table.key:
        raise UserError(
            f"{table} has no primary key, and rows are merged by it: add one at the source"
        )
    for identity in table.identities:
        where = str(table)
        if identity.table != where:
            where += f", partition {identity.table}"
        if not identity.is_logged:
            raise UserError(
                f"{where}: its changes are not in the write-ahead log, as it is foreign or"
                " unlogged"
            )
        if missing := [part for part in table.key if part not in identity.columns]:
            lost_parts = ", ".join(missing)
            remedy = f"alter table {identity.quoted_table} replica identity full;"
            raise UserError(
                f"{where}: with {identity}, changes lack {lost_parts} of the old row,"
                f" a part of its key: {remedy}"
            )
    if lost := sorted(left_out.intersection(table.key)):
        raise UserError(f"{table}: the connector leaves out {lost[0]}, which is of its key")
    generated = [each.name for each in table.columns if each.is_computed]
    if lost := sorted({*generated}.intersection(table.key)):
        raise UserError(
            f"{table}: {lost[0]}, which is of its key, is generated, and changes lack it"
        )
    columns: dict[str, str] = {}
    source_names: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    without_place: list[str] = []
    sent_as_null: list[str] = []
    for column in table.columns:
        if column.name in left_out or column.is_computed:
            continue
        own = names[column.name]
        if not _is_nameable(column.name):
            raise UserError(f"{table}: no model can name the column {column.name!r}")
        if not re.search("[a-z0-9]", own):
            raise UserError(
                f"{table}: no name follows from the column {column.name}: give it one by"
                f" --column {column.name}=NAME"
            )
        if own in columns:
            raise UserError(
                f"{table}: two columns would be called {own}: give one another name by"
                f" --column {column.name}=NAME"
            )
        try:
            declared = declared_type(database, column.type, decimal_mode=decimal_mode)
        except UserError as error:
            without_place.append(f"{column.name} ({column.type}): {error}")
        else:
            # Debezium knows an array's placeholder by its type's name.
            if column.is_domain and column.type.endswith("[]"):
                declared = declared.removesuffix(FULL) + FULL
            columns[own] = declared if column.is_toasted else declared.removesuffix(FULL)
            if columns[own].endswith(FULL) and table.leaves_out(column):
                sent_as_null.append(f"{column.name} ({column.type})")
        field = field_name(column.name)
        if field in {source_names.get(each, each) for each in columns if each != own}:
            raise UserError(f"{table}: two columns are the field {field} of an event")
        if own != field:
            source_names[own] = field
        null = "" if column.is_nullable else ", never null"
        described = (
            column.comment or f"The source's `{column.name}`, `{column.type}`{null}."
        )
        descriptions[own] = described
    if without_place:
        raise UserError(
            f"{table}: {'; '.join(without_place)}; leave such a column out by the"
            " connector's column.exclude.list"
        )
    if sent_as_null:
        raise UserError(
            f"{table}: Debezium sends null for an unchanged long value of"
            f" {', '.join(sent_as_null)}: alter table"
            f" {quoted(table.schema, table.name)} replica identity full; or leave such a"
            " column out by the connector's column.exclude.list; docs/types.md"
        )
    key_columns = tuple(names[part] for part in table.key)
    key, described_key = key_columns[0], descriptions[key_columns[0]]
    if len(key_columns) > 1:
        key = f"{name}_key"
        while key in columns:
            key = f"{key}_key"
        joined = "-".join(f"<{part}>" for part in key_columns)
        descriptions[key] = f"Primary key, `{joined}`."
    else:
        key_columns = ()
        descriptions[key] = f"Primary key. {described_key}"
    described = table.comment or f"One row per row of `{table}`."
    return Declaration(
        *(name, str(table), key, key_columns, columns, source_names),
        tuple(
            field_name(each)
            for each in generated
            if each not in left_out and _is_nameable(each)
        ),
        descriptions,
        f"{_sentence(described)} Current version; deleted rows stay, `is_deleted` is set.",
    )


def _is_nameable(name: str) -> bool:
    """Whether a model may name a field of the source, as _check_change_table has it."""
    return re.search(r"['`?\\]", name) is None and name.isprintable()


def own_name(name: str) -> str:
    """What a column of the source is called here: in lower case, by a name that is free."""
    own = re.sub(r"\W", "_", name.lower(), flags=re.ASCII)
    is_taken = own in EVENT_COLUMNS or own in position_columns()
    if is_taken or not re.match(r"(?!__cdc_|_hoodie_)[a-z_]", own):
        own = f"source_{own}"
    return own


def staging_model(declared: Declaration) -> str:
    """``stg_<name>.sql``."""
    lines = ["{{ config(meta={", f"    'key': '{declared.key}',"]
    if declared.key_columns:
        listed = ", ".join(f"'{part}'" for part in declared.key_columns)
        lines.append(f"    'key_columns': [{listed}],")
    lines += ["    'columns': {", *columns_lines(declared.columns), "    },"]
    if declared.source_names:
        lines += ["    'source_names': {", *columns_lines(declared.source_names), "    },"]
    if declared.ignored_fields:
        lines.append(f"    'ignored_fields': {literal(declared.ignored_fields)},")
    lines += ["}) }}", ""]
    lines.append(f"{{{{ {PACKAGE}.change_events(source('bronze', '{declared.name}')) }}}}")
    return "\n".join(lines) + "\n"


def literal(texts: Sequence[str]) -> str:
    """A list of texts without quotes, as dbt reads it."""
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


def columns_lines(columns: Mapping[str, str]) -> list[str]:
    """The lines of a declaration that give each column its type."""
    return [f"        '{column}': '{text}'," for column, text in columns.items()]


def silver_model(declared: Declaration) -> str:
    """``<name>.sql``."""
    return (
        f"{{{{ config(unique_key='{declared.key}') }}}}\n\n"
        f"{{{{ {PACKAGE}.current_rows(ref('stg_{declared.name}')) }}}}\n"
    )


def staging_yaml(declared: Declaration) -> str:
    """``stg_<name>.yml``."""
    described = (
        f"One row per change event of `{declared.source}`, typed. The same event may stand"
        " here twice (redelivered). A row with a `rejection` is left out of silver; of a"
        " delete only the key is filled."
    )
    return f"models:\n  - name: stg_{declared.name}\n{_folded(described)}"


def silver_yaml(declared: Declaration) -> str:
    """``<name>.yml``: descriptions, and the tests of the key and of untyped values."""
    found = [f"models:\n  - name: {scalar(declared.name)}\n{_folded(declared.description)}"]
    found.append("    columns:\n")
    own = [declared.key, *(name for name in declared.columns if name != declared.key)]
    for column in own:
        found.append(column_yaml(column, declared.descriptions[column]))
        if column == declared.key:
            found.append("        data_tests: [unique, not_null]\n")
    for column in position_columns():
        found.append(
            f"      - name: {column}\n"
            f'        description: \'{{{{ doc("{PACKAGE}", "{column}") }}}}\'\n'
        )
        if column == "untyped_columns":
            found.append(f"        data_tests: [{PACKAGE}.no_untyped_values]\n")
    return "".join(found)


def column_yaml(column: str, description: str, indent: int = 6) -> str:
    """A column with its description."""
    begin = " " * indent
    return f"{begin}- name: {scalar(column)}\n{begin}  description: {scalar(description)}\n"


def scalar(text: str) -> str:
    """A text as YAML on one line: a text there, too, and without Jinja."""
    text = _without_jinja(text)
    try:
        is_plain = yaml.safe_load(f"- name: {text}") == [{"name": text}]
    except yaml.YAMLError:
        is_plain = False
    return text if is_plain else "'" + text.replace("'", "''") + "'"


def _folded(text: str) -> str:
    lines = textwrap.wrap(_without_jinja(text), LINE - 6, break_on_hyphens=False)
    return "    description: >\n" + "".join(f"      {line}\n" for line in lines)


def _without_jinja(text: str) -> str:
    """What the source says is no template, and has characters that YAML can hold."""
    printable = "".join(each for each in " ".join(text.split()) if each.isprintable())
    return re.sub(r"\{(?=[{%#])", "{ ", printable)


def _sentence(text: str) -> str:
    return text if text.rstrip().endswith((".", "!", "?")) else f"{text.rstrip()}."
