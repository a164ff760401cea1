"""Random transactions on a source, from several connections at once."""

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
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
VALUES: Values = {
    "order": range(10248, 11090),
    "another": range(10248, 11090),
    "customer": ("ALFKI", "VINET", "TOMSP", "WOLZA", "ANATR"),
    "employee": range(1, 10),
    "shipper": (1, 2, 3),
    "product": range(1, 78),
    "supplier": range(1, 30),
    "territory": ("01581", "02903", "30346", "06897"),
    "region": range(1, 5),
    "number": range(1, 100),
}


def filled(draw: random.Random, statement: str, values: Values) -> str:
    """A statement with one of the values for each name."""
    return statement.format(**{name: draw.choice(values[name]) for name in values})


@dataclass
class Storm:
    """Transactions that run in threads of their own, each from its own connection.

    Args:
        connect: makes a connection to the source database.
        seed: of the choices; the interleaving is the machine's.
        transactions: how many in all.
        statements: what they choose from; Northwind's where none are given.
        values: what stands for the names in them.
        driver_error: what the database's driver raises.
    """

    connect: Callable[[], Any]
    seed: int
    transactions: int
    statements: Sequence[str] = tuple(NORTHWIND)
    values: Values = field(default_factory=lambda: VALUES)
    driver_error: type[Exception] = psycopg2.Error
    committed: int = 0
    errors: list[BaseException] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Begin."""
        for number in range(CONNECTIONS):
            thread = threading.Thread(target=self._run, args=(number,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def wait(self) -> None:
        """Wait for the end; raise what went wrong."""
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _run(self, number: int) -> None:
        draw = random.Random(self.seed * 1_000 + number)
        connection = None
        try:
            for _ in range(self.transactions // CONNECTIONS):
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
                with self._lock:
                    self.committed += 1
        except BaseException as error:
            self.errors.append(error)
        finally:
            if connection is not None:
                connection.close()

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
