"""What keeps changes of a source's tables from a connector's topics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.sources import settings
from cdc_lakehouse.sources.catalogue import (
    OPERATIONS,
    Catalogue,
    Publication,
    Published,
    Table,
    quoted,
)
from cdc_lakehouse.sources.connector import Connector
from cdc_lakehouse.sources.difference import Difference

AS_ROOT = "publish_via_partition_root = true"
WHOLE_ROWS = {"binlog_format": "ROW", "binlog_row_image": "FULL"}


def unsent(
    connector: Connector, catalogue: Catalogue, tables: Sequence[Table]
) -> Iterator[Difference]:
    """What a connector, or the publication that it reads, does not send of tables.

    Args:
        connector: that captures them.
        catalogue: of its source.
        tables: of that.
    """
    if not tables:
        return
    for operation, setting in connector.unsent():
        yield Difference(str(connector.file), f"sends no {operation}", source=setting)
    for setting, needed in WHOLE_ROWS.items():
        value = catalogue.log.get(setting, needed)
        if value != needed:
            said = f"{setting} is {value}, not {needed}"
            yield Difference("binary log", "changes not logged", source=said)
    sinks = _sinks(connector.file.parent)
    for table in tables:
        topic = connector.topic(str(table))
        if sinks and not any(re.fullmatch(each, topic) for each in sinks):
            yield Difference(str(table), "topic in no sink", source=topic)
        if table.cascades:
            named = f"foreign key {', '.join(table.cascades)}"
            yield Difference(str(table), "cascades not logged", source=named)
    if connector.publication is not None:
        yield from _unpublished(connector, connector.publication, catalogue, tables)


def _sinks(folder: Path) -> list[str]:
    """The topics of the sinks' configurations in a folder, as regular expressions.

    Raises:
        UserError: one cannot be read.
    """
    found = []
    for file in sorted(folder.glob("sink*.json")):
        try:
            config: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
            listed = [re.escape(each) for each in settings.listed(config, "topics")]
            pattern = config.get("topics.regex", "|".join(listed))
            re.compile(pattern)
        except (OSError, ValueError, AttributeError, re.error) as error:
            raise UserError(f"cannot read the sink {file}: {error}") from error
        found.append(pattern)
    return found


def _unpublished(
    connector: Connector, own: str, catalogue: Catalogue, tables: Sequence[Table]
) -> Iterator[Difference]:
    name = quoted(own)
    place = f"publication {name}"
    publication = catalogue.publications.get(own)
    if publication is None:
        members = ", ".join(map(member, tables))
        options = (
            f" with ({AS_ROOT})" if any(each.is_partitioned for each in tables) else ""
        )
        remedy = f"create publication {name} for table {members}{options};"
        yield Difference(place, "not at the source", remedy=remedy)
        return
    if missing := OPERATIONS - publication.operations:
        yield Difference(
            place,
            "operations not published",
            source=", ".join(sorted(missing)),
            remedy=f"alter publication {name} set (publish ="
            " 'insert, update, delete, truncate');",
        )
    partitioned = [str(table) for table in tables if table.is_partitioned]
    if partitioned and not publication.sends_partitions_as_root:
        yield Difference(
            place,
            "partitions published by their own names",
            source=", ".join(partitioned),
            remedy=f"alter publication {name} set ({AS_ROOT});",
        )
    for table in tables:
        yield from _of_table(connector, publication, name, table)


def member(table: Table) -> str:
    """A table as a publication names it: without those that inherit from it."""
    only = "only " if table.heirs else ""
    return only + quoted(table.schema, table.name)


def _of_table(
    connector: Connector, publication: Publication, name: str, table: Table
) -> Iterator[Difference]:
    add = f"alter publication {name} add table {member(table)};"
    again = f"alter publication {name} drop table {member(table)}; {add}"
    published = publication.tables.get(str(table))
    if published is None and not publication.sends_partitions_as_root:
        # A partitioned table stands here as its partitions.
        parts = [publication.tables.get(each.table) for each in table.identities]
        if table.is_partitioned and parts and None not in parts:
            published = parts[0]
    if published is None:
        yield Difference(
            str(table), "not published", source=f"publication {name}", remedy=add
        )
        return
    if published.condition is not None:
        condition = f"where {published.condition}"
        yield Difference(str(table), "rows not published", source=condition, remedy=again)
    if lost := _unpublished_columns(connector, published, table):
        listed = ", ".join(lost)
        yield Difference(str(table), "columns not published", source=listed, remedy=again)


def _unpublished_columns(
    connector: Connector, published: Published, table: Table
) -> list[str]:
    if published.columns is None:
        return []
    left_out = connector.left_out(table)
    return [
        each.name
        for each in table.columns
        if each.name not in published.columns
        and each.name not in left_out
        and not each.is_computed
    ]
