"""A Spark cluster, a Hive metastore and S3: the same rows as the embedded Spark has."""

import contextlib
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from deploy.package import write
from lab.cluster import jars
from lab.cluster.cluster import BUCKET, WORKERS, Cluster
from lab.demo.landing import EVENTS, recorded, sink_envelope
from lab.stack.postgres import find_binaries
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.aws import rows
from tests.support.commands import Process, ended, run, start
from tests.support.lake import TOPICS_FILE
from tests.support.project import PROJECT, expected_revenue
from tests.support.records import Row
from tests.support.required import missing, required

pytestmark = pytest.mark.timeout(1200)

NAME = "on_cluster"
LANDING = f"s3a://{BUCKET}/landing"
CAPTURES = sorted(EVENTS.glob("*.jsonl.gz"))
# When a row was written, which is another time in each lake.
TIMES = ("ingested_at", "ingest_batch")
TABLES = [
    *("silver.orders", "silver.order_items", "silver.customers", "silver.products"),
    *("silver.rejected_rows", "gold.revenue_by_customer", "gold.revenue_by_month"),
    *("gold.revenue_by_product", "gold.revenue_by_category", "gold.revenue_by_employee"),
    "gold.late_shipments",
]


@pytest.fixture(scope="module")
def cluster(open_folder: Path) -> Iterator[Cluster]:
    """A cluster with a bucket; skipped where the machine lacks what it needs."""
    with required():
        find_binaries()
        jars.fetch()
    cluster = Cluster(open_folder)
    try:
        cluster.start()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in cluster.environment(NAME).items():
                if name.startswith("AWS_"):
                    patch.setenv(name, value)
            # boto3 remembers the credentials that it found first.
            patch.setattr(boto3, "DEFAULT_SESSION", None)
            yield cluster
    finally:
        cluster.stop()


def lines(capture: Path) -> list[str]:
    """The recorded events of a topic."""
    return [sink_envelope(record) for record in recorded(capture)]


def upload(cluster: Cluster, name: str, events: list[str]) -> None:
    body = "".join(line + "\n" for line in events).encode()
    cluster.s3_client().put_object(Bucket=BUCKET, Key=f"landing/{name}.json", Body=body)


def halves(capture: Path) -> tuple[list[str], list[str]]:
    """A topic's events, in two parts of unequal length."""
    events = lines(capture)
    middle = len(events) * 3 // 4
    return events[:middle], events[middle:]


def compared(found: list[Row]) -> list[Row]:
    """The rows without the times of their own lake, in an order of their own."""
    kept = [{n: value for n, value in row.items() if n not in TIMES} for row in found]
    return sorted(kept, key=repr)


@pytest.fixture(scope="module")
def embedded(new_lake: NewLake) -> dict[str, list[Row]]:
    """The rows of every table as the embedded Spark has them, after two builds."""
    lake = new_lake()
    for number in range(2):
        for capture in CAPTURES:
            lake.land(halves(capture)[number])
        assert lake.ingest().code == 0
        lake.dbt("run")
    found = {table: compared(lake.rows(table)) for table in TABLES}
    lake.spark.kill()  # it shares the machine with the cluster
    return found


def submit(cluster: Cluster, *words: str) -> Process:
    """Start a job; not in the project's folder: paths are found all the same."""
    environment = {**cluster.environment(NAME), "PYTHONPATH": str(PROJECT)}
    return start(*cluster.submit_command(*words), cwd=cluster.folder, env=environment)


def tasks(cluster: Cluster, application: str) -> Counter[str]:
    """How many tasks each executor has ended, by the application's event log."""
    done: Counter[str] = Counter()
    for file in cluster.events.glob(f"{application}*"):
        for line in file.read_text(errors="replace").splitlines():
            if '"SparkListenerTaskEnd"' in line:
                # The last line may be half written.
                with contextlib.suppress(json.JSONDecodeError):
                    done[json.loads(line)["Task Info"]["Executor ID"]] += 1
    return done


def assert_on_executors(cluster: Cluster, job: str) -> None:
    """The master gave a finished job both workers, and both of them ran its tasks."""
    [application] = [a for a in cluster.state()["completedapps"] if a["name"] == job][-1:]
    assert (application["state"], application["cores"]) == ("FINISHED", 2)
    assert set(tasks(cluster, application["id"])) == {"0", "1"}


def has_begun(cluster: Cluster) -> bool:
    """Whether both executors of the application that runs have done some work."""
    applications = cluster.state()["activeapps"]
    done = tasks(cluster, applications[0]["id"]) if applications else Counter()
    return len(done) == len(WORKERS) and done.total() > 20


@pytest.fixture(scope="module")
def built(cluster: Cluster) -> Cluster:
    """The lake after two ingests and two builds; the second build lost a worker."""
    places = [f"--target-path={cluster.root}/target", f"--log-path={cluster.root}/dbt-logs"]
    ingest = ("ingest", "files", f"{LANDING}/part-*", "--topics", str(TOPICS_FILE))
    for number in range(2):
        count = 0
        for capture in CAPTURES:
            part = halves(capture)[number]
            upload(cluster, f"part-{number}-{capture.name}", part)
            count += len(part)
        said = ended(submit(cluster, *ingest))
        assert f"read {count} records, wrote {count} events, rejected 0" in said
        job = submit(cluster, "dbt", "run", *places)
        if number == 1:
            wait_until(lambda: has_begun(cluster), 120, "the build has not begun")
            cluster.kill(WORKERS[0])
        ended(job)
        if number == 0:
            assert_on_executors(cluster, "ingest files")
            assert_on_executors(cluster, "dbt run")
    assert cluster.alive_workers() == 1
    cluster.parts[WORKERS[0]].start()
    wait_until(lambda: cluster.alive_workers() == 2, 60, "the worker is not back")
    return cluster


def test_rows_of_the_cluster(built: Cluster, embedded: dict[str, list[Row]]) -> None:
    """Equal, although a worker was killed in the middle of the second build."""
    for table, expected in embedded.items():
        assert compared(rows(NAME, f"lake_{table}")) == expected, table


def test_build_by_a_thrift_server(
    built: Cluster, embedded: dict[str, list[Row]], tmp_path: Path
) -> None:
    """Its own process has no Spark and no jars; the schemas have another prefix.

    It builds everything at once, and only increments see order lines go.
    """
    if importlib.util.find_spec("pyhive") is None:
        missing("PyHive is missing: run `make setup`")
    built.start_thrift(NAME)
    try:
        environment = {"LAKE_TARGET": "thrift", "LAKE_SCHEMA": "by_thrift"}
        environment["LAKE_THRIFT_PORT"] = str(built.ports["thrift"])
        places = (f"--target-path={tmp_path}", f"--log-path={tmp_path}")
        build = ("dbt.cli.main", "build", "--profiles-dir", "profiles", *places)
        run(sys.executable, "-m", *build, env=environment)
    finally:
        built.stop_thrift()
    for table, expected in embedded.items():
        if table == "silver.order_items":
            expected = [row for row in expected if not row["is_deleted"]]
        assert compared(rows(NAME, f"by_thrift_{table}")) == expected, table
    # The master hears of its end a moment later.
    wait_until(lambda: not built.state()["activeapps"], 30, "the server is still there")
    assert_on_executors(built, "thrift")


@pytest.mark.smoke
def test_packaged_job(cluster: Cluster, tmp_path: Path) -> None:
    """It runs from the bucket by a Python that has none of the packages, to gold."""
    lake = "by_package"
    for file in write(tmp_path):
        key = f"package/{file.relative_to(tmp_path)}"
        cluster.s3_client().upload_file(str(file), BUCKET, key)
    for capture in CAPTURES:
        upload(cluster, f"all-{capture.name}", lines(capture))
    python = getattr(sys, "_base_executable", sys.executable)
    environment = {**cluster.environment(lake), "PYSPARK_PYTHON": python}

    def submitted(*words: str) -> str:
        command = cluster.submit_command(*words, package=f"s3a://{BUCKET}/package")
        return run(*command, cwd=tmp_path, env={**environment, "PYTHONPATH": ""})

    said = submitted("ingest", "files", f"{LANDING}/all-*", "--topics", str(TOPICS_FILE))
    count = sum(len(lines(capture)) for capture in CAPTURES)
    assert f"read {count} records, wrote {count} events" in said
    submitted("dbt", "run", "-s", "+revenue_by_customer")
    assert expected_revenue() == {
        row["customer_id"]: row["revenue"]
        for row in rows(lake, "lake_gold.revenue_by_customer")
    }
