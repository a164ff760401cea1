"""Fetch the Hudi jar once, with Spark's own resolver: ``python -m ingest.jars``."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from ingest.session import spark_settings


def fetch(version: str) -> None:
    """Fetch ``hudi-spark3.5-bundle`` in a version, unless it is there.

    Raises:
        Exception: the resolver's own, where the version cannot be had.
    """
    jar = Path(spark_settings()["spark.driver.extraClassPath"])
    if jar.exists():
        return
    ivy = str(jar.parent.parent.absolute())
    (
        SparkSession.builder.master("local[1]")
        .config(
            "spark.jars.packages",
            f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{version}",
        )
        .config("spark.jars.ivy", ivy)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
        .stop()
    )


if __name__ == "__main__":
    # Ivy and Spark narrate to both; what they say matters only if they fail.
    log = Path(".venv/setup.log")
    kept = {number: os.dup(number) for number in (1, 2)}
    with log.open("wb") as file:
        for number in kept:
            os.dup2(file.fileno(), number)
    failure = None
    with contextlib.suppress(SystemExit):
        try:
            fetch(os.environ.get("HUDI_VERSION", "1.2.0"))
        except Exception as error:  # whatever the resolver raises ends the setup
            failure = error
    for number, copy in kept.items():
        os.dup2(copy, number)
    if failure is not None:
        sys.exit(f"setup: the Hudi jar cannot be fetched ({failure}); see {log}")
