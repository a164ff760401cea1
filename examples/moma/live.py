"""The walk-through of MoMA: from a commit in the museum's database to gold.

Everything of it lies below ``LAKE_ROOT/live``, which it begins anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from examples.moma.source import DATABASE, TOPICS, open_museum, statements
from lab.demo.live import Scenario, Step, follow, northwind_stack
from lab.stack.northwind import NorthwindStack

GOLD = {"artworks_with_artists": "artwork_id"}


def _step(title: str, *texts: str) -> Step:
    def change(stack: NorthwindStack) -> None:
        stack.postgres.execute(*texts, dbname=DATABASE)

    return Step(title, change)


STEPS = (
    _step("artwork 128 is changed four times", *statements("artwork")),
    *(_step(text.splitlines()[-1], text) for text in statements("artist")),
)


@contextmanager
def _museum(lake: Path) -> Iterator[NorthwindStack]:
    with northwind_stack(lake) as stack:
        open_museum(stack)
        yield stack


MOMA = Scenario(
    "PostgreSQL with the museum, Kafka, Connect",
    _museum,
    lambda stack: [
        *("--bootstrap-servers", stack.bootstrap_servers),
        *(f"--topic={topic}" for topic in TOPICS),
        "--then-build",
    ],
    GOLD,
    STEPS,
    Path(__file__).parent,
)


@click.command("examples.moma.live", context_settings=STYLE)
@version
def command() -> None:
    """Follow changes of a museum's tables through Debezium and Kafka to gold.

    Everything of it is below LAKE_ROOT/live, which is emptied first.
    """
    follow(MOMA)


def main(arguments: list[str] | None = None) -> int:
    """Run the walk-through; 0 where everything went well."""
    return run(command, arguments, on_stop=lambda: "stopped; what it started was ended")


if __name__ == "__main__":
    sys.exit(main())
