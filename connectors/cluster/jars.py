"""The jars of the cluster: PySpark's own, and those that were fetched."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark

from connectors.stack.jars import PROJECT
from connectors.stack.jars import fetch as fetch_profiles
from lake.errors import UserError
from lake.settings import class_path

SPARK_HOME = Path(pyspark.__file__).parent
SPARK = SPARK_HOME / "jars"


def fetch() -> None:
    """Fetch what the metastore needs beside PySpark's jars.

    Raises:
        UserError: Maven is missing, or it failed, or another jar was not fetched yet.
    """
    s3()
    fetch_profiles("metastore")


def s3() -> list[Path]:
    """Hadoop's S3 file system.

    Raises:
        UserError: it was not fetched.
    """
    found = sorted((PROJECT / ".venv/s3/jars").glob("*.jar"))
    if not found:
        raise UserError("the S3 jars are missing: run `make s3`")
    return found


def job() -> list[Path]:
    """What a job brings along: Hudi and Spark's Kafka source."""
    return [PROJECT / jar for jar in class_path(os.environ.get("HUDI_VERSION", "1.2.0"))]
