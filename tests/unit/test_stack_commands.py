"""The commands of the local stack and of its sources, without any server."""

import os
import re
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.storage.folders import claim, note_own
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
from tests.unit.conftest import Cli

STATE = """{{"ports": {{"postgres": {port}, "kafka": 2, "controller": 3, "connect": 4}},
  "connectors": ["source-outbox"]}}"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake where a start passes every check, and fails before its first part."""
    root = tmp_path / "lake(1)"  # a shell needs it quoted
    monkeypatch.setenv("LAKE_ROOT", str(root))

    def fail(*arguments: object) -> NoReturn:
        raise UserError("the parts would start now")

    monkeypatch.setattr(NorthwindStack, "_start_parts", fail)
    monkeypatch.setattr(jars, "find_java", lambda: "java")
    monkeypatch.setattr(jars, "fetch", lambda *profiles: None)
    monkeypatch.setattr(postgres, "find_binaries", lambda *version: tmp_path)
    return root


def write(path: Path, text: str = "precious") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_stack(root: Path) -> Path:
    """A stack as its first start leaves it: the file of its database."""
    claim(root / "stack", FINISHED)
    write(root / "stack" / "state.json", STATE.format(port=1))
    return write(root / "stack" / "postgres" / "data" / "PG_VERSION")


def test_a_foreign_folder_is_left_alone(root: Path, cli: Cli) -> None:
    """And what a first start left is removed."""
    file = write(root / "stack" / "docker" / "compose.yaml")
    for command in (["start"], ["stop", "--remove"]):
        said = cli(*command, main=main)
        assert (said.code, f"rm -r '{root}/stack'" in said.err) == (1, True)
        assert file.exists()
    shutil.rmtree(root / "stack")
    claim(root / "stack", UNFINISHED)
    write(root / "stack" / "kafka" / "meta.properties")
    assert main(["start"]) == 1
    assert not (root / "stack").exists()


@pytest.mark.parametrize("text", [None, "", '{"ports": {}}', STATE.format(port=0)])
def test_database_whose_state_is_lost_or_damaged_is_left_alone(
    root: Path, text: str | None, cli: Cli
) -> None:
    file = write_stack(root)
    state = root / "stack" / "state.json"
    state.unlink() if text is None else state.write_text(text)
    said = cli("start", main=main)
    state_is = "lost" if text is None else "damaged"
    assert (said.code, f"state.json is {state_is}" in said.err) == (1, True)
    assert main(["stop"]) == 0
    assert file.exists()
    assert main(["stop", "--remove"]) == 0
    assert not (root / "stack").exists()


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


def test_live_removes_nothing_below_an_older_run(root: Path, cli: Cli) -> None:
    file = write(root / "live" / "recording.mp4")
    said = cli(main=live.main)
    assert (said.code, f"{root}/live holds files" in said.err) == (1, True)
    claim(root / "live", "")
    with exclusive_lock(str(root / "live"), "ingest"):
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
    python = tmp_path / ".venv" / "bin" / "python"
    make = (require_program("make", "make"), "-f", str(PROJECT / "Makefile"), "clean")
    environment = {**os.environ, "LAKE_ROOT": str(root)}
    for code, expected in ((1, stops[:1]), (0, stops)):
        script = f'#!/bin/sh\necho "$LAKE_ROOT $*" >> stopped-{code}\nexit {code}\n'
        write(python, script).chmod(0o755)
        subprocess.run(make, cwd=tmp_path, env=environment, capture_output=True)
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
