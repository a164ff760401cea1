"""Parquet files, as a sink writes them: what is stored, as of Avro (``ingest.avro``)."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

# Connect's JSON does not apply them either: its dates and times are numbers, its decimals
# base64 of their bytes. Decimals that a file keeps as numbers, which no sink does, stay.
LOGICAL_TYPES = (
    r"((?:binary|fixed_len_byte_array\(\d+\)) \S+) \(DECIMAL\(\d+,\d+\)\)"
    r"| \((?:DATE|TIME(?:STAMP)?\(\w+,\w+\))\)"
)


def schema_of_file(spark: SparkSession, configuration: Any, path: str) -> str:
    """The schema that Spark reads a file's rows with, as DDL.

    Args:
        spark: the session.
        configuration: Hadoop's.
        path: as Hadoop names it.

    Raises:
        Py4JJavaError: it is no Parquet file, cut off, or has a type that Spark lacks.
    """
    jvm: Any = spark._jvm
    parquet = jvm.org.apache.parquet
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    file = parquet.hadoop.util.HadoopInputFile.fromPath(hadoop_path, configuration)
    reader = parquet.hadoop.ParquetFileReader.open(file)
    try:
        schema = reader.getFileMetaData().getSchema().toString()
    finally:
        reader.close()
    plain = re.sub(LOGICAL_TYPES, r"\1", schema)
    sql = jvm.org.apache.spark.sql
    conf = sql.internal.SQLConf.get()
    converter = sql.execution.datasources.parquet.ParquetToSparkSchemaConverter(conf)
    stored = parquet.schema.MessageTypeParser.parseMessageType(plain)
    return str(converter.convert(stored).toDDL())
