"""What is done with one micro-batch, and the count of what was done."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from logging import Logger
from queue import Empty, SimpleQueue
from threading import Lock

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.util import inheritable_thread_target

from cdc_lakehouse import metrics
from cdc_lakehouse.errors import TransientError
from cdc_lakehouse.storage.marks import REJECTED_TABLE, Mark, next_batch
from ingest.bronze import Bronze, Slice, head_of_records
from ingest.events import SKIPPED, Classifier
from ingest.generations import PLACE, generation, numbers, recreations, refusal
from ingest.kafka import recreated
from ingest.tombstones import PLACED, REASON, after_delete, is_tombstone, without_delete
from ingest.topics import Topics, is_same_table

# What a reason quotes of a record: reasons that differ in nothing else are of one kind.
VARIABLE = re.compile(r"(?s)(?<=').*(?=')|(?<=schema )[0-9]+")
EXAMPLES = 10


@dataclass
class Rejections:
    """Records that were rejected for one kind of reason, and some of the reasons."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if len(self.examples) == 1:
            return self.examples[0]
        found = [VARIABLE.search(example) for example in self.examples]
        texts = [repr(each[0]) for each in found if each]
        return f"{VARIABLE.sub('…', self.examples[0])} (such as {', '.join(texts)})"


@dataclass
class Tally:
    """Records so far: read, newly written, rejected, skipped.

    ``reasons`` is by their kind.
    """

    read: int = 0
    written: int = 0
    rejected: int = 0
    skipped: int = 0
    worst_share: float = 0.0
    reasons: dict[str, Rejections] = field(default_factory=dict)


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
        refused: the topics whose records are left out from now on, with the reason.
        ask_topic_ids: asks Kafka for the ids of the topics that are read from it.
        now: the time that a batch is numbered by.
        writing: held while a batch is written, or by who else writes bronze.
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
        self.refused: dict[str, str] = {}
        self.ask_topic_ids: Callable[[], dict[str, str]] = dict
        self.now: Callable[[], datetime] = partial(datetime.now, UTC)
        # Of topics with events of one source table, which it is.
        self._carried: dict[str, str] = {}
        # A stream's batches run in a thread of their own.
        self._written: SimpleQueue[int] = SimpleQueue()
        self.writing = Lock()

    def ended(self) -> Iterator[int]:
        """The events written by each batch that has ended since this was asked last."""
        with suppress(Empty):
            while True:
                yield self._written.get_nowait()

    def has_ended(self) -> bool:
        """Whether ``ended`` has a batch to yield."""
        return not self._written.empty()

    def create_missing(self) -> None:
        """Create every bronze table that is not there, empty."""
        self.bronze.create_missing(self.tables)

    def write(self, records: DataFrame) -> frozenset[str]:
        """Write one micro-batch.

        One that is given again after a crash finds what it wrote before, and writes the
        rest.

        Args:
            records: the columns of ``RECORD``, and ``topic_generation`` where it is known.

        Returns:
            The ``source_file``s with records of topics that are refused, which are neither
            written nor counted.
        """
        with self.writing:
            return self._write(records)

    def _write(self, records: DataFrame) -> frozenset[str]:
        start = time.monotonic()
        rows = in_memory = self._classified(records)
        try:
            slices = self._slices(rows)
            if self._has_other_tables(slices):
                in_memory.unpersist()
                rows = in_memory = self._classified(records)
                slices = self._slices(rows)
            # They are read: a topic with the same id was the same one all the time.
            for topic, found in self.ask_topic_ids().items():
                if found != self.bronze.topic_ids[topic]:
                    raise TransientError(recreated(topic))
            rows = self._with_lone_tombstones_rejected(rows, slices)
            if rows is not in_memory:
                slices = self._slices(rows)
            slices = [
                replace(part, source_table=self._carried.get(part.topic or ""))
                for part in slices
            ]
            self._refuse_recreated(rows, slices)
            left_out: frozenset[str] = frozenset()
            if self.refused:
                is_refused = F.coalesce(F.col("topic").isin(*self.refused), F.lit(False))
                left_out = _source_files(rows.where(is_refused))
                rows = rows.where(~is_refused)
                slices = [part for part in slices if part.topic not in self.refused]
            batch = next_batch(
                max(self.bronze.mark(table).batch for table in self.tables), self.now()
            )
            written = self._append(rows, slices, batch)
            self._count(rows, slices, written)
            metrics.batch_seconds.observe(time.monotonic() - start)
            self._written.put(written)
            return left_out
        finally:
            in_memory.unpersist()

    def _append(self, rows: DataFrame, slices: list[Slice], batch: int) -> int:
        """Append to each destination what is for it; how many events were new.

        One that fails stops no other, and is raised when all have been written.
        """

        def append(table: str) -> int:
            parts = [part for part in slices if part.destination == table]
            of_table = rows.where(F.col("destination") == table)
            read_to = _read_to(slices, table)
            count = self.bronze.append(of_table, table, parts, batch, read_to)
            if table == REJECTED_TABLE or not count:
                return 0
            self._report(table, count, parts)
            return count

        destinations = {part.destination for part in slices}
        if REJECTED_TABLE in destinations:
            append(REJECTED_TABLE)
        # Two at a time: a commit waits as long as it works.
        with ThreadPoolExecutor(2) as pool:
            appended = [
                pool.submit(inheritable_thread_target(append), table)
                for table in self.tables
                if table != REJECTED_TABLE and table in destinations
            ]
        return sum(each.result() for each in appended)

    def marks_of(self, topic: str) -> list[Mark]:
        """Of the tables that hold a topic's records, which may all be rejected."""
        tables = (self.topics.tables[topic], REJECTED_TABLE)
        return [self.bronze.mark(table) for table in tables]

    def is_recreated(self, topic: str) -> bool:
        """Whether bronze knows a topic of Kafka's, and only by other ids than it has."""
        marks = self.marks_of(topic)
        known = {mark.topic_ids[topic] for mark in marks if topic in mark.topic_ids}
        return bool(known) and self.bronze.topic_ids[topic] not in known

    def _classified(self, records: DataFrame) -> DataFrame:
        """The records with their destinations, in memory."""
        rows = self.classifier.classified(records)
        if "topic_generation" not in rows.columns:
            rows = rows.withColumn("topic_generation", self.generation())
        # Of an event the value is kept, and not once more with what was around it.
        is_event = F.col("destination").isin(*self.topics.tables.values())
        of_rejected = F.when(~F.coalesce(is_event, F.lit(False)), F.col("record"))
        # A topic that was recreated may have the same change at the same offset again,
        # which then stands before and behind other ones.
        again = F.md5(F.concat_ws("\x1f", "event_id", "topic_generation"))
        known_by = F.when(is_event & (F.col("topic_generation") != 0), again)
        return rows.withColumns(
            {"record": of_rejected, "event_id": F.coalesce(known_by, "event_id")}
        ).persist()

    def _has_other_tables(self, slices: list[Slice]) -> bool:
        """Whether events of a second source table are in a topic that carries one.

        The first one that its events name is the topic's, as two tables have the same keys.
        From then on the classifier knows it.
        """
        named: dict[str, set[str]] = {}
        for part in slices:
            if part.topic is not None and part.destination not in (REJECTED_TABLE, SKIPPED):
                named.setdefault(part.topic, set()).update(part.source_tables)
        has_others = False
        for topic, names in named.items():
            if self.topics.carries_several(topic):
                continue
            known = self._carried.get(topic) or self.bronze.mark(
                self.topics.tables[topic]
            ).source_tables.get(topic)
            table = self.topics.table_of(topic, known, names)
            if table is not None:
                self._carried[topic] = table
                has_others |= not all(is_same_table(table, name) for name in names)
        if has_others:
            self.classifier = Classifier(self.topics, self._carried)
        return has_others

    def _with_lone_tombstones_rejected(
        self, rows: DataFrame, slices: list[Slice]
    ) -> DataFrame:
        """The same rows, but for tombstones that no delete came before.

        Bronze is only searched for those that the batch itself does not explain.
        """
        tables = {
            part.topic: self.topics.tables[part.topic]
            for part in slices
            if part.destination == SKIPPED and part.topic in self.topics.tables
        }
        if not tables:
            return rows
        tombstones = rows.where(
            (F.col("destination") == SKIPPED)
            & F.col("topic").isin(*tables)
            & is_tombstone()
        ).select("event_id", *PLACED)
        arrived = rows.where(F.col("destination").isin(*tables.values())).select(
            *PLACED, "op"
        )
        explained = after_delete(tombstones, arrived).select("event_id")
        open_ones = tombstones.join(explained, on="event_id", how="left_anti")
        open_ones = open_ones.localCheckpoint()
        if open_ones.isEmpty():
            return rows
        events = arrived
        for table in sorted(set(tables.values())):
            events = events.unionByName(self.bronze.placed_events(table))
        # Now, as bronze changes while the batch is written.
        lone = without_delete(open_ones, events).select(F.col("event_id").alias("lone_id"))
        lone = lone.localCheckpoint()
        if lone.isEmpty():
            return rows
        marked = rows.join(F.broadcast(lone), F.col("event_id") == F.col("lone_id"), "left")
        is_lone = F.col("lone_id").isNotNull()
        reason = F.when(is_lone, REASON).otherwise(F.col("reason"))
        destination = F.when(is_lone, REJECTED_TABLE).otherwise(F.col("destination"))
        return marked.withColumns({"reason": reason, "destination": destination})

    def generation(self) -> Column:
        """The generation of each record, null of a topic that no table is named for.

        Kafka's records are all of the newest, as its topic's id tells.
        """
        found = {}
        for topic, table in self.topics.tables.items():
            mark = self.bronze.mark(table)
            times = self.topics.recreated.get(topic, [])
            counts = numbers(
                times, mark.last_written(topic), mark.generations.get(topic, 0)
            )
            if topic in self.bronze.topic_ids:
                newest = max(
                    each.generations.get(topic, 0) for each in self.marks_of(topic)
                )
                newest += self.is_recreated(topic)
                times, counts = [], [max(newest, counts[-1])]
            found[topic] = times, counts
        return generation(found)

    def _refuse_recreated(self, rows: DataFrame, slices: list[Slice]) -> None:
        """Refuse the topics whose records are of more generations than is known."""
        doubted = [part for part in slices if self._may_be_recreated(part)]
        if not doubted:
            return
        is_doubted = F.col("topic").isin(*{part.topic for part in doubted})
        is_event = F.col("destination").isin(*self.topics.tables.values())
        places = [rows.where(is_doubted & is_event).select(*PLACE)]
        for table in sorted({part.destination for part in doubted}):
            parts = [part for part in doubted if part.destination == table]
            places += self.bronze.places_like(table, parts)
        for topic, found in recreations(places).items():
            known = self.topics.recreated.get(topic, [])
            self.refused[topic] = refusal(topic, found, known)
            self.log.error("%s", self.refused[topic])

    def _may_be_recreated(self, part: Slice) -> bool:
        """Whether only its records show of which generation a part of a batch is."""
        topic = part.topic
        if topic is None or part.destination != self.topics.tables.get(topic):
            return False
        if part.head is None or topic in self.refused:
            return False
        if self.topics.recreated.get(topic) == []:
            return False
        mark = self.bronze.mark(part.destination)
        # Files may have brought a topic before Kafka was asked for its id.
        is_first_of_kafka = topic not in mark.topic_ids and part.place in mark.offsets
        return topic not in self.bronze.topic_ids or is_first_of_kafka

    def _slices(self, rows: DataFrame) -> list[Slice]:
        found = (
            rows.groupBy("destination", "topic", "topic_generation", "kafka_partition")
            .agg(
                F.count("*").alias("rows"),
                F.min("kafka_offset").alias("low"),
                F.max("kafka_offset").alias("high"),
                head_of_records().alias("head"),
                F.max("source_ts").cast("double").alias("newest"),
                F.collect_set("source_table").alias("source_tables"),
            )
            .collect()
        )
        return [
            Slice(
                destination=row["destination"],
                topic=row["topic"],
                generation=row["topic_generation"],
                partition=row["kafka_partition"],
                rows=row["rows"],
                low_offset=row["low"],
                high_offset=row["high"],
                head=row["head"],
                newest=row["newest"],
                source_tables=frozenset(row["source_tables"]),
            )
            for row in found
        ]

    def _report(self, table: str, count: int, parts: list[Slice]) -> None:
        newest = max((part.newest for part in parts if part.newest), default=None)
        lag = None if newest is None else time.time() - newest
        if newest is not None:
            metrics.note_written(table, newest)
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
            kinds = (
                rows.where("reason is not null")
                .groupBy(F.regexp_replace("reason", VARIABLE.pattern, "…").alias("kind"))
                .agg(
                    F.count("*").alias("count"),
                    F.slice(F.array_sort(F.collect_set("reason")), 1, EXAMPLES).alias(
                        "some"
                    ),
                )
            )
            for row in kinds.collect():
                known = self.tally.reasons.setdefault(row["kind"], Rejections())
                known.count += row["count"]
                known.examples = sorted({*known.examples, *row["some"]})[:EXAMPLES]


def _read_to(slices: list[Slice], table: str) -> dict[str, int]:
    """The offset that reading goes on at, by place, once a table has its part of a batch.

    What was rejected is written first, when the events are not yet.
    """
    first = {REJECTED_TABLE, SKIPPED}
    ends: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for part in slices:
        if part.low_offset is None or part.high_offset is None:
            continue
        ends[part.place] = max(ends.get(part.place, 0), part.high_offset + 1)
        if table == REJECTED_TABLE and part.destination not in first:
            low = waiting.get(part.place, part.low_offset)
            waiting[part.place] = min(low, part.low_offset)
    return ends | waiting


def _source_files(rows: DataFrame) -> frozenset[str]:
    """The files that records are of."""
    found = rows.where("source_file is not null").select("source_file").distinct().collect()
    return frozenset(row["source_file"] for row in found)
