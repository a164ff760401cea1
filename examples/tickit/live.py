"""The walk-through of TICKIT: from a commit in one of three databases to gold.

Everything of it lies below ``LAKE_ROOT/live``, which it begins anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from examples.tickit.gold import KEYS
from examples.tickit.source.generator import Tickit
from examples.tickit.source.stack import PROJECT, TOPICS, TickitStack
from lab.demo.live import Scenario, Step, follow

# A tenth of the rows that python -m examples.tickit.source makes.
SCALE = 0.1


def _execute(database: str, statement: str) -> Callable[[TickitStack], None]:
    def change(stack: TickitStack) -> None:
        stack.execute(database, statement)

    return change


STEPS = (
    Step(
        "MariaDB, ecomm: sale 7 is corrected",
        _execute(
            "ecomm",
            "update sale set pricepaid = 1234.50, commission = 185.18 where salesid = 7",
        ),
    ),
    Step(
        "PostgreSQL, ems: event 1 moves to venue 2",
        _execute("ems", "update ems.event set venueid = 2 where eventid = 1"),
    ),
    Step(
        "PostgreSQL, crm: user 1 has another name",
        _execute("crm", "update crm.user set lastname = 'Lovelace' where userid = 1"),
    ),
    Step(
        "MariaDB, ecomm: sale 8 is deleted",
        _execute("ecomm", "delete from sale where salesid = 8"),
    ),
)


@contextmanager
def _tickit(lake: Path) -> Iterator[TickitStack]:
    with TickitStack(lake, Tickit(SCALE)).anew() as stack:
        print(f"   PostgreSQL on port {stack.postgres.port},")
        print(f"   MariaDB on {stack.mariadb.port}, Kafka on {stack.broker.port},")
        print(f"   Connect on {stack.connect.port}; all logs below {stack.folder}")
        yield stack


TICKIT = Scenario(
    "TICKIT in two PostgreSQL databases and MariaDB, Kafka, Connect, a registry",
    _tickit,
    lambda stack: [
        *("--bootstrap-servers", stack.bootstrap_servers),
        *("--registry", stack.registry.url),
        *(f"--topic={topic}" for topic in TOPICS),
        "--then-build",
    ],
    KEYS,
    STEPS,
    PROJECT,
)


@click.command("examples.tickit.live", context_settings=STYLE)
@version
def command() -> None:
    """Follow changes in three databases through Debezium and Kafka to gold.

    Everything of it is below LAKE_ROOT/live, which is emptied first.
    """
    follow(TICKIT)


def main(arguments: list[str] | None = None) -> int:
    """Run the walk-through; 0 where everything went well."""
    return run(command, arguments, on_stop=lambda: "stopped; what it started was ended")


if __name__ == "__main__":
    sys.exit(main())
