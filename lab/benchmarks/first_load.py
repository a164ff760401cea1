"""A first load of many events from files: its time, and the memory that it takes.

Writes slim events of customers as files. Then a Spark reads them and writes Parquet, no
more (``bare_write``), ``python -m ingest files`` and ``dbt run`` load a new lake, and a
program by hand does the same with less care (``load_by_hand``), each in a process of its
own, with the optimising compiler. Prints how long each took, the highest resident memory
of its Python and its Java, and how many times the bare write that was.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from lab.benchmarks.watched import memory_text, watched

EVENTS_A_FILE = 100_000
LINE = (
    '{{"key":{{"customer_id":"C{key:08d}"}},"value":{{"customer_id":"C{key:08d}",'
    '"company_name":"Company {key}","city":"City {city}","country":"Germany",'
    '"__deleted":"false","__op":"{op}","__table":"customers","__lsn":{lsn},'
    '"__source_ts_ms":{at}}},"metadata":{{"topic":"demo.datalake.customers",'
    '"partition":0,"offset":{offset},"timestamp":{at}}}}}\n'
)


def write_events(folder: Path, events: int) -> None:
    """Write creates of half as many customers, then an update of each, as plain files."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = max(1, events // 2)
    for first in range(0, events, EVENTS_A_FILE):
        with (folder / f"{first:012d}.json").open("w", encoding="ascii") as file:
            for offset in range(first, min(first + EVENTS_A_FILE, events)):
                file.write(
                    LINE.format(
                        key=offset % keys,
                        city=offset % 977,
                        op="c" if offset < keys else "u",
                        lsn=50_000_000 + offset,
                        at=1_795_227_000_000 + offset,
                        offset=offset,
                    )
                )


def timed(name: str, *command: str, **environment: str) -> float:
    """Run a command, print what it took, and its last line; its seconds.

    Raises:
        UserError: it failed.
    """
    found = watched(*command, environment=environment)
    memory = memory_text(found.peaks)
    click.echo(f"{name}: {found.seconds:,.0f} s; at most {memory}")
    said = found.said.strip().splitlines()
    click.echo(f"   {said[-1] if said else ''}")
    return found.seconds


@click.command("lab.benchmarks.first_load", help=__doc__, context_settings=STYLE)
@version
@click.option("--events", type=click.IntRange(min=1), default=10_000_000)
@click.option("--driver-memory", default="2g")
@click.option("--build/--no-build", default=True, help="whether to run dbt, too")
@click.option(
    "--landing",
    type=click.Path(path_type=Path, file_okay=False),
    help="where the files are or will be, and stay; otherwise in a folder that is removed",
)
@click.option("--only-write", is_flag=True, help="write the files of --landing, no more")
def command(
    events: int, driver_memory: str, build: bool, landing: Path | None, only_write: bool
) -> None:
    with tempfile.TemporaryDirectory(prefix="first-load-") as folder:
        files = landing or Path(folder) / "landing"
        if not files.exists():
            write_events(files, events)
        if only_write:
            return
        size = sum(file.stat().st_size for file in files.iterdir())
        click.echo(f"{events:,} events, {size >> 20:,} MiB; a driver of {driver_memory}")
        lake = {
            "LAKE_ROOT": f"{folder}/lake",
            "SPARK_DRIVER_MEMORY": driver_memory,
            "LAKE_JIT_LEVEL": "4",
        }
        write = ("lab.benchmarks.bare_write", str(files), f"{folder}/bare")
        bare = timed("bare write", *write, **lake)
        seconds = timed("ingest", "ingest", "files", str(files), **lake)
        click.echo(f"   {seconds / bare:.1f} times the bare write")
        if build:
            places = ("--target-path", f"{folder}/target", "--log-path", f"{folder}/logs")
            models = (
                "run",
                "-s",
                "stg_customers",
                "customers",
                "--profiles-dir",
                "profiles",
            )
            words = ("dbt.cli.main", "--quiet", *models, *places)
            seconds += timed("first build", *words, **lake)
            click.echo(f"   both {seconds / bare:.1f} times the bare write")
            by_hand = ("lab.benchmarks.load_by_hand", str(files), f"{folder}/by-hand")
            seconds = timed("both by hand", *by_hand, **lake)
            click.echo(f"   {seconds / bare:.1f} times the bare write")


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
