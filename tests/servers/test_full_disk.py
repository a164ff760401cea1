"""A disk that fills while a build is at work on it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lake import environment
from tests.support.project import PROJECT
from tests.support.records import flattened, record
from tests.support.required import missing
from tests.support.tables import Tables

SIZE = "size=64m"
BUILD = ("dbt.cli.main", "run", "-s", "stg_customers", "customers")
TOPIC = "demo.datalake.customers"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", SIZE, "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        missing(f"no file system can be mounted here: {error}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    """Take all the room that is left."""
    with file.open("wb", buffering=0) as stream:
        size = 1 << 20
        while size:
            try:
                stream.write(b"x" * size)
            except OSError:
                size //= 2


def test_build_ends_with_the_reason_and_the_next_one_goes_on(
    disk: Path, tmp_path: Path
) -> None:
    lake = disk / "lake"
    landing = tmp_path / "landing"
    landing.mkdir()

    def start(*module: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=PROJECT,
            env=environment(lake),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(process: subprocess.Popen[str], *, is_full: bool = False) -> None:
        said, _ = process.communicate(timeout=180)
        assert (process.returncode != 0) == is_full, said
        assert (f"the disk of {lake} is full" in said) == is_full, said

    def ingest(customer: str, lsn: int) -> None:
        value = flattened("c", {"customer_id": customer}, lsn, table="customers")
        line = record({"customer_id": customer}, value, lsn, topic=TOPIC)
        (landing / f"{lsn}.json").write_text(json.dumps(line) + "\n")
        end(start("ingest", "files", str(landing)))

    places = ("--target-path", str(tmp_path), "--log-path", str(tmp_path))
    build = (*BUILD, "--profiles-dir", "profiles", *places)

    def customers() -> list[str]:
        return sorted(row["customer_id"] for row in Tables(lake).rows("silver.customers"))

    ingest("ALFKI", 1)
    end(start(*build))
    ingest("BERGS", 2)
    process = start(*build)
    while (lake / "dbt build.lock").read_text() != str(process.pid):
        assert process.poll() is None
        time.sleep(0.1)
    fill(disk / "fill")
    begin = time.monotonic()
    end(process, is_full=True)
    assert time.monotonic() - begin < 90
    assert customers() == ["ALFKI"]
    # Nothing is begun meanwhile.
    end(start(*build), is_full=True)
    (disk / "fill").unlink()
    end(start(*build))
    assert customers() == ["ALFKI", "BERGS"]
