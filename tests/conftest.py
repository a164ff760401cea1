"""What every tier shares: the lakes, the manifest, and what pytest prints in the end."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.aws import Aws
from tests.support.lake import Lake, SparkProcess
from tests.support.project import PROJECT, parse

NewLake = Callable[..., Lake]


@pytest.fixture(scope="session")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What dbt knows of the project."""
    target = tmp_path_factory.mktemp("target")
    done = parse(target)
    assert done.returncode == 0, done.stdout + done.stderr
    content: dict[str, Any] = json.loads((target / "manifest.json").read_text())
    return content


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """The process that works on the lakes of all tests; it starts with the first use."""
    process = SparkProcess(tmp_path_factory.mktemp("spark"))
    yield process
    process.kill()


@pytest.fixture(scope="module")
def new_lake(spark: SparkProcess) -> Iterator[NewLake]:
    """Makes lakes; they are removed with the module."""
    lakes: list[Lake] = []

    def make(topics: Path | None = None) -> Lake:
        lakes.append(spark.new_lake(topics))
        return lakes[-1]

    yield make
    for lake in lakes:
        lake.remove()


@pytest.fixture(scope="module")
def lake(new_lake: NewLake) -> Lake:
    """One lake that a module's tests share."""
    return new_lake()


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    """A server; this process and its children take it for AWS."""
    server = Aws()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        # boto3 remembers the credentials that it found first.
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        yield server
    server.stop()


SERVERS = PROJECT / "tests" / "servers"
SHARE_THE_STACK = {"test_connectors.py", "test_stack.py", "test_trino.py", "test_types.py"}
NOT_RUN = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--servers`` and ``--exhaustive``."""
    parser.addoption(
        "--servers", action="store_true", help="run the tests of real servers, too"
    )
    parser.addoption(
        "--exhaustive", action="store_true", help="run those that take many minutes, too"
    )


def _leave_out(
    config: pytest.Config, items: list[pytest.Item], left_out: list[pytest.Item]
) -> None:
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


class _Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """A module stays in one process, as its lake does; so does what shares the stack."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return "stack" if Path(module).name in SHARE_THE_STACK else module


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Have pytest-xdist keep together what shares."""
    return _Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of servers, unless asked for."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    if not config.getoption("--servers") and not any(
        path == SERVERS or SERVERS in path.parents for path in named
    ):
        servers = [item for item in items if SERVERS in item.path.parents]
        _leave_out(config, items, servers)
        config.stash[NOT_RUN] = len(servers)
    if not config.getoption("--exhaustive"):
        long = [item for item in items if item.get_closest_marker("exhaustive")]
        _leave_out(config, items, long)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Have a process of pytest-xdist say how many tests it left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["not run"] = session.config.stash.get(NOT_RUN, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear it; each process has collected all tests."""
    node.config.stash[NOT_RUN] = getattr(node, "workeroutput", {}).get("not run", 0)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how to run each failure again."""
    stats = terminalreporter.stats
    failed = [*stats.get("failed", []), *stats.get("error", [])]
    for name in dict.fromkeys(report.nodeid for report in failed):
        terminalreporter.write_line(f"run it again: pytest -n0 {shlex.quote(name)}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print as the last line which tests of servers did not run."""
    if hasattr(config, "workerinput"):
        return
    if count := config.stash.get(NOT_RUN, 0):
        print(
            f"not run: {count} tests of real servers (PostgreSQL, Kafka, Trino, a"
            " browser); run them with: make test-all"
        )
