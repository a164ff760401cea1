"""The same increment by hand: DataFrames, upserts, no dbt. What one would write instead.

It knows the rules of the silver tables (order by LSN within a key, soft deletes, values
that an event left out, lines that vanished), reads bronze by the same bounds, and hands
the rows of one step to the next in memory. Not here, because the measured increments
never need it: folding a key again from its history.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

TEXT = [
    "customer_id",
    "order_items",
    "products",
    "customer",
    "employee",
    "shipper",
    "shipment",
]
DATES = ["order_date", "required_date", "shipped_date"]
PLACEHOLDER = "__debezium_unavailable_value"
ROW = ", ".join(
    f"{name} string" for name in ["order_id", *TEXT, *DATES, "updated_at", "__deleted"]
)
LINES = (
    "array<struct<product_id: int, unit_price: decimal(12, 4), "
    "quantity: decimal(10, 2), discount: decimal(6, 4)>>"
)
OPTIONS = {
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.clean.commits.retained": "60",
    "hoodie.clean.trigger.max.commits": "10",
    "hoodie.keep.min.commits": "75",
    "hoodie.keep.max.commits": "95",
}


class Peer:
    """The hand-written program over its own copies of silver and gold."""

    def __init__(
        self, spark: SparkSession, lake: str, gold: dict[str, tuple[str, str]]
    ) -> None:
        """Make one.

        Args:
            spark: the session, shared with dbt.
            lake: the lake's folder.
            gold: of each gold table the key and the select that dbt compiled.
        """
        self.spark = spark
        self.bronze = f"{lake}/warehouse/bronze.db/cdc_events"
        self.root = f"{lake}/peer"
        self.gold = gold

    def build(self, low: int, high: int, first: bool = False) -> dict[str, float]:
        """Bring the events with ``low < ingest_batch <= high`` to gold.

        Returns:
            The seconds each table took.
        """
        seconds: dict[str, float] = {}

        def timed(name: str, step: Callable[[], None]) -> None:
            start = time.monotonic()
            step()
            seconds[name] = time.monotonic() - start

        rows = None

        def orders() -> None:
            nonlocal rows
            rows = self._orders(low, high, first).persist()
            if rows.count():
                self._write(rows, "orders", "order_id", first)

        timed("orders", orders)
        assert rows is not None
        changed = rows
        timed("order_items", lambda: self._order_items(changed, first))
        for table in ("orders", "order_items"):
            self._read(table).createOrReplaceTempView(f"peer_{table}")
        for name in ("revenue_by_product",):
            if name in self.gold:
                timed(name, partial(self._gold, name))
                self._read(name).createOrReplaceTempView(f"peer_{name}")
        with ThreadPoolExecutor(4) as pool:
            others = [name for name in self.gold if name not in seconds]
            list(pool.map(lambda name: timed(name, lambda: self._gold(name)), others))
        changed.unpersist()
        return seconds

    def _events(self, low: int, high: int) -> DataFrame:
        def date(batch: int) -> str:
            text = f"{batch:017d}"
            return f"{text[:4]}-{text[4:6]}-{text[6:8]}"

        return (
            self.spark.read.format("hudi")
            .load(self.bronze)
            .where(F.col("ingest_date").between(date(low), date(high)))
            .where((F.col("ingest_batch") > low) & (F.col("ingest_batch") <= high))
            .withColumn("row", F.from_json("value", ROW, {"mode": "PERMISSIVE"}))
            .select(
                F.col("row.order_id").cast("int").alias("order_id"),
                *[_known(name, F.col(f"row.{name}")) for name in TEXT],
                *[
                    F.expr(f"date_add(date'1970-01-01', int(row.{name}))").alias(name)
                    for name in DATES
                ],
                F.col("row.updated_at").cast("timestamp").alias("updated_at"),
                F.array_compact(
                    F.array(
                        *[
                            F.when(F.col(f"row.{name}") == PLACEHOLDER, F.lit(name))
                            for name in TEXT
                        ]
                    )
                ).alias("carried_columns"),
                "op",
                (F.col("op") == "d").alias("is_deleted"),
                "source_epoch",
                "source_position",
                "source_lsn",
                "kafka_offset",
                F.col("source_ts").alias("changed_at"),
                "ingested_at",
                "ingest_batch",
            )
        )

    def _orders(self, low: int, high: int, first: bool) -> DataFrame:
        events = self._events(low, high)
        if not first:
            events = events.persist()
            keys = F.broadcast(events.select("order_id").distinct())
            stored = (
                self._read("orders")
                .select("order_id", F.col("source_lsn").alias("stored_lsn"))
                .join(keys, "order_id", "left_semi")
            )
            events = events.join(F.broadcast(stored), "order_id", "left").where(
                F.col("stored_lsn").isNull() | (F.col("source_lsn") > F.col("stored_lsn"))
            )
        by_position = Window.partitionBy("order_id").orderBy("source_lsn", "kafka_offset")
        filled = events.withColumn(
            "is_newest", F.lead("op").over(by_position).isNull()
        ).withColumns(
            {
                name: F.when(
                    F.array_contains("carried_columns", name),
                    F.last(name, ignorenulls=True).over(by_position),
                ).otherwise(F.col(name))
                for name in TEXT
            }
        )
        columns = [name for name in events.columns if name != "stored_lsn"]
        return filled.where("is_newest").select(*columns)

    def _order_items(self, orders: DataFrame, first: bool) -> None:
        position = [
            "op",
            "source_epoch",
            "source_position",
            "source_lsn",
            "kafka_offset",
            "changed_at",
            "ingested_at",
            "ingest_batch",
        ]
        present = (
            orders.where("not is_deleted")
            .withColumn("line", F.explode(F.from_json("order_items", LINES)))
            .select(
                F.concat_ws("-", "order_id", "line.product_id").alias("order_item_id"),
                "order_id",
                "customer_id",
                "line.*",
                F.expr(
                    "cast(line.unit_price * line.quantity * (1 - line.discount)"
                    " as decimal(20, 4))"
                ).alias("revenue"),
                F.lit(False).alias("is_deleted"),
                *position,
            )
        )
        rows = present
        if not first:
            positions = F.broadcast(orders.select("order_id", *position))
            removed = (
                self._read("order_items")
                .where("not is_deleted")
                .select("order_item_id", "order_id", "product_id")
                .join(positions, "order_id")
                .join(
                    F.broadcast(present.select("order_item_id")),
                    "order_item_id",
                    "left_anti",
                )
                .withColumn("is_deleted", F.lit(True))
            )
            rows = present.unionByName(removed, allowMissingColumns=True)
        rows = rows.persist()
        if rows.count():
            self._write(rows, "order_items", "order_item_id", first)
        rows.unpersist()

    def _gold(self, name: str) -> None:
        key, query = self.gold[name]
        for table in ("silver.order_items", "silver.orders", "gold.revenue_by_product"):
            query = query.replace(table, f"peer_{table.partition('.')[2]}")
        self._write(self.spark.sql(query), name, key, operation="insert_overwrite_table")

    def _read(self, table: str) -> DataFrame:
        rows = self.spark.read.format("hudi").load(f"{self.root}/{table}")
        return rows.drop(*[name for name in rows.columns if name.startswith("_hoodie")])

    def _write(
        self,
        rows: DataFrame,
        table: str,
        key: str,
        first: bool = False,
        operation: str = "upsert",
    ) -> None:
        (
            rows.write.format("hudi")
            .options(**OPTIONS)
            .option("hoodie.table.name", table)
            .option("hoodie.datasource.write.recordkey.field", key)
            .option(
                "hoodie.datasource.write.operation",
                "bulk_insert" if first else operation,
            )
            .mode("append")
            .save(f"{self.root}/{table}")
        )


def _known(name: str, text: Column) -> Column:
    return F.when(
        text != PLACEHOLDER, F.rtrim(text) if name == "customer_id" else text
    ).alias(name)
