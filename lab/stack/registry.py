"""Apicurio's schema registry, which keeps its schemas in memory, on 127.0.0.1."""

from __future__ import annotations

from pathlib import Path

from lab.stack import jars
from lab.stack.processes import HOST, Part, answers, java_command

MAIN = "io.quarkus.runner.GeneratedMain"


class SchemaRegistry(Part):
    """The registry of one folder; what it holds ends with its process.

    Its database in memory locks a table for each new schema, and gives up after a moment:
    the task of a connector that registers beside another one may fail, and is to be
    restarted.
    """

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(folder, "registry", port, self._java)
        root = f"http://{HOST}:{port}/apis"
        self.url = f"{root}/registry/v2"  # Apicurio's own interface
        self.confluent_url = f"{root}/ccompat/v7"

    def is_ready(self) -> bool:
        """Whether it answers."""
        return answers(f"{self.url}/system/info")

    def _java(self, mark: str) -> list[str]:
        [runner] = jars.REGISTRY.glob("*-runner.jar")
        options = (
            f"-Dquarkus.http.port={self.port}",
            f"-Dquarkus.http.host={HOST}",
            # Its default port would be any other program's, too.
            "-Dquarkus.http.test-port=0",
        )
        return java_command("384m", mark, *options, MAIN, class_path=str(runner))
