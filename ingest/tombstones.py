"""Tombstones that no delete came before: the rows of their keys live on.

Debezium writes a delete and then, if at all, a tombstone of the same key. Where a connector
writes the tombstone alone (``delete.tombstone.handling.mode=tombstone``, the default of
``ExtractNewRecordState``), nothing in it says where in the source's log the row ended.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PLACED = ("topic", "topic_generation", "kafka_partition", "kafka_offset", "key")
REASON = (
    "a tombstone without a delete: the row lives on; the connector needs"
    " delete.tombstone.handling.mode=rewrite, and the table a resync"
)


def is_tombstone() -> Column:
    """Whether a skipped record is a tombstone of a known key at a known offset."""
    has_place = F.col("key").isNotNull() & F.col("kafka_offset").isNotNull()
    return has_place & F.coalesce(F.trim("value"), F.lit("")).isin("", "null")


def without_delete(tombstones: DataFrame, events: DataFrame) -> DataFrame:
    """The tombstones whose key has events, of which the last before it is no delete."""
    return _last_operations(tombstones, events).where("coalesce(last.op <> 'd', moved)")


def after_delete(tombstones: DataFrame, events: DataFrame) -> DataFrame:
    """The tombstones that a delete comes before."""
    return _last_operations(tombstones, events).where("last.op = 'd'")


def _last_operations(tombstones: DataFrame, events: DataFrame) -> DataFrame:
    """Of each tombstone's key the last event before it in its partition.

    ``moved``: there is one elsewhere, as the topic had other partitions or was recreated.
    """
    tombstone, event = F.broadcast(tombstones).alias("t"), events.alias("e")
    is_here = F.expr(
        "e.topic_generation = t.topic_generation and e.kafka_partition = t.kafka_partition"
    )
    is_before = is_here & F.expr("e.kafka_offset < t.kafka_offset")
    is_elsewhere = ~is_here & F.expr("e.topic_generation <= t.topic_generation")
    return (
        event.join(tombstone, on=["topic", "key"])
        .groupBy("t.event_id")
        .agg(
            F.max(F.when(is_before, F.struct("e.kafka_offset", "e.op"))).alias("last"),
            F.max(is_elsewhere & F.expr("e.op <> 'd'")).alias("moved"),
        )
    )
