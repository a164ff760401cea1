"""Lakes to test in: records as a sink writes them, ingest, dbt, and a reader."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from serving.storage import open_table, read_columns

PROJECT = Path(__file__).parent.parent
CAPTURES = Path(__file__).parent / "captures"
TOPIC = "demo.datalake.cdc_events"
UNAVAILABLE = "__debezium_unavailable_value"

Record = dict[str, Any]
Row = dict[str, Any]


def record(
    key: Any,
    value: Any,
    offset: int | None,
    topic: str = TOPIC,
    partition: int = 0,
    timestamp: int = 1_767_225_600_000,
) -> Record:
    """A Kafka record as the S3 sink writes it with ``store.envelope``."""
    return {
        "key": key,
        "value": value,
        "headers": {},
        "metadata": {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp": timestamp,
        },
    }


def flattened(
    op: str, row: Row, lsn: int | None, ts_ms: int = 1_767_225_600_000
) -> dict[str, Any]:
    """A change as Debezium's unwrap transform writes it."""
    return {
        **row,
        "__deleted": "true" if op == "d" else "false",
        "__op": op,
        "__db": "northwind",
        "__table": "cdc_events",
        "__schema": "datalake",
        "__lsn": lsn,
        "__source_ts_ms": ts_ms,
    }


def envelope(
    op: str, row: Row | None, lsn: int | None, ts_ms: int = 1_767_225_600_000
) -> dict[str, Any]:
    """A change as Debezium writes it without a transform."""
    return {
        "before": row if op == "d" else None,
        "after": None if op == "d" else row,
        "source": {
            "connector": "postgresql",
            "db": "northwind",
            "schema": "datalake",
            "table": "cdc_events",
            "lsn": lsn,
            "ts_ms": ts_ms,
        },
        "op": op,
        "ts_ms": ts_ms + 5,
        "transaction": None,
    }


def parse(target: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return dbt(target, "--warn-error", "parse", "--no-partial-parse", *arguments)


def dbt(target: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run dbt without Spark; what it makes is kept in ``target``."""
    places = ["--target-path", str(target), "--log-path", str(target)]
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "dbt.cli.main",
            *arguments,
            "--profiles-dir",
            "profiles",
            *places,
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )


def copy_project(folder: Path) -> Path:
    """A copy of what ingest and dbt need, to be changed by a test."""
    copied = (
        "ingest",
        "connectors",
        "macros",
        "models",
        "analyses",
        "profiles",
        "tests/dbt",
    )
    for name in copied:
        shutil.copytree(PROJECT / name, folder / name)
    for name in ("dbt_project.yml", "dbt_single_build.py"):
        shutil.copy(PROJECT / name, folder)
    (folder / ".venv").symlink_to(PROJECT / ".venv")
    return folder


@pytest.fixture(scope="session")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What dbt knows of the project."""
    target = tmp_path_factory.mktemp("target")
    done = parse(target)
    assert done.returncode == 0, done.stdout + done.stderr
    content: dict[str, Any] = json.loads((target / "manifest.json").read_text())
    return content


@dataclass
class Ingested:
    """What an ingest said."""

    code: int
    out: str
    err: str

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Read, written, rejected, skipped."""
        found = re.fullmatch(
            r"read (\d+) records, wrote (\d+) events, rejected (\d+), skipped (\d+)",
            self.out.strip(),
        )
        assert found, f"{self.out!r} {self.err!r}"
        read, written, rejected, skipped = map(int, found.groups())
        return read, written, rejected, skipped


@dataclass
class Lake:
    """A lake in a folder of its own, and the process that works on it."""

    root: Path
    topics: Path | None = None
    files: int = 0
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def landing(self) -> Path:
        folder = self.root / "landing"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def land(self, records: Iterable[Record | str], name: str | None = None) -> Path:
        """Write one JSON-lines file below the landing folder."""
        self.files += 1
        file = self.landing / (name or f"{self.files:06d}.json")
        lines = [
            line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
            for line in records
        ]
        part = file.with_name(f"_{file.name}")
        part.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        part.rename(file)
        return file

    def ingest(self, *arguments: str, lake: Path | None = None) -> Ingested:
        """``python -m ingest files``, of the landing folder where no path is given."""
        paths = list(arguments) or [str(self.landing)]
        topics = [] if self.topics is None else ["--topics", str(self.topics)]
        return Ingested(
            **self._ask("ingest", str(lake or self.root), ["files", *paths, *topics])
        )

    def kafka(self, *arguments: str) -> Ingested:
        """``python -m ingest kafka``."""
        return Ingested(**self._ask("ingest", str(self.root), ["kafka", *arguments]))

    def dbt(self, *arguments: str) -> dict[str, Any]:
        """Run a dbt command that must succeed."""
        answer = self.try_dbt(*arguments)
        failed = {
            name: node["message"]
            for name, node in answer["nodes"].items()
            if node["status"] in ("error", "fail", "runtime error")
        }
        assert answer["success"], f"{answer['error']} {answer['said']} {failed}"
        return answer

    def try_dbt(self, *arguments: str) -> dict[str, Any]:
        """Run a dbt command."""
        answer = self._ask("dbt", list(arguments))
        assert isinstance(answer, dict)
        return answer

    def sql(self, statement: str) -> list[list[str]]:
        """Run a statement in the lake's Spark session."""
        answer = self._ask("sql", statement)
        assert isinstance(answer, list)
        return answer

    def path(self, table: str) -> Path:
        """Where ``<layer>.<table>`` is."""
        layer, _, name = table.partition(".")
        return self.root / "warehouse" / f"{layer}.db" / name

    def rows(self, table: str) -> list[Row]:
        """The rows of ``<layer>.<table>``, read without Spark; always in the same order."""
        found: list[Row] = read_columns(open_table(str(self.path(table)))).to_pylist()
        return sorted(found, key=repr)

    def tables(self) -> list[str]:
        """Every table of the lake."""
        return sorted(
            f"{folder.parent.parent.name.removesuffix('.db')}.{folder.parent.name}"
            for folder in (self.root / "warehouse").glob("*.db/*/.hoodie")
        )

    def instants(self) -> dict[str, list[str]]:
        """The completed commits on the timeline of every table."""
        kinds = (".commit", ".replacecommit", ".deltacommit")
        return {
            table: sorted(
                file.name
                for file in (self.path(table) / ".hoodie").rglob("*")
                if file.suffix in kinds
            )
            for table in self.tables()
        }

    def properties(self, table: str) -> dict[str, str]:
        """A table's ``hoodie.properties``."""
        text = (self.path(table) / ".hoodie" / "hoodie.properties").read_text()
        pairs = [line.partition("=") for line in text.splitlines() if "=" in line]
        return {name: value for name, _, value in pairs}

    def environment(self) -> dict[str, str]:
        """The environment of a process that works on this lake."""
        return {
            **os.environ,
            "LAKE_ROOT": str(self.root),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
        }

    def close(self) -> None:
        """End the lake's process, and its Java with it."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def _ask(self, command: str, *arguments: Any) -> Any:
        if self.process is None:
            self.root.mkdir(parents=True, exist_ok=True)
            with (self.root / "worker.log").open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "tests.worker"],
                    cwd=PROJECT,
                    env=self.environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([command, arguments]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            log_text = (self.root / "worker.log").read_text(errors="replace")
            raise AssertionError(f"the lake's process ended: {log_text[-4000:]}")
        return json.loads(answer)


NewLake = Callable[..., Lake]


@pytest.fixture(scope="module")
def new_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewLake]:
    """Makes lakes; their processes end with the module."""
    lakes: list[Lake] = []

    def make(topics: Path | None = None) -> Lake:
        lakes.append(Lake(tmp_path_factory.mktemp("lake"), topics))
        return lakes[-1]

    yield make
    for lake in lakes:
        lake.close()


@pytest.fixture(scope="module")
def lake(new_lake: NewLake) -> Lake:
    """One lake that a module's tests share."""
    return new_lake()
