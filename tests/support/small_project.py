"""A project of one topic and one silver table, for tests that change its models."""

import shutil
from pathlib import Path
from typing import Any

from tests.support.project import copy_project, write_rejected_rows

FOLDER = Path(__file__).with_name("small_models")
TOPICS = (FOLDER / "topics.toml").read_text()
SOURCES = (FOLDER / "models/staging/_sources.yml").read_text()
GOLD = (FOLDER / "gold/by_customer.sql").read_text()
COLUMNS = {"order_id": "int", "customer_id": "bpchar", "customer": "json"}
MORE_COLUMNS = COLUMNS | {"priority": "int"}


def empty_project(folder: Path) -> Path:
    """The project's own, without its models and tests."""
    copy_project(folder)
    for name in ("models", "analyses", "tests"):
        shutil.rmtree(folder / name)
    return folder


def small_project(folder: Path) -> Path:
    """A project of one silver table with few columns, whose builds take seconds."""
    empty_project(folder)
    shutil.copy(FOLDER / "topics.toml", folder)
    shutil.copytree(FOLDER / "models", folder / "models")
    set_columns(folder, COLUMNS)
    return folder


def add_gold(project: Path) -> None:
    """Add the table ``by_customer`` to a small project's gold."""
    shutil.copytree(FOLDER / "gold", project / "models" / "gold")


def set_columns(project: Path, columns: dict[str, str], **settings: Any) -> None:
    """Have the staging model of a small project list these columns, with other settings."""
    meta = {"key": "order_id", "columns": columns} | settings
    write_staging(project, "stg_orders", meta)


def write_model(project: Path, name: str, text: str, **config: Any) -> None:
    """Write a model, which is named with its folder."""
    settings = ", ".join(f"{key}={value!r}" for key, value in config.items())
    file = project / f"models/{name}.sql"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{{{{ config({settings}) }}}}\n\n{text}\n")


def write_staging(
    project: Path, name: str, meta: dict[str, Any], table: str = "cdc_events"
) -> None:
    """Write a staging model of a bronze table, and the model of what they reject."""
    events = f"{{{{ change_events(source('bronze', '{table}')) }}}}"
    write_model(project, f"staging/{name}", events, meta=meta)
    (project / "models/silver").mkdir(exist_ok=True)
    write_rejected_rows(project / "models")
