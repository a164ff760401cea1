"""A table's history beside its current rows: seconds of `orders_history` and of `orders`.

Both are built from the same events by one `dbt run`, one after the other: the first build,
then increments of updates, each of which adds a version. Prints medians and their ratio.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from lab.benchmarks.increments import seconds_of_models

MODELS = ("orders", "orders_history")
BUILD = (
    *("run", "-s", "stg_orders", *MODELS, "--threads", "1"),
    *("--vars", "{cdc_lakehouse_history: true}", "--profiles-dir", "profiles"),
)


@click.command("lab.benchmarks.history", help=__doc__, context_settings=STYLE)
@version
@click.option("--orders", type=int, default=1_000)
@click.option("--events", type=int, default=1_000)
@click.option("--runs", default=5)
def command(orders: int, events: int, runs: int) -> None:
    os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "6g")
    folder = Path(tempfile.mkdtemp(prefix="lake-"))
    try:
        first, _, _, *rounds = seconds_of_models(BUILD, folder, orders, events, runs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{orders:,} orders, {events:,} events, {runs} rounds; seconds, medians")
    for name, found in (("first build", [first]), ("increment", rounds)):
        ours, history = (statistics.median(row[model] for row in found) for model in MODELS)
        print(
            f"  {name:<12} orders {ours:6.2f}  orders_history {history:6.2f}"
            f"  ratio {history / ours:5.2f}",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
