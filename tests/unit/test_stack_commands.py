"""The commands of the local stack and of its sources, and what is removed; no server runs.

Nothing that is not ours is ever removed; what lacks rights is named in one line.
"""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark.metastore import is_prepared, prepare
from cdc_lakehouse.storage.folders import (
    LEAST_ROOM,
    claim,
    clear,
    make_elsewhere,
    require_room,
)
from lab.stack import downloads
from lab.stack.downloads import download_once
from lab.stack.postgres import find_binaries
from tests.support.project import PROJECT
from tests.support.rights import run_bound


def write(path: Path, text: str = "precious") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_of_two_processes_one_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is of an open file, so that threads wait for each other as processes do."""
    monkeypatch.setattr(downloads, "LOCK", tmp_path / "lock")
    filled = []

    def fill(folder: Path) -> None:
        filled.append([*folder.iterdir()])
        (folder / "jar").touch()
        assert len(filled) != 1  # the first one fails

    def fetch(version: str) -> bool:
        with suppress(AssertionError):
            download_once(tmp_path / "jars", version, fill)
        return (tmp_path / "jars/jar").exists()

    with ThreadPoolExecutor(8) as processes:
        assert all(processes.map(fetch, ["1"] * 8))
    assert fetch("2") and filled == [[]] * 3


def test_missing_postgres_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(Path, "glob", lambda _path, _pattern: iter(()))
    with pytest.raises(UserError, match="apt-get install postgresql"):
        find_binaries()


# What is noted as ours, and `make clean`


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LAKE_METASTORE", raising=False)
    monkeypatch.setenv("LAKE_ROOT", str(tmp_path / "lake"))
    return tmp_path / "lake"


def test_metastore_of_somebody_else_is_refused_and_ours_half_made_removed(
    root: Path,
) -> None:
    theirs = write(root / "metastore" / "theirs.db")
    assert not is_prepared()
    with pytest.raises(UserError, match=f"{root}/metastore is no metastore"):
        prepare()
    assert theirs.exists()
    shutil.rmtree(root)
    prepare()
    assert is_prepared()
    (root / "metastore" / "seg0").mkdir(parents=True)
    assert not is_prepared()
    prepare()
    assert not (root / "metastore").exists() and is_prepared()


def test_full_disk_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_room(str(root))  # nothing is there yet
    root.mkdir()
    usage = SimpleNamespace(free=LEAST_ROOM)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    require_room(str(root))
    usage.free = LEAST_ROOM - 1
    with pytest.raises(UserError, match=f"the disk of {root} is full .15 MiB are left"):
        require_room(str(root))


@pytest.mark.parametrize("by_make", [False, True])
def test_folder_elsewhere_is_removed_with_its_link(
    by_make: bool, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a stack's; one that has a link to somebody's stays, or of another stack."""
    monkeypatch.setattr("cdc_lakehouse.storage.folders.ELSEWHERE", str(tmp_path))
    claim(root / "stack", "a stack\n")
    (tmp_path / "theirs").mkdir()
    (root / "stack" / "theirs").symlink_to(tmp_path / "theirs")
    linked = make_elsewhere(root / "stack" / "postgres")
    (linked / "data").mkdir()
    claim(root.parent / "other", "a stack\n")
    (root / "stack" / "other").symlink_to(make_elsewhere(root.parent / "other" / "link"))
    if by_make:
        monkeypatch.setenv("PYTHONPATH", str(PROJECT))
        make = ("make", "-f", PROJECT / "Makefile", "clean")
        subprocess.run(make, cwd=tmp_path, check=True)
        assert not root.exists()
    else:
        clear(root / "stack")
        assert not list((root / "stack").iterdir())
    assert not linked.exists()
    assert (tmp_path / "theirs").is_dir()
    assert (tmp_path / "other" / "link").resolve().is_dir()


# Files and folders without rights

BUILD = "dbt.cli.main -q run --profiles-dir profiles --target-path {tmp} --log-path {tmp}"


@pytest.mark.parametrize(
    ("command", "closed", "mode", "code"),
    [
        ("ingest files .", "", 0o500, 1),
        ("ingest status --json", "", 0, 1),
        ("cdc_lakehouse dashboard", "warehouse/gold.db", 0, 1),
        (BUILD, "", 0o500, 2),
    ],
)
def test_what_cannot_be_read_or_written_is_named(
    command: str, closed: str, mode: int, code: int, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    for layer in ("bronze", "gold"):
        (lake / f"warehouse/{layer}.db").mkdir(parents=True)
    (lake / closed).chmod(mode)
    done = run_bound(lake, *command.format(tmp=tmp_path).split())
    assert done.returncode == code, done.stderr
    said = (done.stdout + done.stderr).strip()  # dbt's is in its log, which is stdout
    [line] = [line for line in said.splitlines() if "Permission denied" in line]
    assert f"{closed or lake}" in line
    assert "Traceback" not in said
    assert code == 2 or (done.stdout, said) == ("", line)
