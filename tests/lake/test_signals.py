"""A command that is stopped: what it ends with, and that nothing of it runs on."""

import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdc_lakehouse.spark.lock import exclusive_lock
from ingest.files import LEDGER
from tests.conftest import NewLake
from tests.support.commands import start
from tests.support.crash_images import BATCHES
from tests.support.lake import Lake, environment
from tests.support.project import PROJECT
from tests.support.small_project import small_project
from tests.support.tables import Tables

SECONDS_TO_START = 120
# From a signal to the end: of a batch or a statement that is under way, and of the JVM.
SECONDS_TO_END = 60
MARK = "CDC_TEST_MARK"
SPARK = b"org.apache.spark.deploy.SparkSubmit"


class Command:
    """A command in a process group of its own, whose processes are found by a mark.

    Args:
        lake: its lake.
        words: the command.
        folder: where it runs.
    """

    def __init__(self, lake: Path, *words: str | Path, folder: Path = PROJECT) -> None:
        self._mark = uuid.uuid4().hex
        known = environment(lake) | {MARK: self._mark, "PYTHONPATH": str(folder)}
        # A shell that runs the tests in the background has children ignore Ctrl-C.
        python = ("env", "--default-signal=INT,TERM,HUP", sys.executable)
        self.process = start(*python, "-m", *words, cwd=folder, env=known)

    def pids(self) -> dict[int, bytes]:
        """The command lines of its processes, whatever group they are in."""
        mark, found = f"{MARK}={self._mark}".encode(), {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "cmdline").read_bytes()
        return found

    def has_java(self) -> bool:
        """Whether its JVM runs, or the script that becomes it."""
        return any(SPARK in words for words in self.pids().values())

    def wait_until(self, is_there: Callable[[], bool]) -> None:
        """Wait for something that it does."""
        end = time.monotonic() + SECONDS_TO_START
        while not is_there():
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < end
            time.sleep(0.002)

    def ended(self, *, may_trace: bool = False) -> tuple[int, str]:
        """Wait for its end; the exit code as a shell has it, and its last line.

        Nothing of it may run then, or hold its output.

        Args:
            may_trace: whether it may print a stack trace, as dbt does where Ctrl-C comes
                between two of its steps.
        """
        said, _ = self.process.communicate(timeout=SECONDS_TO_END)
        assert self.pids() == {}
        assert may_trace or "Traceback" not in said
        code = self.process.returncode
        return (128 - code if code < 0 else code), said.rstrip().rpartition("\n")[2]

    def end(self) -> None:
        """Kill whatever is left of it."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()


Run = Callable[..., Command]


@pytest.fixture
def run() -> Iterator[Run]:
    """Start commands; whatever is left of them is killed."""
    commands: list[Command] = []

    def begin(lake: Path, *words: str | Path, **options: Path) -> Command:
        commands.append(Command(lake, *words, **options))
        return commands[-1]

    yield begin
    for command in commands:
        command.end()


def writes(lake: Path, table: str) -> Callable[[], bool]:
    """Whether a commit of a table is under way: it has begun, and is not completed."""
    timeline = Tables(lake).path(table) / ".hoodie"
    return lambda: any(
        not path.with_suffix("").exists() for path in timeline.glob("*commit.requested")
    )


@pytest.mark.parametrize(
    ("number", "seconds"),
    [
        (signal.SIGTERM, None),
        (signal.SIGTERM, 0.0),
        (signal.SIGINT, 0.3),
        (signal.SIGHUP, 1.0),
        (signal.SIGTERM, 2.0),
    ],
)
def test_nothing_of_a_start_that_is_stopped_runs_on(
    number: signal.Signals, seconds: float | None, run: Run, tmp_path: Path
) -> None:
    """Before Java, from the script that starts it, to the first statement in Spark."""
    command = run(tmp_path / "lake", "ingest", "retry")
    if seconds is not None:
        command.wait_until(command.has_java)
        time.sleep(seconds)
    command.process.send_signal(number)
    code, said = command.ended()
    assert code == 128 + number
    # Python itself has the signal before our handlers are there.
    assert said == "ingest: stopped" or seconds is None


@pytest.mark.parametrize("module", [("ingest", "retry"), ("lab.demo",)])
def test_java_ends_by_itself_where_python_is_killed(
    module: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    command = run(tmp_path / "lake", *module)
    command.wait_until(command.has_java)
    command.process.kill()
    assert command.ended()[0] == 137


@pytest.fixture
def landed(new_lake: NewLake, tmp_path: Path) -> Lake:
    """A lake with a file that has landed."""
    lake = new_lake(project=small_project(tmp_path / "project"))
    lake.land(BATCHES[0])
    return lake


@pytest.mark.thorough
def test_ingest_that_is_stopped_while_it_makes_its_tables(landed: Lake, run: Run) -> None:
    options = ("--topics", landed.topics)
    command = run(landed.root, "ingest", "files", landed.landing, *options)
    command.wait_until(writes(landed.root, "bronze.cdc_events"))
    command.process.send_signal(signal.SIGTERM)
    assert command.ended() == (143, "ingest: stopped")
    assert landed.ingest().counts == (3, 3, 0, 0)


@pytest.mark.thorough
@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_ingest_that_is_stopped_completes_its_batch(
    send: Callable[[int, int], None], landed: Lake, run: Run
) -> None:
    """Also where a supervisor, or a terminal, sends the signal to Java, too."""
    assert landed.ingest().code == 0
    for records in BATCHES[1:]:
        landed.land(records)
    options = ("--topics", landed.topics, "--max-bytes", "1")
    command = run(landed.root, "ingest", "files", landed.landing, *options)
    command.wait_until(writes(landed.root, "bronze.cdc_events"))
    send(command.process.pid, signal.SIGTERM)
    said = "read 4 records, wrote 3 events, rejected 1, skipped 0"
    assert command.ended() == (143, said)
    assert landed.ingest().counts == (3, 3, 0, 0)


def test_ingest_that_stays_outlives_a_sleep_of_the_machine(
    landed: Lake, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would lose its executor after two minutes, and end after ten; here, seconds."""
    settings = {
        **{"network.timeout": "1s", "network.timeoutInterval": "100ms"},
        "executor.heartbeatInterval": "200ms",
        "executor.heartbeat.maxFailures": "20",
        "rpc.askTimeout": "120s",  # which would be network.timeout's
    }
    lines = [f"spark.{name} {value}\n" for name, value in settings.items()]
    (tmp_path / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    options = ("--topics", landed.topics, "--continuous")
    command = run(landed.root, "ingest", "files", landed.landing, *options)
    ledger = landed.root / LEDGER
    command.wait_until(lambda: len([*ledger.glob("*.json")]) == 1)
    # Often, as a heartbeat may come before Spark looks; one that ends itself takes 10 s.
    for number, seconds in 8 * ((signal.SIGSTOP, 1.5), (signal.SIGCONT, 0.2)):
        for pid in command.pids():
            os.kill(pid, number)
        time.sleep(seconds)
    time.sleep(15)
    assert command.has_java()
    landed.land(BATCHES[1])
    command.wait_until(lambda: len([*ledger.glob("*.json")]) == 2)
    command.process.send_signal(signal.SIGTERM)
    assert command.ended()[0] == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("send", "number", "ends_with"),
    [(os.killpg, signal.SIGINT, 2), (os.kill, signal.SIGTERM, 143)],
)
def test_build_that_is_stopped_leaves_no_lock_and_is_completed(
    send: Callable[[int, int], None],
    number: signal.Signals,
    ends_with: int,
    landed: Lake,
    run: Run,
) -> None:
    """By Ctrl-C, which reaches all that runs in the terminal, or by a supervisor."""
    landed.land(BATCHES[1])
    assert landed.ingest().code == 0
    landed.release()
    build = ("dbt.cli.main", "run", "--profiles-dir", "profiles")
    command = run(landed.root, *build, folder=landed.project)
    command.wait_until(writes(landed.root, "silver.orders"))
    send(command.process.pid, number)
    assert command.ended(may_trace=True)[0] == ends_with
    with exclusive_lock(str(landed.root), "dbt build"):
        pass
    landed.dbt("run")
    rows = {row["order_id"]: row["is_deleted"] for row in landed.rows("silver.orders")}
    assert rows == {1: False, 2: True, 3: False, 4: False}
