"""Storms of transactions with faults at random moments, five of each kind.

It starts a stack of its own and ingests all twelve tables. At the end it compares silver
with PostgreSQL row by row, gold with PostgreSQL's own answers, bronze with Kafka's offsets.
It exits with code 1 on a difference.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from lab.stack.northwind import NorthwindStack
from tests.support.pipeline import FAULTS, Pipeline


@click.command("lab.benchmarks.faults", help=__doc__, context_settings=STYLE)
@version
@click.option("--each", default=5, help="Faults of each kind.")
@click.option("--transactions", default=4_000)
@click.option("--seed", default=1)
def command(each: int, transactions: int, seed: int) -> None:
    faults = list(FAULTS) * each
    random.Random(seed).shuffle(faults)
    root = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    root.chmod(0o755)
    stack = NorthwindStack(root)
    start = time.monotonic()
    try:
        stack.start()
        pipeline = Pipeline(stack)
        try:
            pipeline.start()
            pipeline.wait_until_equal()
            pipeline.storm(faults, seed, transactions)
        finally:
            pipeline.kill()
        print(
            f"{transactions:,} transactions, {len(faults)} faults"
            f" ({each} of each kind), no difference;"
            f" {time.monotonic() - start:.0f} s"
        )
    finally:
        stack.remove()
        shutil.rmtree(root, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
