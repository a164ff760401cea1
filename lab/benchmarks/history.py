"""A table's history beside its current rows: seconds of `orders_history` and of `orders`.

Both are built from the same events by one `dbt run`, one after the other: the first build,
then increments of updates, each of which adds a version. Prints medians and their ratio.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version

MODELS = ("orders", "orders_history")
BUILD = (
    *("run", "-s", "stg_orders", *MODELS, "--threads", "1"),
    *("--vars", "{cdc_lakehouse_history: true}", "--profiles-dir", "profiles"),
)


def measure(orders: int, events: int, rounds: int, folder: Path) -> list[dict[str, float]]:
    """The seconds of both models: of the first build, then of each round; two warm up."""
    os.environ["LAKE_ROOT"] = str(folder)
    from dbt.cli.main import dbtRunner

    from ingest.cli import main as ingest
    from lab.benchmarks.events import Stream

    stream = Stream(folder / "landing")
    runner = dbtRunner()

    def built(keys: list[int], op: str) -> dict[str, float]:
        assert ingest(["files", str(stream.write(keys, op))]) == 0
        done: Any = runner.invoke(["--quiet", *BUILD])
        assert done.success, done.exception
        return {node.node.name: node.execution_time for node in done.result.results}

    draw = random.Random(11)
    keys = range(1, orders + 1)
    return [
        built([*keys], "r"),
        *(
            built(sorted(draw.sample(keys, min(events, orders))), "u")
            for _ in range(rounds + 2)
        ),
    ]


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
        first, _, _, *rounds = measure(orders, events, runs, folder)
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
