"""The command line: ``python -m lab.northwind``."""

from __future__ import annotations

import functools
import getpass
import os
import signal
import sys
from typing import Any

import click
from click.core import ParameterSource

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.errors import UserError
from lab.northwind.checks import REPLICATION_ROLE
from lab.northwind.load import NOTHING_CHANGED, STOPS, Source, existing, load

BAR_WIDTH = 30


def _ask(context: click.Context, option: click.Parameter, proposal: Any) -> Any:
    """Ask for what the command line leaves out, if there is a terminal."""
    name = str(option.name)
    is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    if is_given or not sys.stdin.isatty():
        return proposal
    return click.prompt(name, default=proposal, type=option.type)


_asked_for = functools.partial(click.option, show_envvar=True, callback=_ask)


@click.command(
    "lab.northwind",
    context_settings=STYLE,
    epilog="What is not given is asked for, if there is a terminal. Passwords come from"
    " PGPASSWORD and REPLICATION_PASSWORD, or are asked for, too.",
)
@version
@_asked_for("--host", envvar="PGHOST", default=Source.host)
@_asked_for(
    "--port",
    envvar="PGPORT",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    default=Source.port,
)
@_asked_for("--database", envvar="PGDATABASE", default=Source.database)
@_asked_for("--user", envvar="PGUSER", default=Source.user)
@click.option(
    "--hold-back",
    type=int,
    multiple=True,
    metavar="ORDER_ID",
    help="Leave this order and its lines out; may be given several times.",
)
@click.option("--yes", is_flag=True, help="Replace what is there without asking.")
def command(
    host: str, port: int, database: str, user: str, hold_back: tuple[int, ...], yes: bool
) -> None:
    """Load Northwind as a source database.

    Makes its tables, its outbox, a publication and the replication role.
    """
    source = Source(host, port, database, user, _password(user))
    replication_password = _replication_password()
    is_replaced = yes or _may_replace(source)
    loaded = load(
        source,
        replication_password,
        hold_back=hold_back,
        replace=is_replaced,
        progress=_draw if sys.stderr.isatty() else None,
        on_commit=_ignore_stops,
    )
    rows = loaded.rows
    click.echo(
        f"loaded {sum(rows.values()):,} rows into {len(rows)} tables of"
        f" {source.host}:{source.port}/{source.database}: {rows['orders']:,} orders with"
        f" {rows['order_details']:,} lines; the outbox holds {loaded.events:,} events"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 where Northwind is loaded."""
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        return run(command, arguments, on_stop=lambda: f"stopped; {NOTHING_CHANGED}")
    finally:
        signal.signal(signal.SIGINT, on_interrupt)


def _password(user: str) -> str | None:
    password = os.environ.get("PGPASSWORD")
    if password is None and sys.stdin.isatty():
        password = getpass.getpass(f"password of {user}: ") or None
    return password


def _replication_password() -> str:
    password = os.environ.get("REPLICATION_PASSWORD", "")
    if not password and sys.stdin.isatty():
        password = getpass.getpass(f"password for the role {REPLICATION_ROLE}: ")
    if not password:
        raise UserError(
            f"the role {REPLICATION_ROLE} needs a password: set REPLICATION_PASSWORD"
        )
    return password


def _may_replace(source: Source) -> bool:
    """Whether there is something to replace, and somebody agrees to that.

    Raises:
        UserError: nobody does.
    """
    there = ", ".join(existing(source))
    if not there:
        return False
    if not sys.stdin.isatty():
        raise UserError(
            f"database {source.database} has {there} already;"
            " --yes replaces that, with all data in it"
        )
    if not click.confirm(f"replace {there} in {source.database}, with all data?"):
        raise UserError(NOTHING_CHANGED)
    return True


def _ignore_stops() -> None:
    """Too late to stop: the commit's outcome is reported, and that is the end."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


def _draw(table: str, done: int, total: int) -> None:
    full = BAR_WIDTH * done // total
    bar = "█" * full + "·" * (BAR_WIDTH - full)
    end = "\n" if done == total else ""
    print(
        f"\r{bar} {done:,} of {total:,} rows  {table:<20}",
        end=end,
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
