"""A MariaDB server, a broker and Connect with Debezium's connector for MariaDB."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

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
# A visit's note, from when it had it, and until when.
Version = tuple[str, datetime, datetime | None]


class MariaDBStack(Stack):
    """What brings the changes of databases to Kafka.

    Args:
        root: the folder that the stack is made in; MariaDB's own user must enter it.
    """

    NAME = "mariadb-stack"
    PORTS: ClassVar = {
        "mariadb": "mariadb",
        "kafka": "broker",
        "controller": "broker",
        "connect": "connect",
    }
    PASSWORDS = (SUPERUSER, REPLICATION_ROLE)

    def _make_parts(self) -> list[Part]:
        ports = self.ports
        placeholders = self.secrets / "mariadb.properties"
        self.server = MariaDBServer(
            self.folder / "mariadb", ports["mariadb"], self.password(SUPERUSER), FAST
        )
        self.broker = Broker(self.folder, ports["kafka"], ports["controller"])
        self.connect = Connect(self.folder, ports["connect"], ports["kafka"], placeholders)
        return [self.server, self.broker, self.connect]

    def require_programs(self) -> None:
        find_binary("mariadbd")
        jars.find_java()
        jars.fetch(*jars.STACK, "mariadb")

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.broker.port}"

    def _start_parts(self) -> None:
        """Start everything; Debezium's user may read the databases that it follows."""
        write_properties(
            self.secrets / "mariadb.properties",
            host=HOST,
            port=self.server.port,
            user=REPLICATION_ROLE,
            password=self.password(REPLICATION_ROLE),
            bootstrap=self.bootstrap_servers,
        )
        for part in self.parts.values():
            part.start()
        self.wait_until_ready()
        rights = replication_rights("nothing", self.password(REPLICATION_ROLE))
        self.server.execute(*rights)

    def create(self, database: str, *statements: str) -> None:
        """Make a database that Debezium may read, and run statements in it."""
        self.server.execute(
            f"create database {database}",
            f"grant select on {database}.* to '{REPLICATION_ROLE}'@'%'",
            f"use {database}",
            *statements,
        )

    def configuration(self, database: str, **changes: str) -> dict[str, str]:
        """The connector's file, with this stack's secrets, for a database."""
        return {
            **configuration(CONNECTOR, self.secrets),
            "database.include.list": database,
            "database.server.id": str(5400 + len(self.connect.states())),
            "schema.history.internal.kafka.topic": f"schema-history.{database}",
            "topic.prefix": database,
            **changes,
        }

    def follow(self, database: str, **changes: str) -> None:
        """Have Debezium read a database, and wait until it streams."""
        begin = self.connect.log.stat().st_size
        config = self.configuration(database, **changes)
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
        """End a part as a crash does, and start it again at once."""
        begin = self.connect.log.stat().st_size
        self.kill(name)
        self.parts[name].start()
        self.parts[name].wait_until_ready()
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
                for name in self.connect.states()
            ]
            offsets = [found[0]["offset"] if found else {} for found in answers]
            places = [(each.get("file", ""), each.get("pos", 0)) for each in offsets]
            return all(place >= (file, pos) for place in places)

        wait_until(is_caught_up, 120, "the connectors have not caught up", 0.5)


class Visits:
    """Changes of the shop's visits, each at a second that is known.

    One session commits each statement. Another one, which changes other rows, commits
    several at once, later than statements that ran after its own.
    """

    def __init__(self, server: MariaDBServer) -> None:
        self.server = server
        self.random = random.Random(45)
        self.at = datetime(2026, 1, 1, tzinfo=UTC)
        self.states: dict[int, list[tuple[str | None, datetime]]] = {}

    def change(self, statements: int) -> None:
        """Run statements, some of which change nothing."""
        # Neither locks what the other one may insert.
        isolation = "set session transaction isolation level read committed"
        sessions = [
            self.server.connect(database="shop", autocommit=each, init_command=isolation)
            for each in (True, False)
        ]
        for step in range(statements):
            number = step % 2
            with sessions[number].cursor() as cursor:
                # A clock may step back.
                self.at += timedelta(seconds=self.random.choice((0, 0, 0, 1, 2, -1)))
                cursor.execute("set timestamp = %s", (self.at.timestamp(),))
                self._change(cursor, range(30 * number, 30 * number + 30))
            if step % 7 == 0:
                sessions[1].commit()
        for session in sessions:
            session.commit()
            session.close()

    def _change(self, cursor: Any, visits: Sequence[int]) -> None:
        visit, other = self.random.sample(visits, 2)
        had, note = self._note(visit), self.random.choice("abc")
        kind = self.random.choice(["note", "note", "note", "delete", "move"])
        if had is None:
            cursor.execute("insert into visits values (%s, %s)", (visit, note))
            became: dict[int, str | None] = {visit: note}
        elif kind == "delete":
            cursor.execute("delete from visits where visit_id = %s", (visit,))
            became = {visit: None}
        elif kind == "move" and self._note(other) is None:
            move = "update visits set visit_id = %s where visit_id = %s"
            cursor.execute(move, (other, visit))
            became = {visit: None, other: had}
        else:
            cursor.execute("update visits set note = %s where visit_id = %s", (note, visit))
            became = {visit: note}
        for key, its in became.items():
            if its != self._note(key):
                self.states.setdefault(key, []).append((its, self.at))

    def _note(self, visit: int) -> str | None:
        """What a visit has now."""
        return self.states[visit][-1][0] if visit in self.states else None

    def versions(self) -> dict[int, list[Version]]:
        """What each visit had, and when; none begins after the next one."""
        found: dict[int, list[Version]] = {}
        for visit, states in self.states.items():
            end = None
            for note, at in reversed(states):
                begin = min(at, end or at)
                if note is not None:
                    found.setdefault(visit, []).insert(0, (note, begin, end))
                end = begin
        return found
