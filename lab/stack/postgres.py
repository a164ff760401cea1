"""A PostgreSQL server of the project's own: made, started and stopped below one folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import psycopg2

from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.storage.folders import make_elsewhere
from lab.stack.server import DatabaseServer

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
    if not versions or max(versions.values()) < OLDEST:
        older = f" (found only version {max(versions.values())})" if versions else ""
        raise UserError(
            f"no PostgreSQL {OLDEST} or newer on this machine{older};"
            " install one: apt-get install postgresql"
        )
    if version is not None:
        versions = {folder: its for folder, its in versions.items() if its == version}
    if not versions:
        raise UserError(
            f"no PostgreSQL {version} on this machine;"
            f" install it: apt-get install postgresql-{version}"
        )
    return max(versions, key=lambda folder: versions[folder])


def _version(postgres: Path) -> int:
    """The major version that a binary says of itself: ``postgres (PostgreSQL) 15.3``."""
    answer = subprocess.run([postgres, "--version"], capture_output=True, text=True)
    digits = answer.stdout.partition(") ")[2].partition(".")[0]
    return int(digits) if digits.isdigit() else 0


class PostgresServer(DatabaseServer):
    """One server; the folder outlives it, and other processes may stop it.

    Where root's server has a folder that the server's user cannot enter, as below
    ``/root``, the folder is made elsewhere, and a link to it takes its place.
    """

    # Every one is given on the command line, so that a folder of an older version of this
    # project starts with them, too.
    SETTINGS: ClassVar = {
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
        super().__init__(folder, port, password, settings)
        self._link = self.folder
        self._follow_link()

    def start(self, timeout: float = 60) -> None:
        """Start the server, and make its folder first where there is none.

        Raises:
            UserError: no PostgreSQL, a port in use, a folder that its user cannot
                enter, another password than the folder was made with.
        """
        if self.is_running():
            return
        binaries = self.find_binaries()
        self._make_folder(binaries)
        self._clear_up_after_a_crash()
        options = [f"{name}={value}" for name, value in self.settings.items()]
        command = [str(binaries / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        command += [word for option in options for word in ("-c", option)]
        with self.log.open("ab") as log:
            begin = log.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C is the caller's, not the server's
                **self._run_as(),
            )
        try:
            self._wait_until_ready(begin, timeout)
        except BaseException:
            self.stop()
            raise

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

    def stop(self, timeout: float = 60) -> None:
        """End the server: sessions are cut off, what they committed is kept."""
        pid = self.pid()
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        if not self._wait_until_gone(timeout):
            raise UserError(f"PostgreSQL (process {pid}) does not stop; see {self.log}")

    def kill(self) -> None:
        """End the server as a crash does, with all its processes."""
        for process in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._wait_until_gone(10)

    def is_running(self) -> bool:
        """Whether the folder's server runs, whoever started it."""
        return self.pid() is not None

    def pid(self) -> int | None:
        """The server's process, if it runs."""
        if self._process is not None and self._process.poll() is None:
            return self._process.pid
        try:
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        # A crashed server leaves the file, and another process may get its number.
        return pid if pid in self._processes() else None

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
        with self._password_file() as password_file:
            command = [str(binaries / "initdb"), "--pgdata", str(part)]
            command += ["--username", SUPERUSER, "--pwfile", str(password_file)]
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
        self.log = self.folder / "server.log"

    def _closed_folder(self) -> Path | None:
        """The first folder on the way that the server's user cannot enter."""
        if os.geteuid() != 0:
            return None
        for folder in (*reversed(self.folder.parents), self.folder):
            is_open = subprocess.run(["test", "-x", folder], **self._run_as())
            if folder.exists() and is_open.returncode != 0:
                return folder
        return None

    @contextlib.contextmanager
    def _password_file(self) -> Iterator[Path]:
        """The superuser's password in a file that nobody else can read, for ``initdb``."""
        handle, name = tempfile.mkstemp(dir=self.folder)  # mode 600
        path = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.password + "\n")
            self._hand_over(path)
            yield path
        finally:
            path.unlink()

    def _wait_until_ready(self, log_begin: int, timeout: float) -> None:
        assert self._process is not None
        deadline = time.monotonic() + timeout
        while not self._says_ready():
            if self._process.poll() is not None:
                raise UserError(f"PostgreSQL did not start: {self._last_words(log_begin)}")
            if time.monotonic() > deadline:
                raise TransientError(
                    f"PostgreSQL is not ready after {timeout:.0f} s:"
                    f" {self._last_words(log_begin)}"
                )
            time.sleep(0.05)
        try:
            self.connect(connect_timeout=10).close()
        except psycopg2.OperationalError as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"no session on the server of {self.folder}: {reason}; if the folder was"
                f" made with another password for {SUPERUSER}, give that, or remove it"
            ) from error

    def _says_ready(self) -> bool:
        """Whether the server has written so: to connect might reach another's port."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return [line.strip() for line in lines[7:8]] == ["ready"]

    def _last_words(self, log_begin: int) -> str:
        """What the log says since this start: why, if it says so."""
        with self.log.open("rb") as log:
            log.seek(log_begin)
            lines = log.read().decode("utf-8", errors="replace").splitlines()
        errors = [line for line in lines if "FATAL" in line or "ERROR" in line]
        hints = [line for line in lines if "could not bind" in line]
        said = [*hints, *reversed(errors), *lines[-1:]]
        return f"{said[0]} (see {self.log})" if said else f"see {self.log}"

    def _clear_up_after_a_crash(self) -> None:
        """Remove the file of a server that is gone, once the last of its processes is."""
        if not self._wait_until_gone(10):
            raise UserError(
                f"processes of a crashed server still work on {self.data}:"
                f" {', '.join(map(str, self._processes()))}; end them first"
            )
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _wait_until_gone(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self._processes():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        if self._process is not None:
            self._process.wait()
        return True

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
