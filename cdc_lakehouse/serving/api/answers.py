"""Answers: from the cache while no table has a newer commit, else from the engine."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyarrow import fs

from cdc_lakehouse.errors import TransientError
from cdc_lakehouse.serving.api.cache import Cache
from cdc_lakehouse.serving.api.engines import Engine, Rows
from cdc_lakehouse.serving.api.questions import Column, Question, Statement
from cdc_lakehouse.serving.aws import aws_errors
from cdc_lakehouse.storage.files import file_system
from cdc_lakehouse.storage.timeline import newest_instant, time_of

# How many statements run at once, and how many more may wait for that.
RUNNING, WAITING = 4, 28
# A role's credentials end; pyarrow keeps those that it was given.
SECONDS_OF_CREDENTIALS = 300


@dataclass(frozen=True)
class Answer:
    """An answer, known by what it comes from.

    Attributes:
        question: what is asked.
        statement: with what parameters.
        commits: of each table that it reads the newest, listed before the rows are read.
        name: the statement's, to the cache.
        tag: changes with the statement and the commits, and with nothing else.
        body: JSON, where the cache has it.
    """

    question: Question
    statement: Statement
    commits: dict[str, str]
    name: str
    tag: str
    body: bytes | None


class Answers:
    """Answers questions about one lake.

    Args:
        lake: its folder, or its ``s3://`` URL.
        engine: runs statements.
        cache: keeps answers.
        seconds: how long a statement may take, its wait for others included.
    """

    def __init__(
        self, lake: Path | str, engine: Engine, cache: Cache, seconds: float
    ) -> None:
        self.seconds = seconds
        self._lake = lake if isinstance(lake, str) else str(lake.absolute())
        self._engine = engine
        self._cache = cache
        self._pool = ThreadPoolExecutor(RUNNING, thread_name_prefix="answers")
        self._pending: dict[str, Future[bytes]] = {}
        self._lock = threading.Lock()

    def commits(self, question: Question) -> dict[str, str]:
        """Of each table that a question reads the name of the newest commit.

        Raises:
            TransientError: one has none, or they cannot be listed.
        """
        found = {}
        for name, relation in question.tables.items():
            place = question.places[name]
            try:
                with aws_errors():
                    period = int(time.monotonic() // SECONDS_OF_CREDENTIALS)
                    files, root = _file_system(self._lake, period)
                    newest = newest_instant(files, f"{root}/{place}")
            except OSError as error:
                raise TransientError(f"cannot list {place}: {error}") from error
            if newest is None:
                raise TransientError(f"{place} has no commit")
            found[f"{relation.layer}.{relation.name}"] = newest
        return found

    def look_up(self, question: Question, statement: Statement) -> Answer:
        """An answer's tag, and its body where it is kept; raises as ``commits``."""
        commits = self.commits(question)
        name = _digest(self._lake, *statement)
        tag = _digest(name, commits)
        kept = self._cache.get(name) or b""
        body = kept[len(tag) :] if kept.startswith(tag.encode()) else None
        return Answer(question, statement, commits, name, tag, body)

    def compute(self, answer: Answer) -> Future[bytes]:
        """Have a body computed, once for all who wait for it.

        Raises:
            TransientError: too many wait for others.
        """
        with self._lock:
            future = self._pending.get(answer.tag)
            if future is None:
                if len(self._pending) >= RUNNING + WAITING:
                    raise TransientError("too many questions wait for their answers")
                end = time.monotonic() + self.seconds
                future = self._pool.submit(self._run, answer, end)
                self._pending[answer.tag] = future
                future.add_done_callback(lambda _: self._pending.pop(answer.tag, None))
            return future

    def _run(self, answer: Answer, end: float) -> bytes:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        rows = self._engine(answer.question, answer.statement, left)
        *_, offset, limit = answer.statement[1]
        body = _body(answer.question.columns, rows, answer.commits, offset, limit)
        self._cache.put(answer.name, answer.tag.encode() + body)
        return body


@lru_cache(maxsize=1)
def _file_system(lake: str, period: int) -> tuple[fs.FileSystem, str]:
    return file_system(lake)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _body(
    columns: Sequence[Column],
    rows: Rows,
    commits: dict[str, str],
    offset: int,
    limit: int,
) -> bytes:
    """JSON; the last row, one more than was asked for, says only that there is more."""
    names = [json.dumps(column.name) for column in columns]
    objects = (
        ",".join(f"{name}:{_json(value)}" for name, value in zip(names, row, strict=True))
        for row in rows[: limit - 1]
    )
    times = {table: time_of(name) for table, name in commits.items()}
    more = offset + limit - 1 if len(rows) == limit else None
    return (
        f'{{"rows":[{",".join(f"{{{each}}}" for each in objects)}],'
        f'"next_offset":{_json(more)},"commits":{_json(times)}}}'
    ).encode()


def _json(value: Any) -> str:
    if isinstance(value, Decimal):  # json has only floats, which lose digits
        return format(value, "f")
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_text)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        at = value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)
        return at.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else str(value)
