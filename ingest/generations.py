"""Generations of a topic: one that is recreated starts its offsets again.

Kafka gives each generation an id of its own. A record of a file has none: there its Kafka
timestamp decides, with what the topics file says, and shows what that file lacks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# What says of which generation a record is, and contradicts it.
PLACE = (
    "topic",
    "topic_generation",
    "kafka_partition",
    "kafka_offset",
    "kafka_timestamp",
)
# By so much a later record may have an earlier time: clocks are corrected, and differ.
CLOCK_SKEW_MS = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Recreation:
    """What shows that a topic was recreated: the earliest record behind a later one.

    Attributes:
        partition: the record's.
        offset: the record's, which is not above that of an earlier record.
        at: when it was written to Kafka.
    """

    partition: int | None
    offset: int
    at: datetime


def numbers(times: list[datetime], held: dict[int, int], newest: int) -> list[int]:
    """The generation of what was written before the first time, from it to the next, etc.

    What bronze holds keeps its number, so that what is older may get one below 0, and two
    times between which no number is left have the same generation.

    Args:
        times: when the topic was recreated.
        held: of each generation that bronze holds, when its last record was written, in
            milliseconds of Unix time.
        newest: what bronze has counted up to.
    """
    starts = [milliseconds(time) for time in times]
    known: dict[int, int] = {}
    for generation, written in sorted(held.items()):
        known[sum(start <= written for start in starts)] = generation
    if newest and not known:
        known[len(times)] = newest  # counted by an earlier version
    if not known:
        known[0] = 0
    found = []
    for place in range(len(times) + 1):
        below = [each for each in known if each <= place]
        above = [known[each] for each in known if each >= place]
        nearest = max(below, default=min(known))
        found.append(min([known[nearest] + place - nearest, *above]))
    return found


def generation(topics: dict[str, tuple[list[datetime], list[int]]]) -> Column:
    """The generation of each record, by its Kafka timestamp; of a topic that is not listed
    null, and without a timestamp the newest.

    Args:
        topics: when each was recreated, and the ``numbers`` between these times.
    """
    written = F.unix_millis("kafka_timestamp")
    found = F.when(F.col("topic").isin(*topics), 0)
    for topic, (times, counts) in topics.items():
        if counts == [0]:
            continue
        value = F.lit(counts[-1])
        for time, number in reversed([*zip(times, counts[:-1], strict=True)]):
            value = F.when(written < milliseconds(time), number).otherwise(value)
        found = F.when(F.col("topic") == topic, value).otherwise(found)
    return found.cast("int")


def milliseconds(time: datetime) -> int:
    """Of Unix time."""
    return (time - _EPOCH) // timedelta(milliseconds=1)


def recreations(records: Iterable[DataFrame]) -> dict[str, Recreation]:
    """The topics with records of several generations in what is taken for one.

    In a generation's partition, offsets rise with time. Times say nothing where they are
    less than a second apart, and nothing is said of records without offset or time.

    Args:
        records: in the columns of ``PLACE``.
    """
    all_records, *others = records
    for each in others:
        all_records = all_records.unionAll(each)
    partition = Window.partitionBy("topic", "topic_generation", "kafka_partition")
    not_below = partition.orderBy(F.desc("kafka_offset"))
    found = (
        all_records.where("kafka_offset is not null and kafka_timestamp is not null")
        .withColumn("at", F.unix_millis("kafka_timestamp"))
        .withColumn("earliest", F.min("at").over(not_below))
        .where(F.col("at") > F.col("earliest") + CLOCK_SKEW_MS)
        .groupBy("topic")
        .agg(F.min(F.struct("at", "kafka_partition", "kafka_offset")).alias("first"))
        .collect()
    )
    return {
        row["topic"]: Recreation(
            partition=row["first"]["kafka_partition"],
            offset=row["first"]["kafka_offset"],
            at=_EPOCH + timedelta(milliseconds=row["first"]["at"]),
        )
        for row in found
    }


def refusal(topic: str, found: Recreation, known: list[datetime]) -> str:
    """What to say of a topic that was recreated, with the line for the topics file."""
    times = ", ".join(_text(time) for time in sorted({*known, found.at}))
    return (
        f"{topic}, partition {found.partition}: offset {found.offset} was written at"
        f" {_text(found.at)}, after the same or a higher offset: the topic was recreated;"
        " its records wait until the topics file says, below [recreated], when:"
        f' "{topic}" = [{times}]  or, where it was not recreated, "{topic}" = []'
    )


def _text(time: datetime) -> str:
    """A time as TOML has it."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
