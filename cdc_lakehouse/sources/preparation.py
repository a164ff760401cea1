"""The SQL by which a source sends what a connector reads, in one piece."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cdc_lakehouse.sources.catalogue import Catalogue, Table, quoted
from cdc_lakehouse.sources.connector import Connector
from cdc_lakehouse.sources.publication import unsent

SIGNALS = "id varchar(42) primary key, type varchar(32) not null, data varchar(2048)"
MARKERS = "id text primary key, topic text, bronze_table text, row_count bigint"
# Where a project has the connectors for AWS, beside the folder of the connectors' files.
STACK = "deploy/aws/connectors.yml"


def preparation(
    connector: Connector, catalogue: Catalogue, tables: Sequence[Table]
) -> list[str]:
    """What is to be run at the source before a connector captures tables.

    Args:
        connector: the connector.
        catalogue: of its source, as it is.
        tables: of that, those to capture.
    """
    if connector.database != "postgresql":
        grants = [] if tables else _mariadb(connector)
        return [*grants, *_remarks(connector, catalogue, tables)]
    statements = [
        *_server(connector, catalogue),
        *_auxiliary(connector, catalogue),
        *_published(connector, catalogue, tables),
        *_granted(connector, catalogue, tables),
    ]
    if statements:
        statements.insert(0, "-- on the source, as the tables' owner or a superuser:")
    return [*statements, *_remarks(connector, catalogue, tables)]


def _server(connector: Connector, catalogue: Catalogue) -> Iterator[str]:
    user, reader = quoted(connector.user), catalogue.reader
    if reader is None:
        return
    if reader.log_level != "logical":
        yield "alter system set wal_level = logical;  -- then restart the server"
    if not reader.is_there:
        yield f"create role {user} login;  -- its password: \\password {user}"
    elif not reader.may_log_in:
        yield f"alter role {user} login;"
    if not reader.may_replicate and reader.is_managed:
        yield f"grant rds_replication to {user};"
    elif not reader.may_replicate:
        yield f"alter role {user} replication;"


def _auxiliary(connector: Connector, catalogue: Catalogue) -> Iterator[str]:
    """The tables of ``resync``: of signals, and of what a snapshot has read."""
    signals, markers = connector.signals, connector.markers
    if catalogue.reader is None or signals is None or markers is None:
        return
    there = {str(table) for table in catalogue.tables}
    if signals not in there or markers not in there:
        schema = signals.partition(".")[0]
        yield f"create schema if not exists {quoted(schema)};"
    if signals not in there:
        yield f"create table {_sql(signals)} ({SIGNALS});"
    if markers not in there:
        yield f"create table {_sql(markers)} ({MARKERS});"
        yield f"insert into {_sql(markers)} (id) values ('first');"


def _published(
    connector: Connector, catalogue: Catalogue, tables: Sequence[Table]
) -> Iterator[str]:
    own = connector.publication
    gaps = [gap.remedy for gap in unsent(connector, catalogue, tables) if gap.remedy]
    if own is None or catalogue.reader is None:
        yield from gaps
        return
    publication = catalogue.publications.get(own)
    if publication is None and not tables:
        yield f"create publication {quoted(own)} with (publish_via_partition_root = true);"
    yield from gaps
    known = publication.tables if publication else {}
    auxiliary = [connector.signals, connector.markers]
    missing = [_sql(each) for each in auxiliary if each is not None and each not in known]
    if missing:
        yield f"alter publication {quoted(own)} add table {', '.join(missing)};"


def _granted(
    connector: Connector, catalogue: Catalogue, tables: Sequence[Table]
) -> Iterator[str]:
    reader = catalogue.reader
    if reader is None:
        publication = catalogue.publications.get(connector.publication or "")
        readable = frozenset(publication.tables if publication else ())
        wanted = [str(table) for table in tables] if connector.publication else []
    else:
        readable = reader.tables
        markers = [] if connector.markers is None else [connector.markers]
        wanted = [*map(str, tables), *markers]
    names = [each for each in wanted if each not in readable]
    if not names:
        return
    user = quoted(connector.user)
    schemas = ", ".join(sorted({quoted(each.partition(".")[0]) for each in names}))
    yield f"grant usage on schema {schemas} to {user};"
    yield f"grant select on {', '.join(map(_sql, names))} to {user};"


def _mariadb(connector: Connector) -> Iterator[str]:
    user = f"'{connector.user}'@'%'"
    yield "-- on the source, as an administrator; put the password and the database in:"
    yield f"create user if not exists {user} identified by '...';"
    yield f"grant replication slave, replication client, reload on *.* to {user};"
    yield f"grant select on `...`.* to {user};"


def _remarks(
    connector: Connector, catalogue: Catalogue, tables: Sequence[Table]
) -> Iterator[str]:
    for gap in unsent(connector, catalogue, tables):
        if not gap.remedy:
            yield comment(str(gap))
    for table in tables:
        left_out = connector.left_out(table) | set(table.key)
        kept = [
            each.name
            for each in table.columns
            if table.leaves_out(each) and each.name not in left_out
        ]
        if kept:
            yield comment(f"{table}: an event lacks a long value that did not change, of")
            yield comment(f"{', '.join(kept)}; silver keeps the one that it has.")
            yield "-- For events with the whole row:"
            for each in table.identities:
                if each.kind != "f":
                    yield f"alter table {each.quoted_table} replica identity full;"
    yield from _on_aws(connector, tables)


def _on_aws(connector: Connector, tables: Sequence[Table]) -> Iterator[str]:
    stack = connector.file.parent.parent / STACK
    if not stack.is_file():
        return
    known = re.split(r"[,\s]+", stack.read_text(encoding="utf-8"))
    missing = ", ".join(str(table) for table in tables if str(table) not in known)
    if missing:
        yield comment(f"on AWS, add {missing} to table.include.list of {STACK};")
        yield "-- a topic of another prefix or schema to topics.regex and the roles, too."


def comment(text: str) -> str:
    """A comment of SQL, which ends with its line."""
    return f"-- {' '.join(text.split())}"


def _sql(table: str) -> str:
    return quoted(*table.split(".", 1))
