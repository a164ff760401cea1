"""Spark's settings, in one place, for the ingest, dbt and every Spark that works on a lake.

``cdc-lakehouse settings`` prints those that a lake needs on any Spark, as
the file that ``spark-submit --properties-file`` and a Thrift server take.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from cdc_lakehouse.command import STYLE, version
from cdc_lakehouse.spark.metastore import metastore_root
from cdc_lakehouse.storage.place import lake_root

LOGGING = Path(__file__).with_name("log4j2.properties")
# What the JVM does with the archive of its classes where that is recorded.
RECORDING = "ArchiveClassesAtExit"
HUDI_SQL = "org.apache.spark.sql.hudi"
# Bytes that are no Avro may claim to be a string of 2 GB, which Avro would make room for
# before it looks: the JVM would end. A value is as long as a line of text may be.
AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{what}.maxLength={limit}"
    for what, limit in (
        ("bytes", 8 << 20),
        ("string", 8 << 20),
        ("collectionItems", 16 << 20),
    )
)


# Spark makes one method of all that is computed of a row. One of more than 8,000 bytes the
# JVM would interpret, for each row; compiled, classifying takes three fifths of the time.
HUGE_METHODS = "-XX:-DontCompileHugeMethods"

# Hudi names commits by the JVM's time, and readers take the highest name: local time would
# go back an hour each autumn.
UTC = "-Duser.timezone=UTC"
# What each JVM is started with, wherever it runs.
JAVA_OPTIONS = f"{UTC} {AVRO_LIMITS} {HUGE_METHODS}"


def value_settings() -> dict[str, str]:
    """What decides which values a session reads and writes; it can be set at any time."""
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        # What has no result is null; with ANSI's rules one such value fails a build.
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.timeParserPolicy": "EXCEPTION",
    }
    # Dates before 1582 and times before 1900 as they are: without these, Spark fails where
    # a writer could have meant the Julian calendar.
    for kind in ("parquet.datetime", "parquet.int96", "avro.datetime"):
        for direction in ("Read", "Write"):
            settings[f"spark.sql.{kind}RebaseModeIn{direction}"] = "CORRECTED"
    return settings


def lake_settings() -> dict[str, str]:
    """What a session needs to work on the lake, wherever it runs."""
    settings = {
        **value_settings(),
        "spark.sql.warehouse.dir": f"{lake_root()}/warehouse",
        "spark.sql.extensions": f"{HUDI_SQL}.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": f"{HUDI_SQL}.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        # A view is analysed once, when it is created, and not again by each query on it.
        "spark.sql.legacy.storeAnalyzedPlanForView": "true",
        # Of the plan of a history of 25 text columns Spark would infer conditions for
        # minutes, until the heap is full.
        "spark.sql.constraintPropagation.enabled": "false",
        # The classes that Spark generates for a build do not fit in its cache of 100:
        # without this, a process that builds again compiles every one of them again.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # A batch is in memory while it is written: to find how each column of it compresses
        # took a quarter of what classifying it takes.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    }
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3")
    if endpoint:
        settings["spark.hadoop.fs.s3a.endpoint"] = endpoint
        # Servers other than Amazon's do not put the bucket into the host's name.
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
    return settings


def embedded_settings() -> dict[str, str]:
    """What the Spark inside this process has besides: one machine, short runs."""
    hudi = hudi_version()
    derby = metastore_root()
    partitions = os.environ.get("SPARK_SHUFFLE_PARTITIONS", "2")
    compiler = os.environ.get("LAKE_JIT_LEVEL", "1")
    archive = os.environ.get("LAKE_CLASS_ARCHIVE", "SharedArchiveFile")
    # What is being recorded is no archive yet.
    place = f"{class_archive()}{'.new' if archive == RECORDING else ''}"
    return {
        **lake_settings(),
        "spark.master": os.environ.get("SPARK_MASTER", "local[*]"),
        "spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY", "2g"),
        # The driver times heartbeats of executors by the system clock. The executor in its
        # own process is lost where the machine sleeps for two minutes, or the clock is set
        # ahead, and ends the process ten minutes later.
        "spark.storage.blockManagerHeartbeatTimeoutMs": "36500d",
        # On the class path, not in `spark.jars`, so that the JVM's class-data archive
        # covers them.
        "spark.driver.extraClassPath": ":".join(class_path(hudi)),
        # More jars, comma-separated: those of `make s3`, or an authentication of Kafka's.
        "spark.jars": os.environ.get("LAKE_JARS", ""),
        # C1 and the serial collector: short runs on few cores finish sooner
        # (docs/decisions/0004-cold-start.md).
        "spark.driver.extraJavaOptions": " ".join(
            [
                f"-XX:TieredStopAtLevel={compiler}",
                # Where C2 compiles, too, it does so later: it takes the cores of a start.
                "-XX:Tier3DelayOn=0 -XX:Tier4InvocationThreshold=20000",
                "-XX:Tier4MinInvocationThreshold=5000",
                "-XX:Tier4CompileThreshold=40000 -XX:Tier4BackEdgeThreshold=120000",
                # And it inlines less, as of a first load half was compilation.
                "-XX:FreqInlineSize=150",
                f"-XX:+Use{'Serial' if compiler == '1' else 'Parallel'}GC",
                "-XX:ReservedCodeCacheSize=240m -Xss4m",
                # Room from the start: a heap that grows is collected whole each time.
                "-XX:MetaspaceSize=256m -XX:InitialRAMPercentage=4",
                # Half of it for what a statement makes: nearly all is garbage at its end.
                "-XX:NewRatio=1",
                f"-XX:{archive}={place}",
                "-Djol.skipHotspotSAAttach=true -Xlog:disable -Xlog:all=off",
                "-Djdk.attach.allowAttachSelf=true",
                JAVA_OPTIONS,
                f"-Dlog4j2.configurationFile={LOGGING}",
                f"-Dderby.stream.error.file={derby}/derby.log",
            ]
        ),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={derby}/metastore;create=true"
        ),
        # Where the disk is full, Derby is read-only from then on. Hive's connection pool
        # (BoneCP) would retry for ever, 7 s apart, and Hive each call ten times, 2 s
        # apart. A connection to a Derby in the same process needs no pool.
        "spark.hadoop.datanucleus.connectionPoolingType": "None",
        "spark.hadoop.hive.hmshandler.retry.interval": "100ms",
        # What sorts and batches take fits in the older half of the heap (NewRatio above);
        # with Spark's 0.6 they fill it, and it is collected again and again.
        "spark.memory.fraction": "0.4",
        # One machine: a shuffle of many partitions is many tiny tasks.
        "spark.sql.shuffle.partitions": partitions,
        "spark.default.parallelism": partitions,
        # Each sort and each aggregation of a task takes a page at once, of 64 MB on a large
        # heap; a small increment fills little of it.
        "spark.buffer.pageSize": "4m",
        # And a task reads little, so that the cores end together.
        "spark.sql.files.maxPartitionBytes": "16m",
        # Files that are named one by one are listed by so many tasks, not one for each.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark describes each plan for its event log, which nobody reads here.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.maxPlanStringLength": "0",
        # Nor what it keeps of past jobs: most of what a process that builds again holds.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "5",
    }


def hudi_version() -> str:
    """``HUDI_VERSION``, or the one that the project is tested with."""
    return os.environ.get("HUDI_VERSION", "1.2.0")


def kept() -> Path:
    """Where jars and the class archive are: ``LAKE_HOME``, or the Python environment's."""
    return Path(os.environ.get("LAKE_HOME") or sys.prefix).absolute()


def class_archive() -> Path:
    """The archive from which a JVM maps the classes that it needs, if it is there."""
    return kept() / f"classes/{hudi_version()}.jsa"


def class_path(hudi: str) -> list[str]:
    """The jars that ``setup`` fetches: Hudi, Spark's Kafka source and its Avro."""
    names = (
        f"org.apache.hudi_hudi-spark3.5-bundle_2.12-{hudi}",
        "org.apache.spark_spark-sql-kafka-0-10_2.12-3.5.7",
        "org.apache.spark_spark-token-provider-kafka-0-10_2.12-3.5.7",
        "org.apache.kafka_kafka-clients-3.9.1",
        "org.apache.commons_commons-pool2-2.11.1",
        "org.apache.spark_spark-avro_2.12-3.5.7",
    )
    return [str(kept() / f"ivy/jars/{name}.jar") for name in names]


def as_properties(settings: dict[str, str]) -> str:
    """Settings in the form of ``spark-defaults.conf``."""
    return "".join(f"{name} {value}\n" for name, value in sorted(settings.items()))


@click.command("settings", context_settings=STYLE)
@version
def command() -> None:
    """Print the settings of LAKE_ROOT's lake for a Spark that runs elsewhere."""
    click.echo(as_properties(lake_settings()), nl=False)
