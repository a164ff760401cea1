"""How old bronze, silver and gold are under a load that does not stop.

A stack of its own: PostgreSQL, a connector that `init` wrote, Kafka, and `ingest kafka
--continuous --then-build` on a project of one table that `add` declared and one gold model.
Transactions of several writers insert, update and delete rows (15, 80 and 5 of 100). A
marker is one row more, changed once every few seconds and committed; a reader without a JVM
looks for it in the newest commit of bronze, in silver and in gold. Prints the percentiles
of each, those of gold by part of the time, throughput, memory, files and bytes, and
whether silver and gold equal the source at the end.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import click
from hudi import HudiQueryType, HudiReadOptions

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.serving.gold import find_table
from cdc_lakehouse.storage.tables import read_columns
from lab.benchmarks.watched import Session, memory_text, watched
from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.connect import SECRETS_FOLDER
from lab.stack.northwind import NorthwindStack
from lab.stack.postgres import SUPERUSER
from lab.stack.processes import wait_until

NAME = "shop"
WRITERS = 4
SECONDS_A_TRANSACTION = 0.1
LAYERS = ("bronze", "silver", "gold")
SECONDS_TO_DRAIN = 300
PARTS = 5
SOURCE = """
create table public.orders (
    order_id bigint generated always as identity primary key, customer_id text not null,
    ordered_on date not null, shipped_on date, freight numeric(12, 2) not null, note text
);
create function public.change(changes int, writer int) returns void language plpgsql as $$
declare
    kind float8;
    newest bigint := (select max(order_id) from public.orders);
    chosen bigint;
begin
    for number in 1..changes loop
        kind := random();
        if kind < 0.15 then
            insert into public.orders (customer_id, ordered_on, freight)
            values ('C' || floor(random() * {customers}), current_date, random() * 100);
            continue;
        end if;
        loop
            -- Not in the where clause, which would draw again for each row of the table.
            -- Each writer has its own, or two would wait for each other.
            chosen := 2 + writer + {writers} * floor(random() * newest / {writers});
            if kind < 0.95 then
                update public.orders set shipped_on = current_date, freight = random() * 100
                where order_id = chosen;
            else
                delete from public.orders where order_id = chosen;
            end if;
            exit when found;
        end loop;
    end loop;
end $$;
insert into public.orders (customer_id, ordered_on, freight)
select case when number = 1 then 'marker' else 'C' || number % {customers} end,
    date '2026-01-01' + (number % 300)::int, (number - 1) % 1000
from generate_series(1, {orders}) as number;
"""
GOLD = """\
{{ config(unique_key='customer_id') }}
select customer_id, count(*) as orders, sum(freight) as freight
from {{ ref('orders') }}
where not is_deleted
group by customer_id
"""


@dataclass
class Seen:
    """When each marker was committed, and when a reader first saw it in each layer."""

    committed: dict[int, float] = field(default_factory=dict)
    seen: dict[str, dict[int, float]] = field(
        default_factory=lambda: {layer: {} for layer in LAYERS}
    )

    def see(self, layer: str, marker: int, at: float) -> None:
        """A layer has a marker, and those before it."""
        found = self.seen[layer]
        for number in range(len(found) + 1, marker + 1):
            found[number] = at

    def delays(self, layer: str) -> list[float]:
        """Of each marker the seconds until it was there, in their order."""
        return [at - self.committed[marker] for marker, at in self.seen[layer].items()]


class Reader:
    """Looks for markers in the commits of a lake's three tables, as they come."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake
        self._newest = dict.fromkeys(LAYERS, "0")
        self._looks: dict[str, Callable[[str, str], int]] = {
            "bronze": self._in_bronze,
            "silver": self._in_silver,
            "gold": self._in_gold,
        }

    def look(self) -> dict[str, int]:
        """Of each layer with a new commit, the newest marker that it has."""
        found = {}
        for layer, look in self._looks.items():
            name = "revenue_by_customer" if layer == "gold" else "orders"
            table = f"{layer}.{name}"
            commits = self.lake / f"warehouse/{layer}.db/{name}/.hoodie"
            instants = [path.stem for path in commits.glob("*commit")]
            before, newest = self._newest[layer], max(instants, default="0")
            if newest > before:
                found[layer] = look(table, before)
                self._newest[layer] = newest
        return found

    def _in_bronze(self, table: str, before: str) -> int:
        options = (
            HudiReadOptions(projection=["key", "value"])
            .with_query_type(HudiQueryType.Incremental)
            .with_start_timestamp(before)
        )
        newest = 0
        for batch in self._table(table).read(options):
            for key, value in zip(*(column.to_pylist() for column in batch), strict=True):
                if key == '{"order_id":1}':
                    freight = Decimal(json.loads(value)["after"]["freight"])
                    newest = max(newest, int(freight))
        return newest

    def _in_silver(self, table: str, _: str) -> int:
        return self._newest_of(table, "order_id", 1)

    def _in_gold(self, table: str, _: str) -> int:
        return self._newest_of(table, "customer_id", "marker")

    def _newest_of(self, table: str, key: str, marker: Any) -> int:
        rows = read_columns(self._table(table), [key, "freight"])
        found = dict(
            zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True)
        )
        return int(found.get(marker, 0))

    def _table(self, name: str) -> Any:
        table = find_table(self.lake, name)
        assert table is not None, name
        return table


class Shop:
    """A source with one table, its connector, and a project that reads it.

    Args:
        stack: its servers, which run.
        folder: for everything.
        orders: that the table has in the beginning.
    """

    def __init__(self, stack: NorthwindStack, folder: Path, orders: int) -> None:
        self.lake = folder / "lake"
        self.lake.mkdir()
        self.project = folder / NAME
        self.stack = stack
        postgres = self.stack.postgres
        self.environment = {
            **{"PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGDATABASE": NAME},
            **{"PGUSER": SUPERUSER, "PGPASSWORD": postgres.password},
            **{"LAKE_ROOT": str(self.lake)},
        }
        postgres.execute(f"create database {NAME}")
        customers = max(91, orders // 100)
        text = SOURCE.format(orders=orders, customers=customers, writers=WRITERS)
        postgres.execute(text, dbname=NAME)
        self._prepare("init", str(self.project))
        self._prepare("add", "public.orders", folder=self.project)
        gold = self.project / "models/gold/revenue_by_customer.sql"
        gold.parent.mkdir(exist_ok=True)
        gold.write_text(GOLD)
        self._register()

    def _prepare(self, *words: str, folder: Path | None = None) -> None:
        """Run a command, and at the source what it prints."""
        done = watched("cdc_lakehouse", *words, folder=folder, environment=self.environment)
        if done.said.strip():
            self.stack.postgres.execute(done.said, dbname=NAME)

    def _register(self) -> None:
        for schema in ("public", "cdc_lakehouse"):
            self.stack.postgres.execute(
                f"grant usage on schema {schema} to {REPLICATION_ROLE}",
                f"grant select on all tables in schema {schema} to {REPLICATION_ROLE}",
                dbname=NAME,
            )
        file = self.project / "connectors/source.json"
        ours = f"{SECRETS_FOLDER}/{NAME}.properties"
        text = file.read_text().replace(ours, str(self.stack.placeholders))
        settings = json.loads(text) | {"database.dbname": NAME}
        self.stack.connect.ask("PUT", f"/connectors/{NAME}/config", settings)
        slots = f"select 1 from pg_replication_slots where active and database = '{NAME}'"
        wait_until(lambda: bool(self.query(slots)), 120, "the connector does not stream")

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a query of the source."""
        return self.stack.postgres.execute(text, dbname=NAME)

    def start_ingest(self) -> subprocess.Popen[bytes]:
        """The process that brings it to gold."""
        with (self.lake / "ingest.log").open("wb") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "cdc_lakehouse", "ingest", "kafka"),
                    *("--bootstrap-servers", self.stack.bootstrap_servers),
                    *("--continuous", "--then-build"),
                ],
                cwd=self.project,
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def write(
        self, writer: int, rate: int, stop: threading.Event, counts: list[int]
    ) -> None:
        """Change rows so many times a second, in transactions, and count the changes."""
        a_transaction = max(1, round(rate * SECONDS_A_TRANSACTION))
        due = time.monotonic()
        with closing(self.stack.postgres.connect(dbname=NAME)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                while not stop.is_set():
                    cursor.execute("select public.change(%s, %s)", (a_transaction, writer))
                    counts.append(a_transaction)
                    due += a_transaction / rate
                    stop.wait(max(0.0, due - time.monotonic()))

    def mark(self, seen: Seen, pause: float, stop: threading.Event, until: float) -> None:
        """Commit markers at random moments, so many seconds apart on average."""
        draw = partial(random.Random(5).uniform, 0.5 * pause, 1.5 * pause)
        with closing(self.stack.postgres.connect(dbname=NAME)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                while not stop.wait(draw()) and time.monotonic() < until:
                    marker = len(seen.committed) + 1
                    statement = "update public.orders set freight = %s where order_id = 1"
                    cursor.execute(statement, (marker,))
                    seen.committed[marker] = time.time()

    def differing(self) -> int:
        """How many rows of silver, and customers of gold, are not the source's."""
        source = dict(self.query("select order_id, freight from public.orders"))
        table = find_table(self.lake, "silver.orders")
        assert table is not None
        columns = read_columns(table, ["order_id", "freight", "is_deleted"]).to_pylist()
        silver = {
            row["order_id"]: row["freight"] for row in columns if not row["is_deleted"]
        }
        of_customers = "select customer_id, sum(freight) from public.orders group by 1"
        answers = dict(self.query(of_customers))
        table = find_table(self.lake, "gold.revenue_by_customer")
        assert table is not None
        rows = read_columns(table, ["customer_id", "freight"]).to_pylist()
        gold = {row["customer_id"]: row["freight"] for row in rows}
        return len(source.items() ^ silver.items()) + len(answers.items() ^ gold.items())


def measure(shop: Shop, rate: int, seconds: int, pause: float) -> None:
    """Print what a load of some changes a second does for some time."""
    seen, reader, stop = Seen(), Reader(shop.lake), threading.Event()
    counts: list[int] = []
    ingest, begin = shop.start_ingest(), time.monotonic()
    session = Session(ingest.pid)
    threads: list[threading.Thread] = []
    try:
        # The first load is not counted.
        wait_until(lambda: "gold" in reader.look(), SECONDS_TO_DRAIN, "gold has no table")
        until = time.monotonic() + seconds
        for writer in range(WRITERS if rate else 0):
            work = (writer, rate // WRITERS, stop, counts)
            threads.append(threading.Thread(target=shop.write, args=work))
        marking = threading.Thread(target=shop.mark, args=(seen, pause, stop, until))
        for thread in [*threads, marking]:
            thread.start()
        while marking.is_alive() or len(seen.seen["gold"]) < len(seen.committed):
            if time.monotonic() > until:
                stop.set()
            if time.monotonic() > until + SECONDS_TO_DRAIN:
                break
            if ingest.poll() is not None:
                raise click.ClickException((shop.lake / "ingest.log").read_text())
            for layer, marker in reader.look().items():
                seen.see(layer, marker, time.time())
            time.sleep(0.05)
        busy = session.cpu_seconds() / (time.monotonic() - begin)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        try:
            differing = _settled(shop)
        finally:
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(ingest.pid, signal.SIGKILL)
            ingest.wait()
    show(shop, seen, sum(counts) / seconds, differing)
    click.echo(f"   at most {memory_text(session.peaks)}; CPU {busy:.0%} of a core")


def _settled(shop: Shop) -> int:
    """How many rows differ from the source when nothing more comes."""
    end = time.monotonic() + SECONDS_TO_DRAIN
    while (differing := shop.differing()) and time.monotonic() < end:
        time.sleep(1)
    return differing


def show(shop: Shop, seen: Seen, rate: float, differing: int) -> None:
    """Print the delays, files and bytes."""
    click.echo(f"{rate:,.0f} changes a second, {len(seen.committed)} markers")
    for layer in LAYERS:
        delays = seen.delays(layer)
        if len(delays) < len(seen.committed):
            click.echo(f"   {layer}: {len(delays)} markers came")
        if len(delays) > 1:
            cuts = statistics.quantiles(delays, n=100, method="inclusive")
            said = ", ".join(f"p{p} {cuts[p - 1]:.1f} s" for p in (50, 95, 99))
            click.echo(f"   {layer:<7} {said}, at most {max(delays):.1f} s")
    delays = seen.delays("gold")
    size = max(1, len(delays) // PARTS)
    parts = [delays[at : at + size] for at in range(0, size * PARTS, size)]
    medians = [f"{statistics.median(part):.1f}" for part in parts if part]
    click.echo(f"   gold's median by fifth of the time: {', '.join(medians)} s")
    for layer in LAYERS:
        folder = shop.lake / f"warehouse/{layer}.db"
        files = [path for path in folder.rglob("*.parquet") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        click.echo(f"   {layer}: {len(files)} files, {size / 2**20:.0f} MiB")
    click.echo(f"   rows that differ from the source at the end: {differing}")


@click.command("lab.benchmarks.freshness", help=__doc__, context_settings=STYLE)
@version
@click.option("--rate", default=100, help="Changes a second; 0 for markers alone.")
@click.option("--orders", default=1_000, help="Of the table in the beginning.")
@click.option("--seconds", default=600, help="Of the load.")
@click.option("--pause", default=2.0, help="Seconds between two markers, on average.")
def command(rate: int, orders: int, seconds: int, pause: float) -> None:
    folder = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    folder.chmod(0o755)
    stack = NorthwindStack(folder)
    try:
        stack.start()
        measure(Shop(stack, folder, orders), rate, seconds, pause)
    finally:
        stack.remove()
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
