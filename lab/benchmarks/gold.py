"""What Northwind's gold takes of an increment, beside the gold of another version.

The other version's models (``--before``, a folder ``models/gold`` of another checkout) get
names of their own; macros are this version's. Both are built after every increment of
updates, in turn, from the same silver tables and in one warm process. ``--by-order`` has
``gold.order_items`` of this version recompute the orders that changed, in a table that is
merge-on-read. Prints medians of each table and of both builds, and their ratio; then what a
compaction of that table takes. At the end the rows of both must be equal.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version
from lab.benchmarks.events import CUSTOMERS, Stream
from lab.benchmarks.groups import require_equal_rows
from lab.benchmarks.increments import copy_project

SILVER = ("stg_orders", "orders", "order_items")
EARLIER = "before_"
WARM = 2
BY_ORDER = (
    "unique_key='order_item_id', recompute_by='order_id', tblproperties={'type': 'mor',"
    " 'hoodie.index.type': 'BUCKET', 'hoodie.bucket.index.num.buckets': '16',"
    " 'hoodie.compact.inline.max.delta.commits': '20'}"
)


def add_earlier(before: Path, gold: Path) -> dict[str, str]:
    """Copy the other version's models beside these; of each model its table's name."""
    names = {model.stem: model.stem for model in sorted(gold.glob("*.sql"))}
    names["gold_order_items"] = "order_items"
    for name in names:
        text = (before / f"{name}.sql").read_text().replace("alias='order_items', ", "")
        for other in names:
            text = re.sub(rf"ref\('{other}'\)", f"ref('{EARLIER}{other}')", text)
        (gold / f"{EARLIER}{name}.sql").write_text(text)
    return names


@click.command("lab.benchmarks.gold", help=__doc__, context_settings=STYLE)
@version
@click.option(
    "--before",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    required=True,
)
@click.option("--by-order", is_flag=True)
@click.option("--orders", type=int, default=1_000_000)
@click.option("--events", type=int, default=1_000)
@click.option("--runs", default=3)
def command(before: Path, by_order: bool, orders: int, events: int, runs: int) -> None:
    os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "6g")
    with tempfile.TemporaryDirectory(prefix="cdc-lakehouse-") as folder:
        project = copy_project(Path(folder) / "project")
        gold = project / "models/gold"
        names = add_earlier(before, gold)
        if by_order:
            model = gold / "gold_order_items.sql"
            text = model.read_text().replace("unique_key='order_item_id'", BY_ORDER)
            model.write_text(text)
        os.chdir(project)
        os.environ["LAKE_ROOT"] = str(project / "lake")
        earlier = [f"{EARLIER}{name}" for name in names]
        builds = {"silver": SILVER, "before": earlier, "now": list(names)}
        from cdc_lakehouse.spark.session import spark_session

        found = _rounds(project, builds, orders, events, runs)
        if by_order:
            began = time.monotonic()
            statement = "call run_compaction(op => 'scheduleAndExecute', table => '%s')"
            spark_session().sql(statement % "gold.order_items").collect()
            compaction = time.monotonic() - began
        for name, table in names.items():
            require_equal_rows(f"gold.{EARLIER}{name}", f"gold.{table}")
    print(f"\n{orders:,} orders, {events:,} updates, {runs} rounds; seconds, medians")
    median = {step: statistics.median(row[step] for row in found) for step in found[0]}
    rows = [(name, median[f"{EARLIER}{name}"], median[name]) for name in names]
    for what, was, now in (*rows, ("all", median["before"], median["now"])):
        ratio = f"{now / was:5.2f}"
        print(f"  {what:<20} before {was:6.2f}  now {now:6.2f}  ratio {ratio}")
    print(f"  silver {median['silver']:.2f}", flush=True)
    if by_order:
        print(f"  a compaction of gold.order_items {compaction:.2f}", flush=True)


def _in_turn(builds: dict[str, Any], number: int) -> list[tuple[str, Any]]:
    """Silver, then both versions of gold, in every other round the later one first."""
    silver, *gold = builds.items()
    return [silver, *(gold if number % 2 else reversed(gold))]


def _rounds(
    project: Path, builds: dict[str, Any], orders: int, events: int, runs: int
) -> list[dict[str, float]]:
    from dbt.cli.main import dbtRunner

    from ingest.cli import main as ingest

    customers = max(CUSTOMERS, orders // 100)
    stream = Stream(project / "landing", customers=customers)
    runner, draw, keys = dbtRunner(), Random(11), range(1, orders + 1)
    found = []
    for number in range(1 + WARM + runs):
        changed = sorted(draw.sample(keys, min(events, orders))) if number else [*keys]
        assert ingest(["files", str(stream.write(changed, "u" if number else "r"))]) == 0
        seconds = {}
        for name, models in _in_turn(builds, number):
            began = time.monotonic()
            words = ["--quiet", "run", "-s", *models, "--profiles-dir", "profiles"]
            done: Any = runner.invoke(words)
            assert done.success, done.exception
            seconds[name] = time.monotonic() - began
            times = {node.node.name: node.execution_time for node in done.result.results}
            seconds.update(times)
        found.append(seconds)
    return found[1 + WARM :]


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
