"""A dbt project's files, and what is added to them: nothing else in a file changes.

A parser says where an addition belongs; it is put into the text there, so that comments,
quotes and line ends stay as they are.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cdc_lakehouse.dbt.package import PACKAGE, profiles_option
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.sources import models
from cdc_lakehouse.sources.models import Declaration
from cdc_lakehouse.storage.marks import MARKER_TABLE, REJECTED_TABLE

# The names of tables and models that every project has.
RESERVED = (REJECTED_TABLE, "rejected_rows", MARKER_TABLE)
CHANGE_EVENTS = f"macro.{PACKAGE}.change_events"
NEW_SOURCES = f"""\
sources:
  - name: bronze
    schema: bronze
    tables:
      - name: {REJECTED_TABLE}
        description: One row per record that is no change event, with the reason.
"""
NEW_REJECTED_ROWS = """\
{{{{ config(unique_key='event_id') }}}}

{{{{ cdc_lakehouse.rejected_rows([
    ref('{model}'),
]) }}}}
"""


@dataclass(frozen=True)
class _Tables:
    """The tables of a source in a YAML file, as nodes with their places."""

    key: Any
    list: Any

    def names(self) -> list[str]:
        entries = self.list.value if isinstance(self.list, yaml.SequenceNode) else ()
        return [mapping(entry)["name"].value for entry in entries]


@dataclass(frozen=True)
class Model:
    """A staging model, as dbt knows it.

    Attributes:
        name: ``stg_…``.
        bronze: the bronze table that it reads.
        meta: what it declares.
    """

    name: str
    bronze: str
    meta: Mapping[str, Any]


class Project:
    """A dbt project, and the texts that its files are to have.

    Args:
        folder: of its ``dbt_project.yml``.
        topics: its topics file, where that has another place.

    Raises:
        UserError: there is no dbt project.
    """

    def __init__(self, folder: Path, topics: Path | None = None) -> None:
        self.folder = folder
        settings = folder / "dbt_project.yml"
        try:
            content = yaml.safe_load(settings.read_text(encoding="utf-8"))
            content["name"]
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            raise UserError(f"cannot read {settings}: {error}") from error
        self._variables = content.get("vars") or {}
        self.topics = topics or folder / "topics.toml"
        self._new: dict[Path, str] = {}

    def variable(self, name: str) -> str | None:
        """A variable as ``dbt_project.yml`` has it, for the package or for all."""
        own = self._variables.get(PACKAGE, {})
        found: str | None = own.get(name, self._variables.get(name))
        return found

    def text(self, path: Path) -> str:
        """A file's text, as it is to be; empty where there is none."""
        if path not in self._new:
            try:
                return path.read_text(encoding="utf-8") if path.exists() else ""
            except UnicodeDecodeError as error:
                raise UserError(f"cannot read {path}: save it as UTF-8") from error
        return self._new[path]

    def write(self, path: Path, text: str) -> None:
        """Have a file hold a text, once `save` is called."""
        self._new[path] = text

    def noted(self) -> dict[Path, str]:
        """What files are to hold, for ``restore``."""
        return dict(self._new)

    def restore(self, noted: dict[Path, str]) -> None:
        """Take back what was to be written since."""
        self._new = noted

    def changed(self) -> list[Path]:
        """The files whose text is to be another."""
        return [
            path
            for path, text in self._new.items()
            if not path.exists() or path.read_text(encoding="utf-8") != text
        ]

    def diff(self) -> str:
        """What `save` would change, as a unified diff."""
        found: list[str] = []
        for path in self.changed():
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            name = self._shown(path)
            found += difflib.unified_diff(
                before.splitlines(keepends=True),
                self._new[path].splitlines(keepends=True),
                f"a/{name}" if before else "/dev/null",
                f"b/{name}",
            )
        return "".join(found)

    def save(self) -> list[str]:
        """Write what changed; the files' names."""
        changed = self.changed()
        for path in changed:
            path.parent.mkdir(parents=True, exist_ok=True)
            is_of_windows = path.exists() and b"\r\n" in path.read_bytes()
            path.write_text(
                self._new[path],
                encoding="utf-8",
                newline="\r\n" if is_of_windows else "\n",
            )
        return [self._shown(path) for path in changed]

    def _shown(self, path: Path) -> str:
        return str(
            path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
        )

    def model(self, name: str) -> Path | None:
        """The file of a model."""
        return next(iter(self.files(f"{name}.sql")), None)

    def files(self, pattern: str) -> list[Path]:
        """The files below ``models`` of a name, also those that are to be written."""
        folder = self.folder / "models"
        new = [path for path in self._new if path.is_relative_to(folder)]
        found = {*folder.rglob(pattern), *(path for path in new if path.match(pattern))}
        return sorted(found)

    def tables(self) -> dict[str, str]:
        """The bronze table of each topic."""
        try:
            content = tomllib.loads(self.text(self.topics))
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"cannot read {self.topics}: {error}") from error
        found: dict[str, str] = content.get("topics", {})
        return found

    def has(self, topic: str) -> bool:
        """Whether a topic's table has its source and models already."""
        name = self.tables().get(topic)
        sources = (self._bronze(file) for file in self.files("*.yml"))
        return (
            name is not None
            and None not in (self.model(name), self.model(f"stg_{name}"))
            and any(name in tables.names() for tables in sources if tables)
        )

    def staging_models(self, variables: str) -> list[Model]:
        """The staging models that are enabled, as dbt parses them.

        Args:
            variables: dbt's ``--vars``.

        Raises:
            UserError: dbt cannot parse the project.
        """
        # Seconds to load, which `--help` and `add` need not wait for.
        from dbt.cli.main import dbtRunner
        from dbt.contracts.graph.manifest import Manifest
        from dbt.contracts.graph.nodes import ModelNode

        places = ["--project-dir", str(self.folder), *profiles_option(self.folder)]
        parsed = dbtRunner().invoke(
            ["--quiet", "--log-level", "none", "parse", *places, "--vars", variables]
        )
        if not isinstance(parsed.result, Manifest):
            raise UserError(f"dbt parse of {self.folder}: {parsed.exception}")
        return [
            Model(node.name, source.name, node.config.meta)
            for node in parsed.result.nodes.values()
            if isinstance(node, ModelNode) and CHANGE_EVENTS in node.depends_on.macros
            for number in node.depends_on.nodes
            if (source := parsed.result.sources.get(number)) is not None
        ]

    def add(self, declared: Declaration, topic: str) -> None:
        """Add a table: its topic, its source, its models, its rejected rows.

        Raises:
            UserError: its name is taken, or none.
        """
        name = declared.name
        if not re.fullmatch("(?=.*[a-z0-9])[a-z_][a-z0-9_]*", name):
            raise UserError(
                f"{declared.source}: {name!r} is no name of a table here, which is of"
                " letters a to z, digits and underscores: --as gives it one"
            )
        if name in RESERVED:
            raise UserError(
                f"{declared.source}: the name {name} is reserved; --as gives the table"
                " another"
            )
        is_known = self.tables().get(topic) == name
        taken = [self.model(name), self.model(f"stg_{name}")]
        if not is_known and (any(taken) or name in self.tables().values()):
            file = next((self._shown(path) for path in taken if path), self.topics.name)
            raise UserError(
                f"{declared.source}: the name {name} is taken in {file};"
                " --as gives the table another"
            )
        self._add_topic(topic, name)
        self._add_source(name, declared.source)
        for file, text in (
            (f"staging/stg_{name}.sql", models.staging_model(declared)),
            (f"staging/stg_{name}.yml", models.staging_yaml(declared)),
            (f"silver/{name}.sql", models.silver_model(declared)),
            (f"silver/{name}.yml", models.silver_yaml(declared)),
        ):
            stem, _, ending = Path(file).name.rpartition(".")
            if not self.files(f"{stem}.{ending}"):
                self.write(self.folder / "models" / file, text)
        self._add_rejected_rows(f"stg_{name}")

    def _add_topic(self, topic: str, name: str) -> None:
        """A line behind the last one of ``[topics]``."""
        if topic in self.tables():
            return
        text = self.text(self.topics) or "[topics]\n"
        added = f"{json.dumps(topic)} = {json.dumps(name)}\n"
        section = re.search(
            r"^[ \t]*\[[ \t]*topics[ \t]*\].*\n?(?P<lines>(?:(?![ \t]*\[).*\n)*.*)",
            text,
            re.MULTILINE,
        )
        if section is not None:
            place = section.start("lines")
            for line in re.finditer(r"^[^#\n\[]*=.*\n?", section["lines"], re.MULTILINE):
                place = section.start("lines") + line.end()
            self.write(self.topics, inserted(text, place, added))
        if self.tables().get(topic) != name:
            raise UserError(
                f"{self.topics}: add this line to its section [topics] by hand: {added}"
            )

    def _add_source(self, name: str, table: str) -> None:
        """An entry behind the last table of changes of the source ``bronze``."""
        files = (file for file in self.files("*.yml") if self._bronze(file))
        path = next(files, self.folder / "models/staging/_sources.yml")
        if not self.text(path):
            self.write(path, NEW_SOURCES)
        tables = self._bronze(path)
        if tables is None:
            raise UserError(f"{path} has no source called bronze: add it")
        names = tables.names()
        if name in names:
            return
        if names and tables.list.flow_style:
            raise UserError(
                f"{path}: add {name} by hand; the source's tables are not a list of lines"
            )
        text = self.text(path)
        indent = " " * (tables.key.start_mark.column + 2)
        if names:
            indent = " " * (tables.list.value[0].start_mark.column - 2)
        described = models.scalar(f"One row per change of `{table}`.")
        added = f"{indent}- name: {models.scalar(name)}\n"
        added += f"{indent}  description: {described}\n"
        if "&event_columns" in text:
            added += f"{indent}  columns: *event_columns\n"
        if not names:
            # In place of `[]`, or of nothing.
            place = text.index(":", tables.key.end_mark.index) + 1
            rest = re.sub(r"\A[ \t]*(\[\s*\]|~|null)?", "", text[place:])
            self.write(path, f"{text[:place]}\n{added.rstrip()}{rest}")
        else:
            changes = [number for number, its in enumerate(names) if its != REJECTED_TABLE]
            # The end mark of a block is where the next token begins: behind blank lines.
            place = (
                tables.list.value[changes[-1]].end_mark.index
                if changes
                else tables.list.value[0].start_mark.index - 2
            )
            place = text.rfind("\n", 0, place) + 1
            self.write(path, inserted(text, place, added))
        if (changed := self._bronze(path)) is None or name not in changed.names():
            raise UserError(f"{path}: add {name} to the tables of bronze by hand")

    def _bronze(self, path: Path) -> _Tables | None:
        """The tables of the source ``bronze`` in a YAML file."""
        text = self.text(path)
        if "sources:" not in text:
            return None
        try:
            root = mapping(yaml.compose(text, Loader=yaml.SafeLoader))
        except yaml.YAMLError as error:
            raise UserError(f"cannot read {path}: {error}") from error
        for source in root["sources"].value if "sources" in root else ():
            if mapping(source)["name"].value == "bronze":
                for key, value in source.value:
                    if key.value == "tables":
                        return _Tables(key, value)
                raise UserError(f"{path}: the source bronze has no tables: add the list")
        return None

    def _add_rejected_rows(self, model: str) -> None:
        """A line in the list of the model that calls ``rejected_rows``."""
        line = f"ref('{model}')"
        for path in self.files("*.sql"):
            text = self.text(path)
            if "rejected_rows(" not in text:
                continue
            if re.search(rf"ref\(\s*(['\"]){model}\1\s*\)", text):
                return
            listed = re.search(r"\[(\s*)ref\([^\]]*?\)(,?)(\s*)\]", text)
            if listed is None:
                raise UserError(f"{path}: add {line} to the list of rejected_rows")
            place = listed.start(2)
            if "\n" in listed[1]:
                added = ("" if listed[2] else ",") + f"{listed[1]}{line},"
                place += len(listed[2])
            else:
                added = f", {line}"
            self.write(path, inserted(text, place, added))
            return
        self.write(
            self.folder / "models/silver/rejected_rows.sql",
            NEW_REJECTED_ROWS.format(model=model),
        )


def inserted(text: str, place: int, added: str) -> str:
    """The text with an addition; lines begin at the beginning of a line."""
    if place and text[place - 1] != "\n" and added.endswith("\n"):
        added = f"\n{added}"
    return text[:place] + added + text[place:]


def mapping(node: Any) -> dict[str, Any]:
    """A mapping's nodes, by key; of something else none."""
    entries = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: value for key, value in entries}
