"""Random transactions on a source, from several connections at once."""

import random
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg2

CONNECTIONS = 4
LONG_SECONDS = 2.0
SECONDS_TO_RETRY = 90
FOLDER = Path(__file__).parent / "source_sql"


def read_statements(file: str) -> list[str]:
    """The changes of a file, of one statement or more; a name in braces is a value's."""
    return (FOLDER / file).read_text().split(";\n")[:-1]


# Changes of Northwind: transactions of one of the first list each never deadlock.
ONE_ROW = read_statements("outbox/one_row.sql")
MANY_ROWS = read_statements("outbox/many_rows.sql")
# The last one fills the outbox, which waits for writers.
NORTHWIND = [*ONE_ROW, *MANY_ROWS[:-1]]
Values = Mapping[str, Sequence[Any]]


def read_values(file: str) -> Values:
    """What may stand for each name in a file's changes."""
    found = tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))
    return {
        name: range(its["from"], its["to"] + 1) if isinstance(its, dict) else its
        for name, its in found.items()
    }


VALUES = read_values("outbox/values.toml")


def filled(draw: random.Random, statement: str, values: Values) -> str:
    """A statement with one of the values for each name."""
    return statement.format(**{name: draw.choice(values[name]) for name in values})


@dataclass
class Storm:
    """Transactions that run in threads of their own, each from its own connection.

    The seed is that of the choices; the interleaving is the machine's.
    """

    connect: Callable[[], Any]
    seed: int
    transactions: int
    statements: Sequence[str] = tuple(NORTHWIND)
    values: Values = field(default_factory=lambda: VALUES)
    driver_error: type[Exception] = psycopg2.Error  # what the database's driver raises

    def start(self) -> None:
        """Begin."""
        pool = ThreadPoolExecutor(CONNECTIONS)
        self._ended = [pool.submit(self._run, number) for number in range(CONNECTIONS)]
        pool.shutdown(wait=False)

    def wait(self) -> None:
        """Wait until all are committed; raise what went wrong."""
        assert sum(each.result() for each in self._ended) == self.transactions

    def _run(self, number: int) -> int:
        draw = random.Random(self.seed * 1_000 + number)
        connection: Any = None
        count = self.transactions // CONNECTIONS
        for _ in range(count):
            end = time.monotonic() + SECONDS_TO_RETRY
            while True:
                try:
                    connection = connection or self.connect()
                    self._transact(connection, draw)
                    break
                except self.driver_error:
                    connection = self._recovered(connection)
                    # Deadlocks, a key that another took first, a server that restarts.
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.05)
        connection.close()
        return count

    def _transact(self, connection: Any, draw: random.Random) -> None:
        with connection.cursor() as cursor:
            for _ in range(draw.choice((1, 1, 1, 2, 3))):
                changes = filled(draw, draw.choice(self.statements), self.values)
                for statement in changes.split("-- then\n"):
                    cursor.execute(statement)
            if draw.random() < 0.01:
                # It commits late, behind transactions with higher positions.
                time.sleep(LONG_SECONDS)
        connection.commit()

    def _recovered(self, connection: Any) -> Any:
        """The connection, rolled back, or None where it is lost."""
        try:
            connection.rollback()
            return connection
        except (self.driver_error, AttributeError):
            return None
