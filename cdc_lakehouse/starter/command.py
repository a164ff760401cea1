"""The command ``init``: a dbt project for one's own database."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, version
from cdc_lakehouse.dbt.package import LINK, PACKAGE, installed_package, point
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.sources.catalogue import Catalogue, Reader
from cdc_lakehouse.sources.connector import Connector, read_catalogue
from cdc_lakehouse.sources.preparation import preparation
from cdc_lakehouse.storage.marks import MARKER_TABLE

FILES = Path(__file__).parent
# Each file's place in a project.
PLACES = {
    "dbt_project.yml": "dbt_project.yml",
    "packages.yml": "packages.yml",
    "profiles.yml": "profiles.yml",
    "topics.toml": "topics.toml",
    "sqlfluff.cfg": ".sqlfluff",
    "gitignore.txt": ".gitignore",
    "README.md": "README.md",
    "_sources.yml": "models/staging/_sources.yml",
    "rejected_records.sql": "models/gold/rejected_records.sql",
}
CONNECTOR = "connectors/source.json"
MARKERS = f"""\
      - name: {MARKER_TABLE}
        description: One row per snapshot that `cdc-lakehouse resync` asked for.
"""
# What another part of dbt is called.
TAKEN = {PACKAGE, "dbt", "dbt_spark", "bronze", "staging", "silver", "gold"}


@click.command("init", context_settings=STYLE)
@version
@click.argument("folder", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Write a small dbt project into FOLDER, and print what its source needs.

    It is of PostgreSQL, or of MariaDB or MySQL where MYSQL_HOST is set and PGHOST is not.
    The source is asked where one of them is set.
    """
    name = project_name(folder)
    _require_empty(folder)
    is_mariadb = "MYSQL_HOST" in os.environ and "PGHOST" not in os.environ
    database = "mariadb" if is_mariadb else "postgresql"
    texts = {place: _text(file, name) for file, place in PLACES.items()}
    texts[CONNECTOR] = _text(f"source-{database}.json", name)
    if not is_mariadb:
        texts["topics.toml"] += (
            f'"{name}.cdc_lakehouse.{MARKER_TABLE}" = "{MARKER_TABLE}"\n'
        )
        texts["models/staging/_sources.yml"] += MARKERS
    connector = Connector(folder / CONNECTOR, texts[CONNECTOR])
    is_there = "MYSQL_HOST" in os.environ or "PGHOST" in os.environ
    catalogue = read_catalogue(connector) if is_there else Catalogue(reader=Reader())
    for place, text in texts.items():
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        click.echo(f"wrote {file}", err=True)
    point(folder / LINK, installed_package())
    for line in preparation(connector, catalogue, []):
        click.echo(line)


def project_name(folder: Path) -> str:
    """A project's name, from that of its folder.

    Raises:
        UserError: dbt allows no such name.
    """
    name = re.sub(r"[\s.-]+", "_", folder.absolute().name.lower())
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name) or name in TAKEN:
        raise UserError(
            f"{folder}: a project is called as its folder, by letters of a to z, digits and"
            f" underscores, and not {', '.join(sorted(TAKEN))}: name another folder"
        )
    return name


def _require_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: name a folder that is empty, or not there")
    held = sorted(each.name for each in folder.iterdir()) if folder.exists() else []
    if set(held) - {".git"}:
        raise UserError(
            f"{folder} is not empty (it has {held[0]}): name a folder that is, or is not"
            " there"
        )


def _text(file: str, name: str) -> str:
    return (FILES / file).read_text(encoding="utf-8").replace("@NAME@", name)
