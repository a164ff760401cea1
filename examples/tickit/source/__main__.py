"""The three databases, and what brings them to Kafka."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.storage.place import lake_folder
from examples.tickit.source.generator import Tickit
from examples.tickit.source.stack import PROJECT, TOPICS, TickitStack


def describe(stack: TickitStack, lake: Path) -> str:
    """Where the databases, Kafka and the registry are, and the commands that ingest."""
    return "\n".join(
        (
            f'ems and crm: PGPASSWORD="$(cat {stack.secrets}/postgres)" psql'
            f" -h 127.0.0.1 -p {stack.postgres.port} -U postgres ems",
            f'ecomm:       MYSQL_PWD="$(cat {stack.secrets}/root)" mariadb'
            f" -h 127.0.0.1 -P {stack.mariadb.port} -u root ecomm",
            f"logs:        {stack.folder}/logs",
            "",
            f"  export LAKE_ROOT={lake}",
            f"  cd {PROJECT}",
            "  python -m ingest kafka"
            f" --bootstrap-servers {stack.bootstrap_servers}"
            f" --registry {stack.registry.url}"
            f" --topic {' '.join(TOPICS)}",
        )
    )


@click.command("examples.tickit.source", context_settings=STYLE)
@version
@click.option(
    "--scale",
    type=click.FloatRange(0, 1, min_open=True),
    default=1,
    help="Of the rows; 1 is 192,497 listings and 171,100 sales.",
)
def command(scale: float) -> None:
    """Run TICKIT's databases, Kafka, Connect and a schema registry, until Ctrl-C.

    Everything of it is below LAKE_ROOT/tickit, and is removed in the end.
    """
    lake = lake_folder("the databases need a folder").absolute()
    click.echo("starting PostgreSQL, MariaDB, Kafka, Connect and a schema registry")
    with TickitStack(lake, Tickit(scale)).anew() as stack:
        click.echo("Kafka has every row\n")
        click.echo(describe(stack, lake))
        signal.pause()


def main(arguments: list[str] | None = None) -> int:
    """Run the servers until they are stopped."""
    return run(command, arguments, on_stop=lambda: "stopped; every server was ended")


if __name__ == "__main__":
    sys.exit(main())
