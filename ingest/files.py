"""Brings files into bronze, batch by batch, past those that cannot be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cdc_lakehouse import log, metrics
from cdc_lakehouse.command import StopRequest
from cdc_lakehouse.errors import TransientError
from cdc_lakehouse.storage.place import lake_root
from ingest.batches import Batches
from ingest.failures import SPARK_ERRORS, explanation, reason
from ingest.landing import File, Landing, Ledger

MEBIBYTE = 1 << 20
# Where the lake remembers what it has read.
LEDGER = "checkpoints/landing"


class FileReader:
    """Reads what is new at some paths.

    Args:
        batches: write the records, and log.
        paths: files, folders and globs, local or URLs.
        topic: the topic of records that do not name theirs.
        max_bytes: how much of the files a batch reads.

    Raises:
        UserError: nothing is at one of the paths.
    """

    def __init__(
        self, batches: Batches, paths: list[str], topic: str | None, max_bytes: int
    ) -> None:
        spark = batches.bronze.spark
        self._batches = batches
        self._topic = topic
        self._ledger = Ledger(spark, f"{lake_root()}/{LEDGER}")
        self._landing = Landing(spark, paths, self._ledger, max_bytes)

    @property
    def unreadable(self) -> bool:
        """Whether there was a file that could not be read."""
        return bool(self._landing.unreadable)

    def read_new(self, stop: StopRequest, between: Callable[[], None]) -> bool:
        """Read what bronze lacks.

        Args:
            stop: after it, no further batch begins.
            between: called after each batch.

        Returns:
            Whether all that was new has been read.

        Raises:
            UserError: something other than a file stopped it.
        """
        new = self._landing.new_files()
        total, read = sum(file.length for file in new), 0
        start, records = time.monotonic(), self._batches.tally.read
        for batch in self._landing.batches(new):
            if stop:
                return False
            if len(new) > len(batch):
                done = f"{read // MEBIBYTE:,} of {total // MEBIBYTE:,} MiB are read"
                self._batches.log.info(
                    "%s%s", done, self._pace(records, start, read / total) if read else ""
                )
            size = sum(file.length for file in batch) // MEBIBYTE
            with log.step(self._batches.log, f"reading {len(batch)} files of {size} MiB"):
                self._write(batch)
            read += sum(file.length for file in batch)
            between()
        if not self._landing.unreadable and not self._landing.waiting:
            metrics.note_complete(self._batches.tables)
        between()
        return True

    def _pace(self, before: int, start: float, share: float) -> str:
        """How many records have been read since a time, which share of all that is."""
        passed = time.monotonic() - start
        records = self._batches.tally.read - before
        left = passed / share - passed
        rate = records / passed
        return f": {records:,} records, {rate:,.0f} a second, {left:,.0f} s left"

    def _write(self, batch: list[File]) -> None:
        left = batch
        while left:
            try:
                left = self._landing.readable(left)
                if left:
                    records = self._landing.records(left, self._topic)
                    with metrics.batch():
                        left_out = self._batches.write(records)
                    self._landing.note_waiting(left, left_out)
                break
            except SPARK_ERRORS as error:
                meaning = explanation(error)
                # A store that does not answer is no fault of the file's.
                if isinstance(meaning, TransientError):
                    raise meaning from error
                self._find_unreadable(left)
                readable = [file for file in left if file not in self._landing.unreadable]
                if readable == left:
                    raise meaning from error
                left = readable
        # The ledger comes after bronze.
        if done := [file for file in left if file not in self._landing.waiting]:
            self._ledger.add(done)
        for file in batch:
            if file not in left:
                self._batches.log.error(
                    "cannot read %s: %s; bronze has none of it: repair or replace it",
                    file.path,
                    self._landing.unreadable[file],
                    extra={"file": file.path},
                )

    def _find_unreadable(self, files: list[File]) -> None:
        """Note the files that cannot be read, found by halves where an error names none."""
        try:
            records = self._landing.records(files, self._topic)
            classified = self._batches.classifier.classified(records)
            classified.write.format("noop").mode("overwrite").save()
        except SPARK_ERRORS as error:
            meaning = explanation(error)
            if isinstance(meaning, TransientError):
                raise meaning from error
            others = self._landing.set_aside(files, error)
            if others != files:
                parts = [others]
            elif len(files) > 1:
                parts = [files[: len(files) // 2], files[len(files) // 2 :]]
            else:
                self._landing.unreadable[files[0]] = reason(str(error))
                return
            for part in filter(None, parts):
                self._find_unreadable(part)


def occasions(paths: Sequence[str], seconds: float, stop: StopRequest) -> Iterator[None]:
    """Yield when there may be something to read, and at a stop request.

    That is after some seconds, as a network's file system may tell of nothing; and where
    all paths are local folders, as soon as the system says that something changed there.
    """
    if all(Path(path).is_dir() for path in paths):
        # A cluster's package, which reads no local folders, is without it.
        from watchfiles import watch
        from watchfiles._rust_notify import WatchfilesRustInternalError

        due = time.monotonic() + seconds
        with suppress(OSError, WatchfilesRustInternalError):  # too many folders to watch
            for changes in watch(
                *paths,
                watch_filter=None,
                debounce=50,
                step=10,
                rust_timeout=100,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                if changes or stop or time.monotonic() >= due:
                    yield
                    due = time.monotonic() + seconds
    while True:
        stop.sleep(seconds)
        yield
