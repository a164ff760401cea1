"""The project's folder, dbt without Spark, and copies that a test may change."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from cdc_lakehouse.dbt.package import profiles_option

PROJECT = Path(__file__).parent.parent.parent
TICKIT, MOMA, PAGILA = (
    PROJECT / "examples" / name for name in ("tickit", "moma", "pagila")
)
CAPTURES = Path(__file__).parent / "captures"


def expected_revenue() -> dict[str, Decimal]:
    """What the source answers for the recorded events: the revenue of each customer."""
    with (PROJECT / "seeds/expected_revenue_by_customer.csv").open(newline="") as file:
        return {row["customer_id"]: Decimal(row["revenue"]) for row in csv.DictReader(file)}


def dbt(
    target: Path, *arguments: str, project: Path = PROJECT
) -> subprocess.CompletedProcess[str]:
    """Run dbt in a process of its own; what it makes is kept in ``target``."""
    places = ["--target-path", str(target), "--log-path", str(target)]
    return subprocess.run(
        [
            *(sys.executable, "-m", "dbt.cli.main", *arguments),
            *(*profiles_option(project), *places),
        ],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def parsed(target: Path, *arguments: str, project: Path = PROJECT) -> dict[str, Any]:
    """The manifest that ``dbt parse`` writes, where a warning is an error."""
    words = ("--warn-error", "parse", "--no-partial-parse", *arguments)
    done = dbt(target, *words, project=project)
    assert done.returncode == 0, done.stdout + done.stderr
    manifest: dict[str, Any] = json.loads((target / "manifest.json").read_text())
    return manifest


def write_rejected_rows(models: Path) -> None:
    """Write the model that a build asks for, over all staging models that are there.

    It costs nothing, as no model reads it.
    """
    staging = sorted(file.stem for file in (models / "staging").glob("*.sql"))
    listed = ", ".join(f"ref('{name}')" for name in staging)
    (models / "silver" / "rejected_rows.sql").write_text(
        "{{ config(materialized='ephemeral') }}\n\n{{ rejected_rows([" + listed + "]) }}\n"
    )


def new_project(folder: Path, **environment: str) -> Path:
    """A project as ``init`` writes it; without a source to ask, where none is given."""
    done = subprocess.run(
        [sys.executable, "-m", "cdc_lakehouse", "init", str(folder)],
        cwd=PROJECT,
        env={
            name: text
            for name, text in os.environ.items()
            if name not in ("PGHOST", "MYSQL_HOST")
        }
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def copy_project(folder: Path) -> Path:
    """A copy of what ingest and dbt need, to be changed by a test."""
    copied = (
        *("ingest", "cdc_lakehouse", "connectors", "macros", "models", "analyses"),
        *("profiles", "tests/dbt"),
    )
    for name in copied:
        shutil.copytree(PROJECT / name, folder / name)
    for name in ("dbt_project.yml", "topics.toml", "dbt_cdc_lakehouse.py"):
        shutil.copy(PROJECT / name, folder)
    (folder / ".venv").symlink_to(PROJECT / ".venv")
    return folder


def write_topics(folder: Path, tables: Mapping[str, str]) -> Path:
    """A topics file with the bronze table of each topic."""
    lines = [f'"{topic}" = "{table}"\n' for topic, table in tables.items()]
    file = folder / "topics.toml"
    file.write_text("".join(["[topics]\n", *lines]))
    return file


def replace_once(file: Path, old: str, new: str) -> None:
    """Change a text of a file that is there once."""
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file} has {text.count(old)} of {old!r}"
    file.write_text(text.replace(old, new), encoding="utf-8")
