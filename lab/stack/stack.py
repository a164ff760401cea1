"""PostgreSQL with Northwind, a broker and Connect with the connectors, on one machine."""

from __future__ import annotations

import json
import secrets
import shlex
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg2

from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.storage.folders import MARKER, claim, clear, require_own
from lab.northwind.checks import REPLICATION_ROLE
from lab.northwind.load import Source, load
from lab.stack import jars
from lab.stack.broker import Broker
from lab.stack.connect import Connect
from lab.stack.ports import reserved_ports
from lab.stack.postgres import SUPERUSER, PostgresServer
from lab.stack.processes import JavaProcess, wait_until

CONNECTORS = ("source-outbox", "source-tables")
DATABASE = "northwind"
SECONDS_TO_RECOVER = 5
VALID_PORTS = range(1, 65536)
# The folder that the connectors' files name; the stack has its own.
SECRETS_FOLDER = "/etc/cdc-lakehouse"
# What the marker of the folder says: whether there may be data that somebody needs.
UNFINISHED = "a stack, made by python -m lab.stack; its first start has not ended\n"
FINISHED = "a stack, made by python -m lab.stack\n"


@dataclass(frozen=True)
class Ports:
    """Where the parts listen, on 127.0.0.1."""

    postgres: int
    kafka: int
    controller: int
    connect: int


@dataclass(frozen=True)
class Slot:
    """A replication slot.

    Attributes:
        is_active: whether its connector reads from it now.
        lag_bytes: of the write-ahead log that its connector has not confirmed.
    """

    is_active: bool
    lag_bytes: int


class Stack:
    """The stack of one lake; its processes and its folder outlive the object.

    Args:
        root: the lake's folder; everything is kept in ``stack`` below it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.folder = self.root / "stack"
        self.state_file = self.folder / "state.json"
        self.secrets = self.folder / "secrets"
        self.placeholders = self.secrets / "source.properties"
        self._load()

    def _load(self) -> None:
        """Take over what the last start wrote down."""
        self.connectors: list[str] = []
        # Whether a start came to its end here, so that there are data to keep.
        self.is_complete = False
        self._state_error: Exception | None = None
        ports = Ports(0, 0, 0, 0)
        try:
            ports, self.connectors = _parse_state(self.state_file.read_text())
            self.is_complete = True
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:
            # To find the processes, and so to stop them, takes no state.
            self._state_error = error
        self._set_up(ports)

    def require_state(self) -> None:
        """Refuse to go on without knowing where the parts listen.

        Raises:
            UserError: the file that says so is there, and cannot be read.
        """
        if self._state_error is not None:
            raise UserError(
                f"{self.state_file} is damaged: {self._state_error}; put back a copy of it,"
                " or begin anew: python -m lab.stack stop --remove"
            )

    def _set_up(self, ports: Ports) -> None:
        self.ports = ports
        self.postgres = PostgresServer(
            self.folder / "postgres", ports.postgres, self._password(SUPERUSER)
        )
        self.broker = Broker(self.folder, ports.kafka, ports.controller)
        self.connect = Connect(self.folder, ports.connect, ports.kafka, self.placeholders)

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka's clients begin."""
        return f"127.0.0.1:{self.ports.kafka}"

    @property
    def connect_url(self) -> str:
        """Connect's REST interface."""
        return self.connect.url

    def connect_to_source(self) -> Any:
        """A psycopg2 connection to the source database, as its owner."""
        return self.postgres.connect(dbname=DATABASE)

    def running(self) -> list[str]:
        """The parts that run: ``postgres``, ``broker``, ``connect``."""
        return [name for name, pid in self.pids().items() if pid is not None]

    def pids(self) -> dict[str, int | None]:
        """The process of every part, None where it does not run."""
        return {name: part.pid() for name, part in self._parts.items()}

    def logs(self) -> dict[str, Path]:
        """The log of every part."""
        return {name: part.log for name, part in self._parts.items()}

    @property
    def _parts(self) -> dict[str, PostgresServer | JavaProcess]:
        return {
            "postgres": self.postgres,
            "broker": self.broker.process,
            "connect": self.connect.process,
        }

    def start(
        self,
        hold_back: int | None = None,
        connectors: Sequence[str] = CONNECTORS,
        ports: dict[str, int] | None = None,
    ) -> None:
        """Start what does not run, and wait until changes stream.

        The first start makes the database; later ones go on with it. One that fails
        ends what it started, and a first one leaves nothing but the logs.

        Args:
            hold_back: an order to leave out; only where the database is made.
            connectors: which to register.
            ports: by the names of ``Ports``; the last ones or free ones otherwise.

        Raises:
            UserError: something that a part needs is missing, a port is in use, the
                folder is not the stack's own, or a part does not come up; the message
                has its reason.
        """
        with exclusive_lock(str(self.root), "stack"), reserved_ports() as reserve:
            self._load()  # another start may have ended since
            self._require_startable(hold_back)
            jars.find_java()
            self.postgres.find_binaries()
            jars.fetch(*jars.STACK)
            if not self.is_complete:
                # What a first start left that was killed; it may hold the ports.
                self._stop_parts(set(self.running()))
            ran = set(self.running())
            chosen = self._choose_ports(ports or {}, ran, reserve)
            if not self.is_complete:
                self._clear()
            try:
                claim(self.folder, FINISHED if self.is_complete else UNFINISHED)
                self._make_passwords()
                self._set_up(chosen)
                self._start_parts(ran, hold_back)
                for name in connectors:
                    self.register(name)
                self.wait_until_streaming()
                self._write_state()
            except BaseException:
                if self.is_complete:
                    self._stop_parts(set(self.running()) - ran)
                else:
                    self._clear(keep_logs=True)
                raise

    def stop(self) -> list[str]:
        """End everything, Connect first: it writes to the broker till its end.

        Returns:
            The parts that had to be killed, as they did not end by themselves.

        Raises:
            UserError: a start is under way.
        """
        if not self.root.exists():  # nor is it made for the lock
            return []
        with exclusive_lock(str(self.root), "stack"):
            return self._stop_parts(set(self.running()))

    def remove(self) -> None:
        """End everything and remove the folder.

        Raises:
            UserError: a start is under way, or the folder is not the stack's own.
        """
        if not self.root.exists():
            return
        with exclusive_lock(str(self.root), "stack"):
            self._require_own()
            self._clear()

    def kill(self, name: str) -> None:
        """End a part as a crash does."""
        self._parts[name].kill()

    def revive(self, name: str) -> None:
        """Start a part that was killed or stopped, and wait until changes stream."""
        starters: dict[str, Callable[[], None]] = {
            "postgres": self.postgres.start,
            "broker": self.broker.start,
            "connect": self.connect.start,
        }
        starters[name]()
        self.broker.wait_until_ready()
        self.connect.wait_until_ready()
        self.wait_until_streaming()

    def register(self, name: str) -> None:
        """Create a connector, or give it its file's configuration again."""
        self.connect.ask("PUT", f"/connectors/{name}/config", self.configuration(name))
        if name not in self.connectors:
            self.connectors.append(name)

    def unregister(self, name: str) -> None:
        """Delete a connector with its offsets; its slot stays."""
        self.connect.remove(name)
        self.connectors.remove(name)

    def configuration(self, name: str) -> dict[str, str]:
        """A connector's file, with the folder of this stack's secrets."""
        file = jars.PROJECT / "connectors" / f"{name}.json"
        if not file.exists():
            raise UserError(f"there is no connector {name}: {file}")
        text = file.read_text(encoding="utf-8")
        config: dict[str, str] = json.loads(text.replace(SECRETS_FOLDER, str(self.secrets)))
        return config

    def slot_name(self, name: str) -> str:
        """The replication slot of a connector."""
        return self.configuration(name)["slot.name"]

    def pause(self, name: str) -> None:
        """Have a connector read no further, and wait until it does not."""
        self._move(name, "pause", "PAUSED")

    def resume(self, name: str) -> None:
        """Have a paused connector go on, and wait until it does."""
        self._move(name, "resume", "RUNNING")

    def slots(self) -> dict[str, Slot]:
        """The replication slots of the source database.

        Raises:
            TransientError: it does not answer, as while it comes up.
        """
        question = """
            select slot_name, active,
                pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint
            from pg_replication_slots where database = %s
        """
        try:
            with (
                closing(self.connect_to_source()) as connection,
                connection.cursor() as cursor,
            ):
                cursor.execute(question, (DATABASE,))
                return {name: Slot(active, lag or 0) for name, active, lag in cursor}
        except psycopg2.Error as error:
            reason = " ".join(str(error).split())
            raise TransientError(
                f"could not read the replication slots: {reason}"
            ) from error

    def topic_ends(self) -> dict[str, int]:
        """The next offset of every topic the connectors write, by ``topic/partition``."""
        prefix = self.configuration(CONNECTORS[0])["topic.prefix"]
        return self.broker.end_offsets(rf"{prefix}\..*")

    def psql_command(self) -> str:
        """How to reach the source database by hand."""
        password = shlex.quote(str(self.secrets / SUPERUSER))
        return (
            f'PGPASSWORD="$(cat {password})" psql -h 127.0.0.1'
            f" -p {self.ports.postgres} -U {SUPERUSER} {DATABASE}"
        )

    def wait_until_streaming(self, timeout: float = 120) -> None:
        """Wait until every connector runs and reads from its slot.

        A slot is read from only after the snapshot, so that is done, too.

        Raises:
            UserError: a connector failed, or it takes too long.
        """
        failed: dict[str, float] = {}

        def is_streaming() -> bool:
            self.connect.process.require_alive()
            states = self.connect.states()
            slots = self.slots()
            now = time.monotonic()
            for name, found in states.items():
                if not found.trace:
                    failed.pop(name, None)
                # It may be what was written down of a run before this one.
                elif now - failed.setdefault(name, now) > SECONDS_TO_RECOVER:
                    raise UserError(
                        f"{name}: {found.trace.splitlines()[0]}"
                        f" (see {self.connect.process.log})"
                    )
            return all(
                (state := states.get(name)) is not None
                and state.is_running
                and (slot := slots.get(self.slot_name(name))) is not None
                and slot.is_active
                for name in self.connectors
            )

        log = self.connect.process.log
        wait_until(is_streaming, timeout, f"the connectors do not stream (see {log})", 0.2)

    def wait_until_caught_up(self, timeout: float = 60, database: str = DATABASE) -> None:
        """Wait until the topics hold everything that was committed before the call.

        Args:
            timeout: in seconds.
            database: whose slots are asked for.

        Raises:
            UserError: it takes too long.
        """
        with closing(self.connect_to_source()) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("select pg_current_wal_insert_lsn()")
                (end,) = cursor.fetchone()

                def is_caught_up() -> bool:
                    cursor.execute(
                        """
                        select bool_and(confirmed_flush_lsn >= %s)
                        from pg_replication_slots where database = %s
                        """,
                        (end, database),
                    )
                    return bool(cursor.fetchone()[0])

                wait_until(is_caught_up, timeout, "the connectors have not caught up")

    def _start_parts(self, ran: set[str], hold_back: int | None) -> None:
        self._write_placeholders()
        # Connect waits for the broker, and neither needs the database to come up.
        with ThreadPoolExecutor() as pool:
            tasks = []
            if "postgres" not in ran:
                tasks.append(pool.submit(self._start_postgres, hold_back))
            if "broker" not in ran:
                self.broker.start()
            if "connect" not in ran:
                self.connect.start()
            for task in tasks:
                task.result()
        if "broker" not in ran:
            self.broker.wait_until_ready()
        self.connect.wait_until_ready()

    def _start_postgres(self, hold_back: int | None) -> None:
        self.postgres.start()
        if not self.is_complete:
            load(
                Source(
                    port=self.ports.postgres,
                    database=DATABASE,
                    password=self.postgres.password,
                ),
                self._password(REPLICATION_ROLE),
                hold_back=() if hold_back is None else (hold_back,),
            )

    def _stop_parts(self, names: set[str]) -> list[str]:
        killed = [
            part.name
            for part in (self.connect.process, self.broker.process)
            if part.name in names and not part.stop()
        ]
        if "postgres" in names:
            self.postgres.stop()
        return killed

    def _move(self, name: str, verb: str, state: str) -> None:
        self.connect.ask("PUT", f"/connectors/{name}/{verb}")
        wait_until(
            lambda: set(self.connect.states()[name].tasks) == {state},
            60,
            f"{name} is not {state}",
        )
        if verb == "resume":
            self.wait_until_streaming()

    def _clear(self, *, keep_logs: bool = False) -> None:
        """End what runs and remove the folder, or all of it but Java's logs."""
        self._stop_parts(set(self.running()))
        has_logs = keep_logs and (self.folder / "logs").exists()
        clear(self.folder, *(("logs", MARKER) if has_logs else ()))
        with suppress(OSError):  # not empty, or not there
            self.folder.rmdir()

    def _require_own(self) -> None:
        """Refuse to remove what nothing shows to be a stack.

        A state that can be read shows it, too: older versions of this project wrote no
        marker.
        """
        if not self.is_complete:
            require_own(self.folder)

    def _require_startable(self, hold_back: int | None) -> None:
        """Refuse a folder with data that a start would destroy, or cannot go on with."""
        self.require_state()
        self._require_own()
        if self.is_complete:
            if hold_back is not None:
                raise UserError(
                    f"{self.folder} has its database already, so no order can be held"
                    " back; begin anew: python -m lab.stack stop --remove"
                )
            return
        marker = self.folder / MARKER
        if marker.exists() and marker.read_text() != UNFINISHED:
            raise UserError(
                f"{self.folder} has a database, and {self.state_file.name} is lost, which"
                " says where its parts listen; put back a copy of it, or begin anew:"
                " python -m lab.stack stop --remove"
            )

    def _choose_ports(
        self, wanted: dict[str, int], ran: set[str], reserve: Callable[..., int]
    ) -> Ports:
        owners = {"postgres": "postgres", "kafka": "broker", "controller": "broker"}
        last = asdict(self.ports)
        running = {name for name in last if owners.get(name, name) in ran}
        # What runs stays, and what is asked for comes before what was chosen once.
        chosen = {name: last[name] for name in last if name in running}
        for name, port in wanted.items():
            if name in running:
                if port != last[name]:
                    raise UserError(f"{name} runs already, at port {last[name]}")
                continue
            if port in chosen.values():
                other = next(part for part, its in chosen.items() if its == port)
                raise UserError(f"port {port} is wanted for {other} and for {name}")
            try:
                chosen[name] = reserve(port)
            except OSError as error:
                raise UserError(f"port {port}, wanted for {name}, is in use") from error
        for name, port in last.items():
            if name in chosen:
                continue
            try:
                chosen[name] = reserve(0 if port in chosen.values() else port)
            except OSError:  # another program took it while this part did not run
                chosen[name] = reserve()
        return Ports(**chosen)

    def _write_state(self) -> None:
        state = {"ports": asdict(self.ports), "connectors": self.connectors}
        part = self.state_file.with_suffix(".part")
        part.write_text(json.dumps(state))
        part.rename(self.state_file)
        self.is_complete = True
        claim(self.folder, FINISHED)

    def _make_passwords(self) -> None:
        self.secrets.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in (SUPERUSER, REPLICATION_ROLE):
            path = self.secrets / name
            if not path.exists():
                write_secret(path, secrets.token_urlsafe(24))

    def _password(self, name: str) -> str:
        """A password of this stack's; empty before its first start."""
        with suppress(FileNotFoundError):
            return (self.secrets / name).read_text()
        return ""

    def _write_placeholders(self) -> None:
        """What the connectors' placeholders stand for."""
        values = {
            "host": "127.0.0.1",
            "port": str(self.ports.postgres),
            "database": DATABASE,
            "user": REPLICATION_ROLE,
            "password": self._password(REPLICATION_ROLE),
        }
        text = "".join(f"{name}={value}\n" for name, value in values.items())
        write_secret(self.placeholders, text)


def _parse_state(text: str) -> tuple[Ports, list[str]]:
    """The ports and the connectors that a state file holds.

    Raises:
        ValueError: it holds something else.
    """
    state = json.loads(text)
    try:
        ports, connectors = Ports(**state["ports"]), list(map(str, state["connectors"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not what a start writes ({error})") from error
    if not all(port in VALID_PORTS for port in asdict(ports).values()):
        raise ValueError(f"not what a start writes ({ports})")
    return ports, connectors


def write_secret(path: Path, text: str) -> None:
    """A file that nobody else can read."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
