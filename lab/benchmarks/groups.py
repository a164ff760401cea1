"""A gold table that recomputes the groups of what changed, and one that is computed whole.

Both have the sums of the same customers, from the lines and the orders of silver, and are
built one after the other: first with all orders, then after increments of updates, which
move some orders to other customers. Prints medians and their ratio; at the end the rows of
both must be equal.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from lab.benchmarks.increments import copy_project, seconds_of_models

WHOLE, GROUPS = MODELS = ("sales_whole", "sales_by_groups")
SILVER = ("stg_orders", "orders", "order_items")
BUILD = (
    *("run", "-s", *SILVER, *MODELS, "--threads", "1"),
    *("--profiles-dir", "profiles"),
)
TEXT = """\
select
    customer_id, coalesce(customer_id, 'unknown') as sales_id, sum(quantity) as quantity,
    sum(revenue) as revenue, count(distinct order_id) as count_orders,
    max_by(customer, at) as customer
from (
    select customer_id, order_id, quantity, revenue, null as customer, null as at
    from {{ ref('order_items') }} where not is_deleted
    union all
    select
        customer_id, null, null, null, customer,
        struct(source_epoch, source_position, order_id)
    from {{ ref('orders') }} where not is_deleted and customer is not null
)
group by customer_id
"""


def require_equal_rows(*tables: str) -> None:
    """Two tables have the same rows, but for what Hudi notes of each."""
    from cdc_lakehouse.spark.session import spark_session

    rows = [spark_session().table(table) for table in tables]
    both = {*rows[0].columns, *rows[1].columns}
    columns = sorted(name for name in both if not name.startswith("_hoodie_"))
    first, second = (found.select(columns) for found in rows)
    assert first.exceptAll(second).isEmpty()
    assert second.exceptAll(first).isEmpty()


@click.command("lab.benchmarks.groups", help=__doc__, context_settings=STYLE)
@version
@click.option("--orders", type=int, default=100_000)
@click.option("--customers", type=int, default=10_000)
@click.option("--events", type=int, default=100)
@click.option("--runs", default=5)
def command(orders: int, customers: int, events: int, runs: int) -> None:
    os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "6g")
    with tempfile.TemporaryDirectory(prefix="cdc-lakehouse-") as folder:
        project = copy_project(Path(folder) / "project")
        for name, by in ((WHOLE, ""), (GROUPS, ", recompute_by='customer_id'")):
            text = f"{{{{ config(unique_key='sales_id'{by}) }}}}\n{TEXT}"
            (project / f"models/gold/{name}.sql").write_text(text)
        os.chdir(project)
        first, _, _, *rounds = seconds_of_models(
            BUILD, project / "lake", orders, events, runs, customers
        )
        require_equal_rows(*(f"gold.{name}" for name in MODELS))
    print(
        f"\n{orders:,} orders of {customers:,} customers, {events:,} events,"
        f" {runs} rounds; seconds, medians"
    )
    for name, found in (("first build", [first]), ("increment", rounds)):
        seconds = {
            model: statistics.median(row[model] for row in found) for model in found[0]
        }
        silver = seconds["orders"] + seconds["order_items"]
        print(
            f"  {name:<12} silver {silver:6.2f}  whole {seconds[WHOLE]:6.2f}"
            f"  by groups {seconds[GROUPS]:6.2f}"
            f"  ratio {seconds[GROUPS] / seconds[WHOLE]:5.2f}",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
