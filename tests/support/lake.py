"""Lakes to test in: one process with Spark works on one after the other.

Derby's and the catalogue's files, and the checkpoints, hold absolute paths. So a lake is
always worked on at the same place: its folder is moved there, and moved away when another
lake's turn comes. Readers that are not Spark find its tables wherever it is.
"""

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.project import PROJECT
from tests.support.records import Record, Row
from tests.support.tables import Tables

TOPICS_FILE = Path(__file__).with_name("topics.toml")
WORKER = "from tests.support.worker import main; main()"


@dataclass
class Ingested:
    """What an ingest printed, and its exit code."""

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


class SparkDiedError(AssertionError):
    """The process ended without an answer: nothing is known of what it was asked."""

    TEXT = "Spark's process ended"


class SparkProcess:
    """A process with one JVM, and the place where a lake is while it is worked on.

    Args:
        folder: keeps the place, the lakes that are not there, and the logs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "lake"
        self.log = folder / "worker.log"
        self.occupant: Lake | None = None
        self.pid: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._generates_code = False
        self._count = 0

    def new_lake(self, topics: Path | None = None, **options: Any) -> "Lake":
        """A lake without anything in it; the options are those of ``Lake``."""
        self._count += 1
        return Lake(self, self.folder / f"lake-{self._count}", topics, **options)

    def put(self, lake: "Lake") -> None:
        """Have a lake at the place."""
        if self.occupant is lake:
            return
        self.clear()
        if lake.parked.exists():
            lake.parked.rename(self.place)
        else:
            self.place.mkdir()
        self.occupant = lake
        if self._generates_code != lake.generates_code:
            self._generates_code = lake.generates_code
            if self._process is not None:
                unset = dict.fromkeys(NO_CODE)
                self.ask("worker:set_properties", unset if lake.generates_code else NO_CODE)

    def clear(self) -> None:
        """Move the lake that is at the place away."""
        if self.occupant is not None:
            self.release()
            self.place.rename(self.occupant.parked)
            self.occupant = None

    def release(self) -> None:
        """Let go of the lake's metastore, for another process; the JVM stays."""
        if self._process is not None:
            self.ask("worker:close")

    def ask(self, name: str, *arguments: Any) -> Any:
        """Have the process call a function of ``tests.support``; what it returns."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((name, arguments), process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except (EOFError, pickle.UnpicklingError):
            self.kill()
            log = self.log.read_text(errors="replace")[-4000:]
            raise SparkDiedError(f"{SparkDiedError.TEXT}: {log}") from None
        except BaseException:
            # A time limit, or Ctrl-C: its answer would be taken for the next one's.
            self.kill()
            raise

    def kill(self) -> None:
        """End the process, and its Java with it, as a crash does."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
            self.pid = None

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", WORKER, str(self.folder)],
                cwd=PROJECT,
                env=environment(self.place)
                | {"PYSPARK_SUBMIT_ARGS": _submit_arguments(self._generates_code)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid
        return self._process


class Lake:
    """A lake in a folder of its own.

    Args:
        spark: what works on it.
        parked: its folder while it is not at the place.
        topics: the topics file, where it is not that of most tests or of the project.
        project: the dbt project that builds it.
        generates_code: whether Spark generates code for its queries, as it does for users.
    """

    def __init__(
        self,
        spark: SparkProcess,
        parked: Path,
        topics: Path | None = None,
        project: Path = PROJECT,
        *,
        generates_code: bool = False,
    ) -> None:
        self.spark = spark
        self.parked = parked
        self.project = project
        own = TOPICS_FILE if project == PROJECT else project / "topics.toml"
        self.topics = topics or own
        self.generates_code = generates_code
        self._files = 0

    @property
    def root(self) -> Path:
        """Its ``LAKE_ROOT``, where it is from now on until another lake's turn comes."""
        self.spark.put(self)
        return self.spark.place

    @property
    def tables(self) -> Tables:
        """Its tables, wherever it is."""
        is_there = self.spark.occupant is self
        return Tables(self.spark.place if is_there else self.parked)

    @property
    def landing(self) -> Path:
        """Its landing folder."""
        folder = self.root / "landing"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def land(self, records: Iterable[Record | str], name: str | None = None) -> Path:
        """Write one JSON-lines file below the landing folder."""
        self._files += 1
        file = self.landing / (name or f"{self._files:06d}.json")
        lines = [
            line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
            for line in records
        ]
        part = file.with_name(f"_{file.name}")
        part.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        part.rename(file)
        return file

    def ingest(self, *arguments: str, days_ago: int = 0) -> Ingested:
        """``python -m ingest files``, of the landing folder where no path is given."""
        paths = arguments or (str(self.landing),)
        command = ("files", "--topics", str(self.topics), *paths)
        return self._ingest(*command, days_ago=days_ago)

    def ingest_kafka(self, *arguments: str) -> Ingested:
        """``python -m ingest kafka``."""
        return self._ingest("kafka", "--topics", str(self.topics), *arguments)

    def follow(self, servers: str, *topics: str) -> tuple[int, int, int, int]:
        """Bring all that Kafka has of topics, none of which is rejected; the counts."""
        done = self.ingest_kafka("--bootstrap-servers", servers, "--topic", *topics)
        assert (done.code, done.counts[2]) == (0, 0), done.err
        return done.counts

    def retry_rejected(self, *arguments: str) -> Ingested:
        """``python -m ingest retry``."""
        return self._ingest("retry", "--topics", str(self.topics), *arguments)

    def status(self, *arguments: str) -> Ingested:
        """``python -m ingest status``."""
        return self._ingest("status", *arguments)

    def _ingest(self, *arguments: str, days_ago: int = 0) -> Ingested:
        self.spark.put(self)
        return Ingested(**self.spark.ask("worker:run_ingest", [*arguments], days_ago))

    def dbt(self, *arguments: str, project: Path | None = None) -> dict[str, Any]:
        """Run a dbt command that must succeed."""
        answer = self.try_dbt(*arguments, project=project)
        failed = {
            name: node["message"]
            for name, node in answer["nodes"].items()
            if node["status"] in ("error", "fail", "runtime error")
        }
        assert answer["success"], f"{answer['error']} {answer['said']} {failed}"
        return answer

    def dbt_error(self, *arguments: str, project: Path | None = None) -> str:
        """Run a dbt command that must fail; all that it reports."""
        answer = self.try_dbt(*arguments, project=project)
        assert not answer["success"]
        nodes = [str(node["message"]) for node in answer["nodes"].values()]
        return " ".join([str(answer["error"]), *answer["said"], *nodes])

    def try_dbt(self, *arguments: str, project: Path | None = None) -> dict[str, Any]:
        """Run a dbt command.

        Returns:
            ``success``, ``error``, ``said`` (warnings and errors), ``statements`` (SQL),
            ``target`` (the folder of what dbt made), and of every node in ``nodes`` its
            ``status``, ``message``, ``seconds`` and ``kind``.
        """
        self.spark.put(self)
        folder = str(project or self.project)
        answer: dict[str, Any] = self.spark.ask("worker:run_dbt", [*arguments], folder)
        return answer

    def build(self, records: Iterable[Record | str], *arguments: str) -> list[str]:
        """Bring records to silver; what the build warned of.

        Args:
            records: a landing file's.
            arguments: of ``dbt run``; where none are given, staging and silver of the
                project itself, and all of another one.
        """
        self.land(records)
        ingested = self.ingest()
        assert ingested.code == 0, ingested.err
        models = SILVER if self.project == PROJECT else ()
        said: list[str] = self.dbt("run", *(arguments or models))["said"]
        return said

    def sql(self, statement: str) -> list[list[str]]:
        """Run a statement in the lake's Spark session."""
        self.spark.put(self)
        answer: list[list[str]] = self.spark.ask("worker:run_sql", statement)
        return answer

    def write_parquet(self, avro: Path, parquet: Path, codec: str, **settings: str) -> None:
        """Write the rows of a container file of Avro as Confluent's sink writes Parquet."""
        self.spark.put(self)
        arguments = (str(avro), str(parquet), codec, settings)
        self.spark.ask("worker:write_parquet", *arguments)

    def rows(self, table: str) -> list[Row]:
        """The rows of ``<layer>.<table>``, read without Spark; always in the same order."""
        return self.tables.rows(table)

    def merged_rows(self, table: str) -> list[Row]:
        """The rows of a merge-on-read table, by Spark.

        What ``rows`` reads with cannot merge logs that have times in an array.
        """
        folder = self.root / "merged"
        self.sql("set spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS")
        query = f"select * from {table}"
        self.sql(f"insert overwrite directory '{folder}' using parquet {query}")
        return [
            {name: row[name] for name in row if not name.startswith("_hoodie_")}
            for row in pq.read_table(folder).to_pylist()
        ]

    def environment(self) -> dict[str, str]:
        """The environment of another process that works on this lake."""
        return environment(self.root)

    def release(self) -> None:
        """Let another process have the metastore."""
        self.spark.put(self)
        self.spark.release()

    def remove(self) -> None:
        """Remove it from the disk."""
        if self.spark.occupant is self:
            self.spark.clear()
        shutil.rmtree(self.parked, ignore_errors=True)


# Generated code costs more than it brings for rows as few as these.
NO_CODE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
SILVER: Sequence[str] = ("-s", "path:models/staging", "path:models/silver")


def environment(root: Path) -> dict[str, str]:
    """The environment of a process that works on the lake at ``root``."""
    return {
        **os.environ,
        "LAKE_ROOT": str(root),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
    }


def _submit_arguments(generates_code: bool) -> str:
    # Spark lets the metastore create its tables in Derby for the first lake of a JVM only.
    settings = {"spark.hadoop.datanucleus.schema.autoCreateAll": "true"}
    if not generates_code:
        settings |= NO_CODE
    given = [f"--conf {name}={value}" for name, value in settings.items()]
    return " ".join([*given, "pyspark-shell"])
