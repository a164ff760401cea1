"""How every command of ours says its version, is stopped, and ends.

A command is made with click; its name is the module that runs it.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import click

from lake import __version__
from lake.errors import DONE, UserError

STYLE = {"help_option_names": ["-h", "--help"], "show_default": True}
version = click.version_option(__version__, message="%(version)s")


def run(
    command: click.Command,
    arguments: Sequence[str] | None = None,
    *,
    on_stop: Callable[[], str] = lambda: "stopped",
) -> int:
    """Run a command line, and say on stderr what ended it.

    Args:
        command: the command; what its function returns is the exit code, None is 0.
        arguments: the command line, by default this process's.
        on_stop: what to say where Ctrl-C or a signal ended it.

    Returns:
        The exit code: 0 done, 1 an error, 2 wrong usage, 75 an error that may pass, 130
        (Ctrl-C), 143 (SIGTERM) and 129 (SIGHUP) where it was stopped.
    """
    with stopped_like_ctrl_c() as stopped_by:
        try:
            code = command.main(
                arguments, prog_name=f"python -m {command.name}", standalone_mode=False
            )
        except click.ClickException as error:
            error.show()
            return error.exit_code
        except UserError as error:
            print(f"{command.name}: {error}", file=sys.stderr)
            return error.exit_code
        except (click.Abort, KeyboardInterrupt):
            print(f"{command.name}: {on_stop()}", file=sys.stderr)
            return 128 + (stopped_by[0] if stopped_by else signal.SIGINT)
    return DONE if code is None else int(code)


def complain(message: str) -> None:
    """Print a message on stderr, after the name of the command that runs."""
    name = click.get_current_context().find_root().command.name
    click.echo(f"{name}: {message}", err=True)


@contextlib.contextmanager
def stopped_like_ctrl_c() -> Iterator[list[int]]:
    """SIGTERM and SIGHUP end the block with KeyboardInterrupt, so that it can clean up.

    By themselves they end Python at once, and what it started runs on.

    Yields:
        A list that holds the signal's number from then on.
    """
    stopped_by: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not stopped_by:  # a second one would cut the cleaning off
            stopped_by.append(number)
            raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    # `nohup` ignores SIGHUP, and means it.
    before = {n: was for n in numbers if (was := signal.getsignal(n)) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield stopped_by
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
