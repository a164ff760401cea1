"""What commands log: a line on stderr for people, or a JSON object for machines."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import click

# When a step is spoken of first, and how often then.
FIRST_SECONDS, SECONDS = 5.0, 15.0
# What a message may carry beside its text, by `extra=`.
FIELDS = ("table", "records", "lag_seconds", "seconds", "file", "model", "rows")


def quoted(text: str) -> str:
    """A text from outside on one line: characters that are not printable are escaped."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in text
    )


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        return f"{at:%H:%M:%S} {record.name}: {level}{quoted(record.getMessage())}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        content = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        known = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            known["trace"] = self.formatException(record.exc_info)
        return json.dumps(content | known, default=str)


def start(name: str, log_format: str) -> None:
    """Have a logger write to stderr, and with ``json`` those of libraries, too.

    Args:
        name: the logger's, which is the command's.
        log_format: ``text`` (times are UTC) or ``json``, one object a line.
    """
    stop(name)
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.INFO)
    if log_format == "json":
        logging.getLogger().addHandler(handler)
        logging.captureWarnings(True)


def stop(name: str) -> None:
    """Undo ``start``."""
    logger = logging.getLogger(name)
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        logging.getLogger().removeHandler(handler)
    logging.captureWarnings(False)


def is_json(name: str) -> bool:
    """Whether a logger writes JSON."""
    handlers = logging.getLogger(name).handlers
    return any(isinstance(handler.formatter, _Json) for handler in handlers)


def _start(context: click.Context, parameter: click.Parameter, value: str) -> None:
    start(context.find_root().command.name or "", value)


@contextlib.contextmanager
def step(logger: logging.Logger, text: str) -> Iterator[None]:
    """Say what is under way where a block takes longer than some seconds, and go on so."""
    ended = threading.Event()

    def tell() -> None:
        start, pause = time.monotonic(), FIRST_SECONDS
        while not ended.wait(pause):
            logger.info("%s, for %.0f s now", text, time.monotonic() - start)
            pause = SECONDS

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()


# Eager, so that what is wrong with the other options is written in the same way.
option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    is_eager=True,
    expose_value=False,
    callback=_start,
    help="how stderr is written",
)
