"""What dbt knows of the tables: ``target/manifest.json``, as the last run wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, TemplateError

from ingest.errors import UserError

MANIFEST = Path("target/manifest.json")


@dataclass(frozen=True)
class Relation:
    """A table of the lake.

    Attributes:
        layer: ``bronze``, ``silver`` or ``gold``.
        name: its name there.
        description: what one row of it is.
        columns: the described columns' descriptions, by name.
    """

    layer: str
    name: str
    description: str
    columns: dict[str, str]


class Manifest:
    """The tables of a dbt project, and its SQL files' names resolved for a catalogue."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._nodes = list(content["nodes"].values())
        self._sources = list(content["sources"].values())

    @classmethod
    def read(cls, path: Path = MANIFEST) -> Manifest:
        """Read what the last dbt command wrote.

        Raises:
            UserError: there is none.
        """
        if not path.exists():
            raise UserError(f"no {path} here: run `dbt build` or `dbt parse` first")
        return cls(json.loads(path.read_text(encoding="utf-8")))

    def relations(self) -> Iterator[Relation]:
        """Bronze, silver and gold, in this order. Staging's views are only dbt's."""
        tables = [
            *(_relation(source, "identifier") for source in self._sources),
            *(_relation(model, "alias") for model in self._models()),
        ]
        order = ("bronze", "silver", "gold")
        yield from sorted(tables, key=lambda table: (order.index(table.layer), table.name))

    def render(self, file: Path, prefix: str) -> str:
        """A query with ``ref`` and ``source`` replaced by the catalogue's names.

        Args:
            file: SQL, with Jinja as in dbt.
            prefix: what the databases' names begin with.

        Raises:
            UserError: the file is missing, or names what dbt does not know.
        """
        models = {model["name"]: _relation(model, "alias") for model in self._models()}
        sources = {
            (source["source_name"], source["name"]): _relation(source, "identifier")
            for source in self._sources
        }

        def ref(name: str) -> str:
            if name not in models:
                raise UserError(f"{file}: no table is made by a model called '{name}'")
            return f"{prefix}_{models[name].layer}.{models[name].name}"

        def source(name: str, table: str) -> str:
            if (name, table) not in sources:
                raise UserError(f"{file}: there is no source '{name}.{table}'")
            return f"{prefix}_{sources[name, table].layer}.{sources[name, table].name}"

        try:
            text = file.read_text(encoding="utf-8")
            environment = Environment(undefined=StrictUndefined, autoescape=False)
            return environment.from_string(text).render(ref=ref, source=source)
        except (OSError, TemplateError) as error:
            raise UserError(f"cannot read {file}: {error}") from error

    def _models(self) -> list[dict[str, Any]]:
        return [
            node
            for node in self._nodes
            if node["resource_type"] == "model"
            and node["config"]["materialized"] == "incremental"
        ]


def _relation(node: dict[str, Any], name: str) -> Relation:
    return Relation(
        layer=node["schema"],
        name=node[name],
        description=_one_line(node["description"]),
        columns={
            column["name"]: _one_line(column["description"])
            for column in node["columns"].values()
        },
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
