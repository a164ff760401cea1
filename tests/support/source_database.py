"""A database of a test's own on a stack's PostgreSQL, and the connectors that read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from lab.stack.northwind import NorthwindStack


class SourceDatabase:
    """The database.

    Args:
        stack: whose PostgreSQL and Connect are used.
        name: the database's.

    Attributes:
        connectors: the names of those that read it.
    """

    def __init__(self, stack: NorthwindStack, name: str) -> None:
        self.stack = stack
        self.name = name
        self.connectors: list[str] = []

    def create(self) -> None:
        """Make it, empty."""
        with self.cursor("postgres") as cursor:
            cursor.execute(f"create database {self.name}")

    def configure(self, name: str, configuration: dict[str, str]) -> None:
        """Have a connector read it."""
        self.connectors.append(name)
        self.stack.connect.ask("PUT", f"/connectors/{name}/config", configuration)

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
    def cursor(self, database: str | None = None) -> Iterator[Any]:
        """A cursor that commits each statement, in this database or another."""
        name = database or self.name
        with closing(self.stack.postgres.connect(dbname=name)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                yield cursor
