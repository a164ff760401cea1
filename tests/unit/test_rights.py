"""Files and folders without rights: one clear line, and exit code 1."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rights import run_bound


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder that nobody may read or write."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    yield folder
    folder.chmod(0o700)


@pytest.mark.parametrize(
    "module",
    [
        "ingest files .",
        "ingest retry",
        "lab.demo",
        "lab.demo.live",
        "lab.stack start",
        "examples.tickit.source",
    ],
)
def test_lake_that_cannot_be_written_is_named(module: str, tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o500)
    lake = folder / "lake"
    done = run_bound(lake, *module.split())
    assert done.returncode == 1, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith(f"{module.split()[0]}: ")
    assert str(lake) in line
    assert "Permission denied" in line


@pytest.mark.parametrize("module", ["ingest status --json", "cdc_lakehouse dashboard"])
def test_what_cannot_be_read_is_named(module: str, closed: Path, tmp_path: Path) -> None:
    (tmp_path / "lake/warehouse").mkdir(parents=True)
    (tmp_path / "lake/warehouse/gold.db").symlink_to(closed)
    is_status = module.startswith("ingest")
    done = run_bound(closed if is_status else tmp_path / "lake", *module.split())
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("ingest: " if is_status else "dashboard: ")
    assert (str(closed) if is_status else "gold.db") in line
    assert "Permission denied" in line


def test_build_says_which_lake_it_cannot_write(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    (lake / "warehouse/bronze.db").mkdir(parents=True)
    lake.chmod(0o500)
    places = ("--target-path", str(tmp_path), "--log-path", str(tmp_path))
    done = run_bound(
        lake, "dbt.cli.main", "--quiet", "run", "--profiles-dir", "profiles", *places
    )
    assert done.returncode == 2
    assert f"cannot write below {lake}: Permission denied" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
