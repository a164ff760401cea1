"""A database of a test's own on a PostgreSQL, and the connectors that read it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.northwind import NorthwindStack
from lab.stack.postgres import SUPERUSER, PostgresServer
from lab.stack.processes import wait_until


class Database:
    """A database of PostgreSQL.

    Args:
        postgres: the server.
        name: the database's.
    """

    def __init__(self, postgres: PostgresServer, name: str) -> None:
        self.postgres = postgres
        self.name = name

    def create(self) -> None:
        """Make it, empty."""
        self.postgres.execute(f"create database {self.name}")

    @contextmanager
    def cursor(self, database: str | None = None) -> Iterator[Any]:
        """A cursor that commits each statement, in this database or another."""
        with closing(self.postgres.connect(dbname=database or self.name)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                yield cursor

    def execute(self, script: str) -> list[tuple[Any, ...]]:
        """Run statements, each in a transaction of its own; what the last one returns."""
        statements = filter(str.strip, script.split(";"))
        return self.postgres.execute(*statements, dbname=self.name)

    def environment(self) -> dict[str, str]:
        """How commands find it, as its superuser."""
        return {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.postgres.port),
            "PGDATABASE": self.name,
            "PGUSER": SUPERUSER,
            "PGPASSWORD": self.postgres.password,
        }


class SourceDatabase(Database):
    """One on a stack's PostgreSQL, which connectors read.

    Attributes:
        connectors: the names of those.
    """

    def __init__(self, stack: NorthwindStack, name: str) -> None:
        super().__init__(stack.postgres, name)
        self.stack = stack
        self.connectors: list[str] = []

    def publish(self, schema: str) -> None:
        """Have the connectors' user read every table of a schema."""
        self.execute(f"""
            create publication {self.name} for all tables;
            grant usage on schema {schema} to {REPLICATION_ROLE};
            grant select on all tables in schema {schema} to {REPLICATION_ROLE}
        """)

    def configuration(
        self, name: str, tables: str, file: str = "source-tables"
    ) -> dict[str, str]:
        """The configuration of a connector that reads some of its tables.

        Its slot, its publication and the prefix of its topics have the connector's name.
        """
        return self.stack.configuration(file) | {
            "custom.metric.tags": f"connector={name}",
            "database.dbname": self.name,
            "publication.name": name,
            "slot.name": name,
            "table.include.list": tables,
            "topic.prefix": name,
        }

    def configure(self, name: str, configuration: dict[str, str]) -> None:
        """Have a connector read it, from its snapshot's end on."""
        self.connectors.append(name)
        self.stack.connect.ask("PUT", f"/connectors/{name}/config", configuration)
        wait_until(self._is_streaming, 120, f"the connector {name} does not stream", 0.2)
        # A slot is active before its snapshot has ended.
        self.wait_until_caught_up()

    def _is_streaming(self) -> bool:
        states = self.stack.connect.states()
        traces = [states[name].trace for name in self.connectors if name in states]
        assert not any(traces), traces
        with self.cursor() as cursor:
            cursor.execute(
                "select count(*) from pg_replication_slots where active and database = %s",
                (self.name,),
            )
            return bool(cursor.fetchone()[0] == len(self.connectors))

    def wait_until_caught_up(self) -> None:
        """Wait until Kafka has every change."""
        self.stack.wait_until_caught_up(database=self.name)

    def remove(self) -> None:
        """Remove the connectors, their slots and the database."""
        for name in self.stack.connect.states().keys() & self.connectors:
            self.stack.connect.remove(name)
        with self.cursor("postgres") as cursor:
            cursor.execute(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots"
                " where database = %s",
                (self.name,),
            )
            cursor.execute(f"drop database if exists {self.name} with (force)")


@contextmanager
def source_database(stack: NorthwindStack, name: str) -> Iterator[SourceDatabase]:
    """An empty one, for as long as a block."""
    source = SourceDatabase(stack, name)
    source.create()
    try:
        yield source
    finally:
        source.remove()
