"""A database server of the project's own, below one folder that outlives it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar


class DatabaseServer:
    """What the servers share; each starts and stops in its own way.

    Args:
        folder: keeps ``data/`` and ``server.log``; made when the server first starts.
        port: on 127.0.0.1, the only address it listens on.
        password: the superuser's, set when the folder is made.
        settings: more settings, or others than ``SETTINGS``.
    """

    SETTINGS: ClassVar[Mapping[str, str]]

    def __init__(
        self,
        folder: Path,
        port: int,
        password: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.port = port
        self.password = password
        self.settings = {**self.SETTINGS, **(settings or {})}
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
