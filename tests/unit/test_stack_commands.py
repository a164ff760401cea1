"""The commands of the local stack and of its sources, and what is removed; no server runs.

Nothing that is not ours is ever removed; what lacks rights is named in one line.
"""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.spark.metastore import is_prepared, prepare
from cdc_lakehouse.storage.folders import (
    LEAST_ROOM,
    NOTES,
    claim,
    clear,
    make_elsewhere,
    note_own,
    require_room,
)
from lab.demo import live
from lab.stack import downloads, jars, postgres
from lab.stack.__main__ import main
from lab.stack.downloads import download_once
from lab.stack.northwind import NorthwindStack
from lab.stack.postgres import find_binaries
from lab.stack.stack import FINISHED, UNFINISHED
from tests.support.project import PROJECT
from tests.support.required import require_program
from tests.support.rights import run_bound
from tests.unit.conftest import Cli


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake where a start passes every check, and fails before its first part."""
    lake = tmp_path / "lake(1)"  # a shell needs it quoted
    monkeypatch.setenv("LAKE_ROOT", str(lake))

    def fail(*arguments: object) -> NoReturn:
        raise UserError("the parts would start now")

    monkeypatch.setattr(NorthwindStack, "_start_parts", fail)
    monkeypatch.setattr(jars, "find_java", lambda: "java")
    monkeypatch.setattr(jars, "fetch", lambda *profiles: None)
    monkeypatch.setattr(postgres, "find_binaries", lambda *version: tmp_path)
    return lake


def write(path: Path, text: str = "precious") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_foreign_folder_is_left_alone(lake: Path, cli: Cli) -> None:
    """And what a first start left is removed."""
    file = write(lake / "stack" / "docker" / "compose.yaml")
    for command in (["start"], ["stop", "--remove"]):
        said = cli(*command, main=main)
        assert (said.code, f"rm -r '{lake}/stack'" in said.err) == (1, True)
        assert file.exists()
    shutil.rmtree(lake / "stack")
    claim(lake / "stack", UNFINISHED)
    write(lake / "stack" / "kafka" / "meta.properties")
    assert main(["start"]) == 1
    assert not (lake / "stack").exists()


@pytest.mark.parametrize("text", [None, "", '{"ports": {}}'])
def test_database_whose_state_is_lost_or_damaged_is_left_alone(
    lake: Path, text: str | None, cli: Cli
) -> None:
    claim(lake / "stack", FINISHED)
    file = write(lake / "stack" / "postgres" / "data" / "PG_VERSION")
    if text is not None:
        write(lake / "stack" / "state.json", text)
    said = cli("start", main=main)
    state_is = "lost" if text is None else "damaged"
    assert (said.code, f"state.json is {state_is}" in said.err) == (1, True)
    assert main(["stop"]) == 0
    assert file.exists()
    assert main(["stop", "--remove"]) == 0
    assert not (lake / "stack").exists()


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


def test_live_removes_nothing_below_an_older_run(lake: Path, cli: Cli) -> None:
    file = write(lake / "live" / "recording.mp4")
    said = cli(main=live.main)
    assert (said.code, f"{lake}/live holds files" in said.err) == (1, True)
    claim(lake / "live", "")
    with exclusive_lock(str(lake / "live"), "ingest"):
        assert live.main([]) == 75
    assert file.exists()
    assert "the parts would start now" in cli(main=live.main).err
    assert not file.exists()


def test_clean_stops_both_stacks_first(tmp_path: Path) -> None:
    root = tmp_path / "a lake"
    note_own(str(root), "stack", "live")
    (root / "stack").mkdir()
    (root / "live" / "stack").mkdir(parents=True)
    stops = [f"{root} -m lab.stack stop", f"{root}/live -m lab.stack stop"]
    for code, expected in ((1, stops[:1]), (0, stops)):
        script = f'#!/bin/sh\necho "$LAKE_ROOT $*" >> stopped-{code}\nexit {code}\n'
        write(tmp_path / ".venv/bin/python", script).chmod(0o755)
        clean(tmp_path, root)
        assert (tmp_path / f"stopped-{code}").read_text().splitlines() == expected
        assert root.exists() == bool(code)


def test_missing_postgres_is_an_error_with_the_package_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def clean(folder: Path, root: Path) -> subprocess.CompletedProcess[str]:
    """``make clean`` in another folder than the project's."""
    require_program("flock", "util-linux")
    make = (require_program("make", "make"), "--no-print-directory")
    return subprocess.run(
        [*make, "-f", str(PROJECT / "Makefile"), "clean"],
        cwd=folder,
        env={**os.environ, "LAKE_ROOT": str(root), "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )


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


def test_clean_removes_what_is_noted_and_leaves_the_rest(
    root: Path, tmp_path: Path
) -> None:
    (root / "theirs").mkdir(parents=True)
    note_own(str(root), "warehouse", "dbt build.lock", "theirs")
    (root / "warehouse" / "bronze.db").mkdir(parents=True)
    (root / "dbt build.lock").write_text("1")
    (tmp_path / "target").mkdir()
    with (root / NOTES).open("a") as marker:
        marker.write("../outside\n\n..\n")
    (tmp_path / "outside").mkdir()
    assert "left alone:\ntheirs\n" in clean(tmp_path, root).stdout
    assert (root / "theirs").is_dir() and (tmp_path / "outside").is_dir()
    gone = (root / "warehouse", root / "dbt build.lock", tmp_path / "target")
    assert not any(path.exists() for path in gone)


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
        clean(tmp_path, root)
        assert not root.exists()
    else:
        clear(root / "stack")
        assert not list((root / "stack").iterdir())
    assert not linked.exists()
    assert (tmp_path / "theirs").is_dir()
    assert (tmp_path / "other" / "link").resolve().is_dir()


@pytest.mark.parametrize(("name", "part"), [("ingest", "live"), ("dbt build", "")])
def test_clean_refuses_a_lake_that_is_worked_on(
    name: str, part: str, root: Path, tmp_path: Path
) -> None:
    lake = root / part
    note_own(str(root), "warehouse", "live")
    (root / "warehouse").mkdir()
    with exclusive_lock(str(lake), name):
        done = clean(tmp_path, root)
        assert done.returncode != 0
        holder = f"clean: {name} (process {os.getpid()}) is at work on {lake};"
        assert holder in done.stderr
        assert (root / "warehouse").exists()
    assert clean(tmp_path, root).stdout == ""
    assert not root.exists()


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
