"""A MariaDB server, a broker and Connect with Debezium's connector for MariaDB."""

from __future__ import annotations

import json
import secrets
import shutil
from pathlib import Path

from lab.stack import jars
from lab.stack.broker import Broker
from lab.stack.connect import Connect
from lab.stack.mariadb import MariaDBServer, replication_rights
from lab.stack.processes import wait_until
from lab.stack.stack import SECRETS_FOLDER, write_secret
from tests.support.ports import free_port

CONNECTOR = "source-mariadb"
# No test loses the machine's power; the binary log is written before a commit ends.
FAST = {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"}


class MariaDBStack:
    """What brings the changes of one database to Kafka.

    Args:
        folder: keeps everything; MariaDB's own user must be able to enter it.
        database: the database that Debezium reads.
    """

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        self.database = database
        self.server = MariaDBServer(
            folder / "mariadb", free_port(), secrets.token_urlsafe(12), FAST
        )
        self.broker = Broker(folder, free_port(), free_port())
        self.secrets = folder / "secrets"
        self.connect = Connect(
            folder, free_port(), self.broker.port, self.secrets / "mariadb.properties"
        )

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.broker.port}"

    def start(self) -> None:
        """Start everything; the database is there, without a table, and may be read."""
        self.secrets.mkdir(mode=0o700, parents=True)
        password = secrets.token_urlsafe(12)
        values = {
            "host": "127.0.0.1",
            "port": str(self.server.port),
            "user": "debezium",
            "password": password,
            "bootstrap": self.bootstrap_servers,
        }
        text = "".join(f"{name}={value}\n" for name, value in values.items())
        write_secret(self.secrets / "mariadb.properties", text)
        self.broker.start()
        self.connect.start()
        self.server.start()
        self.server.execute(
            f"create database `{self.database}`",
            *replication_rights(self.database, password),
        )
        self.broker.wait_until_ready()
        self.connect.wait_until_ready()

    def stop(self) -> None:
        """End everything and remove the folder."""
        self.connect.process.stop()
        self.broker.process.stop()
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def configuration(self, **changes: str) -> dict[str, str]:
        """The connector's file, with this stack's secrets and database."""
        text = (jars.PROJECT / f"connectors/{CONNECTOR}.json").read_text()
        config: dict[str, str] = json.loads(text.replace(SECRETS_FOLDER, str(self.secrets)))
        return config | {"database.include.list": self.database} | changes

    def register(self, name: str = CONNECTOR, **changes: str) -> None:
        """Have Debezium read the database, and wait until it streams."""
        begin = self.connect.process.log.stat().st_size
        config = self.configuration(**changes)
        self.connect.ask("PUT", f"/connectors/{name}/config", config)
        self.wait_until_streaming(begin)

    def wait_until_streaming(self, begin: int, timeout: float = 90) -> None:
        """Wait until Connect's log says so, from a place in it on."""

        def is_streaming() -> bool:
            self.connect.process.require_alive()
            with self.connect.process.log.open("rb") as log:
                log.seek(begin)
                if b"Keepalive thread is running" in log.read():
                    return True
            for name, state in self.connect.states().items():
                assert not state.trace, f"{name}: {state.trace[:2000]}"
            return False

        log = self.connect.process.log
        wait_until(is_streaming, timeout, f"the connector does not stream (see {log})", 0.2)

    def kill(self, part: str) -> None:
        """End a part as a crash does, and start it again at once."""
        begin = self.connect.process.log.stat().st_size
        if part == "connect":
            self.connect.process.kill()
            self.connect.start()
        elif part == "broker":
            self.broker.process.kill()
            self.broker.start()
            self.broker.wait_until_ready()
        elif part == "mariadb":
            self.server.kill()
            self.server.start()
            self.revive_connector()
        else:
            raise ValueError(part)
        if part == "connect":
            self.connect.wait_until_ready()
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
