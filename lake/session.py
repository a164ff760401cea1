"""One Spark session, with the settings that dbt's profile has."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from jinja2 import Environment, StrictUndefined
from pyspark.sql import SparkSession

from lake.errors import UserError
from lake.lock import only_one
from lake.metastore import is_half_made, remove_half_made
from lake.place import lake_root

PROFILES_FILE = Path("profiles/profiles.yml")
PROFILE = "cdc_lakehouse"


def spark_settings(profiles_file: Path = PROFILES_FILE) -> dict[str, str]:
    """The ``server_side_parameters`` of the profile's default target.

    Raises:
        UserError: the file is not where the command was started, or lacks them.
    """
    if not profiles_file.exists():
        raise UserError(f"no {profiles_file} here: run this from the project's folder")

    environment = Environment(undefined=StrictUndefined, autoescape=False)
    rendered = environment.from_string(profiles_file.read_text(encoding="utf-8")).render(
        env_var=lambda name, default="": os.environ.get(name, default)
    )
    profile = yaml.safe_load(rendered)[PROFILE]
    output = profile["outputs"][profile["target"]]
    return {name: str(value) for name, value in output["server_side_parameters"].items()}


def spark_session(*, has_catalogue: bool = True) -> SparkSession:
    """Start Spark, or take the one that runs in this process.

    Args:
        has_catalogue: whether it opens the metastore, as dbt needs. The embedded one
            takes one process at a time.

    Raises:
        UserError: a jar has not been fetched, or another process makes the metastore.
    """
    settings = spark_settings()
    for jar in settings["spark.driver.extraClassPath"].split(":"):
        if not Path(jar).exists():
            raise UserError(f"{jar} is missing: run `make setup` once")

    builder = SparkSession.builder
    if has_catalogue:
        builder = builder.enableHiveSupport()
        if is_half_made():
            with only_one(lake_root(), "dbt build"):
                remove_half_made()
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _silent_stdout():
        return builder.getOrCreate()


@contextmanager
def _silent_stdout() -> Iterator[None]:
    """Give a process that is started meanwhile no standard output.

    A library in Hudi's jar prints warnings of its own there, past any logger.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
