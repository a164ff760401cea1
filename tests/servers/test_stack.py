"""The local stack: its status and its secrets; it stops, recovers and is removed."""

import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.folders import ELSEWHERE
from lab.stack.__main__ import main
from lab.stack.connect import Connect
from lab.stack.northwind import CONNECTORS, DATABASE, NorthwindStack
from lab.stack.postgres import PostgresServer
from lab.stack.processes import wait_until
from tests.servers.conftest import streaming
from tests.support.commands import run
from tests.support.source_database import SourceDatabase

ORDERS = "demo.datalake.orders/0"


def processes_of(*folders: Path) -> list[str]:
    """The processes that name a folder, or work in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place = str((process / "cwd").readlink())
            words = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if any(str(folder) in place or str(folder) in words for folder in folders):
            found.append(words.replace("\0", " "))
    return found


@pytest.fixture(scope="module")
def own_stack(
    servers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NorthwindStack]:
    """Root's is below a folder that PostgreSQL's user cannot enter, as ``/root``."""
    with streaming(tmp_path_factory.mktemp("closed", numbered=False)) as stack:
        yield stack
    assert not stack.postgres.folder.exists()


def test_stack_of_a_command_line(
    own_stack: NorthwindStack,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only this machine reaches it, and no password is in a log or a command line.

    It stops and goes on with its data, also after a crash of the machine. Root's data are
    elsewhere.
    """
    stack, data = own_stack, own_stack.postgres.folder
    if os.geteuid() == 0:
        assert data.parent == Path(ELSEWHERE)
        assert data.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("LAKE_ROOT", str(stack.root))
    stack.wait_until_caught_up()
    end = stack.topic_ends()[ORDERS]
    assert main(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {part["part"]: part["pid"] for part in found["parts"]} == stack.pids()
    [orders] = [row for row in found["partitions"] if row["partition"] == ORDERS]
    assert orders == {"partition": ORDERS, "end": end, "bronze_up_to": 0, "behind": end}
    assert found["problems"] == []
    # Who listens at more than 127.0.0.1 is found there, too.
    for port in stack.ports.values():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
    passwords = [(stack.secrets / name).read_text() for name in ("postgres", "debezium")]
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in stack.secrets.iterdir())
    shown = [str(stack.connect.ask("GET", "/connectors/source-outbox"))]
    shown += [part.log.read_text(errors="replace") for part in stack.parts.values()]
    shown += processes_of(stack.folder, data)
    assert not any(password in text for password in passwords for text in shown)

    assert main(["stop"]) == 0
    assert processes_of(stack.folder, data) == []
    assert main(["stop"]) == main(["status"]) == main(["start"]) == main(["start"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("stopped: postgres, broker, connect\nnothing ran\n")
    assert "the stack does not run" in output and "the stack runs already" in output
    for part in stack.parts:
        stack.kill(part)
    # After a crash the numbers belong to others: here to this very process.
    stack.broker.pid_file.write_text(str(os.getpid()))
    fresh = NorthwindStack(stack.root)
    assert fresh.running() == []
    fresh.start()
    SourceDatabase(fresh, DATABASE).execute(
        "update datalake.orders set freight = 1 where order_id = 10248"
    )
    fresh.wait_until_caught_up()
    # The last change may be sent again.
    assert end < fresh.topic_ends()[ORDERS] <= end + 2


def test_a_lost_slot_fails_the_connector(own_stack: NorthwindStack) -> None:
    """A new snapshot would lack the rows deleted meanwhile, so none is taken silently."""
    stack, name = NorthwindStack(own_stack.root), "source-tables"
    stack.start()
    slot = stack.slot_name(name)
    stack.connect.halt(name)
    wait_until(lambda: not stack.slots()[slot].is_active, 20, "the slot is still active")
    SourceDatabase(stack, DATABASE).execute(
        f"select pg_drop_replication_slot('{slot}');"
        f"select pg_create_logical_replication_slot('{slot}', 'pgoutput')"
    )
    stack.connect.ask("PUT", f"/connectors/{name}/resume")
    with pytest.raises(UserError, match=f"{name}: .*no longer available"):
        stack.wait_until_streaming(timeout=20)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers are another user's")
def test_data_that_the_servers_user_cannot_enter_are_refused(
    servers: None, tmp_path: Path
) -> None:
    """They were made before their folder was closed."""
    server = PostgresServer(tmp_path / "postgres", 1, "sesame")
    server.data.mkdir(parents=True)
    with pytest.raises(UserError, match=r"cannot enter /\S+: set LAKE_ROOT"):
        server.start()


# Every setting of the connectors is one that Connect or the connector reads.

# Connect reads these itself; validate does not list them.
TOPIC_CREATION = "topic.creation.default."
PRODUCER = "producer.override."


def validated(connect: Connect, name: str, config: dict[str, str]) -> dict[str, Any]:
    """Connect's answer on every setting that it and the connector read."""
    plugin = config["connector.class"]
    answer = connect.ask(
        "PUT", f"/connector-plugins/{plugin}/config/validate", {**config, "name": name}
    )
    return {entry["value"]["name"]: entry for entry in answer["configs"]}


def unread(connect: Connect, name: str, config: dict[str, str]) -> set[str]:
    listed = validated(connect, name, config).keys()
    return {
        key for key in config if key not in listed and not key.startswith(TOPIC_CREATION)
    }


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_setting_of_a_source_is_read_and_needed(
    stack: NorthwindStack, name: str
) -> None:
    """Validate echoes any ``producer.override.``: the log has what the producer took.

    A ``topic.creation.`` setting that no broker knows fails the connector, which has
    created its topics here. A misspelt setting Debezium ignores silently.
    """
    config = stack.configuration(name)
    misspelt = {"skipped.operation": "none", "heartbeat.interval": "1000"}
    assert unread(stack.connect, name, config | misspelt) == misspelt.keys()
    entries = validated(stack.connect, name, config)
    assert [entry for entry in entries.values() if entry["value"]["errors"]] == []
    at_default = {
        key
        for key, value in config.items()
        if key in entries and entries[key]["definition"]["default_value"] == value
    }
    # Their default is the worker's, and this worker is not the only one.
    assert at_default <= {"key.converter", "value.converter"}
    log = stack.connect.log.read_text()
    for key, value in config.items():
        if key.startswith(PRODUCER):
            assert f"\t{key.removeprefix(PRODUCER)} = {value}\n" in log
    assert stack.connect.states()[name].is_running


@pytest.mark.timeout(900)
@pytest.mark.parametrize("module", ["lab.demo.live", "examples.moma.live"])
def test_walk_through_shows_what_each_change_does_to_gold(
    module: str, servers: None, open_folder: Path
) -> None:
    """And leaves no process."""
    lake = open_folder / module
    said = run(sys.executable, "-m", module, env={"LAKE_ROOT": str(lake)})
    _, *steps = re.split(r"^== \d\d:\d\d:\d\d  ", said, flags=re.MULTILINE)
    if module == "lab.demo.live":
        # Order 11075 with its three lines, of which one is taken off.
        revenue = re.compile(r"RICSU: .*, revenue ([\d,.]+) -> ([\d,.]+),")
        pairs = [
            [Decimal(amount.replace(",", "")) for amount in found.groups()]
            for step in steps
            if (found := revenue.search(step))
        ]
        assert [after - before for before, after in pairs] == [
            Decimal("498.10"),
            Decimal("-161.50"),
        ]
    else:
        assert "Dreams of a plate, date 2004 -> 1971, classification" in steps[0]
        assert len(steps) == 7
    assert processes_of(lake) == []
