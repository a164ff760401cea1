"""What each model takes of a first build and of increments, in one warm process."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.benchmarks.events import CUSTOMERS, Stream


def copy_project(folder: Path) -> Path:
    """Copy the project, for models of a benchmark's own, to a folder that is not there."""
    hidden = shutil.ignore_patterns(".*", "target", "logs", "tests", "__pycache__")
    shutil.copytree(Path(__file__).parents[2], folder, ignore=hidden)
    return folder


def seconds_of_models(
    build: Sequence[str],
    lake: Path,
    orders: int,
    events: int,
    rounds: int,
    customers: int = CUSTOMERS,
) -> list[dict[str, float]]:
    """The seconds of each model: of the first build, then of each round; two warm up.

    Args:
        build: the command of dbt, in the current folder's project.
        lake: the lake, below which the events land.
        orders: how many the first build has.
        events: updates that each round brings.
        rounds: of increments, besides those that warm up.
        customers: of whom the orders are.
    """
    os.environ["LAKE_ROOT"] = str(lake)
    from dbt.cli.main import dbtRunner

    from ingest.cli import main as ingest

    stream = Stream(lake / "landing", customers=customers)
    runner = dbtRunner()

    def built(keys: list[int], op: str) -> dict[str, float]:
        assert ingest(["files", str(stream.write(keys, op))]) == 0
        done: Any = runner.invoke(["--quiet", *build])
        assert done.success, done.exception
        return {node.node.name: node.execution_time for node in done.result.results}

    draw = random.Random(11)
    keys = range(1, orders + 1)
    found = [built([*keys], "r")]
    for _ in range(rounds + 2):
        found.append(built(sorted(draw.sample(keys, min(events, orders))), "u"))
    return found
