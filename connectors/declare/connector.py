"""A connector's configuration: what it captures, and how it sends it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from connectors.declare.catalogue import Table
from connectors.declare.models import Declaration, declaration, own_name
from connectors.declare.project import Project
from lake.errors import UserError
from lake.mark import MARKER_TABLE


class Connector:
    """A connector's configuration.

    Args:
        file: its JSON, in the form of ``PUT /connectors/NAME/config``.

    Raises:
        UserError: it cannot be read, or is of another database.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._config: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
            kind = self._config["connector.class"].rpartition(".")[2]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"cannot read the connector {file}: {error}; --connector names another"
            ) from error
        if kind == "PostgresConnector":
            self.database = "postgresql"
        elif kind in ("MariaDbConnector", "MySqlConnector"):
            self.database = "mariadb"
        else:
            raise UserError(f"{file}: {kind} reads neither PostgreSQL nor MariaDB")
        if "topic.prefix" not in self._config:
            raise UserError(f"{file} has no topic.prefix")

    @property
    def publication(self) -> str | None:
        """Whose tables PostgreSQL sends it."""
        if self.database != "postgresql":
            return None
        return self._config.get("publication.name", "dbz_publication")

    @property
    def user(self) -> str:
        """Its database user; ``debezium`` where the configuration has a placeholder."""
        user = self._config.get("database.user", "")
        return user if user and not user.startswith("${") else "debezium"

    @property
    def signals(self) -> str | None:
        """The table that signals are inserted into."""
        return self._config.get("signal.data.collection")

    @property
    def slot(self) -> str:
        """The replication slot that it reads from."""
        return self._config.get("slot.name", "debezium")

    def is_auxiliary(self, table: str) -> bool:
        """Whether a table is not data: that of signals or of markers."""
        return table == self.signals or table.rpartition(".")[2] == MARKER_TABLE

    def topic(self, table: str) -> str:
        """Where it sends a table's changes."""
        return f"{self._config['topic.prefix']}.{table}"

    def table(self, topic: str) -> str | None:
        """The table whose changes a topic carries; None of another connector's topic."""
        prefix = self.topic("")
        return topic.removeprefix(prefix) if topic.startswith(prefix) else None

    def captures(self, table: str) -> bool:
        """Whether its lists have a table."""
        if listed := self._list("table.include.list"):
            return any(re.fullmatch(entry, table, re.IGNORECASE) for entry in listed)
        schema = table.partition(".")[0]
        databases = self._list("database.include.list") or self._list("schema.include.list")
        is_left_out = any(
            re.fullmatch(entry, table, re.IGNORECASE)
            for entry in self._list("table.exclude.list")
        )
        return not is_left_out and (not databases or schema in databases)

    def declaration(self, table: Table, name: str | None = None) -> Declaration:
        """What to declare of a table whose events it sends.

        Args:
            table: as the source's catalogue describes it.
            name: of the bronze and the silver table, where it is not the source's.

        Raises:
            UserError: the table cannot be declared.
        """
        entries = self._list("column.exclude.list")
        left_out = frozenset(
            each.name
            for each in table.columns
            if any(
                re.fullmatch(entry, f"{table}.{each.name}", re.IGNORECASE)
                for entry in entries
            )
        )
        own = name or own_name(table.name)
        decimal_mode = self._config.get("decimal.handling.mode", "precise")
        return declaration(table, own, self.database, decimal_mode, left_out)

    def capture(self, project: Project, table: str) -> None:
        """Add a table to its list; Debezium reads the table of markers last."""
        text = project.text(self.file)
        name = "table.include.list"
        if self.captures(table):
            return
        if name not in self._config:
            raise UserError(f"{self.file} leaves out {table}: change its lists by hand")
        before = json.dumps(self._config[name])
        # The entries are regular expressions, in which a dot matches a dot, too.
        literal = re.sub(r"([^\w.])", r"\\\1", table)
        listed = sorted([*self._list(name), literal], key=self.is_auxiliary)
        self._config[name] = ",".join(listed)
        project.write(self.file, text.replace(before, json.dumps(self._config[name]), 1))

    def _list(self, name: str) -> list[str]:
        return [
            part.strip() for part in self._config.get(name, "").split(",") if part.strip()
        ]
