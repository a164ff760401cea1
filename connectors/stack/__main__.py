"""``python -m connectors.stack start|status|stop``."""

from __future__ import annotations

import argparse
import sys
import time

from connectors.stack.processes import ended_as_by_ctrl_c
from connectors.stack.stack import VALID_PORTS, Stack
from connectors.stack.status import describe_parts, describe_state
from lake.errors import UserError
from lake.place import lake_folder

PARTS = 3
PORTS = {
    "postgres": "PostgreSQL",
    "kafka": "the broker",
    "connect": "Connect's REST interface",
}
INTERRUPTED = {
    "start": "interrupted: what this start began was ended",
    "status": "interrupted",
    "stop": "interrupted: some of it may still run; see: python -m connectors.stack status",
}


def port(text: str) -> int:
    """A port as the command line has it."""
    if not text.isdecimal() or int(text) not in VALID_PORTS:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 1 to 65535")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    main_parser = argparse.ArgumentParser(
        prog="python -m connectors.stack",
        description="PostgreSQL with Northwind, Kafka and Connect, below LAKE_ROOT.",
    )
    commands = main_parser.add_subparsers(dest="command", required=True)

    start = commands.add_parser("start", help="start it, and wait until changes stream")
    start.add_argument(
        "--hold-back",
        type=int,
        metavar="ORDER_ID",
        help="leave an order out when the database is made, to insert it later",
    )
    for name, what in PORTS.items():
        start.add_argument(
            f"--{name}-port",
            type=port,
            metavar="PORT",
            help=f"for {what}; otherwise the one it had last, or a free one",
        )

    commands.add_parser("status", help="how it does, and how far bronze has come")

    stop = commands.add_parser("stop", help="end everything; the data stay")
    stop.add_argument("--remove", action="store_true", help="remove the data, too")
    return main_parser


def start(stack: Stack, options: argparse.Namespace) -> None:
    """Start the stack and say what runs where."""
    begin = time.monotonic()
    stack.require_state()
    if len(stack.running()) == PARTS and stack.is_complete:
        print("the stack runs already")
    else:
        print("starting PostgreSQL, Kafka and Connect; the first time fetches their jars")
        ports = {name: getattr(options, f"{name}_port") for name in PORTS}
        stack.start(
            hold_back=options.hold_back,
            ports={name: port for name, port in ports.items() if port is not None},
        )
        print(f"changes stream, after {time.monotonic() - begin:.0f} s")
    print("\n".join(describe_parts(stack)))
    print(f"psql, as its owner: {stack.psql_command()}")
    print(
        f"next: python -m ingest kafka --bootstrap-servers {stack.bootstrap_servers}"
        " --topics connectors/stack/topics.toml --topic demo.datalake.cdc_events"
    )


def status(stack: Stack) -> None:
    """Say how the stack does."""
    stack.require_state()
    if not stack.running():
        print("the stack does not run; start it: python -m connectors.stack start")
    else:
        if not stack.is_complete:
            print(
                "a start is under way; if it was cut off, end what it left:"
                " python -m connectors.stack stop"
            )
        print("\n".join(describe_parts(stack)) + "\n")
    print("\n".join(describe_state(stack)))


def stop(stack: Stack, *, remove: bool) -> None:
    """End everything, and say so."""
    ran = stack.running()
    for name in stack.stop():
        print(f"{name} did not end by itself and was killed")
    print(f"stopped: {', '.join(ran)}" if ran else "nothing ran")
    if remove:
        stack.remove()
        print(f"removed: {stack.folder}")


def run(options: argparse.Namespace) -> None:
    """Run the command of a command line."""
    stack = Stack(lake_folder("the stack needs a folder"))
    if options.command == "start":
        start(stack, options)
    elif options.command == "status":
        status(stack)
    else:
        stop(stack, remove=options.remove)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 1 for what the user can mend."""
    options = parser().parse_args(arguments)
    try:
        with ended_as_by_ctrl_c():
            run(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(INTERRUPTED[options.command], file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
