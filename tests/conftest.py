"""What every tier shares: the lakes, the manifest, and how to rerun what failed."""

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.support.aws import Aws
from tests.support.lake import Lake, SparkProcess
from tests.support.project import parsed

NewLake = Callable[..., Lake]


@pytest.fixture(scope="session")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What dbt knows of the project."""
    return parsed(tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="module")
def new_lake(spark: SparkProcess) -> Iterator[NewLake]:
    """Makes lakes; they are removed with the module."""
    lakes: list[Lake] = []

    def make(topics: Path | None = None, **options: Any) -> Lake:
        lakes.append(spark.new_lake(topics, **options))
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


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the slowest modules, and how to run each failure again."""
    stats = terminalreporter.stats
    failed = [*stats.get("failed", []), *stats.get("error", [])]
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in (*stats.get("", []), *stats.get("passed", []), *failed):
        seconds[report.nodeid.partition("::")[0]] += report.duration
    for module, total in sorted(seconds.items(), key=lambda item: -item[1])[:12]:
        terminalreporter.write_line(f"{total:6.0f} s {module}")
    for name in dict.fromkeys(report.nodeid for report in failed):
        terminalreporter.write_line(f"run it again: pytest -n0 {shlex.quote(name)}")
