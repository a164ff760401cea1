"""The cluster of one folder: its processes, its settings, and jobs submitted to it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import boto3
import requests

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark import java
from cdc_lakehouse.spark.settings import LOGGING, UTC, as_properties
from lab.cluster import jars
from lab.stack.jars import METASTORE, PROJECT
from lab.stack.postgres import SUPERUSER, PostgresServer
from lab.stack.processes import HOST, Part, java_command, run_java, wait_until
from lab.stack.stack import Stack, write_properties, write_secret

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


class Cluster(Stack):
    """A Spark master with two workers, a Hive metastore on PostgreSQL, and S3.

    The S3 server keeps its objects in memory, and a catalogue without its tables is of no
    use: nothing outlives a stop.
    """

    NAME = "cluster"
    COMMAND = "python -m lab.cluster"
    PORTS: ClassVar = {
        "postgres": "postgres",
        "s3": "s3",
        "metastore": "metastore",
        "master": "master",
        "master_page": "master",
        "thrift": "thrift",
    }
    PASSWORDS = (SUPERUSER,)

    def _make_parts(self) -> list[Part]:
        ports = self.ports
        self.postgres = PostgresServer(
            self.folder / "postgres", ports["postgres"], self.password(SUPERUSER)
        )
        conf = self.folder / "metastore"
        self.metastore_class_path = f"{conf}:{METASTORE}/*:{jars.SPARK}/*"
        # Also on its class path: the server closes the class loader of `spark.jars` with
        # the first session that ends.
        self.thrift = self._spark(
            "thrift",
            "1g",
            "org.apache.spark.deploy.SparkSubmit",
            *("--properties-file", str(self.folder / "thrift.conf")),
            *("--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"),
            *("--name", "thrift", "spark-internal"),
            *("--hiveconf", f"hive.server2.thrift.port={ports['thrift']}"),
            *("--hiveconf", f"hive.server2.thrift.bind.host={HOST}"),
            class_path=lambda: [f"{jars.SPARK}/*", *jars.s3(), *jars.job()],
        )
        return [
            self.postgres,
            Part(
                self.folder,
                "s3",
                ports["s3"],
                lambda mark: [
                    *(sys.executable, "-c", S3_SERVER, mark),
                    *("-H", HOST, "-p", str(ports["s3"])),
                ],
            ),
            self._spark(
                "metastore",
                "384m",
                "org.apache.hadoop.hive.metastore.HiveMetaStore",
                *("-p", str(ports["metastore"])),
                class_path=lambda: [self.metastore_class_path, *jars.s3()],
                environment=CREDENTIALS,
            ),
            self._spark(
                "master",
                "256m",
                "org.apache.spark.deploy.master.Master",
                *("--host", HOST, "--port", str(ports["master"])),
                *("--webui-port", str(ports["master_page"])),
                environment={"SPARK_LOCAL_IP": HOST},
            ),
            *map(self._worker, WORKERS),
            self.thrift,
        ]

    def _spark(
        self,
        name: str,
        heap: str,
        *words: str,
        class_path: Callable[[], Sequence[Path | str]] = lambda: [f"{jars.SPARK}/*"],
        environment: Mapping[str, str] | None = None,
    ) -> Part:
        """A program of PySpark's jars."""

        def command(mark: str) -> list[str]:
            path = ":".join(map(str, class_path()))
            return java_command(heap, mark, *OPEN_MODULES, *words, class_path=path)

        return Part(self.folder, name, self.ports.get(name, 0), command, environment)

    def _worker(self, name: str) -> Part:
        """A worker of one core; it registers by itself."""
        return self._spark(
            name,
            "256m",
            "org.apache.spark.deploy.worker.Worker",
            *("--host", HOST, "--cores", "1", "--memory", EXECUTOR_MEMORY),
            *("--webui-port", "0", "--work-dir", str(self.folder / "work" / name)),
            self.master,
            # What Spark's own scripts set, to start executors; and these fetch a job's jars
            # from the bucket, with the node's credentials.
            environment={
                **CREDENTIALS,
                "SPARK_HOME": str(jars.SPARK_HOME),
                "SPARK_SCALA_VERSION": "2.12",
                "SPARK_LOCAL_IP": HOST,
            },
        )

    def require_programs(self) -> None:
        """Refuse a machine that lacks a jar."""
        jars.fetch()

    @property
    def endpoint(self) -> str:
        """The S3 server."""
        return f"http://{HOST}:{self.ports['s3']}"

    @property
    def master(self) -> str:
        """The master, as ``spark-submit --master`` takes it."""
        return f"spark://{HOST}:{self.ports['master']}"

    @property
    def events(self) -> Path:
        """Where applications write their event logs."""
        return self.folder / "events"

    def state(self) -> dict[str, Any]:
        """What the master says of its workers and applications."""
        page = f"http://{HOST}:{self.ports['master_page']}/json/"
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
            "LAKE_THRIFT_PORT": str(self.ports["thrift"]),
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
            "spark.hadoop.hive.metastore.uris": f"thrift://{HOST}:{self.ports['metastore']}",
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
        settings = lake_settings + as_properties(self.properties() | jars_of_job)
        (self.folder / "thrift.conf").write_text(settings)
        self.thrift.environment = {**variables, "SPARK_HOME": str(jars.SPARK_HOME)}
        self.thrift.start()
        self.thrift.wait_until_ready()

    def stop_thrift(self) -> None:
        """Stop the Thrift Server."""
        self.thrift.stop()

    def _start_parts(self) -> None:
        (self.folder / "spark.conf").write_text(as_properties(self.properties()))
        self.events.mkdir()
        for name in ("s3", "master", *WORKERS, "postgres"):
            self.parts[name].start()
        self.parts["s3"].wait_until_ready()
        self.s3_client().create_bucket(Bucket=BUCKET)
        self.postgres.wait_until_ready()
        self.postgres.execute(f"create database {METASTORE_DATABASE}")
        self._create_catalogue()
        self.parts["metastore"].start()
        self.parts["metastore"].wait_until_ready()
        wait_until(
            lambda: self.alive_workers() == len(WORKERS),
            60,
            f"the workers have not registered (see {self.folder}/logs)",
        )

    def _create_catalogue(self) -> None:
        """Write the metastore's settings and create its tables.

        Created by the metastore itself, at first use, they block each other: it creates
        some in a transaction of their own, while another one holds those that they
        refer to.
        """
        conf = self.folder / "metastore"
        conf.mkdir()
        words = {
            "host": HOST,
            "port": str(self.ports["postgres"]),
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
        write_properties(conf / "create.properties", **properties)
        made = run_java(
            "org.datanucleus.store.schema.SchemaTool",
            *("-create", "-api", "JDO", "-props", str(conf / "create.properties")),
            str(conf / "package.jdo"),
            class_path=self.metastore_class_path,
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
