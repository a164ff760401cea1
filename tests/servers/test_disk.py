"""A disk that fills while a build is at work, and files that an ingest may not read."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import Process, start
from tests.support.lake import environment
from tests.support.required import missing
from tests.support.rights import run_bound
from tests.support.scenario import customer, order
from tests.support.tables import Tables

SIZE = "size=64m"
BUILD = ("dbt.cli.main", "run", "-s", "stg_customers", "customers")


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


def test_build_ends_with_the_reason_and_the_next_one_goes_on(
    disk: Path, tmp_path: Path
) -> None:
    lake = disk / "lake"
    landing = tmp_path / "landing"
    landing.mkdir()

    def begin(*module: str) -> Process:
        return start(sys.executable, "-m", *module, env=environment(lake))

    def end(process: Process, *, is_full: bool = False) -> None:
        said, _ = process.communicate(timeout=180)
        assert (process.returncode != 0) == is_full, said
        assert (f"the disk of {lake} is full" in said) == is_full, said

    def ingest(name: str, lsn: int) -> None:
        line = json.dumps(customer("c", name, lsn, lsn))
        (landing / f"{lsn}.json").write_text(line + "\n")
        end(begin("ingest", "files", str(landing)))

    places = ("--target-path", str(tmp_path), "--log-path", str(tmp_path))
    build = (*BUILD, "--profiles-dir", "profiles", *places)

    def customers() -> list[str]:
        return sorted(row["customer_id"] for row in Tables(lake).rows("silver.customers"))

    ingest("ALFKI", 1)
    end(begin(*build))
    ingest("BERGS", 2)
    process = begin(*build)
    while (lake / "dbt build.lock").read_text() != str(process.pid):
        assert process.poll() is None
        time.sleep(0.1)
    # It ends when there is no room.
    subprocess.run(["dd", "if=/dev/zero", f"of={disk / 'fill'}"], capture_output=True)
    filled = time.monotonic()
    end(process, is_full=True)
    assert time.monotonic() - filled < 90
    assert customers() == ["ALFKI"]
    # Nothing is begun meanwhile.
    end(begin(*build), is_full=True)
    (disk / "fill").unlink()
    end(begin(*build))
    assert customers() == ["ALFKI", "BERGS"]


def said_at_last(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a command says, without its progress."""
    return [line for line in done.stderr.splitlines() if not line.endswith(" s now")]


def test_files_without_rights_are_named(tmp_path: Path) -> None:
    """They do not hold up the others."""
    folder = tmp_path / "landing"
    folder.mkdir()
    for number in (1, 2):
        change = order("c", number, number, number)
        (folder / f"{number}.json").write_text(json.dumps(change))
    (folder / "2.json").chmod(0)
    lake = tmp_path / "lake"
    done = run_bound(lake, "ingest", "files", str(folder))
    assert done.returncode == 3, done.stderr
    assert done.stdout == "read 1 records, wrote 1 events, rejected 0, skipped 0\n"
    [line] = said_at_last(done)
    assert f"cannot read file:{folder}/2.json: " in line
    assert "(Permission denied)" in line

    (folder / "closed").mkdir(mode=0)
    done = run_bound(lake, "ingest", "files", str(folder))
    (folder / "closed").chmod(0o700)
    assert done.returncode == 3
    said = said_at_last(done)
    assert len(said) == 2
    [line] = [each for each in said if f"cannot read file:{folder}/closed: " in each]
    assert ": Permission denied; " in line
