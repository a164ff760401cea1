"""A Kafka broker of one node, its own controller, on 127.0.0.1."""

from __future__ import annotations

import base64
import re
import shutil
import uuid
from pathlib import Path

from cdc_lakehouse.errors import TransientError, UserError
from lab.stack.processes import HOST, Part, java_command, run_java

# Values over 1 MB need it: the connectors ask for as much.
MAX_MESSAGE_BYTES = 8 * 1024 * 1024

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=BROKER://127.0.0.1:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs={data}
message.max.bytes={max_message_bytes}
num.partitions=1
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
# A killed broker can register again when its last session is over.
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
"""


class Broker(Part):
    """The broker of one folder."""

    def __init__(self, folder: Path, port: int, controller_port: int) -> None:
        super().__init__(folder, "broker", port, self._java)
        self.controller_port = controller_port
        self.data = self.folder / "kafka"

    def is_ready(self) -> bool:
        """Whether it says so: it listens before."""
        return "Kafka Server started" in self.said()

    def end_offsets(self, topics: str) -> dict[str, int]:
        """The next offset of every partition, by topic/partition.

        Args:
            topics: a regular expression of the topics' names.

        Raises:
            TransientError: the broker does not answer.
        """
        answer = run_java(
            "org.apache.kafka.tools.GetOffsetShell",
            *("--bootstrap-server", f"{HOST}:{self.port}", "--topic", topics),
        )
        if answer.returncode != 0:
            raise TransientError(
                f"could not read the broker's offsets: {answer.stderr.strip()}"
            )
        lines = re.findall(r"^(\S+):(\d+):(\d+)$", answer.stdout, re.MULTILINE)
        return {f"{topic}/{partition}": int(end) for topic, partition, end in lines}

    def _java(self, mark: str) -> list[str]:
        """Its command, on a formatted folder."""
        properties = self.folder / "broker.properties"
        properties.write_text(
            PROPERTIES.format(
                port=self.port,
                controller_port=self.controller_port,
                data=self.data,
                max_message_bytes=MAX_MESSAGE_BYTES,
            )
        )
        if not self.data.exists():
            self._format(properties)
        return java_command("512m", mark, "kafka.Kafka", str(properties))

    def _format(self, properties: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # One word, as an id may begin with a dash.
        words = ("format", f"--cluster-id={cluster}", "--config", str(properties))
        answer = run_java("kafka.tools.StorageTool", *words)
        if answer.returncode != 0:
            shutil.rmtree(self.data, ignore_errors=True)
            raise UserError(f"the broker's folder cannot be formatted: {answer.stderr}")
