"""What dbt knows of the tables: ``target/manifest.json``, as the last run wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from jinja2 import Environment, StrictUndefined

from cdc_lakehouse.errors import UserError

MANIFEST = Path("target/manifest.json")
LAYERS = ("bronze", "silver", "gold")
# What a database's name may begin with: neither Glue nor SQL takes it for something else.
PREFIX = r"[a-z0-9_]{1,64}"


def catalogue_options(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add ``--prefix`` and ``--manifest`` to a command that reads or writes a catalogue."""
    prefix = click.option(
        "--prefix",
        default="lake",
        callback=valid_prefix,
        help="Of the databases' names: `lake` for `lake_gold`.",
    )
    manifest = click.option(
        "--manifest",
        "manifest_file",
        type=click.Path(path_type=Path),
        default=MANIFEST,
        help="What dbt wrote.",
    )
    return prefix(manifest(command))


def valid_prefix(
    context: click.Context, option: click.Parameter, text: str | None
) -> str | None:
    """The prefix of databases, as click asks for it.

    Raises:
        click.BadParameter: it is no name.
    """
    if text is not None and not re.fullmatch(PREFIX, text):
        raise click.BadParameter(f"invalid prefix {text!r}: use a-z, 0-9 and _")
    return text


@dataclass(frozen=True)
class Relation:
    """A table of the lake.

    Attributes:
        layer: ``bronze``, ``silver`` or ``gold``.
        schema: the layer, behind a prefix on targets that have one.
        name: its name there.
        description: what one row of it is.
        columns: the described columns' descriptions, by name.
    """

    layer: str
    schema: str
    name: str
    description: str
    columns: dict[str, str]

    @property
    def schemas(self) -> list[str]:
        """Whose folder it may be in: a catalogue may have a schema at the layer's."""
        return list(dict.fromkeys((self.schema, self.layer)))


@dataclass(frozen=True)
class Analysis:
    """A question in a file of ``analyses/``.

    Attributes:
        name: the file's, without its suffix.
        description: of its YAML, or the comment that it begins with.
        file: where it is, in the project's folder.
        models: the names of the models that it reads.
    """

    name: str
    description: str
    file: Path
    models: tuple[str, ...]


# The materializations that make tables.
TABLES = ("atomic_overwrite", "cdc_history", "cdc_merge", "incremental")


class Manifest:
    """The tables of a dbt project, and its SQL files' names resolved for a catalogue.

    Args:
        content: the file's.

    Raises:
        UserError: it is no manifest.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        try:
            self._models = {
                node["name"]: _relation(node, node["fqn"][1], "alias")
                for node in content["nodes"].values()
                if node["resource_type"] == "model"
                and node["config"]["materialized"] in TABLES
            }
            self._sources = {
                (node["source_name"], node["name"]): _relation(
                    node, node["source_name"], "identifier"
                )
                for node in content["sources"].values()
            }
            self._analyses = [
                _analysis(node)
                for node in content["nodes"].values()
                if node["resource_type"] == "analysis"
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(f"this is no manifest of dbt's: {error!r} fails") from error

    @classmethod
    def read(cls, path: Path = MANIFEST) -> Manifest:
        """Read what the last dbt command wrote.

        Raises:
            UserError: there is none, or it is something else.
        """
        if not path.is_file():
            raise UserError(f"no {path} here: run `dbt build` or `dbt parse` first")
        try:
            return cls(json.loads(path.read_text(encoding="utf-8")))
        except (UserError, ValueError) as error:
            raise UserError(f"cannot read {path}: {error}") from error

    def relations(self) -> list[Relation]:
        """Bronze, silver and gold, in this order. Staging's views are only dbt's."""
        tables = [*self._sources.values(), *self._models.values()]
        return sorted(
            (table for table in tables if table.layer in LAYERS),
            key=lambda table: (LAYERS.index(table.layer), table.name),
        )

    def analyses(self) -> list[Analysis]:
        """The files of ``analyses/``, by name."""
        return sorted(self._analyses, key=lambda analysis: analysis.name)

    def model(self, name: str) -> Relation:
        """The table that a model makes.

        Raises:
            UserError: none is made by a model of this name.
        """
        found = self._models.get(name)
        if found is None:
            raise UserError(f"no table is made by a model called '{name}'")
        return found

    def render(self, file: Path, prefix: str) -> str:
        """A query with ``ref`` and ``source`` replaced by the catalogue's names.

        Args:
            file: SQL, with Jinja as in dbt.
            prefix: what the databases' names begin with.

        Raises:
            UserError: the file is missing, or names what dbt does not know.
        """

        def ref(*names: str) -> str:
            model = self.model(names[-1])
            return f"{prefix}_{model.layer}.{model.name}"

        def source(name: str, table: str) -> str:
            found = self._sources.get((name, table))
            if found is None:
                raise UserError(f"there is no source '{name}.{table}'")
            return f"{prefix}_{found.layer}.{found.name}"

        try:
            text = file.read_text(encoding="utf-8")
            environment = Environment(undefined=StrictUndefined, autoescape=False)
            return environment.from_string(text).render(
                ref=ref,
                source=source,
                # As dbt without variables; whether it compiles the file is no matter here.
                var=lambda name, default: default,
                config=lambda **settings: "",
            )
        except Exception as error:  # whatever the file's own expressions raise
            raise UserError(f"cannot read {file}: {error}") from error


def _relation(node: dict[str, Any], layer: str, name: str) -> Relation:
    return Relation(
        layer=layer,
        schema=node["schema"],
        name=node[name],
        description=_one_line(node["description"]),
        columns={
            column["name"]: _one_line(column["description"])
            for column in node["columns"].values()
        },
    )


def _analysis(node: dict[str, Any]) -> Analysis:
    comment = re.search(r"^--[^\n]*(\n--[^\n]*)*", node["raw_code"], re.MULTILINE)
    said = node["description"] or (comment[0].replace("--", "") if comment else "")
    read = [each.split(".") for each in node["depends_on"]["nodes"]]
    return Analysis(
        name=node["name"],
        description=_one_line(said),
        file=Path(node["original_file_path"]),
        models=tuple(name for kind, _, name, *_ in read if kind == "model"),
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
