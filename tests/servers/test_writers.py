"""Two writers of a lake on S3, each on a machine of its own: Hudi's lock provider.

The provider asks a real ZooKeeper, of Spark's jars. What makes one machine two is the
folder for temporary files, where the locks of one machine are.
"""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyspark
import pytest

from lab.demo.landing import land
from lab.stack.processes import HOST, Part, java_command, wait_until
from tests.support.aws import Aws, rows
from tests.support.commands import Process, ended, run, start
from tests.support.ports import free_port

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
SETTINGS = """\
tickTime=1000
dataDir={folder}/data
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=dump
"""
LOCKS = "/lakes/northwind"
LOCK = f"""\
hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider
hoodie.write.lock.zookeeper.url={HOST}:{{port}}
hoodie.write.lock.zookeeper.port={{port}}
hoodie.write.lock.zookeeper.base_path={LOCKS}
hoodie.write.lock.zookeeper.lock_key={{{{lock}}}}
hoodie.write.lock.zookeeper.session_timeout_ms=6000
"""
INGEST = ("ingest", "files", "s3a://landing-writers/")
AT_WORK = "ingest: another ingest is at work on s3a://"
# It starts a module as a process of its own.
Machine = Callable[..., Process]


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Part]:
    folder, port = tmp_path_factory.mktemp("zookeeper"), free_port()
    settings = folder / "zoo.cfg"
    settings.write_text(SETTINGS.format(folder=folder, port=port))
    words, jars = (MAIN, str(settings)), Path(pyspark.__file__).parent / "jars"

    def command(mark: str) -> list[str]:
        return java_command("64m", mark, *words, class_path=f"{jars}/*")

    server = Part(folder, "zookeeper", port, command)
    server.start()
    server.wait_until_ready()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def machines(
    s3_jars: None, aws: Aws, zookeeper: Part, tmp_path_factory: pytest.TempPathFactory
) -> list[Machine]:
    """Two machines that write one lake, whose files have landed."""
    local = tmp_path_factory.mktemp("landing")
    aws.client("s3").create_bucket(Bucket="landing-writers")
    land(local)
    aws.upload(local, "landing-writers", "all")
    lock = zookeeper.folder / "lock.properties"
    lock.write_text(LOCK.format(port=zookeeper.port))

    def machine(folder: Path) -> Machine:
        own = dict.fromkeys(("TMPDIR", "DBT_TARGET_PATH", "DBT_LOG_PATH"), str(folder))
        environment = aws.lake("writers", folder) | own | {"LAKE_LOCK": str(lock)}
        return partial(start, sys.executable, "-m", env=environment)

    return [machine(tmp_path_factory.mktemp(name)) for name in ("one", "two")]


def said_by(processes: list[Process]) -> dict[int, str]:
    """What processes said, by their exit codes."""
    texts = [process.communicate(timeout=400)[0] for process in processes]
    assert not any("Traceback" in text for text in texts)
    return dict(zip((process.returncode for process in processes), texts, strict=True))


def test_of_two_ingests_one_writes_and_one_says_why_not(machines: list[Machine]) -> None:
    said = said_by([machine(*INGEST) for machine in machines])
    assert said.keys() == {0, 75}
    assert "wrote 1023 events" in said[0]
    assert AT_WORK in said[75]
    assert "wrote 0 events" in ended(machines[1](*INGEST))
    events = rows("writers", "bronze.cdc_events")
    assert len(events) == len({row["event_id"] for row in events})


def test_lock_of_a_killed_writer_is_free_again(
    machines: list[Machine], zookeeper: Part
) -> None:
    def is_locked() -> bool:
        """Whether a session holds a lock, or waits for it."""
        with socket.create_connection((HOST, zookeeper.port)) as client:
            client.sendall(b"dump")
            return f"{LOCKS}/".encode() in client.makefile("rb").read()

    first = machines[0](*INGEST, "--continuous")
    wait_until(is_locked, 120, "the first ingest has not begun")
    assert AT_WORK in ended(machines[1](*INGEST), 75)
    os.killpg(first.pid, 9)
    first.wait()
    wait_until(lambda: not is_locked(), 60, "its session has not ended")
    ended(machines[1](*INGEST))


def test_of_two_builds_one_says_why_not(machines: list[Machine]) -> None:
    build = ("run", "-s", "stg_customers", "customers", "--profiles-dir", "profiles")
    said = said_by([machine("dbt.cli.main", *build) for machine in machines])
    assert said.keys() == {0, 2}
    assert "another dbt build is at work on s3a://" in said[2]
    customers = [row["customer_id"] for row in rows("writers", "silver.customers")]
    assert len(customers) == len(set(customers)) == 93


def test_lock_file_that_names_no_provider(s3_jars: None, aws: Aws, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text("# nothing\n")
    environment = aws.lake("writers", tmp_path) | {"LAKE_LOCK": str(lock)}
    said = run(sys.executable, "-m", *INGEST, code=1, env=environment)
    assert f"{lock} (LAKE_LOCK) does not set hoodie.write.lock.provider" in said
