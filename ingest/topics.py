"""What ``topics.toml`` says."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.marks import REJECTED_TABLE

# Of the project in whose folder the command is run.
TOPICS_FILE = Path("topics.toml")


@dataclass(frozen=True)
class Topics:
    """What ``topics.toml`` says of each topic.

    Attributes:
        tables: the bronze table.
        epochs: the source epoch, 0 where nothing is said.
        source_tables: the source's tables whose events it carries, where its name does not
            say it, with or without their schema; ``*`` matches any characters.
        recreated: when the topic was recreated, for records that files bring; empty where
            it never was, whatever their timestamps say.
    """

    tables: dict[str, str]
    epochs: dict[str, int]
    source_tables: dict[str, list[str]]
    recreated: dict[str, list[datetime]] = field(default_factory=dict)

    def carries_several(self, topic: str) -> bool:
        """Whether ``[source_tables]`` lists several tables, or a pattern, for a topic."""
        names = self.source_tables.get(topic, [])
        return len(names) > 1 or "*" in "".join(names)

    def table_of(self, topic: str, known: str | None, names: set[str]) -> str | None:
        """The one source table whose events a topic carries, with its schema where known.

        Args:
            topic: one that carries no more than one.
            known: the table of its events before.
            names: those of new events; of several, the topic's name decides.
        """
        listed = self.source_tables.get(topic)
        if known and listed and not is_same_table(known, listed[0]):
            known = None
        if known is None:
            if not names:
                return None
            known = min(names, key=lambda name: (not topic.endswith(f".{name}"), name))
        with_schema = [name for name in names if name.endswith(f".{known}")]
        return min(with_schema, default=known)


def is_same_table(one: str, other: str) -> bool:
    """Whether two names may be of one table: of a name without a schema it is unknown."""
    return one == other or one.endswith(f".{other}") or other.endswith(f".{one}")


def read_topics(path: Path = TOPICS_FILE) -> Topics:
    """Read and check the topics file.

    Raises:
        UserError: the file is missing, is no TOML, or says something else than
            ``[topics]`` (topic to table name), ``[epochs]`` (topic to a whole number from
            0), ``[source_tables]`` (topic to a list of names) and ``[recreated]`` (topic
            to a list of times).
    """
    try:
        # Windows' editors put a mark of byte order before it.
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read {path}: save it as UTF-8 ({error})") from error
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error

    known = ("topics", "epochs", "source_tables", "recreated")
    unknown = sorted(content.keys() - known)
    if unknown:
        raise UserError(
            f"{path}: unknown section [{unknown[0]}]; known: {', '.join(known)}"
        )
    for section, said in content.items():
        if not isinstance(said, dict):
            raise UserError(
                f"{path}: {section} is {said!r}; it is a section: write [{section}], and"
                " below it a line for each topic"
            )

    tables, epochs, source_tables, recreated = (
        content.get(section, {}) for section in known
    )
    if not tables:
        raise UserError(f"{path}: [topics] names no topic, so there is nothing to ingest")
    for topic, table in tables.items():
        if not isinstance(table, str) or not re.fullmatch(r"[a-z_][a-z0-9_]*", table):
            raise UserError(
                f"{path}: topic '{topic}' names the table {table!r}; a table's name is"
                " lower-case letters, digits and underscores"
            )
        if table == REJECTED_TABLE:
            raise UserError(
                f"{path}: '{REJECTED_TABLE}' is the quarantine, no topic's table"
            )
    for section in known[1:]:
        for topic in content.get(section, {}):
            if topic not in tables:
                raise UserError(
                    f"{path}: [{section}] names '{topic}', which [topics] lacks"
                )
    for topic, epoch in epochs.items():
        if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
            raise UserError(
                f"{path}: the epoch of '{topic}' is {epoch!r}; it is a whole number from 0"
            )
    for topic, names in source_tables.items():
        is_list = isinstance(names, list) and names
        if not is_list or not all(isinstance(name, str) for name in names):
            raise UserError(
                f"{path}: the source tables of '{topic}' are {names!r}; they are a list of"
                " names, ['*'] for any"
            )
    for topic, times in recreated.items():
        are_times = isinstance(times, list) and all(map(_is_with_offset, times))
        if not are_times or any(later <= time for time, later in pairwise(times)):
            raise UserError(
                f"{path}: [recreated] says {times!r} of '{topic}'; it is a list of rising"
                " times with an offset, [2026-01-31T09:30:00Z]"
            )
    return Topics(tables, epochs, source_tables, recreated)


def _is_with_offset(time: object) -> bool:
    return isinstance(time, datetime) and time.tzinfo is not None
