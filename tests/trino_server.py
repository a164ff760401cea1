"""A Trino with its Hudi connector, which is what Athena's engine is made of."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

from trino.dbapi import Connection, connect
from trino.exceptions import Error, HttpError

from connectors.stack.processes import wait_until
from ingest.errors import UserError
from tests.conftest import PROJECT

VERSION = "476"
OLDEST_JAVA = 24
HOME = PROJECT / ".venv" / f"trino-server-{VERSION}"
PLUGINS = ("hudi", "hive")

# The flags that Trino's documentation asks for, and a small, quick start.
JVM_OPTIONS = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-modules=jdk.incubator.vector",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Djdk.attach.allowAttachSelf=true",
)


def find_java() -> str:
    """A Java that Trino takes: ``TRINO_JAVA_HOME``'s, ``JAVA_HOME``'s or the system's.

    Raises:
        UserError: none is new enough.
    """
    homes = [os.environ.get("TRINO_JAVA_HOME"), os.environ.get("JAVA_HOME")]
    homes += [str(home) for home in sorted(Path("/usr/lib/jvm").glob("*"))]
    for home in filter(None, homes):
        release = Path(home) / "release"
        if release.exists():
            version = re.search(r'JAVA_VERSION="(\d+)', release.read_text())
            if version is not None and int(version[1]) >= OLDEST_JAVA:
                return f"{home}/bin/java"
    raise UserError(
        f"Trino {VERSION} needs a Java {OLDEST_JAVA} or newer; name one by TRINO_JAVA_HOME"
    )


def fetch() -> None:
    """Have Maven bring the server, once.

    Raises:
        UserError: Maven is missing, or it failed.
    """
    if HOME.exists():
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise UserError("Maven fetches Trino, and there is no `mvn` on this machine")
    folder = HOME.with_suffix(".part")
    command = [
        maven,
        "-B",
        "-q",
        "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
    ]
    command += [f"-Dartifact=io.trino:trino-server:{VERSION}:tar.gz"]
    answer = subprocess.run(
        [*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True
    )
    if answer.returncode != 0:
        raise UserError(f"Maven cannot fetch Trino: {answer.stdout.strip()[:2000]}")
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    archive.unlink()
    (folder / HOME.name).rename(HOME)
    folder.rmdir()


class Trino:
    """One server on 127.0.0.1, whose catalogue ``lake`` is Glue's.

    Args:
        folder: keeps its configuration and its log.
        endpoint: what answers for Glue and S3.
    """

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        plugins = folder / "plugin"
        plugins.mkdir(parents=True)
        for plugin in PLUGINS:
            (plugins / plugin).symlink_to(HOME / "plugin" / plugin)
        catalogs = folder / "catalog"
        catalogs.mkdir()
        self._write(
            folder / "config.properties",
            {
                "coordinator": "true",
                "node-scheduler.include-coordinator": "true",
                "http-server.http.port": str(self.port),
                "discovery.uri": f"http://127.0.0.1:{self.port}",
                "plugin.dir": str(plugins),
                "catalog.config-dir": str(catalogs),
                "node.environment": "test",
            },
        )
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
        self.log = folder / "trino.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(find_java(), *JVM_OPTIONS),
                    f"-Dconfig={folder}/config.properties",
                    *("-cp", f"{HOME}/lib/*", "io.trino.server.TrinoServer"),
                ],
                stdout=log,
                stderr=log,
                cwd=folder,
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
        return connect(  # type: ignore[no-any-return, no-untyped-call]
            host="127.0.0.1", port=self.port, user="test", catalog="lake"
        )

    def rows(self, sql: str) -> list[list[Any]]:
        """The rows of a query."""
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            found: list[list[Any]] = cursor.fetchall()
            return found

    def stop(self) -> None:
        """End the server."""
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
