"""The process of ``tests.support.lake``: ingest and dbt in one JVM, lake after lake.

Spark, Hive and Derby let go of a lake between two commands (``close``), so that the next
one, at the same path, starts in a second and finds the JVM warm.
"""

import contextlib
import hashlib
import io
import json
import os
import pickle
import pkgutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg
from dbt_common.events.event_manager_client import cleanup_event_logger
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

import ingest.cli
from cdc_lakehouse import log
from cdc_lakehouse.dbt import plugin
from cdc_lakehouse.dbt.package import profiles_option
from cdc_lakehouse.spark.metastore import metastore
from cdc_lakehouse.spark.session import spark_session
from tests.support.project import PROJECT


def run_ingest(arguments: list[str], days: int = 0) -> dict[str, Any]:
    """Run the ingest's command line, by a clock that is some days behind."""
    vars(ingest.batches)["partial"] = lambda now, zone: lambda: now(zone) - timedelta(days)
    # As the end of its own process does, which a dbt command before it has otherwise.
    plugin.release()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        # With the metastore from the start: an ingest by itself would go without.
        spark_session()
        try:
            code = ingest.cli.main(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


# Variables that change what a run does, not what dbt parses.
READ_BY_RUNS = {"cdc_lakehouse_truncates", "cdc_lakehouse_complete_snapshots"}
# What dbt parsed of the project itself, which no test edits.
_manifests: dict[str, Any] = {}


def _value_of(option: str, arguments: list[str]) -> str:
    return arguments[arguments.index(option) + 1] if option in arguments else ""


def run_dbt(arguments: list[str], project: str) -> dict[str, Any]:
    """Run dbt; how each node ended, what dbt warned of, the statements that it ran."""
    said: list[str] = []
    statements: list[str] = []

    def hear(event: EventMsg) -> None:
        info: Any = event.info  # a protobuf message, whose fields have no types
        if info.level in ("warn", "error"):
            said.append(str(info.msg))
        if info.name == "SQLQuery":
            statements.append(str(event.data.sql))

    # dbt parses anew where variables differ, so each set of them keeps its own result.
    given = yaml.safe_load(_value_of("--vars", arguments)) or {}
    parsed_with = {name: given[name] for name in {*given} - READ_BY_RUNS}
    digest = hashlib.sha256(f"{project} {parsed_with}".encode()).hexdigest()[:8]
    target = Path(sys.argv[1]) / f"target-{digest}"
    places = (
        *("--project-dir", project),
        *(profiles_option(Path(project)) or ("--profiles-dir", project)),
        *("--target-path", str(target), "--log-path", str(target)),
    )
    manifest = None
    if project == str(PROJECT) and arguments[0] in ("run", "build"):
        if digest not in _manifests:
            variables = ("--vars", json.dumps(parsed_with))
            parsed = dbtRunner().invoke(["--quiet", "parse", *variables, *places])
            assert parsed.success, parsed.exception
            _manifests[digest] = parsed.result
        manifest = _manifests[digest]
        # What the macros remember of a run, they keep in its graph.
        manifest.build_flat_graph()
    runner = dbtRunner(manifest=manifest, callbacks=[hear])
    result = runner.invoke(["--quiet", *arguments, *places])
    cleanup_event_logger()
    if arguments[0] == "run-operation":
        # As the end of its own process does, which an operation has otherwise.
        plugin.release()
    nodes = getattr(result.result, "results", None) or []
    return {
        "success": result.success,
        "error": None if result.exception is None else str(result.exception),
        "said": said,
        "statements": statements,
        "target": str(target),
        "nodes": {
            node.node.name: {
                "status": str(node.status),
                "message": node.message,
                "seconds": node.execution_time,
                "kind": str(node.node.resource_type),
            }
            for node in nodes
            if hasattr(node, "node")  # an operation has none
        },
    }


# What a test expects has no progress, however slow the machine is.
log.FIRST_SECONDS = 3_600.0


def run_sql(statement: str) -> list[list[Any]]:
    """Run a statement in the shared session."""
    return [
        [str(value) for value in row] for row in spark_session().sql(statement).collect()
    ]


def write_parquet(avro: str, parquet: str, codec: str, settings: dict[str, str]) -> None:
    """Write the rows of a container file as Confluent's ``ParquetFormat`` does.

    That is by Parquet's library for Avro, which Hudi's jar has.
    """
    jvm: Any = spark_session()._jvm
    generic = jvm.org.apache.avro.generic
    reader = generic.GenericDatumReader()
    rows = jvm.org.apache.avro.file.DataFileReader(jvm.java.io.File(avro), reader)
    builder = jvm.org.apache.parquet.avro.AvroParquetWriter.builder(
        jvm.org.apache.hadoop.fs.Path(parquet)
    )
    codecs = jvm.org.apache.parquet.hadoop.metadata.CompressionCodecName
    builder = builder.withSchema(rows.getSchema()).withDataModel(generic.GenericData.get())
    builder = builder.withCompressionCodec(codecs.valueOf(codec))
    for name, value in settings.items():
        builder = builder.config(name, value)
    with contextlib.closing(rows), contextlib.closing(builder.build()) as writer:
        while rows.hasNext():
            writer.write(rows.next())


def close() -> None:
    """Stop Spark, and have Hive and Derby forget the lake.

    Hive keeps the store of a metastore for each thread, and its connections for as long
    as the settings are the same; Derby keeps the database open.
    """
    context = SparkContext._active_spark_context
    if context is None:
        return
    context.stop()
    gateway: Any = SparkContext._gateway
    jvm = gateway.jvm
    hive = jvm.org.apache.hadoop.hive.metastore
    getattr(hive, "HiveMetaStore$HMSHandler").removeRawStore()
    store = jvm.java.lang.Class.forName("org.apache.hadoop.hive.metastore.ObjectStore")
    settings = store.getDeclaredField("prop")
    settings.setAccessible(True)
    settings.set(None, None)
    # The plugin holds the lake's lock for as long as its process lives.
    plugin.release()
    with contextlib.suppress(Py4JJavaError, PySparkException):  # how Derby says: done
        jvm.java.sql.DriverManager.getConnection(
            f"jdbc:derby:;databaseName={metastore()};shutdown=true"
        )


def set_properties(properties: dict[str, str | None]) -> None:
    """Give the sessions from now on some settings, or Spark's own where one is null."""
    if SparkContext._gateway is None:
        spark_session()
    close()
    gateway: Any = SparkContext._gateway
    system = gateway.jvm.java.lang.System
    for name, value in properties.items():
        if value is None:
            system.clearProperty(name)
        else:
            system.setProperty(name, value)


def main() -> None:
    """Call functions of ``tests.support``, and answer what they return, until the end."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError):
        while True:
            name, arguments = pickle.load(sys.stdin.buffer)
            answer = pkgutil.resolve_name(f"tests.support.{name}")(*arguments)
            pickle.dump(answer, answers)
            answers.flush()
