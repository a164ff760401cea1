"""A MariaDB server of the project's own: made, started and stopped below one folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pymysql

from cdc_lakehouse.errors import UserError
from lab.stack.processes import Part

SUPERUSER = "root"
RIGHTS = Path(__file__).parents[2] / "connectors/mariadb/replication.sql"
SYSTEM_USER = "mysql"
BINLOG = "binlog"


def find_binary(name: str) -> str:
    """The path of one of MariaDB's programs.

    Raises:
        UserError: the machine has none.
    """
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if found is None:
        raise UserError(
            f"no {name} on this machine; install it: apt-get install mariadb-server"
        )
    return found


def statements(script: str) -> list[str]:
    """The statements of a script without procedures, as a session takes them one by one."""
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    found = (statement.strip() for statement in "\n".join(lines).split(";"))
    return [statement for statement in found if statement]


def replication_rights(database: str, password: str) -> list[str]:
    """The statements that make Debezium's user and give it its rights."""
    script = RIGHTS.read_text(encoding="utf-8")
    script = script.replace("{database}", database).replace("{password}", password)
    return statements(script)


class MariaDBServer(Part):
    """One server; its folder outlives it.

    Args:
        folder: keeps ``data/``; made when the server first starts.
        port: on 127.0.0.1, the only address it listens on.
        password: the superuser's, set when the folder is made.
        settings: more settings, or others than ``SETTINGS``.
    """

    # What Debezium needs of a server (docs/sources.md says why), and where it listens.
    SETTINGS: ClassVar[Mapping[str, str]] = {
        "server_id": "1",
        "log_bin": BINLOG,
        "binlog_format": "ROW",
        "binlog_row_image": "FULL",
        "character_set_server": "utf8mb4",
        "default_time_zone": "+00:00",
        "bind_address": "127.0.0.1",
        "skip_name_resolve": "1",
    }

    def __init__(
        self,
        folder: Path,
        port: int,
        password: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(folder.parent, folder.name, port, self._server)
        self.folder = folder.absolute()
        self.data = self.folder / "data"
        self.mark = f"--datadir={self.data}"
        self.password = password
        self.settings = {**self.SETTINGS, **(settings or {})}

    def is_ready(self) -> bool:
        """Whether it lets its superuser in."""
        with contextlib.suppress(pymysql.err.OperationalError):
            self.connect(connect_timeout=1).close()
            return True
        return False

    def connect(self, **overrides: Any) -> Any:
        """A PyMySQL connection, in UTC; as the superuser by default."""
        parameters: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": SUPERUSER,
            "password": self.password,
            "charset": "utf8mb4",
            "connect_timeout": 10,
        }
        connect: Any = pymysql.connect  # its stub does not annotate the arguments
        return connect(**{**parameters, **overrides})

    def execute(self, *statements: str, **overrides: Any) -> list[tuple[Any, ...]]:
        """Run statements in a session of their own, each committed.

        Returns:
            The rows of the last one.
        """
        rows: list[tuple[Any, ...]] = []
        connection = self.connect(autocommit=True, **overrides)
        with contextlib.closing(connection), connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows

    def _server(self, mark: str) -> list[str]:
        """Its command; makes its folder first where there is none."""
        self._make_folder()
        # No file but its own: a machine's settings are another server's.
        command = [find_binary("mariadbd"), "--no-defaults", mark, *self._user()]
        command += [f"--port={self.port}", f"--socket={self.folder}/server.sock"]
        return command + [
            f"--{name.replace('_', '-')}={its}" for name, its in self.settings.items()
        ]

    def _make_folder(self) -> None:
        """Install beside the data folder, then rename: a broken one is never used."""
        if self.data.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            user = pwd.getpwnam(SYSTEM_USER)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        part = self.folder / "data.part"
        shutil.rmtree(part, ignore_errors=True)
        command = [find_binary("mariadb-install-db"), "--no-defaults", f"--datadir={part}"]
        command += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        command += ["--skip-name-resolve", *self._user()]
        answer = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if answer.returncode != 0:
            shutil.rmtree(part, ignore_errors=True)
            said = answer.stderr.strip() or answer.stdout.strip()
            raise UserError(f"mariadb-install-db failed in {self.folder}: {said[-2000:]}")
        self._set_password(part)
        part.rename(self.data)

    def _set_password(self, data: Path) -> None:
        """Give the superuser its password before anybody can connect."""
        quoted = self.password.replace("\\", "\\\\").replace("'", "\\'")
        # One a line, as a server that is being installed reads them.
        statements = ["flush privileges;"]
        statements += [
            f"alter user '{SUPERUSER}'@'{host}' identified by '{quoted}';"
            for host in ("localhost", "127.0.0.1")
        ]
        command = [find_binary("mariadbd"), "--no-defaults", "--bootstrap"]
        command += [f"--datadir={data}", *self._user()]
        answer = subprocess.run(
            command,
            input="".join(f"{statement}\n" for statement in statements),
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        if answer.returncode != 0:
            shutil.rmtree(data, ignore_errors=True)
            raise UserError(f"MariaDB set no password: {answer.stderr.strip()[-2000:]}")

    def _user(self) -> list[str]:
        """MariaDB does not run as root: it takes a user's name."""
        return [f"--user={SYSTEM_USER}"] if os.geteuid() == 0 else []
