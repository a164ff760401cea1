"""A PostgreSQL server of the project's own: made, started and stopped below one folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import psycopg2

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.folders import make_elsewhere
from lab.stack.processes import Part, wait_until

OLDEST = 15
SUPERUSER = "postgres"


def find_binaries(version: int | None = None) -> Path:
    """The folder with the newest PostgreSQL's ``initdb`` and ``postgres``.

    Args:
        version: the major version to take instead of the newest.

    Raises:
        UserError: the machine has none, or only versions that are too old, or not the
            one that was asked for.
    """
    found = shutil.which("postgres")
    candidates = [Path(found).parent] if found else []
    candidates += Path("/usr/lib/postgresql").glob("*/bin")
    versions = {
        folder: _version(folder / "postgres")
        for folder in candidates
        if (folder / "initdb").exists() and (folder / "postgres").exists()
    }
    fitting = {
        folder: its
        for folder, its in versions.items()
        if (its >= OLDEST if version is None else its == version)
    }
    if not fitting:
        wanted = f"{OLDEST} or newer" if version is None else version
        others = f" (found only version {max(versions.values())})" if versions else ""
        package = "postgresql" if version is None else f"postgresql-{version}"
        raise UserError(
            f"no PostgreSQL {wanted} on this machine{others};"
            f" install it: apt-get install {package}"
        )
    return max(fitting, key=lambda folder: fitting[folder])


def _version(postgres: Path) -> int:
    """The major version that a binary says of itself: ``postgres (PostgreSQL) 15.3``."""
    answer = subprocess.run([postgres, "--version"], capture_output=True, text=True)
    digits = answer.stdout.partition(") ")[2].partition(".")[0]
    return int(digits) if digits.isdigit() else 0


class PostgresServer(Part):
    """One server; the folder outlives it, and other processes may stop it.

    Where root's server has a folder that the server's user cannot enter, as below
    ``/root``, the folder is made elsewhere, and a link to it takes its place.

    Args:
        folder: keeps ``data/``; made when the server first starts.
        port: on 127.0.0.1, the only address it listens on.
        password: the superuser's, set when the folder is made.
        settings: more settings, or others than ``SETTINGS``.
    """

    STOP = signal.SIGINT  # sessions are cut off, what they committed is kept
    # Every one is given on the command line, so that a folder of an older version of this
    # project starts with them, too.
    SETTINGS: ClassVar[Mapping[str, str]] = {
        "wal_level": "logical",
        "max_replication_slots": "10",
        "max_wal_senders": "10",
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "password_encryption": "scram-sha-256",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }

    def __init__(
        self,
        folder: Path,
        port: int,
        password: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(folder.parent, folder.name, port, self._server)
        self.password = password
        self.settings = {**self.SETTINGS, **(settings or {})}
        self._link = folder.absolute()
        self._follow_link()

    def start(self) -> None:
        """Start the server, and make its folder first where there is none.

        Raises:
            UserError: no PostgreSQL, or a folder that its user cannot enter.
        """
        if self.pid() is not None:
            return
        self._make_folder(self.find_binaries())
        self._wait_until_gone()
        (self.data / "postmaster.pid").unlink(missing_ok=True)  # a crashed server's
        super().start()

    def is_ready(self) -> bool:
        """Whether the server has written so: to connect might reach another's port.

        Raises:
            UserError: its folder was made with another password.
        """
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        if [line.strip() for line in lines[7:8]] != ["ready"]:
            return False
        try:
            self.connect(connect_timeout=10).close()
        except psycopg2.OperationalError as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"no session on the server of {self.folder}: {reason}; if the folder was"
                f" made with another password for {SUPERUSER}, give that, or remove it"
            ) from error
        return True

    def _server(self, mark: str) -> list[str]:
        options = [f"{name}={value}" for name, value in self.settings.items()]
        command = [str(self.find_binaries() / "postgres"), "-D", mark, "-p", str(self.port)]
        return command + [word for option in options for word in ("-c", option)]

    def find_binaries(self) -> Path:
        """The version that made the data, which no other reads; without data the newest.

        Raises:
            UserError: the machine does not have it.
        """
        try:
            said = (self.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            return find_binaries()
        if not said.isdigit():
            raise UserError(f"{self.data}/PG_VERSION says {said!r}, which is no version")
        try:
            return find_binaries(int(said))
        except UserError as error:
            raise UserError(f"PostgreSQL {said} made {self.data}: {error}") from error

    def require_enterable(self) -> None:
        """Refuse a folder that the server's user cannot enter, as root's own are.

        Raises:
            UserError: a folder on the way is closed; the message names it.
        """
        closed = self._closed_folder()
        if closed is not None:
            raise UserError(
                "PostgreSQL does not run as root, and the user"
                f" '{_server_user().pw_name}' that it runs as cannot enter {closed}:"
                f" set LAKE_ROOT to a folder elsewhere, or: chmod o+x {closed}"
            )

    def kill(self) -> None:
        """End the server as a crash does, with all its processes."""
        for process in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._wait_until_gone()

    def connect(self, **overrides: Any) -> Any:
        """A psycopg2 connection, by default as the superuser to ``postgres``."""
        parameters: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": self.port,
            "dbname": "postgres",
            "user": SUPERUSER,
            "password": self.password,
        }
        return psycopg2.connect(**{**parameters, **overrides})

    def execute(self, *statements: str, **overrides: Any) -> list[tuple[Any, ...]]:
        """Run statements in a session of their own, each committed.

        Returns:
            The rows of the last one, if it gives any.
        """
        with contextlib.closing(self.connect(**overrides)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall()) if cursor.description else []

    def _make_folder(self, binaries: Path) -> None:
        """``initdb`` beside the data folder, then rename: a broken one is never used."""
        self._follow_link()
        if self.data.exists():
            self.require_enterable()
            return
        self._link.parent.mkdir(parents=True, exist_ok=True)
        if self._closed_folder() is not None:
            make_elsewhere(self._link)
            self._follow_link()
        self.folder.mkdir(exist_ok=True)
        self._hand_over(self.folder)
        part = self.folder / "data.part"
        shutil.rmtree(part, ignore_errors=True)
        with tempfile.NamedTemporaryFile("w", dir=self.folder) as file:  # mode 600
            file.write(f"{self.password}\n")
            file.flush()
            self._hand_over(Path(file.name))
            command = [str(binaries / "initdb"), "--pgdata", str(part)]
            command += ["--username", SUPERUSER, "--pwfile", file.name]
            command += ["--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale"]
            answer = subprocess.run(
                command, cwd=self.folder, capture_output=True, text=True, **self._run_as()
            )
        if answer.returncode != 0:
            shutil.rmtree(part, ignore_errors=True)
            raise UserError(f"initdb failed in {self.folder}: {answer.stderr.strip()}")
        part.rename(self.data)

    def _follow_link(self) -> None:
        self.folder = self._link.resolve() if self._link.is_symlink() else self._link
        self.data = self.folder / "data"
        self.mark = str(self.data)

    def _closed_folder(self) -> Path | None:
        """The first folder on the way that the server's user cannot enter."""
        if os.geteuid() != 0:
            return None
        for folder in (*reversed(self.folder.parents), self.folder):
            is_open = subprocess.run(["test", "-x", folder], **self._run_as())
            if folder.exists() and is_open.returncode != 0:
                return folder
        return None

    def _wait_until_gone(self) -> None:
        """Wait for the processes of a server that crashed.

        Raises:
            TransientError: they do not end.
        """
        wait_until(
            lambda: not self._processes(),
            10,
            f"processes of a crashed server still work on {self.data}; end them first",
        )

    def _processes(self) -> list[int]:
        """All processes of the folder's server: their working folder is its data."""
        data, found = self.data.resolve(), []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended, or is another user's
                is_postgres = (process / "comm").read_text() == "postgres\n"
                if is_postgres and (process / "cwd").readlink() == data:
                    found.append(int(process.name))
        return found

    def _hand_over(self, path: Path) -> None:
        if os.geteuid() == 0:
            user = _server_user()
            os.chown(path, user.pw_uid, user.pw_gid)

    def _run_as(self) -> dict[str, Any]:
        """PostgreSQL refuses to run as root: then it runs as its own user, or nobody."""
        if os.geteuid() != 0:
            return {}
        user = _server_user()
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _server_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise UserError("PostgreSQL does not run as root; this machine has no user 'postgres'")
