"""The commands of the local stack, without any server: refusals, leftovers, damage."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from connectors.stack import downloads, jars, postgres
from connectors.stack.__main__ import main
from connectors.stack.downloads import download_once
from connectors.stack.ports import reserved_ports
from connectors.stack.postgres import PostgresServer, find_binaries
from connectors.stack.stack import FINISHED, UNFINISHED, Stack
from demo import live
from ingest.status import lake_status
from lake.errors import UserError
from lake.folders import MARKER, claim, note_own
from lake.lock import only_one
from tests.support.project import PROJECT
from tests.support.required import require_program

OUTBOX = "demo.datalake.cdc_events/0"
ORDERS = "demo.datalake.orders/0"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake where a start passes every check, and fails before its first part."""
    root = tmp_path / "lake(1)"  # a shell needs it quoted
    monkeypatch.setenv("LAKE_ROOT", str(root))

    def fail(*arguments: object) -> NoReturn:
        raise UserError("the parts would start now")

    monkeypatch.setattr(Stack, "_start_parts", fail)
    monkeypatch.setattr(jars, "find_java", lambda: "java")
    monkeypatch.setattr(jars, "fetch", lambda *profiles: None)
    monkeypatch.setattr(postgres, "find_binaries", lambda *version: tmp_path)
    return root


PORTS = ("postgres", "kafka", "controller", "connect")


@pytest.fixture
def refusing_ports() -> Iterator[dict[str, int]]:
    """Ports that refuse connections, and that no other program gets meanwhile."""
    with reserved_ports() as reserve:
        yield {name: reserve() for name in PORTS}


def write_state(root: Path, ports: dict[str, int] | None = None) -> Stack:
    """A stack as its first start leaves it."""
    if ports is None:
        with reserved_ports() as reserve:
            ports = {name: reserve() for name in PORTS}
    claim(root / "stack", FINISHED)
    state = {"ports": ports, "connectors": ["source-outbox"]}
    (root / "stack" / "state.json").write_text(json.dumps(state))
    return Stack(root)


def write_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("precious")
    return path


@pytest.mark.parametrize("command", [["start"], ["stop", "--remove"]])
def test_a_foreign_folder_is_left_alone(
    root: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_file(root / "stack" / "docker" / "compose.yaml")
    assert main(command) == 1
    output = capsys.readouterr().err
    assert f"{root}/stack holds files" in output
    assert f"rm -r '{root}/stack'" in output
    assert file.exists()


def test_a_database_whose_state_is_lost_is_left_alone(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_file(write_state(root).postgres.data / "PG_VERSION")
    (root / "stack" / "state.json").unlink()
    assert main(["start"]) == 1
    assert "state.json is lost" in capsys.readouterr().err
    assert file.exists()
    assert main(["stop", "--remove"]) == 0
    assert not (root / "stack").exists()


def test_leftovers_of_a_first_start_are_removed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim(root / "stack", UNFINISHED)
    write_file(root / "stack" / "kafka" / "meta.properties")
    assert main(["start"]) == 1
    assert "the parts would start now" in capsys.readouterr().err
    assert not (root / "stack").exists()


def test_stack_without_a_marker_is_recognised_by_its_state(root: Path) -> None:
    """Older versions wrote no marker."""
    stack = write_state(root)
    (stack.folder / MARKER).unlink()
    assert main(["start"]) == 1
    assert (stack.folder / MARKER).read_text() == FINISHED
    (stack.folder / MARKER).unlink()
    assert main(["stop", "--remove"]) == 0
    assert not stack.folder.exists()


def test_psql_command_is_quoted_for_the_shell(root: Path, tmp_path: Path) -> None:
    stack = write_state(root)
    stack._make_passwords()
    psql = tmp_path / "bin" / "psql"
    psql.parent.mkdir()
    psql.write_text('#!/bin/sh\necho "$PGPASSWORD" "$@"\n')
    psql.chmod(0o755)
    environment = {"PATH": f"{psql.parent}:{os.environ['PATH']}"}
    output = subprocess.check_output(
        stack.psql_command(), shell=True, env=environment, text=True
    )
    password = (stack.secrets / "postgres").read_text()
    assert output == (
        f"{password} -h 127.0.0.1 -p {stack.ports.postgres} -U postgres northwind\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        '{"ports": "x", "connectors": []}',
        '{"ports": {"postgres": 1}, "connectors": []}',
        '{"ports": {"postgres": 1, "kafka": 2, "controller": 3, "connect": 0},'
        ' "connectors": []}',
    ],
)
def test_damaged_state_is_an_error_except_for_stop(
    root: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = write_state(root)
    file = write_file(stack.postgres.data / "PG_VERSION")
    stack.state_file.write_text(text)
    for command in ("start", "status"):
        assert main([command]) == 1
        output = capsys.readouterr().err
        assert output.startswith(f"connectors.stack: {stack.state_file} is damaged: ")
        assert "stop --remove" in output
    assert main(["stop"]) == 0
    assert file.exists()
    assert main(["stop", "--remove"]) == 0
    assert not stack.folder.exists()


@pytest.mark.parametrize("is_first", [True, False])
def test_status_while_a_start_is_under_way(
    root: Path,
    is_first: bool,
    refusing_ports: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not is_first:
        write_state(root, refusing_ports)
    pids = {"postgres": 41, "broker": None, "connect": 42}
    monkeypatch.setattr(Stack, "pids", lambda self: pids)
    assert main(["status"]) == 0
    output = capsys.readouterr().out
    if is_first:
        assert output.startswith("a start is under way;")
        assert re.search(r"^postgres +up +- +41 ", output, re.MULTILINE)
        assert "answer" not in output
    else:
        assert "could not read the replication slots: connection to server" in output
        assert "does not answer" in output
    assert "newest commit of bronze: nothing yet" in output

    assert main(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {part["part"]: part["pid"] for part in found["parts"]} == pids
    port = None if is_first else f"127.0.0.1:{refusing_ports['postgres']}"
    assert [part["address"] for part in found["parts"]][:2] == [port, None]
    assert len(found["problems"]) == (0 if is_first else 2)
    assert (found["lake"]["newest_batch"], found["lake"]["rejected"]) == (0, 0)


def fake_postgres(folder: Path, version: str) -> Path:
    folder.mkdir()
    for name in ("initdb", "postgres"):
        (folder / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


def test_postgres_has_the_version_of_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_postgres(tmp_path / "newest", "99.1")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    server = PostgresServer(tmp_path / "server", 1, "")
    assert server.find_binaries() == find_binaries() == folder
    server.data.mkdir(parents=True)
    version = server.data / "PG_VERSION"
    version.write_text("99\n")
    assert server.find_binaries() == folder
    version.write_text("98\n")
    with pytest.raises(UserError, match=r"PostgreSQL 98 made .*install postgresql-98"):
        server.find_binaries()
    with pytest.raises(UserError, match="no PostgreSQL 98"):
        server.start()
    version.write_text("")
    with pytest.raises(UserError, match="no version"):
        server.find_binaries()


def test_rejected_record_counts_as_ingested(tmp_path: Path) -> None:
    marks = {
        "orders": {"batch": 20260102030405002, "offsets": {ORDERS: 7, OUTBOX: 9}},
        "rejected_events": {"batch": 20260102030405001, "offsets": {ORDERS: 8, OUTBOX: 3}},
    }
    for table, mark in marks.items():
        timeline = tmp_path / "warehouse" / "bronze.db" / table / ".hoodie"
        timeline.mkdir(parents=True)
        metadata = {"lakehouse.mark": json.dumps(mark)}
        commit = {"extraMetadata": metadata, "partitionToWriteStats": {}}
        (timeline / "1.commit").write_text(json.dumps(commit))
    assert lake_status(str(tmp_path)).offsets == {ORDERS: 8, OUTBOX: 9}


@pytest.mark.parametrize("port", ["70000", "0", "-1", "http"])
def test_invalid_port_is_an_error(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start", f"--kafka-port={port}"]) == 2
    assert "Invalid value for '--kafka-port'" in capsys.readouterr().err


def test_two_parts_do_not_share_a_port(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with reserved_ports() as reserve:
        port = str(reserve())
    assert main(["start", "--kafka-port", port, "--connect-port", port]) == 1
    assert f"port {port} is wanted for kafka and for connect" in capsys.readouterr().err
    assert not (root / "stack").exists()


def test_requested_port_is_taken_from_another_part(root: Path) -> None:
    stack = write_state(root)
    with reserved_ports() as reserve:
        chosen = stack._choose_ports({"kafka": stack.ports.postgres}, set(), reserve)
    assert chosen.kafka == stack.ports.postgres
    assert chosen.connect == stack.ports.connect
    assert len({*vars(chosen).values()}) == 4
    with (
        reserved_ports() as reserve,
        pytest.raises(UserError, match="wanted for postgres and for kafka"),
    ):
        stack._choose_ports({"kafka": stack.ports.postgres}, {"postgres"}, reserve)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_start_cleans_up_after_a_signal(number: signal.Signals, root: Path) -> None:
    """A second signal, as a closed terminal sends it, does not cut the clean-up short."""
    code = """
import signal, sys, time
from connectors.stack import __main__ as program

# Below nohup it is ignored, and a child's would be, too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

def start(self, **options):
    try:
        print("began", flush=True)
        time.sleep(60)
    finally:
        print("cleans", flush=True)
        sys.stdin.readline()
        print("cleaned", flush=True)

program.Stack.start = start
sys.exit(program.main(["start"]))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("starting ")
    assert process.stdout.readline() == "began\n"
    process.send_signal(number)
    assert process.stdout.readline() == "cleans\n"
    process.send_signal(number)
    out, err = process.communicate("\n", timeout=30)
    assert (out, process.returncode) == ("cleaned\n", 128 + number)
    assert err.strip() == "connectors.stack: stopped; what this start began was ended"


@pytest.mark.parametrize("command", ["status", "stop"])
def test_interrupted_command_does_not_claim_to_have_ended_anything(
    root: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*arguments: object, **options: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(Stack, "running" if command == "stop" else "pids", interrupt)
    assert main([command]) == 130
    output = capsys.readouterr().err.strip()
    assert output.startswith("connectors.stack: stopped")
    assert "ended" not in output


@pytest.mark.parametrize("command", [["stop"], ["stop", "--remove"]])
def test_stop_is_refused_during_a_start(
    root: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    stack = write_state(root)
    with only_one(str(root), "stack"):
        assert main(command) == 75
    assert f"another stack (process {os.getpid()})" in capsys.readouterr().err
    assert stack.state_file.exists()


def test_stop_creates_no_lake(root: Path) -> None:
    assert main(["stop", "--remove"]) == 0
    assert not root.exists()


def test_live_leaves_a_foreign_folder_alone(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_file(root / "live" / "recording.mp4")
    assert live.main([]) == 1
    assert f"demo.live: {root}/live holds files" in capsys.readouterr().err
    assert [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize("name", ["ingest", "live"])
def test_live_removes_nothing_below_an_older_run(
    root: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    claim(root / "live", "")
    file = write_file(root / "live" / "warehouse" / "bronze")
    with only_one(str(root / "live"), name):
        assert live.main([]) == 75
    assert f"another {name} (process {os.getpid()})" in capsys.readouterr().err
    assert file.exists()
    # Once it has ended, a new run starts; the lock file stays, as others lock it.
    lock = (root / "live" / f"{name}.lock").stat().st_ino
    assert live.main([]) == 1
    assert "the parts would start now" in capsys.readouterr().err
    assert not file.parent.exists()
    assert (root / "live" / f"{name}.lock").stat().st_ino == lock


def test_an_interrupted_live_run_ends_the_stack(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = []

    def interrupt(*arguments: object, **options: object) -> NoReturn:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)
        raise AssertionError("it did not end")

    def end(*arguments: object) -> NoReturn:
        raise AssertionError("the command did not catch the signal")

    before = signal.signal(signal.SIGTERM, end)  # not to end pytest
    monkeypatch.setattr(Stack, "start", interrupt)
    monkeypatch.setattr(Stack, "stop", lambda self: ended.append(self.folder))
    try:
        assert live.main([]) == 143
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended == [root / "live" / "stack"]
    assert capsys.readouterr().err.strip().startswith("demo.live: stopped")


def make_clean(tmp_path: Path, lake: Path, code: int) -> list[str]:
    """Run ``make clean`` elsewhere; the lakes whose stack it stopped."""
    python = write_file(tmp_path / ".venv" / "bin" / "python")
    python.write_text(f'#!/bin/sh\necho "$LAKE_ROOT $*" >> stopped\nexit {code}\n')
    python.chmod(0o755)
    subprocess.run(
        [
            require_program("make", "make"),
            "--no-print-directory",
            "-f",
            str(PROJECT / "Makefile"),
            "clean",
        ],
        cwd=tmp_path,
        env={**os.environ, "LAKE_ROOT": str(lake)},
        capture_output=True,
    )
    return (tmp_path / "stopped").read_text().splitlines()


def test_clean_stops_both_stacks_first(tmp_path: Path) -> None:
    lake = tmp_path / "a lake"
    note_own(str(lake), "stack", "live")
    (lake / "stack").mkdir()
    (lake / "live" / "stack").mkdir(parents=True)
    assert make_clean(tmp_path, lake, code=1) == [f"{lake} -m connectors.stack stop"]
    assert (lake / "live" / "stack").exists()
    (tmp_path / "stopped").unlink()
    assert make_clean(tmp_path, lake, code=0) == [
        f"{lake} -m connectors.stack stop",
        f"{lake}/live -m connectors.stack stop",
    ]
    assert not lake.exists()


def test_port_in_use_is_an_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert main(["start", "--connect-port", str(port)]) == 1
    assert f"port {port}, wanted for connect, is in use" in capsys.readouterr().err
    assert not (root / "stack").exists()


def test_old_java_is_an_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = tmp_path / "lake"
    monkeypatch.setenv("LAKE_ROOT", str(root))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("""#!/bin/sh\necho 'openjdk version "11.0.2"' >&2\n""")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["start"]) == 1
    assert "Kafka needs Java 17 or newer" in capsys.readouterr().err
    assert not (root / "stack").exists()


def test_missing_maven_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(jars.FOLDERS, "kafka", tmp_path / "kafka")
    with pytest.raises(UserError, match="apt-get install maven"):
        jars.fetch("kafka")


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
