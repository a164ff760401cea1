"""PostgreSQL with Northwind, a broker and Connect with the connectors, on one machine."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import psycopg2

from cdc_lakehouse.errors import TransientError, UserError
from lab.northwind.checks import REPLICATION_ROLE
from lab.northwind.load import Source, load
from lab.stack import jars
from lab.stack.broker import Broker
from lab.stack.connect import Connect, configuration
from lab.stack.postgres import SUPERUSER, PostgresServer
from lab.stack.processes import HOST, Part, wait_until
from lab.stack.stack import Stack, write_properties

CONNECTORS = ("source-outbox", "source-tables")
DATABASE = "northwind"
SECONDS_TO_RECOVER = 5


@dataclass(frozen=True)
class Slot:
    """A replication slot.

    Attributes:
        is_active: whether its connector reads from it now.
        lag_bytes: of the write-ahead log that its connector has not confirmed.
    """

    is_active: bool
    lag_bytes: int


class NorthwindStack(Stack):
    """The stack of one lake."""

    NAME = "stack"
    COMMAND = "python -m lab.stack"
    PORTS: ClassVar = {
        "postgres": "postgres",
        "kafka": "broker",
        "controller": "broker",
        "connect": "connect",
    }
    PASSWORDS = (SUPERUSER, REPLICATION_ROLE)
    IS_KEPT = True

    def __init__(self, root: Path) -> None:
        self.connectors: list[str] = []
        self._hold_back: int | None = None
        super().__init__(root)

    def _make_parts(self) -> list[Part]:
        ports = self.ports
        self.placeholders = self.secrets / "source.properties"
        self.postgres = PostgresServer(
            self.folder / "postgres", ports["postgres"], self.password(SUPERUSER)
        )
        self.broker = Broker(self.folder, ports["kafka"], ports["controller"])
        self.connect = Connect(
            self.folder, ports["connect"], ports["kafka"], self.placeholders
        )
        return [self.postgres, self.broker, self.connect]

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka's clients begin."""
        return f"{HOST}:{self.broker.port}"

    def connect_to_source(self) -> Any:
        """A psycopg2 connection to the source database, as its owner."""
        return self.postgres.connect(dbname=DATABASE)

    def start(
        self, ports: Mapping[str, int] | None = None, hold_back: int | None = None
    ) -> None:
        """Start what does not run, and wait until changes stream.

        Args:
            ports: as every stack's.
            hold_back: an order to leave out; only where the database is made.
        """
        self._hold_back = hold_back
        super().start(ports)

    def require_programs(self) -> None:
        """Refuse a machine that lacks a program; fetch the jars."""
        jars.find_java()
        self.postgres.find_binaries()
        jars.fetch(*jars.STACK)

    def _start_parts(self) -> None:
        if self.is_complete and self._hold_back is not None:
            raise UserError(
                f"{self.folder} has its database already, so no order can be held back;"
                f" begin anew: {self.COMMAND} stop --remove"
            )
        write_properties(
            self.placeholders,
            host=HOST,
            port=self.postgres.port,
            database=DATABASE,
            user=REPLICATION_ROLE,
            password=self.password(REPLICATION_ROLE),
        )
        for part in self.parts.values():
            part.start()
        # Java comes up meanwhile.
        self.postgres.wait_until_ready()
        if not self.is_complete:
            load(
                Source(
                    port=self.postgres.port,
                    database=DATABASE,
                    password=self.postgres.password,
                ),
                self.password(REPLICATION_ROLE),
                hold_back=() if self._hold_back is None else (self._hold_back,),
            )
        self.wait_until_ready()
        for name in CONNECTORS:
            self.register(name)
        self.wait_until_streaming()

    def revive(self, name: str) -> None:
        """Start a part that was killed or stopped, and wait until changes stream."""
        self.parts[name].start()
        self.wait_until_ready()
        self.wait_until_streaming()

    def register(self, name: str) -> None:
        """Create a connector, or give it its file's configuration again."""
        self.connect.ask("PUT", f"/connectors/{name}/config", self.configuration(name))
        if name not in self.connectors:
            self.connectors.append(name)

    def unregister(self, name: str) -> None:
        """Delete a connector with its offsets; its slot stays."""
        self.connect.remove(name)
        self.connectors.remove(name)

    def configuration(self, name: str) -> dict[str, str]:
        """A connector's file, with the folder of this stack's secrets."""
        return configuration(name, self.secrets)

    def slot_name(self, name: str) -> str:
        """The replication slot of a connector."""
        return self.configuration(name)["slot.name"]

    def slots(self) -> dict[str, Slot]:
        """The replication slots of the source database.

        Raises:
            TransientError: it does not answer, as while it comes up.
        """
        question = """
            select slot_name, active,
                pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint
            from pg_replication_slots where database = %s
        """
        try:
            with (
                closing(self.connect_to_source()) as connection,
                connection.cursor() as cursor,
            ):
                cursor.execute(question, (DATABASE,))
                return {name: Slot(active, lag or 0) for name, active, lag in cursor}
        except psycopg2.Error as error:
            reason = " ".join(str(error).split())
            raise TransientError(
                f"could not read the replication slots: {reason}"
            ) from error

    def topic_ends(self) -> dict[str, int]:
        """The next offset of every topic the connectors write, by ``topic/partition``."""
        prefix = self.configuration(CONNECTORS[0])["topic.prefix"]
        return self.broker.end_offsets(rf"{prefix}\..*")

    def psql_command(self) -> str:
        """How to reach the source database by hand."""
        password = shlex.quote(str(self.secrets / SUPERUSER))
        return (
            f'PGPASSWORD="$(cat {password})" psql -h 127.0.0.1'
            f" -p {self.postgres.port} -U {SUPERUSER} {DATABASE}"
        )

    def wait_until_streaming(self, timeout: float = 120) -> None:
        """Wait until every connector runs and reads from its slot.

        A slot is read from only after the snapshot, so that is done, too.

        Raises:
            UserError: a connector failed, or it takes too long.
        """
        failed: dict[str, float] = {}

        def is_streaming() -> bool:
            self.connect.require_alive()
            states = self.connect.states()
            slots = self.slots()
            now = time.monotonic()
            for name, found in states.items():
                if not found.trace:
                    failed.pop(name, None)
                # It may be what was written down of a run before this one.
                elif now - failed.setdefault(name, now) > SECONDS_TO_RECOVER:
                    raise UserError(
                        f"{name}: {found.trace.splitlines()[0]} (see {self.connect.log})"
                    )
            return all(
                (state := states.get(name)) is not None
                and state.is_running
                and (slot := slots.get(self.slot_name(name))) is not None
                and slot.is_active
                for name in self.connectors
            )

        log = self.connect.log
        wait_until(is_streaming, timeout, f"the connectors do not stream (see {log})", 0.2)

    def wait_until_caught_up(self, timeout: float = 60, database: str = DATABASE) -> None:
        """Wait until the topics hold everything that was committed before the call.

        Args:
            timeout: in seconds.
            database: whose slots are asked for.

        Raises:
            UserError: it takes too long.
        """
        with closing(self.connect_to_source()) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("select pg_current_wal_insert_lsn()")
                (end,) = cursor.fetchone()

                def is_caught_up() -> bool:
                    cursor.execute(
                        """
                        select bool_and(confirmed_flush_lsn >= %s)
                        from pg_replication_slots where database = %s
                        """,
                        (end, database),
                    )
                    return bool(cursor.fetchone()[0])

                wait_until(is_caught_up, timeout, "the connectors have not caught up")
