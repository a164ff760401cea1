"""TICKIT's three databases, a broker, Connect and a schema registry, on one machine."""

from __future__ import annotations

import csv
import io
import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from cdc_lakehouse.errors import TransientError, UserError
from examples.tickit.source.generator import Row, Tickit
from lab.northwind.checks import REPLICATION_ROLE
from lab.stack import jars
from lab.stack.broker import Broker
from lab.stack.connect import Connect
from lab.stack.mariadb import (
    MariaDBServer,
    find_binary,
    replication_rights,
    statements,
)
from lab.stack.ports import reserved_ports
from lab.stack.postgres import PostgresServer, find_binaries
from lab.stack.processes import wait_until
from lab.stack.registry import SchemaRegistry
from lab.stack.stack import SECRETS_FOLDER, write_secret

FOLDER = Path(__file__).parent
# The dbt project that reads them.
PROJECT = FOLDER.parent
TOPIC_PREFIX = "tickit"
PUBLICATION = "tickit"
# Every table after those that it refers to, by database.
TABLES = {
    "ems": ("category", "venue", "event"),
    "crm": ("user",),
    "ecomm": ("date", "listing", "sale"),
}
TOPICS = [f"{TOPIC_PREFIX}.{name}.{table}" for name in TABLES for table in TABLES[name]]
# The file that each connector is, and what it has otherwise. They start in this order.
CONNECTORS: dict[str, tuple[str, dict[str, str]]] = {
    "ems": (
        "source-tables-avro",
        {
            "custom.metric.tags": "connector=ems",
            "database.dbname": "ems",
            "publication.name": PUBLICATION,
            "slot.name": "tickit_ems",
            "table.include.list": "ems.category,ems.venue,ems.event",
            "topic.prefix": TOPIC_PREFIX,
        },
    ),
    "crm": (
        "source-tables-avro",
        {
            "custom.metric.tags": "connector=crm",
            "database.dbname": "crm",
            "publication.name": PUBLICATION,
            "slot.name": "tickit_crm",
            "table.include.list": "crm.user",
            "topic.prefix": TOPIC_PREFIX,
        },
    ),
    "ecomm": (
        "source-mariadb-avro",
        {
            "database.include.list": "ecomm",
            "schema.history.internal.kafka.topic": "schema-history.tickit",
            "topic.prefix": TOPIC_PREFIX,
        },
    ),
}
# What the registry in memory says where two connectors register schemas at once.
LOCKED = "Timeout trying to lock table"


class TickitStack:
    """The servers of one folder; they end with ``stop``, and the folder with them.

    Args:
        folder: keeps everything; the databases' users must be able to enter it.
        free_port: gives ports; they are free until the servers have started.
        rows: what the databases hold at first.
    """

    def __init__(self, folder: Path, free_port: Callable[[], int], rows: Tickit) -> None:
        self.folder = folder.absolute()
        self.rows = rows
        self.postgres = PostgresServer(
            self.folder / "postgres", free_port(), secrets.token_urlsafe(12)
        )
        self.mariadb = MariaDBServer(
            self.folder / "mariadb", free_port(), secrets.token_urlsafe(12)
        )
        self.broker = Broker(self.folder, free_port(), free_port())
        self.registry = SchemaRegistry(self.folder, free_port())
        self.secrets = self.folder / "secrets"
        self.connect = Connect(self.folder, free_port(), self.broker.port, self.secrets)

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka's clients begin."""
        return f"127.0.0.1:{self.broker.port}"

    def start(self) -> None:
        """Make the databases, start everything, and wait until Kafka has every row.

        Raises:
            UserError: something that a part needs is missing, or a part does not come up.
        """
        password = secrets.token_urlsafe(12)
        self._write_secrets(password)
        # The JVMs come up while the rows are written.
        with ThreadPoolExecutor() as pool:
            tasks = [
                pool.submit(self._make_postgres, password),
                pool.submit(self._make_mariadb, password),
            ]
            self.broker.start()
            self.registry.start()
            self.connect.start()
            for task in tasks:
                task.result()
        self.broker.wait_until_ready()
        self.registry.wait_until_ready()
        self.connect.wait_until_ready()
        # One after another: two that register their schemas at once fail each other.
        for name in CONNECTORS:
            config = self.configuration(name)
            self.connect.ask("PUT", f"/connectors/{name}/config", config)
            self.wait_until_topics_hold(
                {
                    f"{TOPIC_PREFIX}.{name}.{table}": self.count_rows(name, table)
                    for table in TABLES[name]
                }
            )

    def stop(self) -> None:
        """End everything and remove the folder."""
        for part in (self.connect, self.registry, self.broker):
            part.process.stop()
        self.mariadb.stop()
        self.postgres.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def configuration(self, name: str) -> dict[str, str]:
        """A connector's file, with what is otherwise here and the folder of the secrets."""
        file, changes = CONNECTORS[name]
        text = (jars.PROJECT / f"connectors/{file}.json").read_text(encoding="utf-8")
        config: dict[str, str] = json.loads(text.replace(SECRETS_FOLDER, str(self.secrets)))
        return config | changes

    def connect_to(self, name: str) -> Any:
        """A connection to one of the databases, by Python's DB-API."""
        if name == "ecomm":
            return self.mariadb.connect(database=name)
        return self.postgres.connect(dbname=name)

    def execute(self, name: str, statement: str) -> list[Row]:
        """Run one statement on one of the databases, and commit it; its rows, if any."""
        with closing(self.connect_to(name)) as connection:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                rows = list(cursor.fetchall()) if cursor.description else []
            connection.commit()
        return rows

    def count_rows(self, name: str, table: str) -> int:
        """How many rows a table has."""
        [[count]] = self.execute(name, f"select count(*) from {name}.{table}")
        return int(count)

    def wait_until_topics_hold(self, records: dict[str, int], timeout: float = 600) -> None:
        """Wait until each of these topics has at least so many records.

        Raises:
            UserError: a connector failed, or it takes too long.
        """

        def is_there() -> bool:
            self._revive_connectors()
            try:
                ends = self.broker.end_offsets(rf"{TOPIC_PREFIX}\..*")
            except TransientError:  # there is no topic yet
                return False
            return all(
                ends.get(f"{topic}/0", 0) >= count for topic, count in records.items()
            )

        log = self.connect.process.log
        wait_until(is_there, timeout, f"the topics lack records (see {log})", 0.5)

    def _revive_connectors(self) -> None:
        """Restart what failed for the registry's sake.

        Raises:
            UserError: a connector failed for another reason.
        """
        self.connect.process.require_alive()
        for name, state in self.connect.states().items():
            if LOCKED in state.trace:
                path = f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
                self.connect.ask("POST", path)
            elif state.trace:
                log = self.connect.process.log
                raise UserError(f"{name}: {state.trace.splitlines()[0]} (see {log})")

    def _write_secrets(self, password: str) -> None:
        """What the connectors' placeholders stand for, and the superusers' passwords."""
        self.secrets.mkdir(mode=0o700, parents=True)
        shared = {
            "host": "127.0.0.1",
            "user": REPLICATION_ROLE,
            "password": password,
            "bootstrap": self.bootstrap_servers,
            "registry": self.registry.url,
        }
        for file, server in (("source", self.postgres), ("mariadb", self.mariadb)):
            values = {**shared, "port": str(server.port)}
            text = "".join(f"{name}={value}\n" for name, value in values.items())
            write_secret(self.secrets / f"{file}.properties", text)
        write_secret(self.secrets / "postgres", self.postgres.password)
        write_secret(self.secrets / "root", self.mariadb.password)

    def _make_postgres(self, password: str) -> None:
        self.postgres.start()
        with closing(self.postgres.connect()) as connection:
            connection.autocommit = True  # databases are made outside of transactions
            with connection.cursor() as cursor:
                role = f"create role {REPLICATION_ROLE} login replication password %s"
                cursor.execute(role, (password,))
                cursor.execute("create database ems")
                cursor.execute("create database crm")
        rows = {
            "category": self.rows.categories,
            "venue": self.rows.venues,
            "event": self.rows.events,
            "user": self.rows.users,
        }
        for name in ("ems", "crm"):
            with closing(self.connect_to(name)) as connection:
                with connection.cursor() as cursor:
                    cursor.execute((FOLDER / f"{name}.sql").read_text(encoding="utf-8"))
                    for table in TABLES[name]:
                        copy_rows(cursor, f"{name}.{table}", rows[table]())
                    for table in TABLES[name]:
                        cursor.execute(f"alter table {name}.{table} replica identity full")
                    cursor.execute(
                        f"create publication {PUBLICATION} for tables in schema {name};"
                        f" grant usage on schema {name} to {REPLICATION_ROLE};"
                        f" grant select on all tables in schema {name}"
                        f" to {REPLICATION_ROLE}"
                    )
                connection.commit()

    def _make_mariadb(self, password: str) -> None:
        self.mariadb.start()
        tables = (FOLDER / "ecomm.sql").read_text(encoding="utf-8")
        self.mariadb.execute(*statements(tables), *replication_rights("ecomm", password))
        rows = {
            "date": self.rows.dates,
            "listing": self.rows.listings,
            "sale": self.rows.sales,
        }
        with closing(self.connect_to("ecomm")) as connection:
            with connection.cursor() as cursor:
                for table in TABLES["ecomm"]:
                    found = list(rows[table]())
                    places = ", ".join(["%s"] * len(found[0]))
                    # PyMySQL makes few statements of it.
                    cursor.executemany(f"insert into {table} values ({places})", found)
            connection.commit()


def copy_rows(cursor: Any, table: str, rows: Iterable[Row]) -> None:
    """Write rows into a table of PostgreSQL; their columns are the table's."""
    lines = io.StringIO()
    csv.writer(lines).writerows(rows)
    lines.seek(0)
    cursor.copy_expert(f"copy {table} from stdin with (format csv)", lines)


def require_parts() -> None:
    """Fetch the jars, and refuse a machine that lacks a part.

    Raises:
        UserError: it lacks one; the message says how to install it.
    """
    find_binaries()
    find_binary("mariadbd")
    jars.find_java()
    jars.fetch(*jars.STACK, "mariadb", "registry")


@contextmanager
def running(folder: Path, rows: Tickit) -> Iterator[TickitStack]:
    """The servers of a folder, ended and removed in any case.

    Raises:
        UserError: a part is missing, or does not come up.
    """
    require_parts()
    with reserved_ports() as reserve:
        stack = TickitStack(folder, reserve, rows)
        stack.postgres.require_enterable()
        stack.stop()  # what a run that was killed left
        try:
            stack.start()
            yield stack
        finally:
            stack.stop()
