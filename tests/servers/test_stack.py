"""The local stack: its status, its secrets, and its recovery from every fault."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.folders import MARKER
from lab.stack.__main__ import main
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from tests.support.project import PROJECT

OUTBOX = "demo.datalake.cdc_events/0"
ORDERS = "demo.datalake.orders/0"
PARTS = ("connect", "broker", "postgres")


def run_sql(stack: NorthwindStack, statement: str) -> None:
    with closing(stack.connect_to_source()) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("set search_path = datalake")
        cursor.execute(statement)


def change_an_order(stack: NorthwindStack) -> None:
    run_sql(stack, "update orders set freight = freight + 1 where order_id = 10248")


def settled_ends(stack: NorthwindStack) -> dict[str, int]:
    """The ends of the topics once nothing of an earlier test is in flight."""
    # After a crash a connector sends its last change again: before this one.
    change_an_order(stack)
    stack.wait_until_caught_up()
    return stack.topic_ends()


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
def at_stack(stack: NorthwindStack, monkeypatch: pytest.MonkeyPatch) -> NorthwindStack:
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


def test_status_reports_every_part(
    at_stack: NorthwindStack, first_ends: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert first_ends[ORDERS] == 829
    end = settled_ends(at_stack)[ORDERS]
    assert main(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {part["part"]: part["pid"] for part in found["parts"]} == at_stack.pids()
    assert [row["slot"] for row in found["connectors"]] == ["read", "read"]
    [orders] = [row for row in found["partitions"] if row["partition"] == ORDERS]
    assert orders == {"partition": ORDERS, "end": end, "bronze_up_to": 0, "behind": end}
    assert found["problems"] == []
    assert main(["status"]) == 0
    output = capsys.readouterr().out
    assert re.search(rf"^{ORDERS} +{end:,} +0 +{end:,}$", output, re.MULTILINE)


def test_value_over_a_megabyte_arrives(stack: NorthwindStack) -> None:
    before = settled_ends(stack)
    # Random digits: even compressed they exceed Kafka's own limit.
    long = "select string_agg(md5(random()::text), '') from generate_series(1, 80000)"
    for name in (f"({long})", "'Reims'"):
        run_sql(stack, f"update orders set ship_name = {name} where order_id = 10248")
    stack.wait_until_caught_up()
    after = stack.topic_ends()
    assert after[ORDERS] == before[ORDERS] + 2
    assert after[OUTBOX] == before[OUTBOX] + 2


def test_secrets_are_in_no_log_and_no_command_line(stack: NorthwindStack) -> None:
    passwords = [(stack.secrets / name).read_text() for name in ("postgres", "debezium")]
    assert all(len(password) >= 32 for password in passwords)
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in stack.secrets.iterdir())
    assert stack.secrets.stat().st_mode & 0o777 == 0o700

    config = stack.connect.ask("GET", "/connectors/source-outbox")
    shown = [str(config), *processes_of(stack.folder)]
    shown += [part.log.read_text(errors="replace") for part in stack.parts.values()]
    shown += [file.read_text() for file in stack.folder.glob("*.properties")]
    assert config["config"]["database.password"].startswith("${file:")
    assert not any(password in text for password in passwords for text in shown)


def test_only_this_machine_reaches_it(stack: NorthwindStack) -> None:
    wanted = {f"{port:04X}" for port in stack.ports.values()}
    listening = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, port = line.split()[1].split(":")
            if port in wanted and line.split()[3] == "0A":
                listening.add((address[-8:], port))
    assert listening == {("0100007F", port) for port in wanted}


@pytest.mark.parametrize("part", PARTS)
def test_killed_part_recovers_and_loses_nothing(stack: NorthwindStack, part: str) -> None:
    before = settled_ends(stack)
    if part == "postgres":
        change_an_order(stack)
    stack.kill(part)
    if part != "postgres":
        change_an_order(stack)
    assert part not in stack.running()
    stack.revive(part)
    change_an_order(stack)
    stack.wait_until_caught_up()
    after = stack.topic_ends()
    # At least once: what was in flight may be sent again.
    assert after[ORDERS] >= before[ORDERS] + 2
    assert after[OUTBOX] >= before[OUTBOX] + 2


@pytest.mark.parametrize("is_recreated", [False, True])
def test_a_lost_slot_fails_the_connector(stack: NorthwindStack, is_recreated: bool) -> None:
    """A new snapshot would lack the rows deleted meanwhile, so none is taken silently."""
    name, slot = "source-tables", stack.slot_name("source-tables")
    drop = f"select pg_drop_replication_slot('{slot}')"
    before = settled_ends(stack)
    stack.connect.halt(name)
    wait_until(lambda: not stack.slots()[slot].is_active, 20, "the slot is still active")
    run_sql(stack, drop)
    change_an_order(stack)
    if is_recreated:
        run_sql(stack, f"select pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    stack.connect.ask("PUT", f"/connectors/{name}/resume")
    with pytest.raises(UserError, match=f"{name}: .*no longer available"):
        stack.wait_until_streaming(timeout=20)
    assert stack.connect.states()[name].tasks == ["FAILED"]

    # With its offsets gone, it begins with a snapshot.
    stack.unregister(name)
    if is_recreated:
        run_sql(stack, drop)
    stack.register(name)
    stack.wait_until_streaming()
    stack.wait_until_caught_up()
    assert stack.topic_ends()[ORDERS] >= before[ORDERS] + 829


def test_a_start_after_a_crash_of_the_machine_keeps_the_data(
    at_stack: NorthwindStack,
) -> None:
    before = settled_ends(at_stack)
    for part in PARTS:
        at_stack.kill(part)
    # After a crash the numbers belong to others: here to this very process.
    at_stack.broker.pid_file.write_text(str(os.getpid()))
    fresh = NorthwindStack(at_stack.root)
    assert fresh.running() == []

    fresh.start()
    assert fresh.ports == at_stack.ports
    # A database where nothing happens confirms what was read all the same.
    fresh.wait_until_caught_up()
    after = fresh.topic_ends()
    assert after.keys() == before.keys()
    # Its last change may be sent again.
    assert all(0 <= after[place] - before[place] <= 1 for place in before)


def test_stop_ends_everything_and_start_resumes(
    at_stack: NorthwindStack, capsys: pytest.CaptureFixture[str]
) -> None:
    before = settled_ends(at_stack)
    assert main(["stop"]) == 0
    assert processes_of(at_stack.folder) == []
    assert main(["stop"]) == main(["status"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("stopped: postgres, broker, connect\nnothing ran\n")
    assert "the stack does not run" in output
    assert main(["start"]) == 0
    assert NorthwindStack(at_stack.root).topic_ends() == before
    pids = at_stack.pids()
    assert main(["start"]) == 0
    assert "the stack runs already" in capsys.readouterr().out
    assert at_stack.pids() == pids


def test_a_terminated_start_leaves_nothing_but_logs(other_root: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "lab.stack", "start"],
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    stack = NorthwindStack(other_root)
    wait_until(lambda: len(stack.running()) == 3, 60, "the start has not begun")
    process.terminate()
    assert "stopped; what this start began was ended" in process.communicate(timeout=90)[1]
    assert process.returncode == 143
    assert {path.name for path in stack.folder.iterdir()} == {"logs", MARKER}
