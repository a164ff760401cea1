"""``python -m lab.stack start|status|stop``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.storage.place import lake_folder
from lab.stack import status as statuses
from lab.stack.northwind import NorthwindStack
from lab.stack.stack import VALID_PORTS

STOPPED = {
    "start": "stopped; what this start began was ended",
    "stop": "stopped; some of it may still run; see: python -m lab.stack status",
}


def _stack() -> NorthwindStack:
    return NorthwindStack(lake_folder("the stack needs a folder"))


def _port(name: str, service: str) -> Callable[..., Any]:
    return click.option(
        f"--{name}-port",
        name,
        type=click.IntRange(VALID_PORTS[0], VALID_PORTS[-1]),
        metavar="PORT",
        help=f"For {service}; otherwise the one it had last, or a free one.",
    )


@click.group("lab.stack", context_settings=STYLE)
@version
def command() -> None:
    """PostgreSQL with Northwind, Kafka and Connect, below LAKE_ROOT."""


@command.command()
@click.option(
    "--hold-back",
    type=int,
    metavar="ORDER_ID",
    help="Leave an order out when the database is made, to insert it later.",
)
@_port("postgres", "PostgreSQL")
@_port("kafka", "the broker")
@_port("connect", "Connect's REST interface")
def start(hold_back: int | None, **ports: int | None) -> None:
    """Start it, and wait until changes stream."""
    begin = time.monotonic()
    stack = _stack()
    stack.require_state()
    if len(stack.running()) == len(stack.parts) and stack.is_complete:
        click.echo("the stack runs already")
    else:
        click.echo(
            "starting PostgreSQL, Kafka and Connect; the first time fetches their jars"
        )
        stack.start(
            hold_back=hold_back,
            ports={name: port for name, port in ports.items() if port is not None},
        )
        click.echo(f"changes stream, after {time.monotonic() - begin:.0f} s")
    click.echo("\n".join(statuses.table(statuses.read_parts(stack))))
    click.echo(f"psql, as its owner: {stack.psql_command()}")
    click.echo(
        f"next: python -m ingest kafka --bootstrap-servers {stack.bootstrap_servers}"
    )


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def status(as_json: bool) -> None:
    """Show the health of the services and the lag of the ingest."""
    stack = _stack()
    stack.require_state()
    found = statuses.read_status(stack)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2))
        return
    if not any(part["pid"] for part in found.parts):
        click.echo("the stack does not run; start it: python -m lab.stack start")
    else:
        if not stack.is_complete:
            click.echo(
                "a start is under way; if it was cut off, end what it left:"
                " python -m lab.stack stop"
            )
        click.echo("\n".join(statuses.table(found.parts)) + "\n")
    click.echo("\n".join(statuses.describe(found)))


@command.command()
@click.option("--remove", is_flag=True, help="Remove the data, too.")
def stop(remove: bool) -> None:
    """End everything; the data stay."""
    stack = _stack()
    statuses.stop(stack)
    if remove:
        stack.remove()
        click.echo(f"removed: {stack.folder}")


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    words = sys.argv[1:] if arguments is None else arguments
    stopped = next((STOPPED[word] for word in words if word in STOPPED), "stopped")
    return run(command, words, on_stop=lambda: stopped)


if __name__ == "__main__":
    sys.exit(main())
