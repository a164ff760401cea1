"""``make demo``: recorded events from landing to gold and its page, with the times."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from dbt.artifacts.resources.types import NodeType
from dbt.artifacts.schemas.run import RunExecutionResult
from dbt.cli.main import dbtRunner
from dbt.events.types import LogModelResult
from dbt_common.events.base_types import EventMsg
from pyspark import SparkContext
from pyspark.sql import SparkSession

from cdc_lakehouse.cli import main as cdc_lakehouse
from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.errors import DONE, UserError
from cdc_lakehouse.spark.session import spark_session
from cdc_lakehouse.spark.settings import RECORDING, class_archive
from cdc_lakehouse.storage.folders import note_own
from cdc_lakehouse.storage.place import lake_folder
from ingest.cli import main as ingest
from lab.demo.landing import land

TOP_CUSTOMERS = """
    select revenue_rank, company_name, country, count_orders, revenue, revenue_share
    from gold.revenue_by_customer
    order by revenue_rank
    limit 10
"""
LAYERS = """
    select 'orders' as name, count_if(not is_deleted) as live,
        count_if(is_deleted) as deleted from silver.orders
    union all
    select 'order_items', count_if(not is_deleted), count_if(is_deleted)
    from silver.order_items
    union all
    select 'customers', count_if(not is_deleted), count_if(is_deleted)
    from silver.customers
    union all
    select 'products', count_if(not is_deleted), count_if(is_deleted)
    from silver.products
"""


@contextmanager
def _step(name: str, seconds: dict[str, float]) -> Iterator[None]:
    print(f"\n== {name}", flush=True)
    start = time.monotonic()
    yield
    seconds[name] = time.monotonic() - start


def _show_model(event: EventMsg) -> None:
    if event.info.name == LogModelResult.__name__:
        data = event.data
        print(f"   {data.description}: {data.execution_time:.1f} s", flush=True)


def _build(*, is_new: bool) -> None:
    """Run `dbt build`; print which models were built and how the tests ended.

    Args:
        is_new: whether the lake has the recorded events alone, whose answers are known.

    Raises:
        UserError: it failed.
    """
    variables = {"cdc_lakehouse_history": True, "cdc_lakehouse_recorded_events": is_new}
    result = dbtRunner(callbacks=[_show_model]).invoke(
        ["--quiet", "build", "--vars", json.dumps(variables), "--profiles-dir", "profiles"]
    )
    if not isinstance(result.result, RunExecutionResult):
        raise UserError(f"the build failed: {result.exception}")
    outcomes = [str(node.status) for node in result.result.results]
    tests = [
        str(node.status)
        for node in result.result.results
        if node.node.resource_type == NodeType.Test
    ]
    print(
        f"   {tests.count('pass')} data tests passed, {tests.count('warn')} warned, "
        f"{tests.count('fail') + tests.count('error')} failed"
    )
    if not result.success or "error" in outcomes:
        raise UserError("the build failed")


def _show_gold(spark: SparkSession) -> None:
    print("   live and deleted rows in silver:")
    for row in spark.sql(LAYERS).collect():
        print(f"     {row['name']:<12} {row['live']:>6,} {row['deleted']:>4,}")
    print("\n   customers by revenue:")
    print(
        f"     {'':>2} {'company':<32} {'country':<10} {'orders':>6} {'revenue':>12} share"
    )
    for row in spark.sql(TOP_CUSTOMERS).collect():
        print(
            f"     {row['revenue_rank']:>2} {row['company_name']:<32} "
            f"{row['country']:<10} {row['count_orders']:>6} {row['revenue']:>12,.2f} "
            f"{row['revenue_share']:>5.1%}"
        )


def _record() -> None:
    """End the JVM, which writes the archive, and have later ones find it."""
    spark_session().stop()
    gateway: Any = SparkContext._gateway
    gateway.proc.stdin.close()
    gateway.proc.wait()
    class_archive().with_suffix(".jsa.new").replace(class_archive())


@click.command("lab.demo", context_settings=STYLE)
@version
def command() -> int:
    """Bring recorded events from landing files to gold and its page, below LAKE_ROOT."""
    seconds: dict[str, float] = {}
    is_first = not class_archive().exists()
    if is_first:
        class_archive().parent.mkdir(parents=True, exist_ok=True)
        os.environ["LAKE_CLASS_ARCHIVE"] = RECORDING
    lake = lake_folder("the demonstration needs a folder")
    is_new = not (lake / "warehouse").exists()
    with _step("land: recorded Debezium events, as an S3 sink writes them", seconds):
        landing = lake / "landing"
        note_own(str(lake), landing.name)
        print(f"   {land(landing):,} records below {landing}")
    with _step("start Spark", seconds):
        spark = spark_session()
    with _step("ingest: python -m ingest files", seconds):
        if code := ingest(["files", str(landing)]):
            return code
    with _step("build: dbt build", seconds):
        _build(is_new=is_new)
    with _step("gold", seconds):
        _show_gold(spark)
    with _step("dashboard: cdc-lakehouse dashboard", seconds):
        if code := cdc_lakehouse(["dashboard"]):
            return code

    if is_first:
        with _step("class archive: of the JVM, once; later starts are faster", seconds):
            _record()

    print("\n== how long it took")
    for name, duration in seconds.items():
        print(f"   {name.partition(':')[0]:<12} {duration:5.1f} s")
    print(f"   {'in all':<12} {sum(seconds.values()):5.1f} s")
    return DONE


def main(arguments: list[str] | None = None) -> int:
    """Run the demonstration; 0 where everything went well."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
