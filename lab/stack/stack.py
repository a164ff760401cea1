"""A stack: servers of one folder, with one way to start, find and stop them."""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Self

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.storage.folders import MARKER, claim, clear, require_own
from lab.stack.ports import reserved_ports
from lab.stack.processes import Part

VALID_PORTS = range(1, 65536)
# What the marker of the folder says: whether there may be data that somebody needs.
UNFINISHED = "servers, whose first start has not ended\n"
FINISHED = "servers and their data\n"


class Stack(ABC):
    """Servers of one folder, in the order in which they start; they outlive the object.

    Each kind of stack makes its parts and starts them.

    Args:
        root: the folder that this one is made in.
    """

    # Of the folder and of the lock.
    NAME: ClassVar[str]
    COMMAND: ClassVar[str]
    # The part that listens on each port.
    PORTS: ClassVar[Mapping[str, str]]
    # Each is made by the first start, in a file of that name below ``secrets``.
    PASSWORDS: ClassVar[Sequence[str]]
    # Whether its data outlive a stop, so that a start goes on with them.
    IS_KEPT: ClassVar = False

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.folder = self.root / self.NAME
        self.state_file = self.folder / "state.json"
        self.secrets = self.folder / "secrets"
        self._load()

    @abstractmethod
    def _make_parts(self) -> list[Part]:
        """The servers, at ``ports``."""

    @abstractmethod
    def _start_parts(self) -> None:
        """Start what does not run, and wait until it can be used."""

    @abstractmethod
    def require_programs(self) -> None:
        """Fetch the jars, and refuse a machine that lacks a program.

        Raises:
            UserError: it lacks one; the message says how to install it.
        """

    def _load(self) -> None:
        """Take over what the last start wrote down."""
        # Whether a start came to its end here.
        self.is_complete = False
        self._damage: Exception | None = None
        ports = dict.fromkeys(self.PORTS, 0)
        try:
            ports = self._read_ports()
            self.is_complete = True
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:
            # To find the processes, and so to stop them, takes no state.
            self._damage = error
        self._set_up(ports)

    def _read_ports(self) -> dict[str, int]:
        try:
            found = json.loads(self.state_file.read_text())["ports"]
            ports = {name: int(found[name]) for name in self.PORTS}
        except (LookupError, TypeError) as error:
            raise ValueError(f"not what a start writes ({error})") from error
        if not all(port in VALID_PORTS for port in ports.values()):
            raise ValueError(f"not what a start writes ({ports})")
        return ports

    def _set_up(self, ports: dict[str, int]) -> None:
        self.ports = ports
        self.parts = {part.name: part for part in self._make_parts()}

    def require_state(self) -> None:
        """Refuse to go on without knowing where the parts listen.

        Raises:
            UserError: the file that says so is there, and cannot be read.
        """
        if self._damage is not None:
            raise UserError(
                f"{self.state_file} is damaged: {self._damage}; put back a copy of it,"
                f" or begin anew: {self.COMMAND} stop --remove"
            )

    def password(self, name: str) -> str:
        """A password of this stack's; empty before its first start."""
        with suppress(FileNotFoundError):
            return (self.secrets / name).read_text()
        return ""

    def pids(self) -> dict[str, int | None]:
        """The process of every part, None where it does not run."""
        return {name: part.pid() for name, part in self.parts.items()}

    def running(self) -> list[str]:
        """The parts that run."""
        return [name for name, pid in self.pids().items() if pid is not None]

    def kill(self, name: str) -> None:
        """End a part as a crash does."""
        self.parts[name].kill()

    def wait_until_ready(self) -> None:
        """Wait for every part.

        Raises:
            UserError: one ended, or takes too long.
        """
        for part in self.parts.values():
            part.wait_until_ready()

    def lock(self) -> AbstractContextManager[None]:
        """Hold the stack's lock: one process starts or stops it at a time."""
        return exclusive_lock(str(self.root), self.NAME)

    def start(self, ports: Mapping[str, int] | None = None) -> None:
        """Start what does not run.

        The first start makes the data; where they are kept, later ones go on with them.
        One that fails ends what it started, and a first one leaves nothing but the logs.

        Args:
            ports: by name; the last ones or free ones otherwise.

        Raises:
            UserError: something that a part needs is missing, a port is in use, the
                folder is not the stack's own, or a part does not come up; the message
                has its reason.
        """
        with self.lock():
            self.start_locked(ports)

    def start_locked(self, ports: Mapping[str, int] | None = None) -> None:
        """Start as ``start`` does, where the lock is held."""
        self._load()  # another start may have ended since
        self._require_startable()
        self.require_programs()
        if not self.is_complete:
            # What a first start left that was killed; it may hold the ports.
            self.clear("logs")
        ran = self.running()
        with reserved_ports() as reserve:
            chosen = self._choose_ports(ports or {}, ran, reserve)
            try:
                claim(self.folder, FINISHED if self.is_complete else UNFINISHED)
                self._make_passwords()
                self._set_up(chosen)
                self._start_parts()
                self._write_state()
            except BaseException:
                if self.is_complete:
                    self._end(set(self.running()) - set(ran))
                else:
                    self.clear("logs")
                raise

    def stop(self) -> list[str]:
        """End everything; of data that are not kept, only the logs stay.

        Returns:
            The parts that had to be killed, as they did not end by themselves.

        Raises:
            UserError: a start is under way, or what is to be removed is not its own.
        """
        if not self.folder.exists():  # nor is the root made for the lock
            return []
        with self.lock():
            if self.IS_KEPT:
                return self._end(self.running())
            require_own(self.folder)
            return self.clear("logs")

    def remove(self) -> None:
        """End everything and remove the folder.

        Raises:
            UserError: a start is under way, or the folder is not the stack's own.
        """
        if self.folder.exists():
            with self.lock():
                require_own(self.folder)
                self.clear()

    @contextmanager
    def anew(self) -> Iterator[Self]:
        """The stack within a block: begun anew, ended and removed in any case.

        Raises:
            UserError: a part is missing, or does not come up.
        """
        with self.lock():
            require_own(self.folder)
            self.clear()  # what a run that was killed left
            self.start_locked()
            try:
                yield self
            finally:
                self.clear()

    def _end(self, names: Collection[str]) -> list[str]:
        """End parts, the last one first; the ones that had to be killed."""
        parts = [self.parts[name] for name in reversed(self.parts) if name in names]
        return [part.name for part in parts if not part.stop()]

    def clear(self, *keep: str) -> list[str]:
        """End what runs and remove the folder, or all of it but what is to be kept."""
        killed = self._end(self.running())
        kept = [name for name in keep if (self.folder / name).exists()]
        clear(self.folder, *kept, *([MARKER] if kept else []))
        with suppress(OSError):  # not empty, or not there
            self.folder.rmdir()
        return killed

    def _require_startable(self) -> None:
        """Refuse a folder with data that a start would destroy, or cannot go on with."""
        require_own(self.folder)
        if not self.IS_KEPT:
            if self.running():
                raise UserError(f"it runs already; stop it first: {self.COMMAND} stop")
            self.is_complete = False
            return
        self.require_state()
        marker = self.folder / MARKER
        if not self.is_complete and marker.exists() and marker.read_text() != UNFINISHED:
            raise UserError(
                f"{self.folder} has data, and {self.state_file.name} is lost, which says"
                " where its parts listen; put back a copy of it, or begin anew:"
                f" {self.COMMAND} stop --remove"
            )

    def _choose_ports(
        self, wanted: Mapping[str, int], ran: Collection[str], reserve: Callable[..., int]
    ) -> dict[str, int]:
        # What runs stays, and what is asked for comes before what was chosen once.
        chosen = {name: self.ports[name] for name in self.PORTS if self.PORTS[name] in ran}
        for name, port in wanted.items():
            if name in chosen:
                if port != chosen[name]:
                    raise UserError(f"{name} runs already, at port {chosen[name]}")
                continue
            if port in chosen.values():
                other = next(part for part, its in chosen.items() if its == port)
                raise UserError(f"port {port} is wanted for {other} and for {name}")
            try:
                chosen[name] = reserve(port)
            except OSError as error:
                raise UserError(f"port {port}, wanted for {name}, is in use") from error
        for name in self.PORTS.keys() - chosen.keys():
            port = self.ports[name]
            try:
                chosen[name] = reserve(0 if port in chosen.values() else port)
            except OSError:  # another program took it while this part did not run
                chosen[name] = reserve()
        return chosen

    def _make_passwords(self) -> None:
        self.secrets.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in self.PASSWORDS:
            if not (self.secrets / name).exists():
                write_secret(self.secrets / name, secrets.token_urlsafe(24))

    def _write_state(self) -> None:
        part = self.state_file.with_suffix(".part")
        part.write_text(json.dumps({"ports": self.ports}))
        part.rename(self.state_file)
        self.is_complete = True
        claim(self.folder, FINISHED)


def write_secret(path: Path, text: str) -> None:
    """A file that nobody else can read."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)


def write_properties(path: Path, **values: object) -> None:
    """Java properties that nobody else can read: a connector's placeholders, say."""
    write_secret(path, "".join(f"{name}={value}\n" for name, value in values.items()))
