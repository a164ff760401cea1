"""Have Debezium read one table again, by a signal, and follow it.

The signal asks for a blocking snapshot of two tables: the one to read, and the marker
table, of which Debezium selects one row that says how many rows the first one has. Debezium
selects both in one transaction and gives all their rows one position: so the marker, in
bronze, says when all reads have arrived, whatever happens to this process or to Debezium's.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import sql

from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.sources.catalogue import SECONDS_TO_CONNECT, Rows, reading
from cdc_lakehouse.sources.connector import Connector, markers_beside
from cdc_lakehouse.sources.preparation import MARKERS, SIGNALS
from cdc_lakehouse.sources.project import Project
from cdc_lakehouse.storage.marks import MARKER_TABLE

VARIABLES = "PGHOST, PGPORT, PGDATABASE, PGUSER"
PAUSE = 0.5
SECONDS_TO_SHOW = 5

Report = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What is to be read.

    Attributes:
        table: at the source, with its schema.
        topic: of its changes.
        bronze: the bronze table of that topic.
        signals: the connector's signal table.
        markers: the marker table.
    """

    table: str
    topic: str
    bronze: str
    signals: str
    markers: str


def request(connector: Connector, project: Project, table: str) -> Request:
    """What to ask a connector for.

    Raises:
        UserError: the connector, or the project, lacks something that it needs; the message
            has what to add.
    """
    if connector.database != "postgresql":
        raise UserError(f"{connector.file}: resync reads tables of PostgreSQL only")
    if not connector.captures(table):
        raise UserError(
            f"{connector.file} does not capture {table}; --connector names another"
        )
    topic = connector.topic(table)
    topics = project.tables()
    if topic not in topics:
        raise UserError(f"{project.topics} has no line for {topic}; --topics names another")
    signals = connector.signals
    markers = markers_beside(signals or table)
    marker_topic = connector.topic(markers)
    if (
        signals is None
        or not connector.captures(markers)
        or topics.get(marker_topic) != MARKER_TABLE
    ):
        wanted = signals or f"{table.partition('.')[0]}.debezium_signals"
        raise UserError(setup(connector, project, wanted))
    return Request(table, topic, topics[topic], signals, markers)


def setup(connector: Connector, project: Project, signals: str) -> str:
    """What a connector and a project need before the first resync."""
    markers = markers_beside(signals)
    return f"""{connector.file} is not set up for resync. On the source:
create table {signals} ({SIGNALS});
create table {markers} ({MARKERS});
alter publication {connector.publication} add table {signals}, {markers};
grant select on {markers} to {connector.user};
insert into {markers} (id) values ('first');
In the connector's configuration, which is then registered again (the insert comes after):
"signal.data.collection": "{signals}"; in "table.include.list": {markers}
In {project.topics}:
"{connector.topic(markers)}" = "{MARKER_TABLE}"
In dbt_project.yml, or as a source of your own: the variable cdc_lakehouse_resync: true"""


def resync(connector: Connector, wanted: Request, timeout: float, report: Report) -> None:
    """Insert the signal, and wait until Debezium has read the table and streams again.

    Args:
        connector: whose table it is.
        wanted: what to read.
        timeout: seconds to wait without a sign of Debezium.
        report: called with the progress.

    Raises:
        TransientError: Debezium does not stream, or gives no sign; or the server does not.
        UserError: it cannot read the table.
    """
    with reading("PostgreSQL", VARIABLES, _connect) as rows:
        require_readable(rows, connector, wanted)
        before = _times_marked(rows, wanted)
        number = f"resync-{uuid.uuid4().hex}"
        signals = sql.Identifier(*_parts(wanted.signals))
        rows(
            sql.SQL(
                "insert into {} values (%s, 'execute-snapshot', %s) returning id"
            ).format(signals),
            (number, json.dumps(signal(rows, wanted, number))),
        )
        [[sent]] = rows("select pg_current_wal_insert_lsn()::text")
        follow = _Follower(rows, connector, wanted, timeout, report)
        follow.wait(
            lambda: _times_marked(rows, wanted) > before and not follow.is_reading(), sent
        )
        # Debezium streams this only once the snapshot is over.
        rows(
            sql.SQL("delete from {} where id = %s returning id").format(signals), (number,)
        )
        [[end]] = rows("select pg_current_wal_insert_lsn()::text")
        follow.wait(lambda: follow.has_streamed(end), end)


def signal(rows: Rows, wanted: Request, number: str) -> dict[str, Any]:
    """The data of a signal ``execute-snapshot``.

    The rows of tables that inherit from the one to read are not its own. A blocking
    snapshot does not follow the connector's own statement for a table.
    """
    [[has_heirs]] = rows(
        "select relkind = 'r' and relhassubclass from pg_class"
        " where oid = format('%%I.%%I', %s, %s)::regclass",
        _parts(wanted.table),
    )
    only = "only " if has_heirs else ""
    [[marker]] = rows(
        "select format('select %%L as id, %%L as topic, %%L as bronze_table,"
        f" (select count(*) from {only}%%I.%%I) as row_count from %%I.%%I limit 1',"
        " %s, %s, %s, %s, %s, %s, %s)",
        (
            *(number, wanted.topic, wanted.bronze),
            *(*_parts(wanted.table), *_parts(wanted.markers)),
        ),
    )
    conditions = [{"data-collection": wanted.markers, "filter": marker}]
    if has_heirs:
        name = ".".join(
            '"' + part.replace('"', '""') + '"' for part in _parts(wanted.table)
        )
        selected = f"select * from only {name}"
        conditions.append({"data-collection": wanted.table, "filter": selected})
    return {
        "type": "BLOCKING",
        "data-collections": [wanted.table, wanted.markers],
        "additional-conditions": conditions,
    }


def require_readable(rows: Rows, connector: Connector, wanted: Request) -> None:
    """Stop at what would make Debezium ignore the signal, or fail to read the table.

    Raises:
        TransientError: the connector does not read from its slot.
        UserError: a table, a right or an entry in the publication is missing.
    """
    names = [wanted.table, wanted.markers, wanted.signals]
    published = {
        name
        for [name] in rows(
            "select schemaname || '.' || tablename from pg_publication_tables"
            " where pubname = %s",
            (connector.publication,),
        )
    }
    for name in names:
        found = rows(
            "select has_table_privilege(rolname, pg_class.oid, 'select')"
            " and has_schema_privilege(rolname, pg_namespace.oid, 'usage')"
            " from pg_class join pg_namespace on relnamespace = pg_namespace.oid"
            " left join pg_roles on rolname = %s where nspname = %s and relname = %s",
            (connector.user, *_parts(name)),
        )
        if not found:
            raise UserError(f"the source has no table {name}")
        if name not in published:
            raise UserError(
                f"{name} is not in publication {connector.publication}:"
                f" alter publication {connector.publication} add table {name};"
            )
        if name != wanted.signals and found[0][0] is False:
            raise UserError(
                f"{connector.user} may not read {name}:"
                f" grant select on {name} to {connector.user};"
            )
    if not rows(
        "select from pg_replication_slots where slot_name = %s and active",
        (connector.slot,),
    ):
        raise TransientError(
            f"the connector of {connector.file} does not run: nothing reads from its slot"
            f" {connector.slot}"
        )


class _Follower:
    """Waits for Debezium, as long as there are signs of it."""

    def __init__(
        self,
        rows: Rows,
        connector: Connector,
        wanted: Request,
        timeout: float,
        report: Report,
    ) -> None:
        self._rows = rows
        self._slot = connector.slot
        self._wanted = wanted
        self._timeout = timeout
        self._report = report
        self._begin = time.monotonic()
        self._shown_at = self._begin

    def wait(self, is_done: Callable[[], bool], position: str) -> None:
        """Wait; until the slot is at ``position``, its progress is a sign, too."""
        sign_at, last_lag = time.monotonic(), None
        while not is_done():
            now = time.monotonic()
            lag = self._lag(position)
            is_reading = self.is_reading()
            if is_reading or (lag and last_lag is not None and lag < last_lag):
                sign_at = now
            last_lag = lag
            if now - sign_at > self._timeout:
                raise TransientError(
                    f"timed out after {self._timeout:.0f} s without a sign that Debezium"
                    f" reads {self._wanted.table}: it was restarted while it read, it"
                    " failed, or it runs without signal.data.collection; its log says"
                    " which. Nothing is deleted; run the command again"
                )
            if now - self._shown_at > SECONDS_TO_SHOW:
                self._shown_at = now
                state = f"reading {self._wanted.table}"
                if not is_reading:
                    behind = f"slot {self._slot} is {lag or 0} bytes behind"
                    state = f"waiting for Debezium, {behind}"
                self._report(f"{now - self._begin:.0f} s: {state}")
            time.sleep(PAUSE)

    def has_streamed(self, position: str) -> bool:
        """Whether the connector has confirmed a position."""
        return not self._lag(position)

    def _lag(self, position: str) -> int | None:
        """The bytes of the log before a position that the connector has not confirmed."""
        found = self._rows(
            "select greatest(pg_wal_lsn_diff(%s::pg_lsn, confirmed_flush_lsn), 0)::bigint"
            " from pg_replication_slots where slot_name = %s",
            (position, self._slot),
        )
        if not found:
            raise TransientError(f"the replication slot {self._slot} is gone")
        lag: int = found[0][0]
        return lag

    def is_reading(self) -> bool:
        """Whether a session of Debezium's selects the table."""
        schema, table = _parts(self._wanted.table)
        return bool(
            self._rows(
                "select from pg_stat_activity where application_name like 'Debezium%%'"
                " and xact_start is not null and position(%s in query) > 0",
                (f'"{schema}"."{table}"',),
            )
        )


def _connect() -> Any:
    connection = psycopg2.connect(connect_timeout=SECONDS_TO_CONNECT)
    connection.autocommit = True
    return connection


def _times_marked(rows: Rows, wanted: Request) -> int:
    """How often the marker table was read: by nobody but by snapshots."""
    [[count]] = rows(
        "select (coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::bigint"
        " from pg_stat_user_tables where schemaname = %s and relname = %s",
        _parts(wanted.markers),
    )
    found: int = count
    return found


def _parts(name: str) -> tuple[str, str]:
    """A table's schema and its name in it."""
    schema, _, table = name.partition(".")
    return schema, table
