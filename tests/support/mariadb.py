"""A MariaDB server, a broker and Connect with Debezium's connector for MariaDB."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from lab.northwind.checks import REPLICATION_ROLE
from lab.stack import jars
from lab.stack.broker import Broker
from lab.stack.connect import Connect, configuration
from lab.stack.mariadb import SUPERUSER, MariaDBServer, find_binary, replication_rights
from lab.stack.processes import HOST, Part, wait_until
from lab.stack.stack import Stack, write_properties

CONNECTOR = "source-mariadb"
# No test loses the machine's power; the binary log is written before a commit ends.
FAST = {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"}


class MariaDBStack(Stack):
    """What brings the changes of one database to Kafka.

    Args:
        root: the folder that the stack is made in; MariaDB's own user must enter it.
        database: the database that Debezium reads.
    """

    NAME = "mariadb-stack"
    PORTS: ClassVar = {
        "mariadb": "mariadb",
        "kafka": "broker",
        "controller": "broker",
        "connect": "connect",
    }
    PASSWORDS = (SUPERUSER, REPLICATION_ROLE)

    def __init__(self, root: Path, database: str) -> None:
        self.database = database
        super().__init__(root)

    def _make_parts(self) -> list[Part]:
        ports = self.ports
        self.placeholders = self.secrets / "mariadb.properties"
        self.server = MariaDBServer(
            self.folder / "mariadb", ports["mariadb"], self.password(SUPERUSER), FAST
        )
        self.broker = Broker(self.folder, ports["kafka"], ports["controller"])
        self.connect = Connect(
            self.folder, ports["connect"], ports["kafka"], self.placeholders
        )
        return [self.server, self.broker, self.connect]

    def require_programs(self) -> None:
        find_binary("mariadbd")
        jars.find_java()
        jars.fetch(*jars.STACK, "mariadb")

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.broker.port}"

    def _start_parts(self) -> None:
        """Start everything; the database is there, without a table, and may be read."""
        write_properties(
            self.placeholders,
            host=HOST,
            port=self.server.port,
            user=REPLICATION_ROLE,
            password=self.password(REPLICATION_ROLE),
            bootstrap=self.bootstrap_servers,
        )
        for part in self.parts.values():
            part.start()
        self.wait_until_ready()
        self.server.execute(
            f"create database `{self.database}`",
            *replication_rights(self.database, self.password(REPLICATION_ROLE)),
        )

    def configuration(self, **changes: str) -> dict[str, str]:
        """The connector's file, with this stack's secrets and database."""
        config = configuration(CONNECTOR, self.secrets)
        return config | {"database.include.list": self.database} | changes

    def register(self, name: str = CONNECTOR, **changes: str) -> None:
        """Have Debezium read the database, and wait until it streams."""
        begin = self.connect.log.stat().st_size
        config = self.configuration(**changes)
        self.connect.ask("PUT", f"/connectors/{name}/config", config)
        self.wait_until_streaming(begin)

    def wait_until_streaming(self, begin: int, timeout: float = 90) -> None:
        """Wait until Connect's log says so, from a place in it on."""

        def is_streaming() -> bool:
            self.connect.require_alive()
            with self.connect.log.open("rb") as log:
                log.seek(begin)
                if b"Keepalive thread is running" in log.read():
                    return True
            for name, state in self.connect.states().items():
                assert not state.trace, f"{name}: {state.trace[:2000]}"
            return False

        log = self.connect.log
        wait_until(is_streaming, timeout, f"the connector does not stream (see {log})", 0.2)

    def crash(self, name: str) -> None:
        """End a part as a crash does, and start it again at once."""
        begin = self.connect.log.stat().st_size
        self.kill(name)
        self.parts[name].start()
        self.parts[name].wait_until_ready()
        if name == "mariadb":
            self.revive_connector()
        if name == "connect":
            self.wait_until_streaming(begin)

    def revive_connector(self) -> None:
        """Restart what failed: the connector ends when its server does."""
        for name in self.connect.states():
            self.connect.ask(
                "POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
            )

    def wait_until_caught_up(self, timeout: float = 120) -> None:
        """Wait until Connect's offsets are past everything that is committed now."""
        [[file, pos, *_]] = self.server.execute("show master status")
        # The connector's place moves with a later event only.
        self.server.execute("flush binary logs")

        def is_caught_up() -> bool:
            self.revive_connector()
            found = [self.offset(name) for name in self.connect.states()]
            return all(place >= (file, pos) for place in found)

        wait_until(is_caught_up, timeout, "the connectors have not caught up", 0.5)

    def offset(self, name: str) -> tuple[str, int]:
        """The place in the binary log from which a connector would go on."""
        answer = self.connect.ask("GET", f"/connectors/{name}/offsets")
        for entry in answer["offsets"]:
            return entry["offset"]["file"], entry["offset"]["pos"]
        return "", 0
