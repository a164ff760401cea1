"""A first load of many events from files: its time, and the memory that it takes.

Writes slim events of customers as files, then runs ``python -m ingest files`` and ``dbt
run`` on a new lake, each in a process of its own, and prints how long each took and the
highest resident memory of its Python and its Java.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.errors import UserError

EVENTS_A_FILE = 100_000
LINE = (
    '{{"key":{{"customer_id":"C{key:08d}"}},"value":{{"customer_id":"C{key:08d}",'
    '"company_name":"Company {key}","city":"City {city}","country":"Germany",'
    '"__deleted":"false","__op":"{op}","__table":"customers","__lsn":{lsn},'
    '"__source_ts_ms":{at}}},"metadata":{{"topic":"demo.datalake.customers",'
    '"partition":0,"offset":{offset},"timestamp":{at}}}}}\n'
)
SECONDS_BETWEEN_POLLS = 0.5
# In /proc: Java's or Python's name, and the most memory that it had.
MEMORY = re.compile(r"Name:\s+(java|python3?)\s.*VmHWM:\s+(\d+) kB", re.DOTALL)


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


def timed(name: str, *command: str, **environment: str) -> None:
    """Run a command, print what it took, and its last line.

    Raises:
        UserError: it failed.
    """
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    peaks: dict[str, int] = {}
    watcher = threading.Thread(target=_watch, args=(process, peaks))
    watcher.start()
    try:
        said, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        raise
    watcher.join()
    seconds = time.monotonic() - start
    if process.returncode:
        raise UserError(f"{name} ended with {process.returncode}: {said}")
    memory = ", ".join(f"{of} {peak:,} MiB" for of, peak in sorted(peaks.items()))
    click.echo(f"{name}: {seconds:,.0f} s; at most {memory}")
    click.echo(f"   {said.strip().splitlines()[-1] if said.strip() else ''}")


def _watch(process: subprocess.Popen[str], peaks: dict[str, int]) -> None:
    """The highest resident memory of each program of a session, in MiB."""
    while process.poll() is None:
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if os.getsid(int(folder.name)) != process.pid:
                    continue
                status = (folder / "status").read_text()
                # A process that has just ended says no memory; others do not count.
                if said := MEMORY.search(status):
                    name, peak = said.groups()
                    peaks[name] = max(peaks.get(name, 0), int(peak) >> 10)
        time.sleep(SECONDS_BETWEEN_POLLS)


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
        lake = {"LAKE_ROOT": f"{folder}/lake", "SPARK_DRIVER_MEMORY": driver_memory}
        timed("ingest", "ingest", "files", str(files), **lake)
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
            timed("first build", "dbt.cli.main", "--quiet", *models, *places, **lake)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
