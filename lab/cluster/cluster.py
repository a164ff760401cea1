"""The cluster of one folder: its processes, its settings, and jobs submitted to it."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import zipfile
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import boto3
import requests

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark import java
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.spark.settings import LOGGING, UTC, as_properties
from cdc_lakehouse.storage.folders import MARKER, claim, clear, require_own
from lab.cluster import jars
from lab.stack.jars import METASTORE, PROJECT
from lab.stack.ports import reserved_ports
from lab.stack.postgres import SUPERUSER, PostgresServer
from lab.stack.processes import JavaProcess, java_command, wait_until
from lab.stack.stack import write_secret

HOST = "127.0.0.1"
BUCKET = "lake"
METASTORE_DATABASE = "metastore"
WORKERS = ("worker-1", "worker-2")
EXECUTOR_MEMORY = "1g"
# The S3 server accepts any; the clients refuse to go without.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "cluster",
    "AWS_SECRET_ACCESS_KEY": "cluster",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}
# What Spark's own scripts tell a Java of 17.
OPEN_MODULES = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        "java.lang",
        "java.lang.invoke",
        "java.lang.reflect",
        "java.io",
        "java.net",
        "java.nio",
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "sun.nio.ch",
        "sun.nio.cs",
        "sun.security.action",
        "sun.util.calendar",
    )
]
# DataNucleus reads them, to create the metastore's tables and as the metastore's own.
CONNECTION = {
    "javax.jdo.option.ConnectionURL": "jdbc:postgresql://{host}:{port}/{database}",
    "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
    "javax.jdo.option.ConnectionUserName": "{user}",
    "javax.jdo.option.ConnectionPassword": "{password}",
    # As Hive has them.
    "datanucleus.identifierFactory": "datanucleus1",
    "datanucleus.rdbms.useLegacyNativeValueStrategy": "true",
}
# moto's server, without a line for each request.
S3_SERVER = """
import logging, sys
from moto.server import main
logging.getLogger("werkzeug").setLevel(logging.ERROR)
main(sys.argv[2:])
"""


@dataclass(frozen=True)
class Ports:
    """Where the parts listen, on 127.0.0.1."""

    postgres: int
    metastore: int
    s3: int
    master: int
    master_page: int
    thrift: int


class Cluster:
    """A Spark master with two workers, a Hive metastore on PostgreSQL, and S3.

    Its processes and its folder outlive the object.

    Args:
        root: the folder; everything is kept in ``cluster`` below it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.folder = self.root / "cluster"
        self.state_file = self.folder / "state.json"
        self.password_file = self.folder / "password"
        ports = Ports(0, 0, 0, 0, 0, 0)
        with suppress(OSError, ValueError, TypeError):
            ports = Ports(**json.loads(self.state_file.read_text()))
        self._set_up(ports)

    def _set_up(self, ports: Ports) -> None:
        self.ports = ports
        password = self.password_file.read_text() if self.password_file.exists() else ""
        self.postgres = PostgresServer(self.folder / "postgres", ports.postgres, password)
        names = ("s3", "metastore", "master", *WORKERS, "thrift")
        self.parts = {name: JavaProcess(self.folder, name) for name in names}

    @property
    def endpoint(self) -> str:
        """The S3 server."""
        return f"http://{HOST}:{self.ports.s3}"

    @property
    def master(self) -> str:
        """The master, as ``spark-submit --master`` takes it."""
        return f"spark://{HOST}:{self.ports.master}"

    @property
    def events(self) -> Path:
        """Where applications write their event logs."""
        return self.folder / "events"

    def pids(self) -> dict[str, int | None]:
        """The process of every part, None where it does not run."""
        pids = {name: part.pid() for name, part in self.parts.items()}
        return {"postgres": self.postgres.pid(), **pids}

    def running(self) -> list[str]:
        """The parts that run."""
        return [name for name, pid in self.pids().items() if pid is not None]

    def start(self) -> None:
        """Start every part, and wait until two workers are registered.

        Raises:
            UserError: it runs already, a jar is missing, or a part does not start.
        """
        require_own(self.folder)
        jars.fetch()
        self.root.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(str(self.root), "cluster"), reserved_ports() as reserve:
            if self.running():
                raise UserError("the cluster is running, or was not stopped: stop it first")
            self._clear()
            claim(self.folder, "a cluster, made by python -m lab.cluster\n")
            write_secret(self.password_file, secrets.token_urlsafe(24))
            self._set_up(Ports(*(reserve() for _ in fields(Ports))))
            self.state_file.write_text(json.dumps(asdict(self.ports)))
            try:
                self._start_parts()
            except BaseException:
                self._stop(set(self.running()))
                raise

    def stop(self) -> list[str]:
        """Stop everything and remove its folder but for the logs.

        The S3 server keeps its objects in memory, and a catalogue without its tables is
        of no use.

        Returns:
            The parts that ran.

        Raises:
            UserError: the folder is not the cluster's own.
        """
        if not self.folder.exists():
            return []
        with exclusive_lock(str(self.root), "cluster"):
            require_own(self.folder)
            ran = self.running()
            self._stop(set(ran))
            return ran

    def kill(self, name: str) -> None:
        """End a part as a crash does."""
        self.parts[name].kill()

    def start_worker(self, name: str) -> None:
        """Start a worker of one core; it registers by itself."""
        self.parts[name].start(
            "256m",
            *OPEN_MODULES,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", HOST, "--cores", "1", "--memory", EXECUTOR_MEMORY),
            *("--webui-port", "0", "--work-dir", str(self.folder / "work" / name)),
            self.master,
            class_path=f"{jars.SPARK}/*",
            # What Spark's own scripts set, to start executors; and these fetch a job's jars
            # from the bucket, with the node's credentials.
            environment={
                **CREDENTIALS,
                "SPARK_HOME": str(jars.SPARK_HOME),
                "SPARK_SCALA_VERSION": "2.12",
                "SPARK_LOCAL_IP": HOST,
            },
        )

    def state(self) -> dict[str, Any]:
        """What the master says of its workers and applications."""
        page = f"http://{HOST}:{self.ports.master_page}/json/"
        answer: dict[str, Any] = requests.get(page, timeout=10).json()
        return answer

    def alive_workers(self) -> int:
        """How many workers the master counts on."""
        with suppress(requests.RequestException):
            return len([w for w in self.state()["workers"] if w["state"] == "ALIVE"])
        return 0

    def s3_client(self) -> Any:
        """boto3's client of the S3 server."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=CREDENTIALS["AWS_REGION"],
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )

    def environment(self, lake: str) -> dict[str, str]:
        """The variables of a job.

        Args:
            lake: the lake's folder in the bucket.
        """
        return {
            **CREDENTIALS,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "JAVA_HOME": str(java.find()),
            "LAKE_ROOT": f"s3a://{BUCKET}/{lake}",
            "LAKE_TARGET": "cluster",
            "LAKE_THRIFT_PORT": str(self.ports.thrift),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": HOST,
        }

    def properties(self) -> dict[str, str]:
        """The settings of this cluster, for all its applications."""
        on_every_node = ":".join(map(str, jars.s3()))
        options = (
            f"{UTC} -Dlog4j2.configurationFile={LOGGING} -XX:+UseSerialGC"
            " -XX:TieredStopAtLevel=1 -Xss4m -XX:ReservedCodeCacheSize=240m"
        )
        return {
            "spark.master": self.master,
            "spark.driver.host": HOST,
            "spark.driver.memory": "1g",
            "spark.driver.extraClassPath": on_every_node,
            "spark.driver.extraJavaOptions": options,
            "spark.executor.memory": EXECUTOR_MEMORY,
            "spark.executor.extraClassPath": on_every_node,
            "spark.executor.extraJavaOptions": options,
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.hive.metastore.uris": f"thrift://{HOST}:{self.ports.metastore}",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }

    def submit_command(self, *words: str, package: str | None = None) -> list[str]:
        """``spark-submit`` of `ingest …` or `dbt …` with the cluster's settings.

        Args:
            words: the command.
            package: the URL of a folder that ``make package`` wrote, to run from; the
                project's folder where there is none.
        """
        program = [str(jars.SPARK_HOME / "bin" / "spark-submit")]
        program += ["--properties-file", str(self.folder / "spark.conf")]
        program += ["--name", " ".join(words[:2])]
        if package is None:
            program += ["--jars", ",".join(map(str, jars.job()))]
            return [*program, str(PROJECT / "deploy/spark_job.py"), *words]
        places = [f"{package}/jars/{jar.name}" for jar in jars.job()]
        program += ["--jars", ",".join(places)]
        program += ["--py-files", f"{package}/cdc-lakehouse.zip"]
        return [*program, f"{package}/spark_job.py", *words]

    def start_thrift(self, lake: str) -> None:
        """Start a Spark Thrift Server on a lake, and wait until it answers.

        Raises:
            UserError: it ended, or takes too long.
        """
        variables = self.environment(lake)
        lake_settings = subprocess.run(
            [sys.executable, "-m", "cdc_lakehouse.spark.settings"],
            cwd=PROJECT,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        jars_of_job = {"spark.jars": ",".join(map(str, jars.job()))}
        properties = self.folder / "thrift.conf"
        properties.write_text(
            lake_settings + as_properties(self.properties() | jars_of_job)
        )
        # Also on its class path: the server closes the class loader of `spark.jars` with
        # the first session that ends.
        class_path = [f"{jars.SPARK}/*", *map(str, [*jars.s3(), *jars.job()])]
        thrift = self.parts["thrift"]
        thrift.start(
            "1g",
            *OPEN_MODULES,
            "org.apache.spark.deploy.SparkSubmit",
            *("--properties-file", str(properties)),
            *("--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"),
            *("--name", "thrift", "spark-internal"),
            *("--hiveconf", f"hive.server2.thrift.port={self.ports.thrift}"),
            *("--hiveconf", f"hive.server2.thrift.bind.host={HOST}"),
            class_path=":".join(class_path),
            environment={**variables, "SPARK_HOME": str(jars.SPARK_HOME)},
        )
        self._wait_for_port(thrift, self.ports.thrift)

    def stop_thrift(self) -> None:
        """Stop the Thrift Server."""
        self.parts["thrift"].stop()

    def _start_parts(self) -> None:
        (self.folder / "spark.conf").write_text(as_properties(self.properties()))
        self.events.mkdir()
        self._start_s3()
        self.parts["master"].start(
            "256m",
            *OPEN_MODULES,
            "org.apache.spark.deploy.master.Master",
            *("--host", HOST, "--port", str(self.ports.master)),
            *("--webui-port", str(self.ports.master_page)),
            class_path=f"{jars.SPARK}/*",
            environment={"SPARK_LOCAL_IP": HOST},
        )
        for name in WORKERS:
            self.start_worker(name)
        self.postgres.start()
        with closing(self.postgres.connect()) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(f"create database {METASTORE_DATABASE}")
        self._create_bucket()
        self._start_metastore()
        self._wait_for_port(self.parts["metastore"], self.ports.metastore)
        wait_until(
            lambda: self.alive_workers() == len(WORKERS),
            60,
            f"the workers have not registered (see {self.folder}/logs)",
        )

    def _start_s3(self) -> None:
        part = self.parts["s3"]
        python = [sys.executable, "-c", S3_SERVER, part.mark]
        part.launch([*python, "-H", HOST, "-p", str(self.ports.s3)])

    def _start_metastore(self) -> None:
        """Create the metastore's tables, and start it.

        Created by the metastore itself, at first use, they block each other: it creates
        some in a transaction of their own, while another one holds those that they
        refer to.
        """
        conf = self.folder / "metastore"
        conf.mkdir()
        words = {
            "host": HOST,
            "port": str(self.ports.postgres),
            "database": METASTORE_DATABASE,
            "user": SUPERUSER,
            "password": self.postgres.password,
        }
        connection = {name: text.format(**words) for name, text in CONNECTION.items()}
        with zipfile.ZipFile(next(jars.SPARK.glob("hive-metastore-*.jar"))) as archive:
            archive.extract("package.jdo", conf)
        factory = "org.datanucleus.api.jdo.JDOPersistenceManagerFactory"
        properties = connection | {
            "javax.jdo.PersistenceManagerFactoryClass": factory,
            "datanucleus.plugin.pluginRegistryBundleCheck": "LOG",
        }
        write_secret(
            conf / "create.properties",
            "".join(f"{name}={value}\n" for name, value in properties.items()),
        )
        class_path = ":".join([str(conf), f"{METASTORE}/*", f"{jars.SPARK}/*"])
        made = subprocess.run(
            java_command(
                "128m",
                "org.datanucleus.store.schema.SchemaTool",
                *("-create", "-api", "JDO", "-props", str(conf / "create.properties")),
                str(conf / "package.jdo"),
                class_path=class_path,
            ),
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            said = (made.stdout + made.stderr).strip()[-2000:]
            raise UserError(f"the metastore's tables cannot be created: {said}")
        settings = connection | {
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": f"s3a://{BUCKET}/default",
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.path.style.access": "true",
        }
        lines = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>\n"
            for name, value in settings.items()
        )
        write_secret(conf / "hive-site.xml", f"<configuration>\n{lines}</configuration>\n")
        self.parts["metastore"].start(
            "384m",
            *OPEN_MODULES,
            "org.apache.hadoop.hive.metastore.HiveMetaStore",
            *("-p", str(self.ports.metastore)),
            class_path=":".join([class_path, *map(str, jars.s3())]),
            environment=CREDENTIALS,
        )

    def _create_bucket(self) -> None:
        """Wait for the S3 server, and create the bucket."""
        self._wait_for_port(self.parts["s3"], self.ports.s3)
        self.s3_client().create_bucket(Bucket=BUCKET)

    def _wait_for_port(self, part: JavaProcess, port: int) -> None:
        def is_listening() -> bool:
            part.require_alive()
            with socket.socket() as client:
                return client.connect_ex((HOST, port)) == 0

        wait_until(is_listening, 120, f"the {part.name} is not ready (see {part.log})", 0.2)

    def _stop(self, names: set[str]) -> None:
        for name in ("thrift", *WORKERS, "master", "metastore", "s3"):
            if name in names:
                self.parts[name].stop()
        if "postgres" in names:
            self.postgres.stop()
        self._clear()

    def _clear(self) -> None:
        """Remove everything but the logs; the marker and they stay."""
        if self.folder.exists():
            clear(self.folder, "logs", MARKER)
