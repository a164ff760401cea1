"""The local stack: what it says, what it hides, and that it comes back after anything."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from connectors.postgres import northwind
from connectors.stack import __main__ as command_line
from connectors.stack import jars, postgres
from connectors.stack.__main__ import main
from connectors.stack.folders import MARKER, claim
from connectors.stack.postgres import PostgresServer, find_binaries
from connectors.stack.processes import wait_until
from connectors.stack.stack import FINISHED, UNFINISHED, Stack, free_ports
from connectors.stack.status import bronze_state
from demo import live
from ingest.errors import UserError
from ingest.lock import only_one
from tests.support import faults
from tests.support.project import PROJECT
from tests.support.source import SILVER

OUTBOX = "demo.datalake.cdc_events/0"
ORDERS = "demo.datalake.orders/0"
PARTS = ("connect", "broker", "postgres")


def run_sql(stack: Stack, statement: str) -> None:
    with closing(stack.connect_to_source()) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)


def ship_an_order(stack: Stack) -> None:
    run_sql(
        stack, "update datalake.orders set freight = freight + 1 where order_id = 10248"
    )


def processes_of(folder: Path) -> list[str]:
    """The processes that name a folder, or work in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place = str((process / "cwd").readlink())
            words = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in place or str(folder) in words:
            found.append(words.replace("\0", " "))
    return found


@pytest.fixture
def at_stack(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """The stack that the command line finds."""
    monkeypatch.setenv("LAKE_ROOT", str(stack.root))
    return stack


@pytest.fixture
def other_root(
    servers: None, stack_root: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A second stack's lake, where a start is to fail."""
    root = stack_root / "other"
    root.mkdir(exist_ok=True)
    monkeypatch.setenv("LAKE_ROOT", str(root))
    yield root
    assert processes_of(root) == []


def test_status_says_how_everything_does(
    at_stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    at_stack.wait_until_caught_up()
    assert main(["status"]) == 0
    said = capsys.readouterr().out
    for name, pid in at_stack.pids().items():
        assert re.search(
            rf"^{name} +127\.0\.0\.1:\d+ +{pid} +/.+\.log$", said, re.MULTILINE
        )
    for name in ("source-outbox", "source-tables"):
        row = re.search(rf"^{name} +running +running +read +([\d,]+)$", said, re.MULTILINE)
        assert row is not None
        assert int(row[1].replace(",", "")) < 100_000
    assert re.search(rf"^{ORDERS} +829 +0 +829$", said, re.MULTILINE)
    assert "newest commit of bronze: none yet" in said
    assert "rejected records: 0" in said


def test_an_order_held_back_arrives_when_it_is_inserted(stack: Stack) -> None:
    before = stack.topic_ends()
    with closing(stack.connect_to_source()) as connection, connection:
        northwind.insert_order(connection, 11075)
    stack.wait_until_caught_up()
    after = stack.topic_ends()
    assert after[ORDERS] == before[ORDERS] + 1
    assert after["demo.datalake.order_details/0"] == (
        before["demo.datalake.order_details/0"] + len(northwind.order_rows(11075).lines)
    )
    assert after[OUTBOX] > before[OUTBOX]


def test_a_value_over_a_megabyte_arrives(stack: Stack) -> None:
    before = stack.topic_ends()
    # Random digits: not even compressed they are below Kafka's own limit.
    run_sql(
        stack,
        """
        update datalake.orders set ship_name = (
            select string_agg(md5(random()::text), '') from generate_series(1, 80000)
        ) where order_id = 10248
        """,
    )
    run_sql(stack, "update datalake.orders set ship_name = 'Reims' where order_id = 10248")
    stack.wait_until_caught_up()
    after = stack.topic_ends()
    assert after[ORDERS] == before[ORDERS] + 2
    assert after[OUTBOX] == before[OUTBOX] + 2


def test_secrets_are_nowhere_to_be_seen(stack: Stack) -> None:
    passwords = [(stack.secrets / name).read_text() for name in ("postgres", "debezium")]
    assert all(len(password) >= 32 for password in passwords)
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in stack.secrets.iterdir())
    assert stack.secrets.stat().st_mode & 0o777 == 0o700

    config = stack.connect.ask("GET", "/connectors/source-outbox")
    shown = [str(config), *processes_of(stack.folder)]
    shown += [log.read_text(errors="replace") for log in stack.logs().values()]
    shown += [file.read_text() for file in stack.folder.glob("*.properties")]
    assert config["config"]["database.password"].startswith("${file:")
    assert not any(password in text for password in passwords for text in shown)


def test_only_this_machine_reaches_it(stack: Stack) -> None:
    ports = [stack.ports.postgres, stack.ports.kafka, stack.ports.controller]
    ports.append(stack.ports.connect)
    wanted = {f"{port:04X}" for port in ports}
    listening = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, port = line.split()[1].split(":")
            if port in wanted and line.split()[3] == "0A":
                listening.add((address[-8:], port))
    assert listening == {("0100007F", port) for port in wanted}


def test_a_second_start_says_that_it_runs(
    at_stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    pids = at_stack.pids()
    assert main(["start"]) == 0
    assert "the stack runs already" in capsys.readouterr().out
    assert Stack(at_stack.root).pids() == pids


def test_an_order_cannot_be_held_back_afterwards(
    at_stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    at_stack.kill("connect")
    assert main(["start", "--hold-back", "11075"]) == 1
    assert "stop --remove" in capsys.readouterr().err
    assert "connect" not in at_stack.running()
    at_stack.revive("connect")


@pytest.mark.parametrize("part", PARTS)
def test_a_killed_part_comes_back_and_loses_nothing(stack: Stack, part: str) -> None:
    before = stack.topic_ends()
    if part == "postgres":
        ship_an_order(stack)
        stack.kill(part)
    else:
        stack.kill(part)
        ship_an_order(stack)
    assert part not in stack.running()
    stack.revive(part)
    ship_an_order(stack)
    stack.wait_until_caught_up()
    after = stack.topic_ends()
    # At least once: what was under way may come again.
    assert after[ORDERS] >= before[ORDERS] + 2
    assert after[OUTBOX] >= before[OUTBOX] + 2


def test_a_paused_connector_goes_on_where_it_was(stack: Stack) -> None:
    before = stack.topic_ends()
    stack.pause("source-tables")
    ship_an_order(stack)
    time.sleep(2)
    assert stack.topic_ends()[ORDERS] == before[ORDERS]
    stack.resume("source-tables")
    stack.wait_until_caught_up()
    assert stack.topic_ends()[ORDERS] == before[ORDERS] + 1


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_lost_slot_fails_the_connector(stack: Stack, is_made_anew: bool) -> None:
    """A new snapshot would lack the rows deleted meanwhile, so somebody has to know."""
    name, slot = "source-tables", stack.slot_name("source-tables")
    drop = f"select pg_drop_replication_slot('{slot}')"
    before = stack.topic_ends()
    stack.connect.stop(name)
    wait_until(lambda: not stack.slots()[slot].is_active, 20, "the slot is still read")
    run_sql(stack, drop)
    ship_an_order(stack)
    if is_made_anew:
        run_sql(stack, f"select pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    stack.connect.ask("PUT", f"/connectors/{name}/resume")
    with pytest.raises(UserError, match=f"{name}: .*no longer available"):
        stack.wait_until_streaming(timeout=20)
    assert stack.connect.states()[name].tasks == ["FAILED"]

    # With its offsets gone, it begins with a snapshot.
    stack.unregister(name)
    if is_made_anew:
        run_sql(stack, drop)
    stack.register(name)
    stack.wait_until_streaming()
    stack.wait_until_caught_up()
    assert stack.topic_ends()[ORDERS] >= before[ORDERS] + 829


def test_a_start_after_a_crash_of_the_machine_keeps_the_data(at_stack: Stack) -> None:
    at_stack.wait_until_caught_up()
    before = at_stack.topic_ends()
    for part in PARTS:
        at_stack.kill(part)
    # After a crash the numbers belong to others: here to this very process.
    at_stack.broker.process.pid_file.write_text(str(os.getpid()))
    fresh = Stack(at_stack.root)
    assert fresh.running() == []

    fresh.start()
    assert fresh.ports == at_stack.ports
    # A database where nothing happens confirms what was read all the same.
    fresh.wait_until_caught_up()
    after = fresh.topic_ends()
    assert after.keys() == before.keys()
    # Its last change may come again.
    assert all(0 <= after[place] - before[place] <= 1 for place in before)


def test_stop_ends_everything_and_a_start_goes_on(
    at_stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    before = at_stack.topic_ends()
    assert main(["stop"]) == 0
    assert capsys.readouterr().out == "stopped: postgres, broker, connect\n"
    assert processes_of(at_stack.folder) == []
    assert main(["stop"]) == 0
    assert capsys.readouterr().out == "nothing ran\n"
    assert main(["status"]) == 0
    assert "the stack does not run" in capsys.readouterr().out
    assert main(["start"]) == 0
    assert Stack(at_stack.root).topic_ends() == before


def test_a_port_in_use_is_named(
    other_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert main(["start", "--connect-port", str(port)]) == 1
    assert f"port {port}, wanted for connect, is in use" in capsys.readouterr().err
    assert not (other_root / "stack").exists()


def test_another_java_is_named(
    other_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("""#!/bin/sh\necho 'openjdk version "11.0.2"' >&2\n""")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["start"]) == 1
    assert "Kafka needs Java 17 or newer" in capsys.readouterr().err
    assert not (other_root / "stack").exists()


def test_no_maven_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jars, "JARS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install maven"):
        jars.fetch()


def test_a_broken_start_leaves_nothing_but_logs(
    other_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connect ends at once here, while the broker and PostgreSQL come up."""
    monkeypatch.setattr(jars, "PLUGINS", other_root / "no-such-plugins")
    stack = Stack(other_root)
    with pytest.raises(UserError, match="Failed to find any class that implements"):
        stack.start()
    assert stack.running() == []
    assert processes_of(other_root) == []
    left = {path.name for path in stack.folder.iterdir()}
    assert left == {"logs", MARKER}


def test_a_terminated_start_leaves_nothing_but_logs(other_root: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "connectors.stack", "start"],
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    stack = Stack(other_root)
    wait_until(lambda: len(stack.running()) == 3, 60, "it does not start")
    process.terminate()
    assert process.communicate(timeout=90)[1].startswith("interrupted: what this start")
    assert process.returncode == 130
    left = {path.name for path in stack.folder.iterdir()}
    assert left == {"logs", MARKER}


# From here on, nothing needs a server.


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake where every start would succeed, but for the parts' own."""
    root = tmp_path / "lake(1)"  # which a shell must be told
    monkeypatch.setenv("LAKE_ROOT", str(root))

    def fail(*arguments: object) -> NoReturn:
        raise UserError("the parts were to start")

    monkeypatch.setattr(Stack, "_start_parts", fail)
    monkeypatch.setattr(jars, "find_java", lambda: "java")
    monkeypatch.setattr(jars, "fetch", lambda: False)
    monkeypatch.setattr(postgres, "find_binaries", lambda *version: tmp_path)
    return root


def write_state(root: Path) -> Stack:
    """As a stack is that was started once."""
    with free_ports() as free_port:
        names = ("postgres", "kafka", "controller", "connect")
        ports = {name: free_port() for name in names}
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
    said = capsys.readouterr().err
    assert f"{root}/stack holds files" in said
    assert f"rm -r '{root}/stack'" in said
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


def test_what_a_first_start_left_is_removed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim(root / "stack", UNFINISHED)
    write_file(root / "stack" / "kafka" / "meta.properties")
    assert main(["start"]) == 1
    assert "the parts were to start" in capsys.readouterr().err
    assert not (root / "stack").exists()


def test_a_stack_without_a_marker_is_known_by_its_state(root: Path) -> None:
    """As older versions made them."""
    stack = write_state(root)
    (stack.folder / MARKER).unlink()
    assert main(["start"]) == 1
    assert (stack.folder / MARKER).read_text() == FINISHED
    (stack.folder / MARKER).unlink()
    assert main(["stop", "--remove"]) == 0
    assert not stack.folder.exists()


def test_the_line_for_psql_is_one_for_the_shell(root: Path, tmp_path: Path) -> None:
    stack = write_state(root)
    stack._make_passwords()
    psql = tmp_path / "bin" / "psql"
    psql.parent.mkdir()
    psql.write_text('#!/bin/sh\necho "$PGPASSWORD" "$@"\n')
    psql.chmod(0o755)
    environment = {"PATH": f"{psql.parent}:{os.environ['PATH']}"}
    said = subprocess.check_output(
        stack.psql_command(), shell=True, env=environment, text=True
    )
    password = (stack.secrets / "postgres").read_text()
    assert said == (
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
def test_a_damaged_state_is_said_and_stops_no_stop(
    root: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = write_state(root)
    file = write_file(stack.postgres.data / "PG_VERSION")
    stack.state_file.write_text(text)
    for command in ("start", "status"):
        assert main([command]) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"error: {stack.state_file} is damaged: ")
        assert "stop --remove" in said
    assert main(["stop"]) == 0
    assert file.exists()
    assert main(["stop", "--remove"]) == 0
    assert not stack.folder.exists()


@pytest.mark.parametrize("is_first", [True, False])
def test_status_while_a_start_is_under_way(
    root: Path,
    is_first: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not is_first:
        write_state(root)
    pids = {"postgres": 41, "broker": None, "connect": 42}
    monkeypatch.setattr(Stack, "pids", lambda self: pids)
    assert main(["status"]) == 0
    said = capsys.readouterr().out
    if is_first:
        assert said.startswith("a start is under way;")
        assert re.search(r"^postgres +up +41 ", said, re.MULTILINE)
        assert "answer" not in said
    else:
        assert "PostgreSQL does not say its slots: connection to server" in said
        assert "does not answer" in said
    assert "newest commit of bronze: none yet" in said


def fake_postgres(folder: Path, version: str) -> Path:
    folder.mkdir()
    for name in ("initdb", "postgres"):
        (folder / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


def test_the_version_that_made_the_data_is_taken(
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


def test_a_rejected_record_is_not_behind(tmp_path: Path) -> None:
    marks = {
        "orders": {"batch": 2, "offsets": {ORDERS: 7, OUTBOX: 9}},
        "rejected_events": {"batch": 1, "offsets": {ORDERS: 8, OUTBOX: 3}},
    }
    for table, mark in marks.items():
        timeline = tmp_path / "warehouse" / "bronze.db" / table / ".hoodie"
        timeline.mkdir(parents=True)
        metadata = {"lakehouse.mark": json.dumps(mark)}
        commit = {"extraMetadata": metadata, "partitionToWriteStats": {}}
        (timeline / "1.commit").write_text(json.dumps(commit))
    assert bronze_state(tmp_path).offsets == {ORDERS: 8, OUTBOX: 9}


@pytest.mark.parametrize("port", ["70000", "0", "-1", "http"])
def test_no_port_is_said(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["start", f"--kafka-port={port}"])
    assert f"'{port}' is no port: 1 to 65535" in capsys.readouterr().err


def test_two_parts_do_not_share_a_port(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with free_ports() as free_port:
        port = str(free_port())
    assert main(["start", "--kafka-port", port, "--connect-port", port]) == 1
    assert f"port {port} is wanted for kafka and for connect" in capsys.readouterr().err
    assert not (root / "stack").exists()


def test_a_port_asked_for_is_taken_from_another_part(root: Path) -> None:
    stack = write_state(root)
    chosen = stack._choose_ports({"kafka": stack.ports.postgres}, set())
    assert chosen.kafka == stack.ports.postgres
    assert chosen.connect == stack.ports.connect
    assert len({*vars(chosen).values()}) == 4
    with pytest.raises(UserError, match="wanted for postgres and for kafka"):
        stack._choose_ports({"kafka": stack.ports.postgres}, {"postgres"})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_a_start_lets_it_clean_up(number: signal.Signals, root: Path) -> None:
    """And a second one, as a closed terminal sends it, does not cut that off."""
    code = """
import sys, time
from connectors.stack import __main__ as program

def start(stack, options):
    try:
        print("began", flush=True)
        time.sleep(60)
    finally:
        print("cleans", flush=True)
        sys.stdin.readline()
        print("cleaned", flush=True)

program.start = start
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
    assert process.stdout.readline() == "began\n"
    process.send_signal(number)
    assert process.stdout.readline() == "cleans\n"
    process.send_signal(number)
    time.sleep(0.2)
    out, err = process.communicate("\n", timeout=30)
    assert (out, process.returncode) == ("cleaned\n", 130)
    assert err == "interrupted: what this start began was ended\n"


@pytest.mark.parametrize("command", ["status", "stop"])
def test_an_interruption_says_no_more_than_is_true(
    root: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*arguments: object, **options: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, command, interrupt)
    assert main([command]) == 130
    said = capsys.readouterr().err
    assert said.startswith("interrupted")
    assert "ended" not in said


@pytest.mark.parametrize("command", [["stop"], ["stop", "--remove"]])
def test_no_stop_beside_a_start(
    root: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    stack = write_state(root)
    with only_one(str(root), "stack"):
        assert main(command) == 1
    assert f"another stack (process {os.getpid()})" in capsys.readouterr().err
    assert stack.state_file.exists()


def test_a_stop_makes_no_lake(root: Path) -> None:
    assert main(["stop", "--remove"]) == 0
    assert not root.exists()


def test_live_leaves_a_foreign_folder_alone(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_file(root / "live" / "recording.mp4")
    assert live.main() == 1
    assert f"live: {root}/live holds files" in capsys.readouterr().err
    assert [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize("name", ["ingest", "live"])
def test_live_removes_nothing_below_an_older_run(
    root: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    claim(root / "live", "")
    file = write_file(root / "live" / "warehouse" / "bronze")
    with only_one(str(root / "live"), name):
        assert live.main() == 1
    assert f"another {name} (process {os.getpid()})" in capsys.readouterr().err
    assert file.exists()
    # Once it is gone, the run begins anew; the lock's file stays what others lock.
    lock = (root / "live" / f"{name}.lock").stat().st_ino
    assert live.main() == 1
    assert "the parts were to start" in capsys.readouterr().err
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
        raise AssertionError("it was to catch the signal")

    before = signal.signal(signal.SIGTERM, end)  # not to end pytest
    monkeypatch.setattr(Stack, "start", interrupt)
    monkeypatch.setattr(Stack, "stop", lambda self: ended.append(self.folder))
    try:
        assert live.main() == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended == [root / "live" / "stack"]
    assert capsys.readouterr().err.startswith("live: interrupted")


def make_clean(tmp_path: Path, lake: Path, code: int) -> list[str]:
    """Run ``make clean`` elsewhere; the lakes whose stack it stopped."""
    python = write_file(tmp_path / ".venv" / "bin" / "python")
    python.write_text(f'#!/bin/sh\necho "$LAKE_ROOT $*" >> stopped\nexit {code}\n')
    python.chmod(0o755)
    subprocess.run(
        ["make", "-f", str(PROJECT / "Makefile"), "clean"],
        cwd=tmp_path,
        env={**os.environ, "LAKE_ROOT": str(lake)},
        capture_output=True,
    )
    return (tmp_path / "stopped").read_text().splitlines()


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_clean_stops_both_stacks_first(tmp_path: Path) -> None:
    lake = tmp_path / "a lake"
    (lake / "stack").mkdir(parents=True)
    (lake / "live" / "stack").mkdir(parents=True)
    assert make_clean(tmp_path, lake, code=1) == [f"{lake} -m connectors.stack stop"]
    assert (lake / "live" / "stack").exists()
    (tmp_path / "stopped").unlink()
    assert make_clean(tmp_path, lake, code=0) == [
        f"{lake} -m connectors.stack stop",
        f"{lake}/live -m connectors.stack stop",
    ]
    assert not lake.exists()


@pytest.mark.parametrize(
    ("offsets", "is_whole"),
    [([0, 1, 2], True), ([0, 1], False), ([], False), ([0, 2], False), ([0, 1, 1], False)],
)
def test_a_missing_record_is_noticed(
    offsets: list[int], is_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bronze:
        def rows(self, table: str) -> list[dict[str, int]]:
            return [{"kafka_offset": offset} for offset in offsets]

        def topic_ends(self) -> dict[str, int]:
            return {f"demo.datalake.{table}/0": 3 for table, _ in SILVER.values()}

    monkeypatch.setattr(faults, "Lake", lambda root: Bronze())
    pipeline: Any = SimpleNamespace(lake=Path(), stack=Bronze())
    if is_whole:
        faults.assert_each_record_once(pipeline)
    else:
        with pytest.raises(AssertionError):
            faults.assert_each_record_once(pipeline)
