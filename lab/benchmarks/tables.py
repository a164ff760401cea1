"""What each table adds to a run: a first load, what changed, and nothing new.

A PostgreSQL of its own has so many tables of one shape, which `init` and `add 'public.*'`
declare; their events are files. Each step is `ingest files --then-build` in a process of
its own; then a `dbt build` and a `dbt run`, `ingest files --continuous --then-build`, which
stays, and the ingest without a build. Prints the seconds and the seconds of CPU of each
step, what it took a table, and the most memory of the processes that end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from lab.benchmarks.watched import Session, Watched, memory_text, watched
from lab.stack.ports import reserved_ports
from lab.stack.postgres import SUPERUSER, PostgresServer

PROJECT = Path(__file__).parents[2]
TABLE = (
    "create table public.table_{0:03d} (id int primary key, name text not null,"
    " amount numeric(12, 2), changed timestamp, is_active boolean)"
)
BEGIN = 1_795_227_000_000
FIRST_LSN = 50_000_000


class Tables:
    """So many tables of a source, and their events as files.

    Args:
        landing: where the files are written.
        count: of tables.
        rows: of each.
    """

    def __init__(self, landing: Path, count: int, rows: int) -> None:
        self.landing = landing
        self.count = count
        self.rows = rows
        self._written = 0

    def create(self, server: PostgresServer) -> None:
        """Make them, in the database ``tables``."""
        server.execute("drop database if exists tables", "create database tables")
        made = [TABLE.format(number) for number in range(self.count)]
        server.execute(*made, dbname="tables")

    def change(self, tables: int, rows: int, op: str = "u") -> None:
        """Land events of the first rows of the first tables, a file for each table."""
        self.landing.mkdir(exist_ok=True)
        for table in range(tables):
            lines = [self._line(table, row, op) for row in range(rows)]
            part = self.landing / f".{self._written}.part"
            part.write_text("\n".join(lines), encoding="utf-8")
            part.rename(self.landing / f"{self._written:012d}.json")

    def _line(self, table: int, row: int, op: str) -> str:
        self._written += 1
        lsn = FIRST_LSN + self._written
        name = f"table_{table:03d}"
        after = {
            **{"id": row, "name": f"name {row}", "amount": f"{lsn % 997}.25"},
            **{"changed": BEGIN * 1_000 + lsn, "is_active": row % 2 == 0},
        }
        source = {
            **{"connector": "postgresql", "db": "tables", "schema": "public"},
            **{"table": name, "lsn": lsn, "ts_ms": BEGIN + self._written},
        }
        value = {"before": None, "after": after, "source": source, "op": op}
        place = {"topic": f"shop.public.{name}", "partition": 0, "offset": self._written}
        return json.dumps({"key": {"id": row}, "value": value, "metadata": place})


def show(
    tables: int,
    step: str,
    seconds: float,
    cpu_seconds: float,
    peaks: Mapping[str, int],
) -> None:
    """Print what a step took with so many tables."""
    click.echo(
        f"{tables:>6}  {step:<32} {seconds:>7.1f} s {cpu_seconds:>7.1f} s CPU"
        f" {seconds / tables:>7.2f} s a table  {memory_text(peaks)}"
    )


def declare(
    server: PostgresServer, tables: Tables, folder: Path
) -> tuple[Path, dict[str, str], Watched]:
    """A project of the tables.

    Returns:
        its folder, the environment of its commands, and what ``add`` took.
    """
    tables.create(server)
    project = folder / "shop"
    environment = {
        **{"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGDATABASE": "tables"},
        **{"PGUSER": SUPERUSER, "PGPASSWORD": server.password},
        **{"LAKE_ROOT": str(folder / "lake"), "PYTHONPATH": str(PROJECT)},
        "LAKE_HOME": os.environ.get("LAKE_HOME", sys.prefix),
    }
    watched("cdc_lakehouse", "init", str(project), environment=environment)
    added = watched(
        *("cdc_lakehouse", "add", "public.*"), folder=project, environment=environment
    )
    return project, environment, added


def measure(
    server: PostgresServer, folder: Path, count: int, rows: int, *, has_builds: bool
) -> None:
    """Take all steps with so many tables, or those of the ingest alone."""
    tables = Tables(folder / "landing", count, rows)
    project, environment, added = declare(server, tables, folder)
    show(count, "add 'public.*'", added.seconds, added.cpu_seconds, added.peaks)
    ingest = ("cdc_lakehouse", "ingest", "files", str(tables.landing))
    both, dbt, few = (*ingest, "--then-build"), ("dbt.cli.main", "--quiet"), min(10, rows)

    def measure_step(
        step: str, words: tuple[str, ...], changed: int, of_each: int = few, op: str = "u"
    ) -> None:
        tables.change(changed, of_each, op)
        found = watched(*words, folder=project, environment=environment)
        show(count, step, found.seconds, found.cpu_seconds, found.peaks)

    def measure_increments(of: str, words: tuple[str, ...]) -> None:
        measure_step(f"{of}nothing new", words, 0)
        measure_step(f"{of}one table changed", words, 1)
        measure_step(f"{of}all tables changed", words, count)

    if has_builds:
        measure_step("first load", both, count, rows, "r")
        measure_increments("", both)
        measure_step("dbt build, nothing new", (*dbt, "build"), 0)
        measure_step("dbt run, nothing new", (*dbt, "run"), 0)
        with resident(project, str(tables.landing), environment) as built:
            for step, changed in (
                ("resident, nothing new", 0),
                ("resident, one table changed", 1),
                ("resident, one table changed", 1),
                ("resident, all tables changed", count),
                ("resident, all tables changed", count),
            ):
                tables.change(changed, few)
                show(count, step, *next(built), {})
    else:
        measure_step("ingest alone, first load", ingest, count, rows, "r")
    # The last, as nothing builds what they leave in bronze.
    measure_increments("ingest alone, ", ingest)


@contextmanager
def resident(
    project: Path, landing: str, environment: dict[str, str]
) -> Iterator[Iterator[tuple[float, float]]]:
    """An ingest that stays; yields what passes until its next build, and its CPU."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "cdc_lakehouse", "ingest", "files", landing),
            *("--continuous", "--then-build"),
        ],
        cwd=project,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    session = Session(process.pid)

    def built() -> Iterator[tuple[float, float]]:
        assert process.stdout is not None
        while True:
            start, before = time.monotonic(), session.cpu_seconds()
            for line in iter(process.stdout.readline, ""):
                if line.startswith("built"):
                    break
            else:
                raise click.ClickException(f"the ingest ended with {process.wait()}")
            yield time.monotonic() - start, session.cpu_seconds() - before

    try:
        yield built()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def source() -> Iterator[tuple[PostgresServer, Path]]:
    """A PostgreSQL, and a folder; both are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    folder.chmod(0o755)
    with reserved_ports() as reserve:
        server = PostgresServer(folder / "postgres", reserve(), "benchmark")
    try:
        server.start()
        server.wait_until_ready()
        yield server, folder
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@click.command("lab.benchmarks.tables", help=__doc__, context_settings=STYLE)
@version
@click.option(
    "--tables", default="3,10,50,200", metavar="COUNTS", help="How many, in turn."
)
@click.option("--rows", type=click.IntRange(min=1), default=200, help="Of each table.")
@click.option("--build/--no-build", default=True, help="Or the ingest alone.")
def command(tables: str, rows: int, build: bool) -> None:
    with source() as (server, folder):
        for count in map(int, tables.split(",")):
            own = folder / str(count)
            own.mkdir()
            measure(server, own, count, rows, has_builds=build)
            shutil.rmtree(own, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
