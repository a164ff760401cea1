"""What a replay costs beside an ordinary increment, on a large bronze table.

``silver.orders`` is built from a snapshot. Then, in turn, one order is updated by a
transaction that was open when it was read, and the read is delivered once more: it has lost
before and would win now, so that the order is folded from bronze. Prints the seconds of the
model, medians and their ratio.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version

BUILD = ("run", "-s", "stg_orders", "orders", "--profiles-dir", "profiles")
WARM = 2


def measure(orders: int, rounds: int, folder: Path) -> dict[str, list[float]]:
    """The seconds of ``silver.orders`` in each round, by what came; two warm up."""
    os.environ["LAKE_ROOT"] = str(folder)
    from dbt.cli.main import dbtRunner

    from ingest.cli import main as ingest
    from lab.benchmarks.events import FIRST_LSN, Stream

    stream = Stream(folder / "landing")
    runner = dbtRunner()

    def built(file: Path) -> float:
        assert ingest(["files", str(file)]) == 0
        done: Any = runner.invoke(["--quiet", *BUILD])
        assert done.success, done.exception
        seconds = {node.node.name: node.execution_time for node in done.result.results}
        return float(seconds["orders"])

    snapshot = stream.write([*range(1, orders + 1)], "r")
    built(snapshot)
    found: dict[str, list[float]] = {"increment": [], "replay": []}
    with snapshot.open(encoding="utf-8") as reads:
        for number, line in zip(range(rounds + WARM), reads, strict=False):
            read = json.loads(line)
            file = stream.write([read["key"]["order_id"]], "u")
            update = json.loads(file.read_text(encoding="utf-8"))
            update["value"]["__lsn"] = FIRST_LSN - 1
            file.write_text(json.dumps(update) + "\n", encoding="utf-8")
            updated = built(file)
            # Kafka's time of a record rises, or the topic is taken for a new one.
            read["metadata"]["timestamp"] += stream.offset - read["metadata"]["offset"]
            read["metadata"]["offset"] = stream.offset
            again = file.with_name(f"{stream.offset:012d}.json")
            again.write_text(json.dumps(read) + "\n", encoding="utf-8")
            stream.offset += 1
            replayed = built(again)
            if number >= WARM:
                found["increment"].append(updated)
                found["replay"].append(replayed)
    return found


@click.command("lab.benchmarks.replay", help=__doc__, context_settings=STYLE)
@version
@click.option("--orders", type=int, default=300_000)
@click.option("--runs", default=5)
def command(orders: int, runs: int) -> None:
    os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "6g")
    folder = Path(tempfile.mkdtemp(prefix="lake-"))
    try:
        found = measure(orders, runs, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    plain, replay = (statistics.median(found[name]) for name in ("increment", "replay"))
    print(f"\n{orders:,} orders, one event a round, {runs} rounds; seconds, medians")
    print(f"  increment {plain:.2f}  replay {replay:.2f}  ratio {replay / plain:.2f}")


def main(arguments: list[str] | None = None) -> int:
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
