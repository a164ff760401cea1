"""Writes to the bronze Hudi tables: append-only, each record once, one rising batch."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.storage.clock import Commit, newest_commit, note, require_later
from cdc_lakehouse.storage.marks import MARK, MARK_PREFIX, REJECTED_TABLE, Mark
from ingest.generations import PLACE

BATCH_COLUMNS = "ingested_at timestamp, ingest_batch bigint, ingest_date string"
EVENT_COLUMNS = (
    "event_id string, topic string, topic_generation int, kafka_partition int, "
    "kafka_offset bigint, kafka_timestamp timestamp, key string, value string, op string, "
    "source_epoch int, source_position string, source_lsn bigint, source_ts timestamp, "
    f"source_table string, schema_id bigint, {BATCH_COLUMNS}"
)
REJECTED_COLUMNS = (
    "event_id string, topic string, topic_generation int, kafka_partition int, "
    "kafka_offset bigint, kafka_timestamp timestamp, key string, value string, "
    "source_file string, "
    f"reason string, schema_id bigint, {BATCH_COLUMNS}"
)
HEADS = (
    "array<struct<topic string, topic_generation int, kafka_partition int,"
    " kafka_offset bigint, written bigint>>"
)
# Rows a file: a few kilobytes each, so a file stays near Parquet's usual size.
ROWS_A_FILE = 100_000

MOST_IDS_BROADCAST = 500_000
COMMITS_A_CLUSTERING = 20
OPERATION = "hoodie.datasource.write.operation"
WRITE_OPTIONS = {
    OPERATION: "bulk_insert",
    "hoodie.datasource.write.recordkey.field": "event_id",
    "hoodie.datasource.write.partitionpath.field": "ingest_date",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.bulkinsert.sort.mode": "NONE",
    # Athena and Trino read version 6; without both, a write upgrades the table silently.
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.parquet.compression.codec": "zstd",
    # No index asks for a bloom filter. The bulk writer makes one all the same: of one key,
    # as one of Hudi's size is 431 kB of each file's footer, and one that is hashed twice,
    # as Hudi's hashes each key thirty times.
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "1",
    "hoodie.index.bloom.fpp": "0.5",
    # Each batch is a file, and a build opens every file of its days: small ones are made
    # one, of the newest days, so that neither files nor commits pile up.
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": str(COMMITS_A_CLUSTERING),
    "hoodie.clustering.plan.strategy.small.file.limit": str(16 << 20),
    "hoodie.clustering.plan.strategy.target.file.max.bytes": str(128 << 20),
    "hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS",
    "hoodie.clustering.plan.strategy.daybased.lookback.partitions": "2",
    # What was replaced stays for so many batches: a build may be reading it.
    "hoodie.clean.commits.retained": "100",
    "hoodie.keep.min.commits": "110",
    "hoodie.keep.max.commits": "140",
}


@dataclass(frozen=True)
class Slice:
    """The part of a batch that has one destination, topic, generation and partition.

    Attributes:
        head: its highest offset with a Kafka timestamp, and that in milliseconds.
        newest: when its newest change was made at the source, in seconds of Unix time.
        source_tables: the source tables that its events name.
        source_table: that of the topic, where it carries events of one only.
    """

    destination: str
    topic: str | None
    generation: int | None
    partition: int | None
    rows: int
    low_offset: int | None
    high_offset: int | None
    head: tuple[int, int] | None
    newest: float | None
    source_tables: frozenset[str] = frozenset()
    source_table: str | None = None

    @property
    def place(self) -> str:
        """The key of ``Mark.offsets``."""
        return f"{self.topic}/{self.partition}"


class Bronze:
    """The bronze layer below one warehouse folder.

    Attributes:
        topic_ids: Kafka's ids of the topics that are read from it; none for files.
    """

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self.spark = spark
        # Hudi's file system takes no relative path.
        self.warehouse = (
            warehouse if "://" in warehouse else str(Path(warehouse).absolute())
        )
        self.root = f"{self.warehouse}/bronze.db"
        self.topic_ids: dict[str, str] = {}
        # Nobody else writes meanwhile: the ingest holds the lake's lock.
        self._marks: dict[str, Mark] = {}

    def path(self, table: str) -> str:
        """Where a table is."""
        return f"{self.root}/{table}"

    def create_missing(self, tables: list[str]) -> None:
        """Create every table that is not there, empty, so that dbt can read it.

        A kill while one is created leaves a folder without properties, which Hudi cannot
        open, or a table without a commit, which has no columns.
        """
        # Two at a time: a commit waits as long as it works.
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._create_if_missing, tables))

    def _create_if_missing(self, table: str) -> None:
        timeline = self._timeline(table)
        if timeline is not None and self._remove_cut_commit(table, timeline):
            timeline = self._timeline(table)
        if timeline is None:
            unfinished = self._hadoop_path(f"{self.path(table)}/.hoodie")
            self._file_system(unfinished).delete(unfinished, True)
        if timeline is None or timeline.empty():
            # Not by createDataFrame, which starts a Python to make no row.
            columns = [column.split() for column in columns_of(table).split(", ")]
            empty = self.spark.range(0).selectExpr(
                *(f"cast(null as {kind}) as {name}" for name, kind in columns)
            )
            # Hudi refuses it for a table that was created without it.
            zone = {"hoodie.table.timeline.timezone": "UTC"} if timeline is None else {}
            self._commit(empty.coalesce(1), table, Mark(), zone)
        else:
            self._marks[table] = self._mark_of(table, timeline)

    def _remove_cut_commit(self, table: str, timeline: Any) -> bool:
        """Whether the newest commit was empty, and is removed; Hudi rolls its files back.

        Hudi 1.0.2 writes a commit in place, where a kill leaves a file without content:
        Spark takes it for a commit, and no other reader can read the table. In S3 an object
        is there once it is whole, and a look at each table's would cost a request.
        """
        newest = timeline.lastInstant()
        if self.root.startswith("s3") or not newest.isPresent():
            return False
        commit = newest.get()
        if timeline.getInstantDetails(commit).get():
            return False
        name = f"{commit.requestedTime()}.{commit.getAction()}"
        file = self._hadoop_path(f"{self.path(table)}/.hoodie/{name}")
        self._file_system(file).delete(file, False)
        return True

    def read(self, table: str) -> DataFrame:
        """What a table holds."""
        return self.spark.read.format("hudi").load(self.path(table))

    def placed_events(self, table: str) -> DataFrame:
        """The operation, key and place in Kafka of each event that a table holds."""
        columns = ("topic", "kafka_partition", "kafka_offset", "key", "op")
        return self.read(table).select("topic_generation", *columns)

    def mark(self, table: str) -> Mark:
        """How far a table has come, from its newest commit that says so."""
        if table not in self._marks:
            timeline = self._timeline(table)
            stored = Mark() if timeline is None else self._mark_of(table, timeline)
            self._marks[table] = stored
        return self._marks[table]

    def _mark_of(self, table: str, timeline: Any) -> Mark:
        utilities = self._apache.hudi.common.table.timeline.TimelineUtils
        instants = timeline.getReverseOrderedInstants().iterator()
        while instants.hasNext():
            metadata = utilities.getCommitMetadata(instants.next(), timeline)
            text = metadata.getMetadata(MARK)
            if text is not None:
                return Mark(**json.loads(text))
        # Only services (clustering, say) are left on the timeline: ask the data.
        return self._mark_from_data(table)

    def append(
        self,
        rows: DataFrame,
        table: str,
        slices: list[Slice],
        batch: int,
        read_to: dict[str, int],
    ) -> int:
        """Append the rows of one destination that the table does not hold yet.

        Args:
            rows: classified records of that destination, in memory.
            table: the destination.
            slices: what the batch holds for it.
            batch: the ``ingest_batch`` to write.
            read_to: the offset that reading goes on at afterwards, by place.

        Returns:
            How many rows were written. None are, and no commit is made, where the
            table has them all.
        """
        mark = self.mark(table)
        ids = rows.select("event_id").distinct()
        total = sum(part.rows for part in slices)
        known = [part for part in slices if self._may_be_known(part, mark)]
        if known:
            # What the table holds is not shuffled; but Java takes some 300 bytes for an id
            # that is broadcast, and one large file is a batch by itself.
            way = "broadcast" if total <= MOST_IDS_BROADCAST else "merge"
            held = self._rows_like(table, known).select("event_id")
            held = held.join(ids.hint(way), on="event_id", how="left_semi")
            ids = ids.join(held.hint(way), on="event_id", how="left_anti")
        count = ids.count()
        # Where each row is new, as usual, its values need not be shuffled.
        if count < total:
            rows = rows.dropDuplicates(["event_id"]).join(
                ids, on="event_id", how="left_semi"
            )
        if count:
            moved = _moved(mark, slices, batch, self.topic_ids, read_to)
            columns = _bronze_columns(table, batch)
            self._append(rows.select(*columns), table, moved, count=count)
        return count

    def _may_be_known(self, part: Slice, mark: Mark) -> bool:
        if part.low_offset is None:
            return mark.has_unplaced
        return part.low_offset <= mark.offsets.get(part.place, -1)

    def places_like(self, table: str, slices: list[Slice]) -> list[DataFrame]:
        """What the table holds that may contradict the offsets of a batch.

        Returns:
            In the columns of ``PLACE``, the records of the same stretch of the same
            partitions, and those of their highest offsets. It reads as little as the
            search for records that are known already.
        """
        mark = self.mark(table)
        known = [part for part in slices if self._may_be_known(part, mark)]
        found = []
        if known:
            rows = self._rows_like(table, known)
            found.append(rows.select(*PLACE))
        heads = {
            (part.topic, int(generation), part.partition, *head)
            for part in slices
            for generation, head in mark.heads.get(part.place, {}).items()
        }
        if heads:
            # Literals, as createDataFrame would start a Python for a few rows.
            literals = F.array(*(F.struct(*map(F.lit, head)) for head in heads))
            frame = self.spark.range(1).select(F.inline(literals.cast(HEADS)))
            at = F.timestamp_millis("written").alias("kafka_timestamp")
            found.append(frame.select(*PLACE[:-1], at))
        return found

    def _rows_like(self, table: str, slices: list[Slice]) -> DataFrame:
        """The rows that the table holds in the same stretch of the same partitions."""
        likely: Column = F.lit(False)
        for part in slices:
            same = F.col("topic").eqNullSafe(F.lit(part.topic))
            if part.low_offset is None:
                likely = likely | (same & F.col("kafka_offset").isNull())
            else:
                likely = likely | (
                    same
                    & (F.col("kafka_partition") == part.partition)
                    & F.col("kafka_offset").between(
                        F.lit(part.low_offset), F.lit(part.high_offset)
                    )
                )
        return self.read(table).where(likely)

    def remove_rejected(self, ids: DataFrame) -> None:
        """Take records out of the quarantine, by their ``event_id``s, the one column."""
        leaving = self.read(REJECTED_TABLE).join(
            ids.toDF("event_id"), on="event_id", how="left_semi"
        )
        leaving = leaving.select(*_column_names(REJECTED_TABLE)).persist()
        try:
            if not leaving.isEmpty():
                mark = self.mark(REJECTED_TABLE)
                self._commit(leaving, REJECTED_TABLE, mark, {OPERATION: "delete"})
        finally:
            leaving.unpersist()

    def _append(self, rows: DataFrame, table: str, mark: Mark, count: int) -> None:
        files = max(1, -(-count // ROWS_A_FILE))
        self._commit(rows.coalesce(files), table, mark)

    def _commit(
        self, rows: DataFrame, table: str, mark: Mark, options: dict[str, str] | None = None
    ) -> None:
        require_later(self._newest_commit)
        self._marks.pop(table, None)
        (
            rows.write.format("hudi")
            .options(**WRITE_OPTIONS | (options or {}))
            .option("hoodie.table.name", table)
            .option("hoodie.datasource.write.commitmeta.key.prefix", MARK_PREFIX)
            .option(MARK, json.dumps(asdict(mark)))
            .mode("append")
            .save(self.path(table))
        )
        note()
        self._marks[table] = mark

    @cached_property
    def _newest_commit(self) -> Commit:
        """That of before; those of its own are not above what the clock has shown."""
        return newest_commit(self.spark, self.warehouse, schemas="bronze")

    @property
    def _apache(self) -> Any:
        """The JVM's ``org.apache``."""
        jvm: Any = self.spark._jvm
        return jvm.org.apache

    def _hadoop_path(self, path: str) -> Any:
        return self._apache.hadoop.fs.Path(path)

    def _file_system(self, hadoop_path: Any) -> Any:
        return hadoop_path.getFileSystem(self.spark._jsc.hadoopConfiguration())

    def _has_properties(self, table: str) -> bool:
        """Whether a table's properties are written; Hudi restores them from the backup."""
        properties = self._hadoop_path(f"{self.path(table)}/.hoodie/hoodie.properties")
        backup = properties.suffix(".backup")
        files = self._file_system(properties)
        is_written = files.exists(properties) and files.getFileStatus(properties).getLen()
        return bool(is_written) or files.exists(backup)

    def _timeline(self, table: str) -> Any:
        """The table's completed commits, or None where there is no table."""
        if not self._has_properties(table):
            return None
        hudi = self._apache.hudi
        storage = hudi.storage.hadoop.HadoopStorageConfiguration(
            self.spark._jsc.hadoopConfiguration()
        )
        client = (
            hudi.common.table.HoodieTableMetaClient.builder()
            .setConf(storage)
            .setBasePath(self.path(table))
            .build()
        )
        return client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()

    def _mark_from_data(self, table: str) -> Mark:
        rows = self.read(table)
        places = (
            # A rejected record may name no listed topic, and have no generation.
            rows.withColumn("generation", F.coalesce("topic_generation", F.lit(0)))
            .groupBy("topic", "kafka_partition", "generation")
            .agg(
                F.max("ingest_batch").alias("batch"),
                F.count("*").alias("count"),
                F.min("kafka_offset").alias("low"),
                F.max("kafka_offset").alias("high"),
                head_of_records().alias("head"),
            )
            .collect()
        )
        slices = [
            Slice(
                destination=table,
                topic=place["topic"],
                generation=place["generation"],
                partition=place["kafka_partition"],
                rows=place["count"],
                low_offset=place["low"],
                high_offset=place["high"],
                head=place["head"],
                newest=None,
            )
            for place in places
        ]
        batch = max((place["batch"] for place in places), default=0)
        return _moved(Mark(), slices, batch, {}, {})


def head_of_records() -> Column:
    """``Slice.head``, an aggregate."""
    written = F.unix_millis("kafka_timestamp")
    head = F.struct(F.col("kafka_offset"), written)
    return F.max(F.when(F.col("kafka_offset").isNotNull() & written.isNotNull(), head))


def columns_of(table: str) -> str:
    """The columns of a bronze table, as a Spark DDL string."""
    return REJECTED_COLUMNS if table == REJECTED_TABLE else EVENT_COLUMNS


def _column_names(table: str) -> list[str]:
    return [column.split()[0] for column in columns_of(table).split(", ")]


def _bronze_columns(table: str, batch: int) -> list[Column]:
    text = str(batch)
    computed = {
        "ingested_at": F.current_timestamp(),
        "ingest_batch": F.lit(batch).cast("bigint"),
        "ingest_date": F.lit(f"{text[:4]}-{text[4:6]}-{text[6:8]}"),
    }
    if table == REJECTED_TABLE:
        computed["value"] = F.col("record")
    return [computed.get(name, F.col(name)).alias(name) for name in _column_names(table)]


def _moved(
    mark: Mark,
    slices: list[Slice],
    batch: int,
    topic_ids: dict[str, str],
    next_offsets: dict[str, int],
) -> Mark:
    """The mark after a batch, of the topics that ``topic_ids`` lists or of files."""
    read = {part.topic: topic_ids[part.topic] for part in slices if part.topic in topic_ids}
    made_anew = mark.made_anew(read)
    offsets, generations = dict(mark.offsets), dict(mark.generations)
    heads = {place: dict(held) for place, held in mark.heads.items()}
    source_tables = dict(mark.source_tables)
    read_to = {
        place: offset
        for place, offset in mark.read_to.items()
        if place.rpartition("/")[0] not in made_anew
    }
    for part in slices:
        if part.high_offset is not None:
            offsets[part.place] = max(offsets.get(part.place, -1), part.high_offset)
            if part.topic in read:
                read_to[part.place] = next_offsets[part.place]
        if part.topic is None or part.generation is None:
            continue
        if part.source_table is not None:
            source_tables[part.topic] = part.source_table
        generations[part.topic] = max(generations.get(part.topic, 0), part.generation)
        if part.head is not None:
            held = heads.setdefault(part.place, {})
            head = [*part.head]
            held[str(part.generation)] = max(held.get(str(part.generation), head), head)
    return Mark(
        batch=batch,
        offsets=offsets,
        has_unplaced=mark.has_unplaced or any(part.high_offset is None for part in slices),
        read_to=read_to,
        topic_ids=mark.topic_ids | read,
        generations=generations,
        heads=heads,
        newest_change=max(
            (at for at in (mark.newest_change, *(part.newest for part in slices)) if at),
            default=None,
        ),
        source_tables=source_tables,
    )
