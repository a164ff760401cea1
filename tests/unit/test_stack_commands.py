"""The commands of the local stack and of its sources, and what is removed; no server runs.

Nothing that is not ours is ever removed; what lacks rights is named in one line.
"""

import os
import re
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
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
    noted_own,
    require_room,
)
from lab.demo import live
from lab.northwind import __main__ as northwind
from lab.stack import downloads, jars, postgres
from lab.stack.__main__ import main
from lab.stack.downloads import download_once
from lab.stack.northwind import NorthwindStack
from lab.stack.ports import reserved_ports
from lab.stack.postgres import find_binaries
from lab.stack.stack import FINISHED, UNFINISHED
from tests.support.project import PROJECT
from tests.support.required import require_program
from tests.support.rights import run_bound
from tests.unit.conftest import Cli

STATE = """{{"ports": {{"postgres": {port}, "kafka": 2, "controller": 3, "connect": 4}},
  "connectors": ["source-outbox"]}}"""


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


@pytest.mark.parametrize("text", [None, "", '{"ports": {}}', STATE.format(port=0)])
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
    monkeypatch.setattr(downloads, "LOCK", tmp_path / ".venv" / "lock")
    jar = tmp_path / "jars" / "jar"
    versions = []

    def fetch(version: str) -> None:
        def fill(folder: Path) -> None:
            versions.append(version)
            assert list(folder.iterdir()) == []
            jar.write_text(version)
            assert version != "broken"

        download_once(jar.parent, version, fill)

    # The lock is of an open file, so that threads wait for each other as processes do.
    with ThreadPoolExecutor(8) as processes:
        list(processes.map(fetch, ["1"] * 8))
    assert (versions, jar.read_text()) == (["1"], "1")
    with pytest.raises(AssertionError):
        fetch("broken")
    fetch("1")
    assert (versions, jar.read_text()) == (["1", "broken", "1"], "1")


def test_reserved_port_is_its_servers() -> None:
    with reserved_ports() as reserve, socket.socket() as other:
        port = reserve()
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with socket.create_server(("127.0.0.1", port)), pytest.raises(OSError):
            reserve(port)
        with socket.create_server(("127.0.0.1", port)):
            pass


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


# A source's commands


def test_readme_has_every_option_and_variable(cli: Cli) -> None:
    said = cli("--help", main=northwind.main).out
    named = set(re.findall(r"--[a-z-]+|\b[A-Z]+_?PASSWORD|\bPG[A-Z]+", said))
    assert len(named) > 10
    readme = (PROJECT / "connectors" / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## The source\n")[1].split("\n## ")[0]
    assert {name for name in named if name not in section} == {"--help", "--version"}


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


def test_what_was_there_is_not_noted(root: Path) -> None:
    (root / "warehouse").mkdir(parents=True)
    note_own(str(root), "warehouse", "checkpoints")
    note_own(str(root), "checkpoints", "dbt build.lock")
    assert noted_own(str(root)) == ["checkpoints", "dbt build.lock"]


def test_metastore_of_somebody_else_is_refused_and_ours_half_made_removed(
    root: Path,
) -> None:
    (root / "metastore").mkdir(parents=True)
    (root / "metastore" / "theirs.db").write_text("precious")
    assert not is_prepared()
    with pytest.raises(UserError, match=f"{root}/metastore is no metastore"):
        prepare()
    assert (root / "metastore" / "theirs.db").read_text() == "precious"
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


@pytest.mark.parametrize("name", ["ingest", "dbt build"])
@pytest.mark.parametrize("part", ["", "live"])
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
def test_what_cannot_be_read_is_named(module: str, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
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
