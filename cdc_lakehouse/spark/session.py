"""The Spark session: the one that is there, else one in this process."""

from __future__ import annotations

import os
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark import java
from cdc_lakehouse.spark.jars import fetch_missing
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.spark.metastore import is_prepared, prepare
from cdc_lakehouse.spark.settings import embedded_settings, lake_settings, value_settings
from cdc_lakehouse.storage.place import lake_root

# Fixed when a session starts; Hudi's tables cannot be written without them.
REQUIRED = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog", "spark.serializer")


def is_given() -> bool:
    """Whether this process has a Spark that somebody else started or configured.

    ``spark-submit`` (an EMR step, an EMR Serverless job) starts Python beside a JVM; in
    a Glue job or a notebook there is a context already.
    """
    return "PYSPARK_GATEWAY_PORT" in os.environ or _has_context()


def spark_session(*, has_catalogue: bool = True) -> SparkSession:
    """The session of this process; the embedded one is started where there is none.

    What ``spark-submit`` was given wins over the lake's own settings, but for those that
    decide which values come: they are set on every session.

    Args:
        has_catalogue: whether it opens the metastore, as dbt needs. The embedded one
            takes one process at a time.

    Raises:
        UserError: another process creates the metastore, or the session that is there lacks
            what Hudi needs.
        TransientError: jars are missing and cannot be fetched.
    """
    builder = SparkSession.builder
    if has_catalogue:
        builder = builder.enableHiveSupport()
    if not is_given():
        return _embedded_session(builder, has_catalogue=has_catalogue)
    if not _has_context():
        SparkContext._ensure_initialized()
        given = SparkConf()
        for name, value in lake_settings().items():
            if not given.contains(name):
                builder = builder.config(name, value)
    session = builder.getOrCreate()
    _require_hudi(session)
    for name, value in value_settings().items():
        session.conf.set(name, value)
    # Whoever started its JVM may have left it in local time (``settings.UTC``).
    zones: Any = session._jvm.java.util.TimeZone  # type: ignore[union-attr]  # never None
    zones.setDefault(zones.getTimeZone("UTC"))
    return session


def _embedded_session(
    builder: SparkSession.Builder, *, has_catalogue: bool
) -> SparkSession:
    settings = embedded_settings()
    fetch_missing()
    if has_catalogue and not is_prepared():
        with exclusive_lock(lake_root(), "dbt build"):
            prepare()
    java.start(settings)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    _forget_sources(session)
    return session


def _has_context() -> bool:
    return SparkContext._active_spark_context is not None


def _forget_sources(session: SparkSession) -> None:
    """Let Hadoop's settings be sent without the files that each was read from.

    Hudi's tasks hold the settings, a thousand of them, and each source is compressed by
    itself, which takes most of the time of each of the many times that they are sent.
    Hadoop has no method that does this.
    """
    jvm: Any = session.sparkContext._jvm
    configuration: Any = session.sparkContext._jsc.hadoopConfiguration()
    # The first class of HDFS that is loaded would have all read again, with their sources.
    jvm.org.apache.hadoop.hdfs.HdfsConfiguration.init()
    configuration.size()
    sources = configuration.getClass().getDeclaredField("updatingResource")
    sources.setAccessible(True)
    sources.set(configuration, jvm.java.util.concurrent.ConcurrentHashMap())


def _require_hudi(session: SparkSession) -> None:
    wanted = lake_settings()
    found = {name: session.conf.get(name, None) or "" for name in REQUIRED}
    missing = [
        f"{name}={wanted[name]} (it has {value or 'none'})"
        for name, value in found.items()
        if wanted[name] not in value.split(",")
    ]
    if missing:
        raise UserError(
            f"the Spark session that is running lacks {', '.join(missing)}: start it with"
            " what `cdc-lakehouse settings` prints"
        )
