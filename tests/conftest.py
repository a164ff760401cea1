"""What every tier shares: the lakes, the manifest, and what pytest prints in the end."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep in one process what shares a lake, a module, and what shares the stack."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        group = "stack" if "stack" in names else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print how to run each failure again, and which tests of servers did not run."""
    failed = terminalreporter.stats.get("failed", []) + terminalreporter.stats.get(
        "error", []
    )
    for name in dict.fromkeys(report.nodeid for report in failed):
        terminalreporter.write_line(f"run it again: pytest -n0 {shlex.quote(name)}")
    servers = PROJECT / "tests" / "servers"
    asked = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    if any(servers == path or servers in path.parents for path in asked):
        return
    if any(path in servers.parents for path in asked):
        return
    count = sum(
        line.startswith("def test_")
        for file in sorted(servers.glob("test_*.py"))
        for line in file.read_text(encoding="utf-8").splitlines()
    )
    terminalreporter.write_line(
        f"not run: {count} tests of real servers (PostgreSQL, Kafka, Trino, a browser);"
        " run them with: make test-all"
    )
