"""The stream's windows are gold's, but for what came later than the watermark allows."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from examples.sales_stream.source import COUNTRIES, Row, Shop
from examples.sales_stream.stream import ANSWERS
from lab.stack import jars
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.required import required

pytestmark = pytest.mark.thorough

PROJECT = Path(__file__).parents[1]
# Where the watermark is when the second hour begins, but for a minute.
CLOSED = datetime(2026, 1, 5, 10, 30, tzinfo=UTC)
Process = subprocess.Popen[str]
Windows = dict[str, tuple[int, Decimal]]


class Source:
    """``examples.sales_stream.source`` in a process, and what it says of itself."""

    def __init__(self, lake: Lake) -> None:
        self.process = start(lake, "source", stdin=subprocess.PIPE)
        said = self.read_to("examples.sales_stream.stream")
        self.options = " ".join(re.findall(r"--\S+ \S+", said.splitlines()[-1])).split()

    def read_to(self, word: str) -> str:
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if word in line:
                return said
        raise AssertionError(said)

    def next_hour(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.read_to("Kafka has")


def start(lake: Lake, module: str, *options: str, **settings: Any) -> Process:
    command = [sys.executable, "-m", f"examples.sales_stream.{module}", *options]
    streams = {"stdout": subprocess.PIPE, "start_new_session": True, **settings}
    environment = lake.environment()
    return subprocess.Popen(command, cwd=PROJECT, env=environment, text=True, **streams)


@pytest.fixture
def lake(new_lake: NewLake) -> Lake:
    return new_lake(PROJECT / "topics.toml", project=PROJECT)


@pytest.fixture
def source(lake: Lake) -> Iterator[Source]:
    with required():
        jars.fetch("kafka", "registry")
    source = Source(lake)
    yield source
    source.process.send_signal(signal.SIGINT)
    source.process.wait(60)


def answers(lake: Lake, source: Source) -> dict[str, Row | None]:
    """The newest value of each key in the stream's topic, as a consumer keeps them."""
    lake.sql(
        "create temporary view answers using kafka options"
        f" (kafka.bootstrap.servers '{source.options[1]}', subscribe '{ANSWERS}')"
    )
    newest = lake.sql(
        "select cast(key as string),"
        " coalesce(max_by(cast(value as string), `offset`), 'null')"
        " from answers group by key"
    )
    return {key: json.loads(text, parse_float=Decimal) for key, text in newest}


def without(windows: Windows, row: Row) -> Windows:
    """Windows as they are where a sale is not counted."""
    sold_at = datetime.fromtimestamp(row["sold_at"] / 1_000_000, UTC)
    sold_at -= timedelta(minutes=sold_at.minute % 5)
    left = dict(windows)
    for begin in (sold_at, sold_at - timedelta(minutes=5)):
        region = COUNTRIES.get(row["country"], "unknown")
        key = f"{region}/{begin:%Y-%m-%dT%H:%M}"
        count, revenue = left.pop(key)
        if count > 1:
            left[key] = (count - 1, revenue - Decimal(row["amount"]))
    return left


def test_windows_of_the_stream_are_those_of_gold(lake: Lake, source: Source) -> None:
    """With corrected, deleted, redelivered and late sales, and a kill in the middle."""
    shop = Shop()
    first, second = shop.hour(0), shop.hour(1)
    made = [event["after"] for event in second if event["op"] == "c"]
    late = [row for row in made if row["sold_at"] < CLOSED.timestamp() * 1_000_000]
    assert len(late) == 2
    source.next_hour()
    done = lake.ingest_kafka(*source.options)
    assert (done.code, done.counts[2]) == (0, 0), done.err
    lake.dbt("build")
    expected: Windows = {
        row["region_window"]: (row["count_sales"], row["revenue"])
        for row in lake.rows(f"gold.{ANSWERS}")
    }
    assert {key.split("/")[0] for key in expected} == {*COUNTRIES.values(), "unknown"}
    for row in late:
        expected = without(expected, row)

    options = (*source.options, "--max-records", "30")
    killed = start(lake, "stream", *options, "--continuous")
    commits = lake.root / "checkpoints/sales_stream/query/commits"

    def is_in_the_middle() -> bool:
        assert killed.poll() is None
        return (commits / "1").exists()

    wait_until(is_in_the_middle, 200, "the stream writes nothing")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    counted = 30 * len([*commits.glob("[0-9]")])
    process = start(lake, "stream", *options, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    left = len(first) + len(second) - counted
    assert out == f"read {left} records, rejected 0; {len(late)} rows came too late\n"
    assert re.findall(r"^(\d) rows? came too late: sold before 2026-01-05T", err, re.M)

    newest = answers(lake, source)
    assert {
        key: (row["count_sales"], row["revenue"]) for key, row in newest.items() if row
    } == expected
    # The only sale of a region was deleted.
    assert "Asia" in {key.split("/")[0] for key, row in newest.items() if row is None}
