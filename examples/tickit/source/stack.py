"""TICKIT's three databases, a broker, Connect and a schema registry, on one machine."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from cdc_lakehouse.errors import TransientError, UserError
from examples.tickit.source.generator import Row, Tickit
from lab.northwind.checks import REPLICATION_ROLE
from lab.stack import jars, mariadb, postgres
from lab.stack.broker import Broker
from lab.stack.connect import Connect, configuration
from lab.stack.processes import HOST, Part, wait_until
from lab.stack.registry import SchemaRegistry
from lab.stack.stack import Stack, write_properties

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
    **{
        name: (
            "source-tables-avro",
            {
                "custom.metric.tags": f"connector={name}",
                "database.dbname": name,
                "publication.name": PUBLICATION,
                "slot.name": f"tickit_{name}",
                "table.include.list": ",".join(f"{name}.{table}" for table in TABLES[name]),
                "topic.prefix": TOPIC_PREFIX,
            },
        )
        for name in ("ems", "crm")
    },
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


class TickitStack(Stack):
    """The databases and what brings their changes to Kafka; each start begins anew.

    Args:
        root: the folder that the stack is made in.
        rows: what the databases hold at first.
    """

    NAME = "tickit"
    COMMAND = "python -m examples.tickit.source"
    PORTS: ClassVar = {
        "postgres": "postgres",
        "mariadb": "mariadb",
        "kafka": "broker",
        "controller": "broker",
        "registry": "registry",
        "connect": "connect",
    }
    PASSWORDS = (postgres.SUPERUSER, mariadb.SUPERUSER, REPLICATION_ROLE)

    def __init__(self, root: Path, rows: Tickit) -> None:
        self.rows = rows
        super().__init__(root)

    def _make_parts(self) -> list[Part]:
        ports = self.ports
        self.postgres = postgres.PostgresServer(
            self.folder / "postgres", ports["postgres"], self.password(postgres.SUPERUSER)
        )
        self.mariadb = mariadb.MariaDBServer(
            self.folder / "mariadb", ports["mariadb"], self.password(mariadb.SUPERUSER)
        )
        self.broker = Broker(self.folder, ports["kafka"], ports["controller"])
        self.registry = SchemaRegistry(self.folder, ports["registry"])
        self.connect = Connect(self.folder, ports["connect"], ports["kafka"], self.secrets)
        return [self.postgres, self.mariadb, self.broker, self.registry, self.connect]

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka's clients begin."""
        return f"{HOST}:{self.broker.port}"

    def require_programs(self) -> None:
        """Refuse a machine that lacks a program; fetch the jars."""
        postgres.find_binaries()
        mariadb.find_binary("mariadbd")
        jars.find_java()
        jars.fetch(*jars.STACK, "mariadb", "registry")
        self.postgres.require_enterable()

    def _start_parts(self) -> None:
        """Make the databases, start everything, and wait until Kafka has every row."""
        self._write_placeholders()
        for part in self.parts.values():
            part.start()
        # Java comes up while the rows are written.
        self._fill_postgres()
        self._fill_mariadb()
        self.wait_until_ready()
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

    def configuration(self, name: str) -> dict[str, str]:
        """A connector's file, with what is otherwise here and the folder of the secrets."""
        file, changes = CONNECTORS[name]
        return configuration(file, self.secrets) | changes

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

        log = self.connect.log
        wait_until(is_there, timeout, f"the topics lack records (see {log})", 0.5)

    def _revive_connectors(self) -> None:
        """Restart what failed for the registry's sake.

        Raises:
            UserError: a connector failed for another reason.
        """
        self.connect.require_alive()
        for name, state in self.connect.states().items():
            if LOCKED in state.trace:
                path = f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
                self.connect.ask("POST", path)
            elif state.trace:
                log = self.connect.log
                raise UserError(f"{name}: {state.trace.splitlines()[0]} (see {log})")

    def _write_placeholders(self) -> None:
        for file, server in (("source", self.postgres), ("mariadb", self.mariadb)):
            write_properties(
                self.secrets / f"{file}.properties",
                host=HOST,
                port=server.port,
                user=REPLICATION_ROLE,
                password=self.password(REPLICATION_ROLE),
                bootstrap=self.bootstrap_servers,
                registry=self.registry.url,
            )

    def _fill_postgres(self) -> None:
        self.postgres.wait_until_ready()
        with closing(self.postgres.connect()) as connection:
            connection.autocommit = True  # databases are made outside of transactions
            with connection.cursor() as cursor:
                role = f"create role {REPLICATION_ROLE} login replication password %s"
                cursor.execute(role, (self.password(REPLICATION_ROLE),))
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

    def _fill_mariadb(self) -> None:
        self.mariadb.wait_until_ready()
        tables = (FOLDER / "ecomm.sql").read_text(encoding="utf-8")
        rights = mariadb.replication_rights("ecomm", self.password(REPLICATION_ROLE))
        self.mariadb.execute(*mariadb.statements(tables), *rights)
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
