"""What is done with one micro-batch, and the count of what was done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from logging import Logger
from queue import Empty, SimpleQueue

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest import metrics
from ingest.bronze import Bronze, Slice, next_batch
from ingest.events import SKIPPED, Classifier
from ingest.topics import Topics
from lake.mark import REJECTED_TABLE


@dataclass(frozen=True)
class Outcome:
    """What a micro-batch came to: the events written, and to which tables."""

    written: int
    tables: frozenset[str]


@dataclass
class Tally:
    """Records so far: read, newly written, rejected, skipped."""

    read: int = 0
    written: int = 0
    rejected: int = 0
    skipped: int = 0
    worst_share: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)


class Batches:
    """Writes micro-batches of records to bronze.

    Args:
        bronze: the tables.
        topics: which topic goes to which.
        log: where an ingest that stays logs each batch.
        continuous: whether it stays.

    Attributes:
        classifier: says where records go.
        tally: what all of them came to.
    """

    def __init__(
        self, bronze: Bronze, topics: Topics, log: Logger, *, continuous: bool
    ) -> None:
        self.bronze = bronze
        self.log = log
        self._is_continuous = continuous
        self.topics = topics
        self.classifier = Classifier(topics)
        # What was rejected comes first: a topic's table then says how far all of its
        # topic is written.
        self.tables = [REJECTED_TABLE, *sorted(set(topics.tables.values()))]
        self.tally = Tally()
        # Those of a stream run in a thread of their own.
        self._outcomes: SimpleQueue[Outcome] = SimpleQueue()

    def ended(self) -> Iterator[Outcome]:
        """What the batches came to that have ended since this was asked last."""
        with suppress(Empty):
            while True:
                yield self._outcomes.get_nowait()

    def create_missing(self) -> None:
        """Create every bronze table that is not there, empty."""
        self.bronze.create_missing(self.tables)

    def write(self, records: DataFrame) -> None:
        """Write one micro-batch.

        One that is given again after a crash finds what it wrote before, and writes the
        rest.
        """
        rows = self.classifier.classified(records)
        # Of an event the value is kept, and not once more with what was around it.
        of_rejected = F.when(F.col("reason").isNotNull(), F.col("record"))
        rows = rows.withColumn("record", of_rejected).persist()
        start = time.monotonic()
        try:
            slices = self._slices(rows)
            batch = next_batch(
                max(self.bronze.mark(table).batch for table in self.tables),
                datetime.now(UTC),
            )
            written: dict[str, int] = {}
            for table in self.tables:
                parts = [part for part in slices if part.destination == table]
                if parts:
                    of_table = rows.where(F.col("destination") == table)
                    count = self.bronze.append(of_table, table, parts, batch)
                    if table != REJECTED_TABLE and count:
                        written[table] = count
                        self._report(table, count, parts)
            self._count(rows, slices, sum(written.values()))
            metrics.batch_seconds.observe(time.monotonic() - start)
            self._outcomes.put(Outcome(sum(written.values()), frozenset(written)))
        finally:
            rows.unpersist()

    def _slices(self, rows: DataFrame) -> list[Slice]:
        found = (
            rows.groupBy("destination", "topic", "kafka_partition")
            .agg(
                F.count("*").alias("rows"),
                F.min("kafka_offset").alias("low"),
                F.max("kafka_offset").alias("high"),
                F.max("source_ts").cast("double").alias("newest"),
            )
            .collect()
        )
        return [
            Slice(
                destination=row["destination"],
                topic=row["topic"],
                partition=row["kafka_partition"],
                rows=row["rows"],
                low_offset=row["low"],
                high_offset=row["high"],
                newest=row["newest"],
            )
            for row in found
        ]

    def _report(self, table: str, count: int, parts: list[Slice]) -> None:
        newest = max((part.newest for part in parts if part.newest), default=None)
        lag = None if newest is None else time.time() - newest
        if lag is not None:
            metrics.lag_seconds.labels(table).set(lag)
        if not self._is_continuous:
            return
        behind = "" if lag is None else f", {lag:.1f} s behind the source"
        self.log.info(
            "%s: %d events%s",
            table,
            count,
            behind,
            extra={"table": table, "records": count, "lag_seconds": lag},
        )

    def _count(self, rows: DataFrame, slices: list[Slice], written: int) -> None:
        read = sum(part.rows for part in slices)
        rejected = sum(p.rows for p in slices if p.destination == REJECTED_TABLE)
        self.tally.read += read
        self.tally.written += written
        self.tally.rejected += rejected
        skipped = sum(p.rows for p in slices if p.destination == SKIPPED)
        self.tally.skipped += skipped
        for outcome, count in (
            ("read", read),
            ("written", written),
            ("rejected", rejected),
            ("skipped", skipped),
            ("duplicate", read - written - rejected - skipped),
        ):
            metrics.records.labels(outcome).inc(count)
        if rejected:
            self.tally.worst_share = max(self.tally.worst_share, rejected / read)
            for row in rows.where("reason is not null").groupBy("reason").count().collect():
                before = self.tally.reasons.get(row["reason"], 0)
                self.tally.reasons[row["reason"]] = before + row["count"]
