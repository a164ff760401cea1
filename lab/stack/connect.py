"""Kafka Connect with Debezium: one distributed worker and its REST interface."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from cdc_lakehouse.errors import TransientError, UserError
from lab.stack import jars
from lab.stack.processes import HOST, Part, answers, java_command, wait_until

SECONDS_TO_ANSWER = 30
# The folder that the connectors' files name; each stack has its own.
SECRETS_FOLDER = "/etc/cdc-lakehouse"

PROPERTIES = """\
bootstrap.servers=127.0.0.1:{kafka_port}
group.id=cdc-lakehouse
listeners=http://127.0.0.1:{port}
rest.advertised.host.name=127.0.0.1
plugin.path={plugins}
plugin.discovery=service_load
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=connect-configs
config.storage.replication.factor=1
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
offset.storage.partitions=1
status.storage.topic=connect-status
status.storage.replication.factor=1
status.storage.partitions=1
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.file.param.allowed.paths={placeholders}
# A killed worker comes back as a stranger: do not keep its tasks waiting for it.
session.timeout.ms=6000
heartbeat.interval.ms=2000
scheduled.rebalance.max.delay.ms=0
# How long PostgreSQL keeps what the topics hold already.
offset.flush.interval.ms=1000
"""


@dataclass(frozen=True)
class ConnectorState:
    """What Connect says of a connector; ``trace`` is the first failure's."""

    connector: str
    tasks: list[str]
    trace: str

    @property
    def is_running(self) -> bool:
        """Whether it and its tasks run."""
        return set(self.tasks) == {"RUNNING"} and self.connector == "RUNNING"


def configuration(name: str, secrets: Path) -> dict[str, str]:
    """A connector's file, with one's own folder of secrets.

    Raises:
        UserError: there is none of that name.
    """
    file = jars.PROJECT / "connectors" / f"{name}.json"
    if not file.exists():
        raise UserError(f"there is no connector {name}: {file}")
    text = file.read_text(encoding="utf-8").replace(SECRETS_FOLDER, str(secrets))
    config: dict[str, str] = json.loads(text)
    return config


class Connect(Part):
    """The worker of one folder; the broker may come up after it."""

    def __init__(
        self, folder: Path, port: int, kafka_port: int, placeholders: Path
    ) -> None:
        super().__init__(folder, "connect", port, self._java)
        self.kafka_port = kafka_port
        self.placeholders = placeholders.absolute()
        self.url = f"http://{HOST}:{port}"

    def is_ready(self) -> bool:
        """Whether it lists its connectors, which takes its whole start."""
        return answers(f"{self.url}/connectors")

    def _java(self, mark: str) -> list[str]:
        properties = self.folder / "connect.properties"
        properties.write_text(
            PROPERTIES.format(
                port=self.port,
                kafka_port=self.kafka_port,
                plugins=jars.PLUGINS,
                placeholders=self.placeholders,
            )
        )
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        return java_command("768m", mark, main, str(properties))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Call the REST interface.

        Raises:
            UserError: it does not answer, or refuses; the message has its reason.
        """
        deadline = time.monotonic() + SECONDS_TO_ANSWER
        while True:
            try:
                answer = requests.request(
                    method, f"{self.url}{path}", json=body, timeout=SECONDS_TO_ANSWER
                )
            except requests.RequestException as error:
                raise TransientError(
                    f"Connect at {self.url} does not answer: {error}"
                ) from error
            # Connectors are being handed out, to the one worker there is.
            if answer.status_code != requests.codes.conflict or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        if not answer.ok:
            try:
                reason = answer.json()["message"]
            except (ValueError, KeyError):
                reason = answer.text
            raise UserError(f"Connect refuses {method} {path}: {reason}")
        return answer.json() if answer.content else None

    def states(self) -> dict[str, ConnectorState]:
        """How every connector does."""
        found = {}
        for name, entry in self.ask("GET", "/connectors?expand=status").items():
            connector, tasks = entry["status"]["connector"], entry["status"]["tasks"]
            traces = [part["trace"] for part in (connector, *tasks) if part.get("trace")]
            found[name] = ConnectorState(
                connector=connector["state"],
                tasks=[task["state"] for task in tasks],
                trace=next(iter(traces), ""),
            )
        return found

    def pause(self, name: str) -> None:
        """Have a connector read no further, and wait until it does not."""
        self._move(name, "pause", {"PAUSED"})

    def resume(self, name: str) -> None:
        """Have a paused connector go on, and wait until it does."""
        self._move(name, "resume", {"RUNNING"})

    def halt(self, name: str) -> None:
        """Stop a connector, which keeps its offsets, and wait until its tasks are gone."""
        self._move(name, "stop", set())

    def _move(self, name: str, verb: str, states: set[str]) -> None:
        self.ask("PUT", f"/connectors/{name}/{verb}")
        wait_until(
            lambda: set(self.states()[name].tasks) == states,
            2 * SECONDS_TO_ANSWER,
            f"{name} does not {verb}",
        )

    def remove(self, name: str) -> None:
        """Delete a connector with its offsets.

        Connect keeps the offsets otherwise, and a connector of the same name that comes
        later, with a slot of its own, would go on at a place that the slot does not have.
        """
        self.halt(name)
        self.ask("DELETE", f"/connectors/{name}/offsets")
        self.ask("DELETE", f"/connectors/{name}")
