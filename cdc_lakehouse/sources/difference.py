"""What differs between the models that a project declares and the source's catalogue."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.sources.catalogue import Catalogue, Table
from cdc_lakehouse.sources.connector import Connector
from cdc_lakehouse.sources.models import FULL, own_name
from cdc_lakehouse.sources.project import Model

# What follows the source by a change of the model's columns.
CHANGEABLE = ("new column", "dropped column", "generated column", "type")
WHOLE_NUMBERS = {"smallint": 5, "int": 10, "bigint": 19}


@dataclass(frozen=True)
class Difference:
    """One difference.

    Attributes:
        table: at the source; or the publication, or the connector, where it is about all
            of its tables.
        kind: ``not modelled``, ``not captured``, ``not at the source``, ``key``,
            ``new column``, ``dropped column``, ``generated column`` (which changes lack),
            ``type``, ``unusable`` (what ``add`` would refuse); or what is not published or
            not sent.
        model: the staging model; empty where there is none.
        column: as the model calls it; empty where it is about the table.
        declared: the model's key or type; empty where it has none.
        source: the source's key, or the type to declare; empty where it has none.
        remedy: the statement that ends the difference at the source, where one does.
        needs_resync: whether rows that have not changed since may have another value at the
            source than any event brought.
    """

    table: str
    kind: str
    model: str = ""
    column: str = ""
    declared: str = ""
    source: str = ""
    remedy: str = ""
    needs_resync: bool = False

    def __str__(self) -> str:
        column = f".{self.column}" if self.column else ""
        values = [f"declared {self.declared}" if self.declared else ""]
        values.append(f"source {self.source}" if self.source else "")
        said = ", ".join(value for value in values if value)
        text = f"{self.table}{column}: {self.kind}" + (f" ({said})" if said else "")
        return f"{text}: {self.remedy}" if self.remedy else text


Modelled = Mapping[str, tuple[Model, Connector]]


def modelled_tables(
    models: Sequence[Model],
    topics: Mapping[str, str],
    connectors: Sequence[Connector],
    catalogue: Catalogue,
) -> Modelled:
    """The tables that have a model, each with that and its connector.

    Of connectors with the same prefix it is the one that captures the table, or else the
    first.

    Args:
        models: the project's staging models.
        topics: the bronze table of each topic.
        connectors: of one source.
        catalogue: that source's.
    """
    tables = [str(table) for table in catalogue.tables]
    by_bronze = {model.bronze: model for model in models}
    found: dict[str, tuple[Model, Connector]] = {}
    for topic, bronze in topics.items():
        for connector in connectors:
            table = connector.table(topic, tables)
            if table is None or bronze not in by_bronze:
                continue
            if table not in found or connector.captures(table):
                found[table] = by_bronze[bronze], connector
    return found


def differences(
    modelled: Modelled, connectors: Sequence[Connector], catalogue: Catalogue
) -> list[Difference]:
    """Compare every model, and every table that a connector captures.

    Args:
        modelled: the tables that have a model.
        connectors: of one source.
        catalogue: that source's.
    """
    tables = {str(table): table for table in catalogue.tables}
    found: list[Difference] = []
    for name, (model, connector) in modelled.items():
        if name not in tables:
            found.append(Difference(name, "not at the source", model.name))
            continue
        if not any(each.captures(name) for each in connectors):
            found.append(Difference(name, "not captured", model.name))
        found += _of_table(model, tables[name], connector, catalogue)
    for name in tables:
        if any(each.is_auxiliary(name) for each in connectors):
            continue
        if name not in modelled and any(each.captures(name) for each in connectors):
            found.append(Difference(name, "not modelled"))
    return found


def _of_table(
    model: Model, table: Table, connector: Connector, catalogue: Catalogue
) -> Iterator[Difference]:
    try:
        connector.require_own_topic(table, catalogue)
        own_names = names_here(table, model, connector)
        expected = connector.declaration(table, names=own_names)
    except UserError as error:
        yield Difference(str(table), "unusable", model.name, source=str(error))
        return
    columns: dict[str, str] = model.meta["columns"]
    names = {column: names_of(model.meta, column) for column in columns}
    at_source = {its[0]: column for column, its in names.items()}
    # What the events of a column that is gone may have been called.
    former = {name for its in names.values() for name in its[1:]}
    former |= {*model.meta.get("ignored_fields", ())}
    of_source = {expected.source_names.get(own, own): own for own in expected.columns}
    described = {own_names[each.name]: each for each in table.columns}
    key = [
        names_of(model.meta, part)[0]
        for part in model.meta.get("key_columns", [model.meta["key"]])
    ]
    own_key = [own_names[part] for part in table.key]
    if set(key) != {expected.source_names.get(part, part) for part in own_key}:
        yield Difference(
            *(str(table), "key", model.name, "", ", ".join(key), ", ".join(table.key))
        )
    left_out = {column.name for column in table.columns if table.leaves_out(column)}
    for name, own in of_source.items():
        type_now = expected.columns[own]
        if name not in at_source:
            needs_resync = described[own].has_default or name in former
            yield Difference(
                *(str(table), "new column", model.name, own, "", type_now),
                needs_resync=needs_resync,
            )
            continue
        column = at_source[name]
        declared = columns[column]
        # A text holds any type, and the values of a column that was dropped, too.
        may_be_another = (
            declared == "string" != type_now
            and described[own].is_later
            and connector.database == "postgresql"
        )
        lacks_identity = declared.endswith(FULL) and name in left_out
        if may_be_another or lacks_identity or not holds(declared, type_now):
            needs_resync = described[own].is_later or not holds(type_now, declared)
            yield Difference(
                *(str(table), "type", model.name, column, declared, type_now),
                needs_resync=needs_resync,
            )
    for name, column in at_source.items():
        if name not in of_source:
            is_generated = name in expected.ignored_fields
            kind = "generated column" if is_generated else "dropped column"
            yield Difference(str(table), kind, model.name, column, columns[column])


def names_here(table: Table, model: Model, connector: Connector) -> dict[str, str]:
    """What the columns of a table are called here, by the source's names."""
    declared = {names_of(model.meta, column)[0]: column for column in model.meta["columns"]}
    return {
        each.name: declared.get(connector.field(each.name), own_name(each.name))
        for each in table.columns
    }


def names_of(meta: Mapping[str, Any], column: str) -> list[str]:
    """What a column is called at the source, and was before, the newest name first."""
    names = meta.get("source_names", {}).get(column, column)
    return [names] if isinstance(names, str) else list(names)


def undecided(
    found: Sequence[Difference], renamed: Mapping[str, str], dropped: Collection[str]
) -> dict[str, str]:
    """The tables of which nobody but the user knows whether a column was renamed.

    Args:
        found: all differences.
        renamed: the new name of a column, ``schema.table.column``, as the user says it.
        dropped: the columns that the user says were dropped.

    Returns:
        The question to ask of each table.
    """
    questions = {}
    for table in dict.fromkeys(each.table for each in found):
        own = [each for each in found if each.table == table]
        gone = [
            each.column
            for each in own
            if each.kind == "dropped column"
            and f"{table}.{each.column}" not in {*renamed, *dropped}
        ]
        new = [each.column for each in own if each.kind == "new column"]
        if gone and new:
            questions[table] = (
                f"{table}: no event says whether {', '.join(gone)} was renamed or dropped:"
                f" --renamed {table}.{gone[0]}={new[0]} keeps its values,"
                f" --dropped {table}.{gone[0]} does not"
            )
    return questions


def holds(declared: str, needed: str) -> bool:
    """Whether a declared type holds every value of another; a text holds any."""
    if needed.endswith(FULL) and not declared.endswith(FULL):
        return False
    needed = needed.removesuffix(FULL)
    declared = declared.removesuffix(FULL).removesuffix(" hashed")
    if declared in (needed, "string"):
        return True
    if declared in WHOLE_NUMBERS and needed in WHOLE_NUMBERS:
        return WHOLE_NUMBERS[declared] >= WHOLE_NUMBERS[needed]
    wide, narrow = _decimal(declared), _decimal(needed)
    if wide is None or narrow is None or wide[2] != narrow[2]:
        return False
    is_scale_held = wide[1] == narrow[1] if wide[2] else wide[1] >= narrow[1]
    return is_scale_held and wide[0] - wide[1] >= narrow[0] - narrow[1]


def _decimal(text: str) -> tuple[int, int, str] | None:
    """Precision, scale and encoding of a decimal; of a whole number as a decimal."""
    if text in WHOLE_NUMBERS:
        return WHOLE_NUMBERS[text], 0, ""
    found = re.fullmatch(r"decimal\((\d+), *(\d+)\)( base64)?", text)
    return (int(found[1]), int(found[2]), found[3] or "") if found else None
