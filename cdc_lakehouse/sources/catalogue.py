"""The tables of a source, as its own catalogue describes them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import psycopg2
import pymysql

from cdc_lakehouse.errors import TransientError, UserError

SECONDS_TO_CONNECT = 10
OPERATIONS = frozenset(("insert", "update", "delete", "truncate"))


@dataclass(frozen=True)
class Column:
    """A column of a source's table.

    Attributes:
        name: at the source.
        type: as the catalogue writes it, of a domain its base type; or ``enum``, or
            ``composite``.
        is_nullable: whether it may be null.
        comment: the source's; empty where it has none.
        is_computed: whether the source computes it; Debezium's events lack it.
        is_toasted: whether PostgreSQL may store its values beside the row, and leave them
            out of a change that does not touch them.
        has_default: whether rows that were there when it was added may have a value in it
            that no event brought: a default's, an identity's.
        is_later: whether a column before it was dropped, so that it may have taken the name
            of that one.
        is_domain: whether the source has a name of its own for the type.
    """

    name: str
    type: str
    is_nullable: bool = True
    comment: str = ""
    is_computed: bool = False
    is_toasted: bool = False
    has_default: bool = False
    is_later: bool = False
    is_domain: bool = False


@dataclass(frozen=True)
class Identity:
    """What an update or a delete brings of the old row (PostgreSQL's REPLICA IDENTITY).

    Attributes:
        table: a table, or one of the partitions that hold its rows.
        kind: ``d`` (the primary key), ``f`` (the whole row), ``i`` (an index), ``n``
            (nothing).
        index: the index's name; none where it was dropped.
        columns: what it brings; all of them of a whole row.
        is_logged: whether there are changes of its rows in the write-ahead log at all.
    """

    table: str
    kind: str
    index: str | None = None
    columns: tuple[str, ...] = ()
    is_logged: bool = True

    @property
    def quoted_table(self) -> str:
        """The table's name as SQL writes it."""
        return quoted(*self.table.split(".", 1))

    def __str__(self) -> str:
        kinds = {"d": "DEFAULT", "f": "FULL", "i": "USING INDEX", "n": "NOTHING"}
        words = [f"REPLICA IDENTITY {kinds[self.kind]}", self.index or ""]
        words.append(f"({', '.join(self.columns)})" if self.columns else "")
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Table:
    """A table of a source.

    Attributes:
        schema: PostgreSQL's schema, MariaDB's database.
        name: without its schema.
        columns: in the source's order.
        key: the columns of the primary key; empty without one.
        comment: the source's; empty where it has none.
        has_full_identity: whether a change brings the whole old row (``REPLICA IDENTITY
            FULL``; MariaDB's binary log always does).
        identities: PostgreSQL's, one for each table that holds rows of this one.
        is_partitioned: whether its rows are in partitions.
        heirs: the tables that inherit from it and are no partitions.
        cascades: MariaDB's foreign keys that change its rows when another table's change;
            the binary log has nothing of that.
    """

    schema: str
    name: str
    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    comment: str = ""
    has_full_identity: bool = True
    identities: tuple[Identity, ...] = ()
    is_partitioned: bool = False
    heirs: tuple[str, ...] = ()
    cascades: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    def leaves_out(self, column: Column) -> bool:
        """Whether a change may lack a value of a column that it does not touch."""
        return column.is_toasted and not self.has_full_identity


@dataclass(frozen=True)
class Published:
    """What a publication sends of a table.

    Attributes:
        columns: those that it sends; none where the server does not say.
        condition: of the rows that it sends; none where it sends all.
    """

    columns: frozenset[str] | None = None
    condition: str | None = None


@dataclass(frozen=True)
class Publication:
    """A publication of PostgreSQL.

    Attributes:
        tables: by the names under which it sends their changes.
        operations: those that it sends.
        sends_partitions_as_root: whether a partition's changes have the name of the table
            that it is of.
    """

    tables: Mapping[str, Published]
    operations: frozenset[str] = OPERATIONS
    sends_partitions_as_root: bool = False


@dataclass(frozen=True)
class Reader:
    """The role that reads from PostgreSQL, on its server.

    Attributes:
        tables: those that it may read.
        is_there: whether there is a role of that name.
        may_log_in: whether it may log in.
        may_replicate: whether it may read the log.
        is_managed: whether that right comes from Amazon's role ``rds_replication``.
        log_level: the server's ``wal_level``.
    """

    tables: frozenset[str] = frozenset()
    is_there: bool = False
    may_log_in: bool = False
    may_replicate: bool = False
    is_managed: bool = False
    log_level: str = "logical"


@dataclass
class Catalogue:
    """A source's tables.

    Attributes:
        tables: all but the system's.
        publications: PostgreSQL's, by their names.
        log: MariaDB's settings that say what its binary log has of a change.
        reader: of PostgreSQL, who reads its log; None where nobody asked.
    """

    tables: list[Table] = field(default_factory=list)
    publications: dict[str, Publication] = field(default_factory=dict)
    log: dict[str, str] = field(default_factory=dict)
    reader: Reader | None = None

    def matching(self, patterns: Sequence[str]) -> list[Table]:
        """The tables that patterns name: ``schema.table``, ``schema.*``, or a schema.

        Raises:
            UserError: a pattern names none.
        """
        found: dict[str, Table] = {}
        for pattern in patterns:
            full = pattern if "." in pattern else f"{pattern}.*"
            named = [table for table in self.tables if fnmatchcase(str(table), full)]
            if not named:
                raise UserError(f"the source has no table {full}{_similar(self, pattern)}")
            found |= {str(table): table for table in named}
        return list(found.values())


def _similar(catalogue: Catalogue, pattern: str) -> str:
    """What to name instead: tables of that name in other schemas."""
    name = pattern.rpartition(".")[2]
    others = [str(table) for table in catalogue.tables if table.name == name]
    return f"; it has {', '.join(others)}" if others else ""


def read_postgresql(user: str) -> Catalogue:
    """Read PostgreSQL's catalogue, where libpq's environment (``PGHOST`` …) says.

    Args:
        user: the role that a connector reads as.

    Raises:
        TransientError: the server does not answer.
        UserError: it refuses.
    """
    with reading("PostgreSQL", "PGHOST, PGPORT, PGDATABASE, PGUSER", _postgresql) as rows:
        published: dict[str, dict[str, Published]] = {}
        for publication, name, sent, condition in rows(POSTGRESQL_PUBLISHED):
            of_table = Published(None if sent is None else frozenset(sent), condition)
            published.setdefault(publication, {})[name] = of_table
        publications = {
            name: Publication(published.get(name, {}), frozenset(sent), as_root)
            for name, sent, as_root in rows(POSTGRESQL_PUBLICATIONS)
        }
        columns: dict[Any, list[Column]] = {}
        for table, *described in rows(POSTGRESQL_COLUMNS):
            name, type_name, *rest = described
            # The type of an extension may be in any schema.
            bare = re.sub(r'^(?:\w+|"[^"]+")\.', "", type_name)
            columns.setdefault(table, []).append(Column(name, bare, *rest))
        identities: dict[Any, list[Identity]] = {}
        for table, name, kind, index, brought, is_logged in rows(POSTGRESQL_IDENTITIES):
            identity = Identity(name, kind, index, tuple(brought), is_logged)
            identities.setdefault(table, []).append(identity)
        [reader] = rows(POSTGRESQL_READER, {"user": user})
        readable = [name for [name] in rows(POSTGRESQL_READABLE, {"user": user})]
        return Catalogue(
            [
                Table(
                    *(schema, name, tuple(columns.get(number, ())), tuple(key), comment),
                    all(each.kind == "f" for each in identities.get(number, ())),
                    tuple(identities.get(number, ())),
                    is_partitioned,
                    tuple(heirs),
                )
                for (
                    *(number, schema, name, key, comment),
                    is_partitioned,
                    heirs,
                ) in rows(POSTGRESQL_TABLES)
            ],
            publications,
            reader=Reader(frozenset(readable), *reader),
        )


# PostgreSQL names columns and conditions since version 15.
POSTGRESQL_PUBLISHED = """
    select
        pubname::text,
        schemaname || '.' || tablename,
        case
            when to_jsonb(listed) ? 'attnames'
            then array(select jsonb_array_elements_text(to_jsonb(listed) -> 'attnames'))
        end,
        to_jsonb(listed) ->> 'rowfilter'
    from pg_publication_tables as listed
"""
POSTGRESQL_PUBLICATIONS = """
    select
        pubname::text,
        array_remove(
            array[
                case when pubinsert then 'insert' end,
                case when pubupdate then 'update' end,
                case when pubdelete then 'delete' end,
                case when pubtruncate then 'truncate' end
            ],
            null
        ),
        pubviaroot
    from pg_publication
"""
POSTGRESQL_READER = """
    select
        role.oid is not null,
        coalesce(role.rolcanlogin, false),
        coalesce(role.rolreplication or role.rolsuper, false)
        or coalesce(pg_has_role(role.oid, rds.oid, 'member'), false),
        rds.oid is not null,
        current_setting('wal_level')
    from (select) as one
    left join pg_roles as role on role.rolname = %(user)s
    left join pg_roles as rds on rds.rolname = 'rds_replication'
"""
POSTGRESQL_READABLE = """
    select nspname || '.' || relname
    from pg_class
    join pg_namespace on relnamespace = pg_namespace.oid
    join pg_roles on rolname = %(user)s
    where
        relkind in ('r', 'p')
        and has_table_privilege(pg_roles.oid, pg_class.oid, 'select')
        and has_schema_privilege(pg_roles.oid, pg_namespace.oid, 'usage')
"""
POSTGRESQL_TABLES = """
    select
        pg_class.oid,
        nspname::text,
        relname::text,
        coalesce(
            (
                select array_agg(attname::text order by place)
                from pg_index
                cross join unnest(indkey::int2[]) with ordinality as part (number, place)
                join pg_attribute on attrelid = pg_class.oid and attnum = part.number
                where indrelid = pg_class.oid and indisprimary
            ),
            '{}'
        ),
        coalesce(obj_description(pg_class.oid, 'pg_class'), ''),
        relkind = 'p',
        array(
            select inhrelid::regclass::text from pg_inherits
            where inhparent = pg_class.oid and relkind = 'r'
            order by 1
        )
    from pg_class
    join pg_namespace on relnamespace = pg_namespace.oid
    where
        relkind in ('r', 'p')
        and not relispartition
        and relpersistence = 'p'
        and nspname !~ '^(pg_|information_schema$)'
    order by nspname, relname
"""
# The identity of a partitioned table is not that of its partitions, where the rows are. A
# deferrable key identifies no row.
POSTGRESQL_IDENTITIES = """
    select
        root.oid,
        pg_namespace.nspname || '.' || held.relname,
        held.relreplident,
        case when held.relreplident = 'i' then pg_index.indexrelid::regclass::text end,
        coalesce(
            (
                select array_agg(attname::text order by attnum)
                from pg_attribute
                where
                    attrelid = held.oid
                    and attnum > 0
                    and not attisdropped
                    and (held.relreplident = 'f' or attnum = any (pg_index.indkey))
            ),
            '{}'
        ),
        held.relkind = 'r' and held.relpersistence = 'p'
    from pg_class as root
    join pg_class as held
        on held.oid = root.oid and root.relkind = 'r'
        or root.relkind = 'p'
        and held.oid in (select relid from pg_partition_tree(root.oid) where isleaf)
    join pg_namespace on held.relnamespace = pg_namespace.oid
    left join pg_index
        on indrelid = held.oid
        and case held.relreplident
            when 'd' then indisprimary and indimmediate and indisvalid
            when 'i' then indisreplident
            else false
        end
    where root.relkind in ('r', 'p') and not root.relispartition
    order by 1, 2
"""
POSTGRESQL_COLUMNS = """
    with recursive

    bases as (
        select oid, oid as base, -1 as modifier, typtype, typbasetype, typtypmod
        from pg_type
        union all
        select
            bases.oid,
            pg_type.oid,
            case when bases.typtypmod >= 0 then bases.typtypmod else bases.modifier end,
            pg_type.typtype,
            pg_type.typbasetype,
            pg_type.typtypmod
        from bases
        join pg_type on bases.typbasetype = pg_type.oid
        where bases.typtype = 'd'
    )

    select
        attrelid,
        attname::text,
        case
            when bases.typtype = 'e' then 'enum'
            when bases.typtype = 'c' then 'composite'
            when element.typtype = 'e' then 'enum[]'
            when element.typtype = 'c' then 'composite[]'
            else format_type(
                bases.base, case when atttypmod >= 0 then atttypmod else bases.modifier end
            )
        end,
        not attnotnull,
        coalesce(col_description(attrelid, attnum), ''),
        attgenerated <> '',
        attstorage in ('x', 'e')
        -- a value of up to 24 bytes stays in the row
        and not (
            bases.base in ('bit'::regtype, 'varbit'::regtype)
            and greatest(atttypmod, bases.modifier) between 1 and 128
        ),
        (atthasdef and attgenerated = '')
            or atthasmissing
            or attidentity <> ''
            or own_type.typdefault is not null,
        exists (
            select from pg_attribute as dropped
            where
                dropped.attrelid = pg_attribute.attrelid
                and dropped.attisdropped
                and dropped.attnum < pg_attribute.attnum
        ),
        atttypid <> bases.base
    from pg_attribute
    join pg_type as own_type on atttypid = own_type.oid
    join bases on atttypid = bases.oid and bases.typtype <> 'd'
    left join pg_type as base on bases.base = base.oid
    left join pg_type as element on base.typelem = element.oid and base.typcategory = 'A'
    where attnum > 0 and not attisdropped
    order by attrelid, attnum
"""


def read_mariadb() -> Catalogue:
    """Read MariaDB's or MySQL's catalogue, where ``MYSQL_HOST`` … say.

    Raises:
        TransientError: the server does not answer.
        UserError: it refuses.
    """
    variables = "MYSQL_HOST, MYSQL_TCP_PORT, MYSQL_USER, MYSQL_PWD"
    with reading("MariaDB", variables, _mariadb) as rows:
        columns: dict[Any, list[Column]] = {}
        for schema, table, *described in rows(MARIADB_COLUMNS):
            name, type_name, is_nullable, comment, is_computed, has_default = described
            column = Column(
                *(name, type_name, bool(is_nullable), comment, bool(is_computed)),
                has_default=bool(has_default),
                is_later=True,  # the catalogue does not have what was dropped
            )
            columns.setdefault((schema, table), []).append(column)
        keys: dict[Any, list[str]] = {}
        for schema, table, name in rows(MARIADB_KEYS):
            keys.setdefault((schema, table), []).append(name)
        cascades: dict[Any, list[str]] = {}
        for schema, table, name in rows(MARIADB_CASCADES):
            cascades.setdefault((schema, table), []).append(name)
        return Catalogue(
            [
                Table(
                    *(*place, tuple(columns[place]), tuple(keys.get(place, ())), comment),
                    cascades=tuple(cascades.get(place, ())),
                )
                for *named, comment in rows(MARIADB_TABLES)
                if (place := (named[0], named[1])) in columns
            ],
            log={row[0]: row[1] for row in rows(MARIADB_LOG)},
        )


OF_USERS = (
    "table_schema not in ('information_schema', 'mysql', 'performance_schema', 'sys')"
)
MARIADB_TABLES = f"""
    select table_schema, table_name, table_comment
    from information_schema.tables
    where table_type = 'BASE TABLE' and {OF_USERS}
    order by table_schema, table_name
"""
MARIADB_COLUMNS = f"""
    select
        table_schema, table_name, column_name, column_type, is_nullable = 'YES',
        column_comment, coalesce(generation_expression, '') <> '',
        is_nullable = 'NO' or coalesce(column_default, 'NULL') <> 'NULL'
    from information_schema.columns
    where {OF_USERS}
    order by table_schema, table_name, ordinal_position
"""
MARIADB_KEYS = f"""
    select table_schema, table_name, column_name
    from information_schema.key_column_usage
    where constraint_name = 'PRIMARY' and {OF_USERS}
    order by table_schema, table_name, ordinal_position
"""
MARIADB_CASCADES = """
    select constraint_schema, table_name, constraint_name
    from information_schema.referential_constraints
    where
        delete_rule in ('CASCADE', 'SET NULL')
        or update_rule in ('CASCADE', 'SET NULL')
    order by constraint_schema, table_name, constraint_name
"""
MARIADB_LOG = """
    show global variables where variable_name in ('binlog_format', 'binlog_row_image')
"""

Rows = Callable[..., Sequence[Sequence[Any]]]


def _postgresql() -> Any:
    connection = psycopg2.connect(connect_timeout=SECONDS_TO_CONNECT)
    connection.set_session(readonly=True)
    return connection


def _mariadb() -> Any:
    connect: Any = pymysql.connect  # its stub does not annotate the arguments
    port = os.environ.get("MYSQL_TCP_PORT") or "3306"
    if not port.isdecimal():
        raise UserError(f"MYSQL_TCP_PORT is {port!r}: give a number, such as 3306")
    return connect(
        host=os.environ.get("MYSQL_HOST", "127.0.0.1"),
        port=int(port),
        user=os.environ.get("MYSQL_USER", "root"),
        password=os.environ.get("MYSQL_PWD", ""),
        connect_timeout=SECONDS_TO_CONNECT,
    )


@contextmanager
def reading(server: str, variables: str, connect: Callable[[], Any]) -> Iterator[Rows]:
    """A session that asks; an error names the server and the variables that lead to it."""
    try:
        with closing(connect()) as connection, connection.cursor() as cursor:

            def rows(query: str, values: Any = ()) -> Sequence[Sequence[Any]]:
                cursor.execute(query, values or None)
                return list(cursor.fetchall())

            yield rows
    except (psycopg2.OperationalError, pymysql.err.OperationalError) as error:
        kind = UserError if is_refusal(error) else TransientError
        raise kind(
            f"cannot read {server}'s catalogue: {one_line(error)};"
            f" {variables} say where it is"
        ) from error
    except (psycopg2.Error, pymysql.err.Error) as error:
        raise UserError(f"cannot read {server}'s catalogue: {one_line(error)}") from error


def is_refusal(error: Exception) -> bool:
    """Whether a server answered a connection, and refused it.

    PostgreSQL's gives a severity then; "the database system is" one that starts or shuts
    down. MariaDB's denies access.
    """
    said = str(error)
    if isinstance(error, pymysql.err.Error):
        return "denied" in said
    return "FATAL:" in said and "the database system is" not in said


def one_line(error: BaseException) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split())


def quoted(*names: str) -> str:
    """A name as SQL writes it."""
    return ".".join(
        name
        if re.fullmatch(r"[a-z_][a-z0-9_]*", name)
        else '"' + name.replace('"', '""') + '"'
        for name in names
    )
