"""The jars of the cluster: PySpark's own, and those of ``pom.xml``, copied once."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark

from connectors.stack.jars import PROJECT, JarSet
from lake.errors import UserError
from lake.settings import class_path

JARS = PROJECT / ".venv" / "cluster"
METASTORE = JARS / "metastore"
SPARK_HOME = Path(pyspark.__file__).parent
SPARK = SPARK_HOME / "jars"


def fetch() -> bool:
    """Make the folder ``METASTORE`` what the pom says.

    Returns:
        Whether anything had to be fetched.

    Raises:
        UserError: Maven is missing, or it failed, or another jar was not fetched yet.
    """
    s3()
    pom = Path(__file__).with_name("pom.xml")
    return JarSet(pom, {"metastore": METASTORE}, JARS / "pom.sha256").fetch()


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
