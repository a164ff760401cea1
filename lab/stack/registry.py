"""Apicurio's schema registry, which keeps its schemas in memory, on 127.0.0.1."""

from __future__ import annotations

from pathlib import Path

from lab.stack import jars
from lab.stack.processes import JavaProcess

MAIN = "io.quarkus.runner.GeneratedMain"


class SchemaRegistry:
    """The registry of one folder; what it holds ends with its process.

    Its database in memory locks a table for each new schema, and gives up after a moment:
    the task of a connector that registers beside another one may fail, and is to be
    restarted.

    Args:
        folder: keeps its log.
        port: where it listens.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.process = JavaProcess(folder, "registry")
        self.port = port
        self.root = f"http://127.0.0.1:{port}"

    @property
    def url(self) -> str:
        """Apicurio's own interface."""
        return f"{self.root}/apis/registry/v2"

    @property
    def confluent_url(self) -> str:
        """Confluent's interface."""
        return f"{self.root}/apis/ccompat/v7"

    def start(self) -> None:
        """Start it without waiting; its jars are in ``jars.REGISTRY``."""
        [runner] = jars.REGISTRY.glob("*-runner.jar")
        options = (
            f"-Dquarkus.http.port={self.port}",
            "-Dquarkus.http.host=127.0.0.1",
            # Its default port would be any other program's, too.
            "-Dquarkus.http.test-port=0",
        )
        self.process.start("384m", *options, MAIN, class_path=str(runner))

    def wait_until_ready(self, timeout: float = 90) -> None:
        """Wait until it answers.

        Raises:
            UserError: it ended, or takes too long.
        """
        self.process.wait_until_answers(f"{self.url}/system/info", timeout)
