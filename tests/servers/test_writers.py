"""Two writers of a lake on S3, each on a machine of its own: Hudi's lock provider.

The provider asks a real ZooKeeper, of Spark's jars. What makes one machine two is the
folder for temporary files, where the locks of one machine are.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from lab.demo.landing import land
from lab.stack.processes import wait_until
from tests.support.aws import Aws, rows
from tests.support.ports import free_port
from tests.support.project import PROJECT

ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
PROVIDER = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
LOCKS = "/lakes/northwind"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a ZooKeeper."""
    folder = tmp_path_factory.mktemp("zookeeper")
    port = free_port()
    settings = folder / "zoo.cfg"
    settings.write_text(
        f"tickTime=1000\ndataDir={folder}/data\nclientPort={port}\n"
        "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
        "4lw.commands.whitelist=dump\n"
    )
    jars = Path(pyspark.__file__).parent / "jars"
    java = f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else "java"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [java, "-Xmx64m", "-cp", f"{jars}/*", ZOOKEEPER, str(settings)],
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            },
            stdout=log,
            stderr=log,
        )
    yield port
    server.kill()
    server.wait()


def is_locked(zookeeper: int) -> bool:
    """Whether a session holds a lock, or waits for it."""
    with socket.create_connection(("127.0.0.1", zookeeper)) as client:
        client.sendall(b"dump")
        return f"{LOCKS}/".encode() in client.makefile("rb").read()


@pytest.fixture(scope="module")
def lock_file(zookeeper: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that LAKE_LOCK names."""
    lock = tmp_path_factory.mktemp("lock") / "lock.properties"
    base = "hoodie.write.lock.zookeeper"
    lock.write_text(
        f"hoodie.write.lock.provider={PROVIDER}\n{base}.url=127.0.0.1:{zookeeper}\n"
        f"{base}.port={zookeeper}\n{base}.base_path={LOCKS}\n{base}.lock_key={{lock}}\n"
        f"{base}.session_timeout_ms=6000\n"
    )
    return lock


class Machine:
    """A machine that writes the lake."""

    def __init__(self, aws: Aws, lock_file: Path, folder: Path) -> None:
        environment = {**aws.lake("writers", folder), "LAKE_LOCK": str(lock_file)}
        self.environment = {**os.environ, **environment, "PYTHONPATH": str(PROJECT)}
        self.environment["TMPDIR"] = str(folder)
        self.places = ("--target-path", str(folder), "--log-path", str(folder))

    def start(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=PROJECT,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a process, and what it said."""
    said, _ = process.communicate(timeout=400)
    assert "Traceback" not in said
    return process.returncode, said


@pytest.fixture(scope="module")
def machines(
    s3_jars: None, aws: Aws, lock_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Machine]:
    """Two machines that write one lake, whose files have landed."""
    local = tmp_path_factory.mktemp("landing")
    aws.client("s3").create_bucket(Bucket="landing-writers")
    land(local)
    aws.upload(local, "landing-writers", "all")
    return [
        Machine(aws, lock_file, tmp_path_factory.mktemp(name)) for name in ("one", "two")
    ]


INGEST = ("ingest", "files", "s3a://landing-writers/")
AT_WORK = "ingest: another ingest is at work on s3a://"


def test_of_two_ingests_one_writes_and_one_says_why_not(machines: list[Machine]) -> None:
    both = [machine.start(*INGEST) for machine in machines]
    said = dict(map(ended, both))
    assert said.keys() == {0, 75}
    assert "wrote 1023 events" in said[0]
    assert AT_WORK in said[75]
    code, again = ended(machines[1].start(*INGEST))
    assert (code, "wrote 0 events" in again) == (0, True), again
    events = rows("writers", "bronze.cdc_events")
    assert len(events) == len({row["event_id"] for row in events})


def test_lock_of_a_killed_writer_is_free_again(
    machines: list[Machine], zookeeper: int
) -> None:
    first = machines[0].start(*INGEST, "--continuous")
    wait_until(lambda: is_locked(zookeeper), 120, "the first ingest has not begun")
    code, said = ended(machines[1].start(*INGEST))
    assert (code, AT_WORK in said) == (75, True), said
    os.killpg(first.pid, 9)
    first.wait()
    wait_until(lambda: not is_locked(zookeeper), 60, "its session has not ended")
    code, said = ended(machines[1].start(*INGEST))
    assert code == 0, said


def test_of_two_builds_one_says_why_not(machines: list[Machine]) -> None:
    build = ("run", "-s", "stg_customers", "customers", "--profiles-dir", "profiles")
    both = [machine.start("dbt.cli.main", *build, *machine.places) for machine in machines]
    said = dict(map(ended, both))
    assert said.keys() == {0, 2}
    assert "another dbt build is at work on s3a://" in said[2]
    customers = [row["customer_id"] for row in rows("writers", "silver.customers")]
    assert len(customers) == len(set(customers)) == 93


def test_lock_file_that_names_no_provider(machines: list[Machine], tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("# nothing\n")
    code, said = ended(machines[0].start(*INGEST, LAKE_LOCK=str(tmp_path / "lock")))
    assert code == 1
    assert f"{tmp_path}/lock (LAKE_LOCK) does not set hoodie.write.lock.provider" in said
