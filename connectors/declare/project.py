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

from connectors.declare import models
from connectors.declare.models import Declaration
from lake.errors import UserError
from lake.mark import REJECTED_TABLE

OWN_NAME = "cdc_lakehouse"
PROFILES = models.PACKAGE / "profiles"
CHANGE_EVENTS = f"macro.{OWN_NAME}.change_events"
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

{{{{ {package}rejected_rows([
    ref('{model}'),
]) }}}}
"""


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

    Attributes:
        package: what the name of a macro of ours begins with there: nothing here.

    Raises:
        UserError: there is no dbt project.
    """

    def __init__(self, folder: Path, topics: Path | None = None) -> None:
        self.folder = folder
        settings = folder / "dbt_project.yml"
        try:
            name = yaml.safe_load(settings.read_text(encoding="utf-8"))["name"]
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            raise UserError(f"cannot read {settings}: {error}") from error
        self.package = "" if name == OWN_NAME else f"{OWN_NAME}."
        own_topics = folder / "ingest/topics.toml"
        its_topics = own_topics if own_topics.exists() else folder / "topics.toml"
        self.topics = topics or its_topics
        self._new: dict[Path, str] = {}

    def text(self, path: Path) -> str:
        """A file's text, as it is to be; empty where there is none."""
        if path not in self._new:
            return path.read_text(encoding="utf-8") if path.exists() else ""
        return self._new[path]

    def write(self, path: Path, text: str) -> None:
        """Have a file hold a text, once `save` is called."""
        self._new[path] = text

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
            path.write_text(self._new[path], encoding="utf-8")
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
        found: dict[str, str] = tomllib.loads(self.text(self.topics)).get("topics", {})
        return found

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

        places = ("--project-dir", str(self.folder), "--profiles-dir", str(PROFILES))
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
            UserError: its name is taken.
        """
        name = declared.name
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
            (f"staging/stg_{name}.sql", models.staging_model(declared, self.package)),
            (f"staging/stg_{name}.yml", models.staging_yaml(declared)),
            (f"silver/{name}.sql", models.silver_model(declared, self.package)),
            (f"silver/{name}.yml", models.silver_yaml(declared, self.package)),
        ):
            stem, _, ending = Path(file).name.rpartition(".")
            if not self.files(f"{stem}.{ending}"):
                self.write(self.folder / "models" / file, text)
        self._add_rejected_rows(f"stg_{name}")

    def _add_topic(self, topic: str, name: str) -> None:
        """A line behind the last one of ``[topics]``."""
        text = self.text(self.topics) or "[topics]\n"
        if topic in tomllib.loads(text).get("topics", {}):
            return
        section = re.search(r"^\[topics\][ \t]*\n(?:(?!\[).*\n?)*", text, re.MULTILINE)
        if section is None:
            raise UserError(f"{self.topics} has no section [topics]")
        place = section.start() + len("[topics]\n")
        for line in re.finditer(r"^[^#\n\[]*=.*\n?", section[0], re.MULTILINE):
            place = section.start() + line.end()
        added = f"{json.dumps(topic)} = {json.dumps(name)}\n"
        self.write(self.topics, inserted(text, place, added))

    def _add_source(self, name: str, table: str) -> None:
        """An entry behind the last table of changes of the source ``bronze``."""
        files = (file for file in self.files("*.yml") if _sources(self.text(file)))
        path = next(files, self.folder / "models/staging/_sources.yml")
        text = self.text(path) or NEW_SOURCES
        tables = _sources(text)
        if tables is None:
            raise UserError(f"{path} has no source called bronze: add it")
        names = [mapping(entry)["name"].value for entry in tables.value]
        if name in names:
            return
        before = [
            entry
            for entry, its_name in zip(tables.value, names, strict=True)
            if its_name != REJECTED_TABLE
        ]
        indent = " " * (tables.value[0].start_mark.column - 2)
        added = f"{indent}- name: {name}\n"
        added += f"{indent}  description: One row per change of `{table}`.\n"
        if "&event_columns" in text:
            added += f"{indent}  columns: *event_columns\n"
        # The end mark of a block is where the next token begins: behind blank lines.
        place = (
            before[-1].end_mark.index if before else tables.value[0].start_mark.index - 2
        )
        place = text.rfind("\n", 0, place) + 1
        self.write(path, inserted(text, place, added))

    def _add_rejected_rows(self, model: str) -> None:
        """A line in the list of the model that calls ``rejected_rows``."""
        line = f"ref('{model}')"
        for path in self.files("*.sql"):
            text = self.text(path)
            if "rejected_rows(" not in text:
                continue
            if line in text:
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
            NEW_REJECTED_ROWS.format(package=self.package, model=model),
        )


def inserted(text: str, place: int, added: str) -> str:
    """The text with an addition; lines begin at the beginning of a line."""
    if place and text[place - 1] != "\n" and added.endswith("\n"):
        added = f"\n{added}"
    return text[:place] + added + text[place:]


def _sources(text: str) -> Any:
    """The tables of the source ``bronze`` in a YAML file, as nodes with their places."""
    if "sources:" not in text:
        return None
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    for source in mapping(root).get("sources", yaml.SequenceNode("", [])).value:
        found = mapping(source)
        if found["name"].value == "bronze":
            return found["tables"]
    return None


def mapping(node: Any) -> dict[str, Any]:
    """A mapping's nodes, by key."""
    return {key.value: value for key, value in node.value}
