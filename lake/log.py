"""What commands log: a line on stderr for people, or a JSON object for machines."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

import click

option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="how stderr is written",
)
# What a message may carry beside its text, by `extra=`.
FIELDS = ("table", "records", "lag_seconds", "seconds", "file", "model")


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        return f"{at:%H:%M:%S} {record.name}: {level}{record.getMessage()}"


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
        return json.dumps(content | known, default=str)


def start(name: str, log_format: str) -> logging.Logger:
    """Have a logger write to stderr.

    Args:
        name: the logger's, which is the command's.
        log_format: ``text`` (times are UTC) or ``json``, one object a line.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    logger = logging.getLogger(name)
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)
    return logger
