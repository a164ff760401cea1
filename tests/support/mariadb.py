"""A MariaDB server whose changes Debezium brings to the Kafka of a stack."""

from pathlib import Path

from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.connect import configuration
from lab.stack.mariadb import SUPERUSER, MariaDBServer, replication_rights
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import HOST, wait_until
from tests.support.ports import free_port

CONNECTOR = "source-mariadb"
PASSWORD = "a password"
# No test loses the machine's power; the binary log is written before a commit ends.
FAST = {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"}


class MariaDBSource:
    """The server, and the connectors that read its databases.

    Args:
        stack: its Kafka and Connect are used.
        folder: the server's is made in it; MariaDB's own user must enter it.
    """

    def __init__(self, stack: NorthwindStack, folder: Path) -> None:
        self.stack = stack
        self.connect = stack.connect
        self.server = MariaDBServer(folder / "mariadb", free_port(), PASSWORD, FAST)
        self.followed: set[str] = set()

    def start(self) -> None:
        """Start the server; Debezium's user may read the databases that it follows."""
        self.server.start()
        self.server.wait_until_ready()
        self.server.execute(*replication_rights("nothing", PASSWORD))

    def environment(self) -> dict[str, str]:
        """How commands find it, as its superuser."""
        return {
            "MYSQL_HOST": HOST,
            "MYSQL_TCP_PORT": str(self.server.port),
            "MYSQL_USER": SUPERUSER,
            "MYSQL_PWD": PASSWORD,
        }

    def create(self, database: str, *statements: str) -> None:
        """Make a database that Debezium may read, and run statements in it."""
        self.server.execute(
            f"create database {database}",
            f"grant select on {database}.* to '{REPLICATION_ROLE}'@'%'",
            f"use {database}",
            *statements,
        )

    def configuration(self, database: str, **changes: str) -> dict[str, str]:
        """The connector's file, with this server's place and password, for a database."""
        return {
            **configuration(CONNECTOR, self.stack.secrets),
            "database.hostname": HOST,
            "database.include.list": database,
            "database.password": PASSWORD,
            "database.port": str(self.server.port),
            "database.server.id": str(5400 + len(self.connect.states())),
            "database.user": REPLICATION_ROLE,
            "schema.history.internal.kafka.bootstrap.servers": self.stack.bootstrap_servers,
            "schema.history.internal.kafka.topic": f"schema-history.{database}",
            "topic.prefix": database,
            **changes,
        }

    def follow(self, database: str, **changes: str) -> None:
        """Have Debezium read a database, and wait until it streams."""
        begin = self.connect.log.stat().st_size
        config = self.configuration(database, **changes)
        self.followed.add(database)
        self.connect.ask("PUT", f"/connectors/{database}/config", config)
        self._wait_until_streaming(begin)

    def _wait_until_streaming(self, begin: int) -> None:
        """Wait until Connect's log says so, from a place in it on."""

        def is_streaming() -> bool:
            self.connect.require_alive()
            for name, state in self.connect.states().items():
                assert not state.trace, f"{name}: {state.trace[:2000]}"
            return b"Keepalive thread is running" in log.read_bytes()[begin:]

        log = self.connect.log
        wait_until(is_streaming, 90, f"the connector does not stream (see {log})", 0.2)

    def crash(self, name: str) -> None:
        """End the server or a part of the stack as a crash does; start it again at once."""
        begin = self.connect.log.stat().st_size
        part = {**self.stack.parts, "mariadb": self.server}[name]
        part.kill()
        part.start()
        part.wait_until_ready()
        if name == "mariadb":
            self._revive_connectors()
        if name == "connect":
            self._wait_until_streaming(begin)

    def _revive_connectors(self) -> None:
        """Restart what failed: the connector ends when its server does."""
        for name in self.connect.states():
            self.connect.ask(
                "POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
            )

    def wait_until_caught_up(self) -> None:
        """Wait until Connect's offsets are past everything that is committed now."""
        [[file, pos, *_]] = self.server.execute("show master status")
        # The connector's place moves with a later event only.
        self.server.execute("flush binary logs")

        def is_caught_up() -> bool:
            self._revive_connectors()
            answers = [
                self.connect.ask("GET", f"/connectors/{name}/offsets")["offsets"]
                for name in self.connect.states().keys() & self.followed
            ]
            offsets = [found[0]["offset"] if found else {} for found in answers]
            places = [(each.get("file", ""), each.get("pos", 0)) for each in offsets]
            return all(place >= (file, pos) for place in places)

        wait_until(is_caught_up, 120, "the connectors have not caught up", 0.5)
