"""A connector's configuration: what it captures, and how it sends it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.sources import settings
from cdc_lakehouse.sources.catalogue import (
    Catalogue,
    Table,
    quoted,
    read_mariadb,
    read_postgresql,
)
from cdc_lakehouse.sources.models import Declaration, declaration, own_name
from cdc_lakehouse.sources.project import Project
from cdc_lakehouse.storage.marks import MARKER_TABLE

PLACEHOLDER = "__debezium_unavailable_value"  # Debezium's default
OPERATION_NAMES = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}


class Connector:
    """A connector's configuration.

    Args:
        file: its JSON, in the form of ``PUT /connectors/NAME/config``.
        text: what the file will hold, where it is not there yet.

    Raises:
        UserError: it cannot be read, or is of another database.
    """

    def __init__(self, file: Path, text: str | None = None) -> None:
        self.file = file
        try:
            text = file.read_text(encoding="utf-8") if text is None else text
            self._config: dict[str, str] = json.loads(text)
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
        """Whose tables PostgreSQL sends it; of the plugin ``pgoutput`` only."""
        if self._config.get("plugin.name") != "pgoutput":
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
    def markers(self) -> str | None:
        """The table of markers, beside that of signals."""
        return None if self.signals is None else markers_beside(self.signals)

    @property
    def slot(self) -> str:
        """The replication slot that it reads from."""
        return self._config.get("slot.name", "debezium")

    def is_auxiliary(self, table: str) -> bool:
        """Whether a table is not data: that of signals or of markers."""
        return table == self.signals or table.rpartition(".")[2] == MARKER_TABLE

    def topic(self, table: str) -> str:
        """Where Debezium's SchemaTopicNamingStrategy sends a table's changes."""
        return f"{self._config['topic.prefix']}.{settings.replaced(table, 'A-Za-z0-9._-')}"

    def table(self, topic: str, tables: Sequence[str]) -> str | None:
        """The table whose changes a topic carries; None of another connector's topic.

        Args:
            topic: its name, in which characters that Kafka does not allow are replaced.
            tables: the source's.
        """
        prefix = self.topic("")
        if not topic.startswith(prefix):
            return None
        found = [table for table in tables if self.topic(table) == topic]
        captured = [table for table in found if self.captures(table)]
        return next(iter(captured or found), topic.removeprefix(prefix))

    def require_own_topic(self, table: Table, catalogue: Catalogue) -> None:
        """Stop where it sends another table's changes to the same topic.

        Raises:
            UserError: it does; the message names both tables.
        """
        topic = self.topic(str(table))
        for other in map(str, catalogue.tables):
            is_other = other != str(table) and self.topic(other) == topic
            if is_other and self.captures(other):
                raise UserError(
                    f"{table}: {other} has the same topic {topic}; leave one of them to a"
                    " connector with another topic.prefix"
                )

    def captures(self, table: str) -> bool:
        """Whether its lists have a table; a list that it lacks has every one."""
        kind = "schema" if self.database == "postgresql" else "database"
        schema = table.partition(".")[0]
        return all(
            self._matches(f"{each}.include.list", name)
            if self._list(f"{each}.include.list")
            else not self._matches(f"{each}.exclude.list", name)
            for each, name in ((kind, schema), ("table", table))
        )

    def field(self, column: str) -> str:
        """What a column is called in an event."""
        return settings.field_name(self._config, column)

    def declaration(
        self, table: Table, name: str | None = None, names: Mapping[str, str] | None = None
    ) -> Declaration:
        """What to declare of a table whose events it sends.

        Args:
            table: as the source's catalogue describes it.
            name: of the bronze and the silver table, where it is not the source's.
            names: of columns, by the source's.

        Raises:
            UserError: the table cannot be declared.
        """
        if table.heirs and not self._snapshot_rows(table):
            setting = settings.STATEMENTS
            heirs = ", ".join(table.heirs)
            statement = f"select * from only {quoted(table.schema, table.name)}"
            raise UserError(
                f"{table}: a snapshot reads the rows of {heirs}, too, as that"
                " inherits from it, and whose changes are not the table's; in"
                f' {self.file}: "{setting}": "{table}", "{setting}.{table}": "{statement}"'
            )
        own = name or own_name(table.name)
        names = {
            each.name: (names or {}).get(each.name) or own_name(each.name)
            for each in table.columns
        }
        decimal_mode = self._config.get("decimal.handling.mode", "precise")
        found = declaration(
            *(table, own, self.database, decimal_mode, self.left_out(table)),
            *(self.field, names),
        )
        types = {
            each.name: found.columns[names[each.name]]
            for each in table.columns
            if names[each.name] in found.columns and not each.is_computed
        }
        masks = [name for name in self._config if re.match("column.(mask|truncate).", name)]
        masked = {
            column: name
            for name in masks
            for column in types
            if self._matches(name, f"{table}.{column}")
        }
        wrong = [
            *settings.unreadable(self._config),
            *self._unread(table),
            *settings.unreadable_columns(self._config, table, types, masked),
        ]
        if wrong:
            raise UserError(
                f"{table}: no model reads what {self.file} sends: {'; '.join(wrong)}"
                " (docs/models.md, Settings of the connector)"
            )
        return found

    def left_out(self, table: Table) -> frozenset[str]:
        """The columns of a table that it does not send."""
        included = self._list("column.include.list")
        return frozenset(
            each.name
            for each in table.columns
            for name in [f"{table}.{each.name}"]
            if self._matches("column.exclude.list", name)
            or (included and not self._matches("column.include.list", name))
        )

    def require_placeholder(self, value: str | None) -> None:
        """Stop where a project does not know what it sends for a value that it lacks.

        Args:
            value: the project's variable ``cdc_lakehouse_unavailable_value``.

        Raises:
            UserError: it sends another one.
        """
        setting = "unavailable.value.placeholder"
        sent = self._config.get(setting, PLACEHOLDER)
        if sent != (value or PLACEHOLDER):
            raise UserError(
                f"{self.file}: {setting} is {sent!r}, and must be the project's variable"
                f" cdc_lakehouse_unavailable_value, {value or PLACEHOLDER!r}"
            )

    def _unread(self, table: Table) -> Iterator[str]:
        """What makes a snapshot leave rows of a table out, with a setting's name."""
        mode = self._config.get("snapshot.mode", "initial")
        if mode not in settings.SNAPSHOTS:
            yield f"snapshot.mode={mode}"
        listed = "snapshot.include.collection.list"
        if self._list(listed) and not self._matches(listed, str(table)):
            yield f"{listed}={self._config[listed]}"
        if self._snapshot_rows(table) is None:
            yield f"{settings.STATEMENTS} that is not select * from {table}"

    def _snapshot_rows(self, table: Table) -> str | None:
        """Whose rows it reads: ``only`` the table's, or all; None where it is some."""
        setting = settings.STATEMENTS
        if not self._matches(setting, str(table)):
            return ""
        for entry in self._list(setting):
            statement = self._config.get(f"{setting}.{entry}")
            if statement and re.fullmatch(entry, str(table), re.IGNORECASE | re.ASCII):
                words = " ".join(re.sub(r'["`]|;\s*$', "", statement).split())
                rows = rf"select \* from (only )?{re.escape(str(table))}"
                found = re.fullmatch(rows, words, re.IGNORECASE)
                # The rows of a partitioned table are its partitions'.
                if found is None or (found[1] and table.is_partitioned):
                    return None
                return found[1] or ""
        return ""

    def unsent(self) -> Iterator[tuple[str, str]]:
        """The operations that it does not send, each with the setting that it is for."""
        for code in self._list("skipped.operations") or ["t"]:
            if code in OPERATION_NAMES:
                yield OPERATION_NAMES[code], "skipped.operations"
        for name in self._list("transforms"):
            setting = f"transforms.{name}"
            if self._config.get(f"{setting}.type", "").endswith(".ExtractNewRecordState"):
                # It drops an event that has a row neither before nor after.
                yield "truncate", f"{setting}.type"
                mode = f"{setting}.delete.tombstone.handling.mode"
                if not self._config.get(mode, "tombstone").startswith("rewrite"):
                    yield "delete", mode

    def capture(self, project: Project, table: str) -> None:
        """Add a table to its list; Debezium reads the table of markers last."""
        text = project.text(self.file)
        name = "table.include.list"
        if self.captures(table):
            return
        if name not in self._config:
            raise UserError(f"{self.file} leaves out {table}: change its lists by hand")
        # The entries are regular expressions, in which a dot matches a dot, too.
        literal = re.sub(r"([^\w.])", r"\\\1", table)
        listed = sorted([*self._list(name), literal], key=self.is_auxiliary)
        self._config[name] = ",".join(listed)
        found = re.search(rf'"{re.escape(name)}"\s*:\s*("(?:[^"\\]|\\.)*")', text)
        if found is not None:
            value = json.dumps(self._config[name], ensure_ascii=found[1].isascii())
            text = text[: found.start(1)] + value + text[found.end(1) :]
        if json.loads(text) != self._config or not self.captures(table):
            raise UserError(f"{self.file} leaves out {table}: change its lists by hand")
        project.write(self.file, text)

    def noted(self) -> dict[str, str]:
        """Its configuration, for ``restore``."""
        return dict(self._config)

    def restore(self, noted: dict[str, str]) -> None:
        """Take back what was added since."""
        self._config = noted

    def _matches(self, name: str, text: str) -> bool:
        """Whether one of a list's regular expressions, which are Java's, matches a name."""
        try:
            return any(
                re.fullmatch(entry, text, re.IGNORECASE | re.ASCII)
                for entry in self._list(name)
            )
        except re.error as error:
            raise UserError(
                f"{self.file}: cannot read the regular expressions of {name}: {error}"
            ) from error

    def _list(self, name: str) -> list[str]:
        return settings.listed(self._config, name)


def markers_beside(table: str) -> str:
    """The table of markers in another table's schema."""
    return f"{table.partition('.')[0]}.{MARKER_TABLE}"


def read_catalogue(connector: Connector) -> Catalogue:
    """What the source of a connector has."""
    if connector.database == "postgresql":
        return read_postgresql(connector.user)
    return read_mariadb()
