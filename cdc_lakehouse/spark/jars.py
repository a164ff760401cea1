"""The jars of the class path, fetched once with Spark's own resolver: ``setup``.

They are kept in ``settings.kept()``, whatever the working folder is.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, version
from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.spark.settings import class_path, hudi_version, kept

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
# In a process of its own: Spark's resolver is a Spark, and a process has one JVM.
RESOLVE = """
import os, sys
from pyspark.sql import SparkSession
from cdc_lakehouse.spark import java
coordinates, excluded, folder = sys.argv[1:]
os.environ["JAVA_HOME"] = str(java.find())
SparkSession.builder.master("local[1]").config(
    map={
        "spark.jars.packages": coordinates,
        "spark.jars.excludes": excluded,
        "spark.jars.ivy": folder,
        "spark.ui.enabled": "false",
    }
).getOrCreate().stop()
"""


def packages(hudi: str) -> str:
    """The Maven coordinates of the class path's jars."""
    return (
        f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{hudi},"
        "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7,"
        # Spark's own 3.4.1 has CVE-2025-27817 and CVE-2025-27818.
        "org.apache.kafka:kafka-clients:3.9.1,"
        "org.apache.spark:spark-avro_2.12:3.5.7"
    )


def missing(hudi: str) -> list[Path]:
    """The jars of the class path that are not there."""
    return [Path(jar) for jar in class_path(hudi) if not Path(jar).exists()]


def fetch_missing() -> None:
    """Fetch the jars of the class path that are not there, once a machine or environment.

    Raises:
        UserError: their folder cannot be written.
        TransientError: they cannot be had.
    """
    hudi = hudi_version()
    if not missing(hudi):
        return
    with _alone():
        if missing(hudi):
            what = f"Hudi {hudi}, Spark's Kafka source and its Avro"
            _fetch(what, packages(hudi), kept() / "ivy")


def _fetch(what: str, coordinates: str, folder: Path) -> None:
    """Fetch packages, with what they need and Spark lacks, into ``jars`` of a folder."""
    click.echo(f"setup: fetching {what} into {folder} (once)", err=True)
    # Ivy and Spark narrate to both; what they say matters only if they fail.
    log = kept() / "setup.log"
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-c", RESOLVE, coordinates, ",".join(EXCLUDED), str(folder)],
            stdout=output,
            stderr=output,
            check=False,
        )
    if done.returncode:
        raise TransientError(f"the jars cannot be fetched; see {log}")


@contextmanager
def _alone() -> Iterator[None]:
    """One process fetches; another waits, and finds the jars."""
    try:
        kept().mkdir(parents=True, exist_ok=True)
        lock = (kept() / "setup.lock").open("a")
    except OSError as error:
        raise UserError(
            f"cannot write {error.filename}: {error.strerror}; run `cdc-lakehouse setup` as"
            " the owner of this Python environment, or set LAKE_HOME to a folder for jars"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@click.command("setup", context_settings=STYLE)
@version
@click.option("--s3", "wants_s3", is_flag=True, help="Also what s3a:// needs (280 MB).")
def command(wants_s3: bool) -> None:
    """Fetch the jars that Spark needs here; the first start would do so, too."""
    fetch_missing()
    folder = kept() / "s3"
    if wants_s3 and not (folder / "jars").exists():
        with _alone():
            _fetch("Hadoop's S3 file system", S3_PACKAGES, folder)
    if wants_s3:
        jars = ",".join(map(os.fspath, sorted((folder / "jars").glob("*.jar"))))
        click.echo(f"LAKE_JARS={jars}")
