"""The jars of the cluster: PySpark's own, and those that were fetched."""

from __future__ import annotations

from pathlib import Path

import pyspark

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark.settings import class_path, hudi_version, kept
from lab.stack.jars import fetch as fetch_profiles

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
    found = sorted((kept() / "s3/jars").glob("*.jar"))
    if not found:
        raise UserError("the S3 jars are missing: run `make s3`")
    return found


def job() -> list[Path]:
    """What a job brings along: Hudi and Spark's Kafka source."""
    return [Path(jar) for jar in class_path(hudi_version())]
