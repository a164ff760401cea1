"""Container files of Avro, as a sink writes them.

https://avro.apache.org/docs/1.11.1/specification/#object-container-files
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from ingest.avro import UnusableSchemaError, usable_schema

MAGIC = b"Obj\x01"
SYNC_LENGTH = 16
LONGEST_HEADER = 1 << 20


class BrokenFileError(Exception):
    """A file that is no whole container; the message says why."""


def schema_of_file(spark: SparkSession, configuration: Any, path: str) -> str:
    """The schema that a container file's records were written with, as its header has it.

    Avro's own reader takes a file that is cut off for one that has ended: so the last bytes
    are compared with what ends each of its blocks.

    Args:
        spark: the session.
        configuration: Hadoop's.
        path: as Hadoop names it.

    Raises:
        BrokenFileError: it is no container, or cut off.
        Py4JJavaError: it cannot be read.
    """
    jvm: Any = spark._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    files = hadoop_path.getFileSystem(configuration)
    length = files.getFileStatus(hadoop_path).getLen()
    read = jvm.org.apache.commons.io.IOUtils.toByteArray
    stream = files.open(hadoop_path)
    try:
        begin = bytes(read(stream, min(length, LONGEST_HEADER)))
        schema, sync = _read_header(begin)
        stream.seek(length - SYNC_LENGTH)
        end = bytes(read(stream, SYNC_LENGTH))
    finally:
        stream.close()
    if end != sync:
        raise BrokenFileError("it is cut off: its end is not the end of a block")
    return schema


def _read_header(content: bytes) -> tuple[str, bytes]:
    """The schema in a header, and the bytes after each block.

    Raises:
        BrokenFileError: it is none.
    """
    if not content.startswith(MAGIC):
        raise BrokenFileError("it is no Avro file: it does not begin with Obj")
    reader = _Reader(content, len(MAGIC))
    metadata: dict[bytes, bytes] = {}
    try:
        while count := reader.number():
            if count < 0:  # the length of the block follows
                reader.number()
            for _ in range(abs(count)):
                key = reader.take(reader.number())
                metadata[key] = reader.take(reader.number())
        return metadata[b"avro.schema"].decode(), reader.take(SYNC_LENGTH)
    except (KeyError, ValueError) as error:
        raise BrokenFileError("its header is cut off or damaged") from error


@dataclass
class _Reader:
    content: bytes
    position: int

    def take(self, length: int) -> bytes:
        """The next bytes; a ValueError where there are not so many."""
        end = self.position + length
        if length < 0 or end > len(self.content):
            raise ValueError
        found, self.position = self.content[self.position : end], end
        return found

    def number(self) -> int:
        """The next number, in zig-zag, seven bits a byte."""
        number, shift = 0, 0
        while True:
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7


def row_schema(spark: SparkSession, text: str) -> str:
    """The schema that Spark reads the records of a container file with.

    A sink writes an optional row as a union of it and null: the row's is taken.

    Raises:
        UnusableSchemaError: Spark cannot read records with it, or they are no rows.
    """
    plain = usable_schema(spark, text)
    branches = plain if isinstance(plain, list) else [plain]
    rows = [each for each in branches if each != "null"]
    if len(rows) != 1 or not isinstance(rows[0], dict) or rows[0]["type"] != "record":
        raise UnusableSchemaError("its records have no fields")
    return json.dumps(rows[0])
