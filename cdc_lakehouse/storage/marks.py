"""What bronze keeps in its commits: how far each table has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

REJECTED_TABLE = "rejected_events"
# The snapshots that `cdc-lakehouse resync` asked for; of other tables than its own.
MARKER_TABLE = "complete_snapshots"

# Kept in every commit, so that the next one knows them without reading data.
MARK_PREFIX = "lakehouse."
MARK = MARK_PREFIX + "mark"


def next_batch(last: int, now: datetime) -> int:
    """A time above ``last``: now, in UTC, as yyyyMMddHHmmssSSS."""
    at = _number(now)
    return at if at > last else _number(batch_time(last) + timedelta(milliseconds=1))


def batch_time(batch: int) -> datetime:
    """When a batch was written."""
    return datetime.strptime(f"{batch:017d}", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)


def _number(at: datetime) -> int:
    return int(at.astimezone(UTC).strftime("%Y%m%d%H%M%S%f")[:-3])


@dataclass
class Mark:
    """How far a bronze table has come.

    Attributes:
        batch: its last ``ingest_batch``, 0 before the first.
        offsets: the highest ``kafka_offset`` it holds, by ``topic/partition``.
        has_unplaced: whether it holds records without a position.
        read_to: the offset that a reader of Kafka goes on at, by ``topic/partition``.
            Files do not move it, as they may leave offsets out.
        topic_ids: Kafka's ids of the topics that were read from it.
        generations: the newest generation of each topic, 0 for the first.
        heads: by ``topic/partition``, of each generation that it holds, the highest offset
            and when that was written to Kafka, in milliseconds of Unix time.
        newest_change: when the newest change that it holds was made at the source, in
            seconds of Unix time.
        source_tables: of each topic whose events are of one source table, which it is.
    """

    batch: int = 0
    offsets: dict[str, int] = field(default_factory=dict)
    has_unplaced: bool = False
    read_to: dict[str, int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    heads: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    newest_change: float | None = None
    source_tables: dict[str, str] = field(default_factory=dict)

    def last_written(self, topic: str) -> dict[int, int]:
        """Of each generation of a topic that it holds, the time of its last record."""
        found: dict[int, int] = {}
        for place, heads in self.heads.items():
            if place.rpartition("/")[0] == topic:
                for generation, (_, written) in heads.items():
                    number = int(generation)
                    found[number] = max(found.get(number, written), written)
        return found

    def made_anew(self, topic_ids: dict[str, str]) -> set[str]:
        """The topics that have another id now; what is known of them is of older ones."""
        return {
            topic
            for topic, known in self.topic_ids.items()
            if topic_ids.get(topic, known) != known
        }
