"""How every command of ours says its version, is stopped, and ends.

A command is made with click; its name is the word, or the module, that runs it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import click

from cdc_lakehouse import __version__, log
from cdc_lakehouse.errors import DONE, FAILED, UserError

# What the user repairs: rights, a disk.
DISK_ERRORS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
SECONDS_OF_A_CALLBACK = 0.01
STYLE = {"help_option_names": ["-h", "--help"], "show_default": True}
version = click.version_option(__version__, message="%(version)s")


def run(
    command: click.Command,
    arguments: Sequence[str] | None = None,
    *,
    program: str | None = None,
    on_stop: Callable[[], str] = lambda: "stopped",
) -> int:
    """Run a command line, and say on stderr what ended it.

    Args:
        command: the command; what its function returns is the exit code, None is 0.
        arguments: the command line, by default this process's.
        program: how it is typed, by default ``python -m`` and its name.
        on_stop: what to say where Ctrl-C or a signal ended it.

    Returns:
        The exit code: 0 done, 1 an error, 2 wrong usage, 75 an error that may pass, 130
        (Ctrl-C), 143 (SIGTERM) and 129 (SIGHUP) where it was stopped.
    """
    name = command.name or ""
    log.stop(name)  # an earlier command line of this process may have started it
    with stopped_like_ctrl_c() as stopped_by:
        try:
            code = command.main(
                arguments,
                prog_name=program or f"python -m {name}",
                standalone_mode=False,
            )
        except click.ClickException as error:
            if log.is_json(name):
                _say(name, error.format_message())
            else:
                error.show()
            return error.exit_code
        except UserError as error:
            _say(name, str(error))
            return error.exit_code
        except (click.Abort, KeyboardInterrupt):
            _say(name, on_stop(), logging.WARNING)
            return 128 + (stopped_by[0] if stopped_by else signal.SIGINT)
        except Exception as error:  # a full disk, or a defect
            if isinstance(error, OSError) and error.errno in DISK_ERRORS:
                place = f"{error.filename}: {error.strerror}"
                _say(name, place if error.filename else str(error))
                return FAILED
            if isinstance(error, ValueError) and "Invalid endpoint" in str(
                error
            ):  # boto3's
                _say(name, f"{error}: AWS_ENDPOINT_URL_S3 is a URL, http://HOST:PORT")
                return FAILED
            # A defect: its trace, as one JSON object where every line is one.
            if not log.is_json(name):
                raise
            logging.getLogger(name).critical("unexpected error", exc_info=True)
            return FAILED
    return DONE if code is None else int(code)


def complain(message: str) -> None:
    """Print a message on stderr, after the name of the command that runs."""
    _say(click.get_current_context().find_root().command.name or "", message)


def _say(name: str, message: str, level: int = logging.ERROR) -> None:
    if log.is_json(name):
        logging.getLogger(name).log(level, message)
    else:
        # Some messages of ours have several lines.
        lines = "\n".join(log.quoted(line) for line in message.split("\n"))
        click.echo(f"{name}: {lines}", err=True)


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

    def send_again() -> None:
        number = stopped_by.pop() if stopped_by else signal.SIGINT
        signal.pthread_kill(threading.main_thread().ident or 0, number)

    with (
        _handled_by(interrupt, signal.SIGTERM, signal.SIGHUP),
        _dropped_interrupts(send_again),
    ):
        yield stopped_by


@contextlib.contextmanager
def _dropped_interrupts(send_again: Callable[[], None]) -> Iterator[None]:
    """Python drops what is raised in a finalizer or a weak reference's callback.

    Py4J has many of them, and a signal may come in any.
    """
    before = sys.unraisablehook

    def later(is_over: threading.Event) -> None:
        is_over.wait()
        time.sleep(SECONDS_OF_A_CALLBACK)
        send_again()

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            # From another thread, so that it comes when this and the callback are over:
            # what comes before is dropped, too, and starting a thread may take long.
            is_over = threading.Event()
            threading.Thread(target=later, args=(is_over,), daemon=True).start()
            is_over.set()
        else:
            before(dropped)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


class StopRequest:
    """Whether Ctrl-C or a signal has asked for the end; see ``stop_request``."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __bool__(self) -> bool:
        return self.number is not None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Note a signal; it is a handler."""
        self.number = number

    @property
    def exit_code(self) -> int:
        """What a command ends with that was stopped before it was done."""
        return 128 + (self.number or 0)

    def sleep(self, seconds: float) -> None:
        """Wait, but not on when it has come."""
        end = time.monotonic() + seconds
        while not self and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))


@contextlib.contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Within the block, Ctrl-C, SIGTERM and SIGHUP end nothing: the block asks for them."""
    request = StopRequest()
    with _handled_by(request.note, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield request


@contextlib.contextmanager
def delayed_signals() -> Iterator[None]:
    """Within the block, Ctrl-C, SIGTERM and SIGHUP wait; then they do what they would."""
    request = StopRequest()
    try:
        with _handled_by(request.note, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            yield
    finally:
        if request.number is not None:
            signal.raise_signal(request.number)


@contextlib.contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    # `nohup` ignores SIGHUP, and means it.
    before = {n: was for n in numbers if (was := signal.getsignal(n)) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)
