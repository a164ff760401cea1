"""Storms of transactions with faults at random moments, five of each kind.

    python -m benchmarks.faults [--each 5] [--transactions 4000] [--seed 1]

It starts a stack of its own and ingests all twelve tables. At the end it compares silver
with PostgreSQL row by row, gold with PostgreSQL's own answers, bronze with Kafka's offsets.
It exits with code 1 on a difference.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from pathlib import Path

from connectors.stack.stack import Stack
from tests.support.faults import FAULTS, storm_with_faults
from tests.support.pipeline import Pipeline


def main() -> None:
    """Run the storm and print its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument("--transactions", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    faults = list(FAULTS) * options.each
    random.Random(options.seed).shuffle(faults)
    root = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    root.chmod(0o755)
    stack = Stack(root)
    pipeline = Pipeline(stack)
    start = time.monotonic()
    try:
        stack.start()
        pipeline.start()
        pipeline.wait_until_built()
        storm_with_faults(pipeline, faults, options.seed, options.transactions)
        print(
            f"{options.transactions:,} transactions, {len(faults)} faults"
            f" ({options.each} of each kind), no difference;"
            f" {time.monotonic() - start:.0f} s"
        )
    finally:
        pipeline.kill()
        stack.remove()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
