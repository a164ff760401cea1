"""The command line: ``python -m connectors.postgres``."""

from __future__ import annotations

import argparse
import getpass
import os
import signal
import sys

from connectors.postgres.checks import REPLICATION_ROLE
from connectors.postgres.load import Loaded, Source, existing, load
from lake.errors import UserError

BAR_WIDTH = 30


def main(arguments: list[str] | None = None) -> int:
    """Load Northwind as a source database; 1 after an error, which is one sentence."""
    options = _parser().parse_args(arguments)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        return _load(options)
    finally:
        signal.signal(signal.SIGINT, on_interrupt)


def _load(options: argparse.Namespace) -> int:
    try:
        source = _source(options)
        replication_password = _replication_password()
        loaded = _replace_if_allowed(source, replication_password, options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (EOFError, KeyboardInterrupt):
        print("\nstopped; nothing was changed", file=sys.stderr)
        return 1
    if loaded is None:
        print("nothing was changed", file=sys.stderr)
        return 1
    rows = loaded.rows
    print(
        f"loaded {sum(rows.values()):,} rows into {len(rows)} tables of"
        f" {source.host}:{source.port}/{source.database}: {rows['orders']:,} orders with"
        f" {rows['order_details']:,} lines; the outbox holds {loaded.events:,} events"
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m connectors.postgres",
        description="Make Northwind, its outbox, a publication and the replication role.",
        epilog="Passwords come from PGPASSWORD and REPLICATION_PASSWORD, or are asked for.",
    )
    parser.add_argument(
        "--host", help="asked for if left out; otherwise PGHOST or 127.0.0.1"
    )
    parser.add_argument("--port", type=int, help="the same with PGPORT or 5432")
    parser.add_argument("--database", help="the same with PGDATABASE or northwind")
    parser.add_argument("--user", help="the same with PGUSER or postgres")
    parser.add_argument(
        "--hold-back",
        type=int,
        action="append",
        default=[],
        metavar="ORDER_ID",
        help="leave this order and its lines out (may be given several times)",
    )
    parser.add_argument(
        "--yes", action="store_true", help="replace what is there without asking"
    )
    return parser


def _source(options: argparse.Namespace) -> Source:
    host = options.host or _asked("host", os.environ.get("PGHOST") or Source.host)
    port = options.port or _port(_asked("port", os.environ.get("PGPORT") or "5432"))
    database = options.database or _asked(
        "database", os.environ.get("PGDATABASE") or Source.database
    )
    user = options.user or _asked("user", os.environ.get("PGUSER") or Source.user)
    password = os.environ.get("PGPASSWORD")
    if password is None and sys.stdin.isatty():
        password = getpass.getpass(f"password of {user}: ") or None
    return Source(host, port, database, user, password)


def _asked(what: str, default: str) -> str:
    if not sys.stdin.isatty():
        return default
    return input(f"{what} [{default}]: ").strip() or default


def _port(text: str) -> int:
    if not text.isdecimal():
        raise UserError(f"the port is a number, not '{text}'")
    return int(text)


def _replication_password() -> str:
    password = os.environ.get("REPLICATION_PASSWORD", "")
    if not password and sys.stdin.isatty():
        password = getpass.getpass(f"password for the role {REPLICATION_ROLE}: ")
    if not password:
        raise UserError(
            f"the role {REPLICATION_ROLE} needs a password: set REPLICATION_PASSWORD"
        )
    return password


def _replace_if_allowed(
    source: Source, replication_password: str, options: argparse.Namespace
) -> Loaded | None:
    """Load, unless somebody is asked and says no."""
    there = [] if options.yes else existing(source)
    if there:
        if not sys.stdin.isatty():
            raise UserError(
                f"database {source.database} has {', '.join(there)} already;"
                " --yes replaces that, with all data in it"
            )
        question = f"replace {', '.join(there)} in {source.database}, with all data? [y/N] "
        if input(question).strip().lower() not in ("y", "yes"):
            return None
    progress = _draw if sys.stderr.isatty() else None
    return load(
        source,
        replication_password,
        hold_back=options.hold_back,
        replace=options.yes or bool(there),
        progress=progress,
        on_commit=_ignore_interrupts,
    )


def _ignore_interrupts() -> None:
    """Too late to stop: what the commit comes to is said, and that is the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
