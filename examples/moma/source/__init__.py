"""The museum's database on the servers of ``make stack``, and what reads it."""

from __future__ import annotations

from pathlib import Path

from cdc_lakehouse.errors import TransientError
from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until

FOLDER = Path(__file__).parent
DATABASE = "moma"
TABLES = ("artists", "artworks")
TOPICS = [f"{DATABASE}.public.{table}" for table in TABLES]
# What its connector has otherwise than connectors/source-tables.json.
CONNECTOR = {
    "custom.metric.tags": f"connector={DATABASE}",
    "database.dbname": DATABASE,
    "publication.name": DATABASE,
    "slot.name": DATABASE,
    "table.include.list": ",".join(f"public.{table}" for table in TABLES),
    "topic.prefix": DATABASE,
}


def statements(name: str) -> list[str]:
    """The statements of ``<name>.sql`` beside this module."""
    text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    return [each for each in text.split(";\n") if each.strip()]


def open_museum(stack: NorthwindStack) -> None:
    """Make the database with its collection, and wait until Kafka has all of it.

    Raises:
        UserError: it takes too long, as where the connector failed.
    """
    stack.postgres.execute(f"create database {DATABASE}")
    [(rows,)] = stack.postgres.execute(
        *statements("tables"),
        f"create publication {DATABASE} for table {', '.join(TABLES)}",
        f"grant select on {', '.join(TABLES)} to {REPLICATION_ROLE}",
        "select (select count(*) from artists) + (select count(*) from artworks)",
        dbname=DATABASE,
    )
    config = stack.configuration("source-tables") | CONNECTOR
    stack.connect.ask("PUT", f"/connectors/{DATABASE}/config", config)

    def is_read() -> bool:
        try:
            ends = stack.broker.end_offsets(rf"{DATABASE}\..*")
        except TransientError:  # there is no topic yet
            return False
        return bool(sum(ends.values()) == rows)

    log = stack.connect.log
    wait_until(is_read, 120, f"the connector {DATABASE} reads nothing (see {log})", 0.2)
