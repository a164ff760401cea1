"""What differs between the models that a project declares and the source's catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.declare.catalogue import Catalogue, Table
from connectors.declare.connector import Connector
from connectors.declare.project import Model
from lake.errors import UserError

# What follows the source by a change of the model's columns.
CHANGEABLE = ("new column", "dropped column", "type")
WHOLE_NUMBERS = {"smallint": 5, "int": 10, "bigint": 19}


@dataclass(frozen=True)
class Difference:
    """One difference.

    Attributes:
        table: at the source; or the publication, or the connector, where it is about all
            of its tables.
        kind: ``not modelled``, ``not captured``, ``not at the source``, ``key``,
            ``new column``, ``dropped column``, ``type``, ``unusable`` (what ``add`` would
            refuse); or what is not published or not sent.
        model: the staging model; empty where there is none.
        column: as the model calls it; empty where it is about the table.
        declared: the model's key or type; empty where it has none.
        source: the source's key, or the type to declare; empty where it has none.
        remedy: the statement that ends the difference at the source, where one does.
    """

    table: str
    kind: str
    model: str = ""
    column: str = ""
    declared: str = ""
    source: str = ""
    remedy: str = ""

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
        expected = connector.declaration(table)
    except UserError as error:
        yield Difference(str(table), "unusable", model.name, source=str(error))
        return
    columns: dict[str, str] = model.meta["columns"]
    names = model.meta.get("source_names", {})
    at_source = {names.get(column, column): column for column in columns}
    of_source = {expected.source_names.get(own, own): own for own in expected.columns}
    key = [
        names.get(part, part) for part in model.meta.get("key_columns", [model.meta["key"]])
    ]
    if set(key) != set(table.key):
        yield Difference(
            *(str(table), "key", model.name, "", ", ".join(key), ", ".join(table.key))
        )
    for name, own in of_source.items():
        type_now = expected.columns[own]
        if name not in at_source:
            yield Difference(str(table), "new column", model.name, own, source=type_now)
        elif not holds(declared := columns[at_source[name]], type_now):
            column = at_source[name]
            yield Difference(str(table), "type", model.name, column, declared, type_now)
    for name, column in at_source.items():
        if name not in of_source:
            yield Difference(
                str(table), "dropped column", model.name, column, columns[column]
            )


def holds(declared: str, needed: str) -> bool:
    """Whether a declared type holds every value of another; a text holds any."""
    declared = declared.removesuffix(" hashed")
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
