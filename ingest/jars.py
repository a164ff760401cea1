"""Fetch the jars of the class path, once, with Spark's own resolver.

``python -m ingest.jars``, or ``python -m ingest.jars s3`` for those that ``s3a://`` needs.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from lake.settings import class_path

# What the packages bring along and Spark has already.
EXCLUDED = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.hive:hive-storage-api",
    "org.lz4:lz4-java",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
    "com.google.code.findbugs:jsr305",
    "commons-logging:commons-logging",
)
S3_PACKAGES = "org.apache.hadoop:hadoop-aws:3.3.4"


def packages(hudi_version: str) -> str:
    """The Maven coordinates of the class path's jars."""
    return (
        f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{hudi_version},"
        "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7,"
        "org.apache.spark:spark-avro_2.12:3.5.7"
    )


def fetch(coordinates: str, folder: str) -> None:
    """Fetch packages, with what they need and Spark lacks, into ``jars`` of a folder.

    Raises:
        Exception: the resolver's own, where something cannot be had.
    """
    (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", coordinates)
        .config("spark.jars.excludes", ",".join(EXCLUDED))
        .config("spark.jars.ivy", str(Path(folder).absolute()))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
        .stop()
    )


def missing(hudi_version: str) -> list[Path]:
    """The jars of the class path that are not there."""
    return [Path(jar) for jar in class_path(hudi_version) if not Path(jar).exists()]


if __name__ == "__main__":
    wants_s3 = sys.argv[1:] == ["s3"]
    hudi_version = os.environ.get("HUDI_VERSION", "1.2.0")
    if not wants_s3 and not missing(hudi_version):
        sys.exit()
    # Ivy and Spark narrate to both; what they say matters only if they fail.
    log = Path(".venv/setup.log")
    kept = {number: os.dup(number) for number in (1, 2)}
    with log.open("wb") as file:
        for number in kept:
            os.dup2(file.fileno(), number)
    failure = None
    with contextlib.suppress(SystemExit):
        try:
            if wants_s3:
                fetch(S3_PACKAGES, ".venv/s3")
            else:
                fetch(packages(hudi_version), ".venv/ivy")
        except Exception as error:  # whatever the resolver raises ends the setup
            failure = error
    for number, copy in kept.items():
        os.dup2(copy, number)
    if failure is not None:
        sys.exit(f"setup: the jars cannot be fetched ({failure}); see {log}")
