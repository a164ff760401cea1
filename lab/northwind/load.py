"""Makes the source database: everything of it in one transaction."""

from __future__ import annotations

import csv
import dataclasses
import io
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2 import errors, sql
from psycopg2.extensions import encrypt_password

from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.sources.catalogue import is_refusal, one_line
from lab.northwind import checks, northwind
from lab.northwind.checks import REPLICATION_ROLE, SCHEMA

SQL_FILES = Path(__file__).parents[2] / "connectors/postgres"
PUBLICATION = "datalake"
ROWS_A_COPY = 200
LOCK_TIMEOUT = "5s"
NOTHING_CHANGED = "nothing was changed"
# The signals that ``cdc_lakehouse.command.run`` turns into KeyboardInterrupt.
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Progress = Callable[[str, int, int], None]
"""Told now and then: the table, how many rows are loaded, how many there are."""


@dataclass(frozen=True)
class Source:
    """Where the source database is, and as whom to work there.

    Without a password, libpq looks for one in its own places (``~/.pgpass``).
    """

    host: str = "127.0.0.1"
    port: int = 5432
    database: str = "northwind"
    user: str = "postgres"
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Loaded:
    """How many rows every base table has now, and how many the outbox."""

    rows: dict[str, int]
    events: int


def existing(source: Source) -> list[str]:
    """What a load would replace, in words.

    Raises:
        UserError: the server cannot be reached, or not as this user, or no load is
            possible there (see ``checks``).
    """
    is_there = _has_database(source)
    with _session(source if is_there else _beside(source)) as cursor:
        checks.require_server(cursor)
        if is_there:
            checks.require_database(cursor)
        cursor.execute(
            """
            select 'schema ' || nspname from pg_namespace
            where nspname = %(schema)s and %(is_there)s
            union all
            select 'publication ' || pubname from pg_publication
            where pubname = %(publication)s and %(is_there)s
            union all
            select 'the password of role ' || rolname from pg_roles
            where rolname = %(role)s
            """,
            {
                "schema": SCHEMA,
                "publication": PUBLICATION,
                "role": REPLICATION_ROLE,
                "is_there": is_there,
            },
        )
        return [name for (name,) in cursor]


def load(
    source: Source,
    replication_password: str,
    hold_back: Collection[int] = (),
    replace: bool = False,
    progress: Progress | None = None,
    folder: Path = northwind.ROWS,
    on_commit: Callable[[], None] = lambda: None,
) -> Loaded:
    """Make schema, rows, outbox, publication and replication role; all of it or nothing.

    Args:
        source: the database; it is created if it is not there.
        replication_password: of the role that Debezium logs in with.
        hold_back: orders to leave out, with their lines.
        replace: whether what is there already may go (see ``existing``).
        progress: told how far the load is.
        folder: of the CSV files.
        on_commit: called before the commit; until then, an interrupt or an error in it
            undoes everything.

    Raises:
        UserError: and then the server is as it was before, unless the message says
            something else.
    """
    if not replication_password:
        raise UserError(f"the role {REPLICATION_ROLE} needs a password")
    for order_id in hold_back:
        northwind.order_rows(order_id, folder)
    tables = [northwind.read_table(table, hold_back, folder) for table in northwind.TABLES]
    if not replace and (there := existing(source)):
        raise UserError(
            f"database {source.database} has {', '.join(there)} already; {NOTHING_CHANGED}"
        )

    is_made = False
    try:
        if not _has_database(source):
            with _interrupts_wait():
                _administer(source, "create database {}", NOTHING_CHANGED)
                is_made = True
        with _session(source) as cursor:
            cursor.execute("select set_config('lock_timeout', %s, true)", (LOCK_TIMEOUT,))
            # From here on the transaction has a number, and a slot that somebody makes
            # now waits for its end: the check misses none.
            cursor.execute("select pg_current_xact_id()")
            checks.require_server(cursor)
            checks.require_database(cursor)
            if replace:
                _drop(cursor)
            loaded = _load(cursor, tables, replication_password, progress)
            on_commit()
        return loaded
    except BaseException as error:
        if is_made:
            reason = str(error) or "an interrupt"
            left = f"the new database is left, and has to be dropped, after: {reason}"
            with _interrupts_wait():
                _administer(source, "drop database {}", left)
        raise


def _load(
    cursor: Any,
    tables: list[northwind.Table],
    replication_password: str,
    progress: Progress | None,
) -> Loaded:
    _run_file(cursor, "tables.sql")
    _copy(cursor, tables, progress)
    # The triggers come after the rows: filling makes one event an order.
    _run_file(cursor, "outbox.sql")
    cursor.execute("call datalake.fill_cdc_events()")
    _run_file(cursor, "replication.sql")
    _set_password(cursor, replication_password)

    cursor.execute("select count(*) from datalake.cdc_events")
    return Loaded({table.name: len(table.rows) for table in tables}, cursor.fetchone()[0])


def _drop(cursor: Any) -> None:
    try:
        cursor.execute(_named("drop publication if exists {}", PUBLICATION))
        cursor.execute(_named("drop schema if exists {} cascade", SCHEMA))
    except errors.LockNotAvailable as error:
        cursor.connection.rollback()
        holders = ", ".join(checks.lock_holders(cursor)) or "a session that is gone now"
        raise UserError(
            f"the schema {SCHEMA} is in use by {holders}; {NOTHING_CHANGED}: wait for its"
            " end, or end it (select pg_terminate_backend(PROCESS)), then load again"
        ) from error


def _copy(cursor: Any, tables: list[northwind.Table], progress: Progress | None) -> None:
    total = sum(len(table.rows) for table in tables)
    done = 0
    for table in tables:
        copy = sql.SQL("copy {} ({}) from stdin with (format csv)").format(
            sql.Identifier(SCHEMA, table.name),
            sql.SQL(", ").join(map(sql.Identifier, table.columns)),
        )
        for first in range(0, len(table.rows), ROWS_A_COPY):
            rows = table.rows[first : first + ROWS_A_COPY]
            lines = io.StringIO()
            csv.writer(lines).writerows(rows)
            lines.seek(0)
            cursor.copy_expert(copy, lines)
            done += len(rows)
            if progress:
                progress(table.name, done, total)


def _set_password(cursor: Any, password: str) -> None:
    """Send what SCRAM derives from the password: a server may log its statements."""
    verifier = encrypt_password(
        password, REPLICATION_ROLE, scope=cursor.connection, algorithm="scram-sha-256"
    )
    statement = sql.SQL("alter role {} password {}")
    cursor.execute(
        statement.format(sql.Identifier(REPLICATION_ROLE), sql.Literal(verifier))
    )


def _run_file(cursor: Any, name: str) -> None:
    cursor.execute((SQL_FILES / name).read_text(encoding="utf-8"))


def _named(statement: str, name: str) -> sql.Composed:
    return sql.SQL(statement).format(sql.Identifier(name))


def _has_database(source: Source) -> bool:
    """Whether the database is there; an error unless that is the only thing missing."""
    try:
        _connect(source).close()
        return True
    except psycopg2.OperationalError as error:
        try:
            beside = _connect(_beside(source))
        except psycopg2.OperationalError:
            raise _unreachable(source, error) from error
        with closing(beside), beside.cursor() as cursor:
            cursor.execute("select from pg_database where datname = %s", (source.database,))
            if cursor.rowcount:
                raise _unreachable(source, error) from error
            return False


def _beside(source: Source) -> Source:
    """The database that every server has."""
    return dataclasses.replace(source, database="postgres")


def _administer(source: Source, statement: str, outcome: str) -> None:
    """Run a statement about the database, which takes a session of another one."""
    with (
        _errors_said(source, outcome),
        closing(_connect(_beside(source))) as connection,
    ):
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(_named(statement, source.database))


@contextmanager
def _session(source: Source) -> Iterator[Any]:
    """A cursor in one transaction, committed at the end or rolled back."""
    with (
        _errors_said(source, NOTHING_CHANGED),
        closing(_connect(source)) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor
        try:
            connection.commit()
        except psycopg2.Error as error:
            if not connection.closed:
                raise
            raise UserError(
                f"the session on {source.host}:{source.port}, database {source.database},"
                " ended while it committed, so it is not known whether anything was"
                f" changed: {one_line(error)}"
            ) from error


@contextmanager
def _errors_said(source: Source, outcome: str) -> Iterator[None]:
    """What the server refuses is the user's to mend: say its reason, and where it was."""
    try:
        yield
    except psycopg2.Error as error:
        if error.diag.message_primary is None:
            raise _unreachable(source, error, f"; {outcome}") from error
        where = f" ({error.diag.context})" if error.diag.context else ""
        raise UserError(
            f"database {source.database}, as user {source.user}:"
            f" {error.diag.message_primary}{where}; {outcome}"
        ) from error


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Have Ctrl-C and signals wait until the block ends, and so knows what it has done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    waiting: list[int] = []
    before = {n: signal.signal(n, lambda got, _: waiting.append(got)) for n in STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if waiting:
        signal.raise_signal(waiting[0])


def _unreachable(source: Source, error: psycopg2.Error, outcome: str = "") -> UserError:
    kind = UserError if is_refusal(error) else TransientError
    return kind(
        f"no session on {source.host}:{source.port}, database {source.database},"
        f" as user {source.user}: {one_line(error)}{outcome}"
    )


def _connect(source: Source) -> Any:
    return psycopg2.connect(
        host=source.host,
        port=source.port,
        dbname=source.database,
        user=source.user,
        password=source.password,
        client_encoding="UTF8",
        connect_timeout=10,
        application_name="lab.northwind",
    )
