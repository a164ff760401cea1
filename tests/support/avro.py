"""Avro as producers and sinks write it."""

import io
import struct
from typing import Any

import fastavro

SYNC = b"sync of sixteen!"
Schema = Any


def encode(schema: Schema, value: Any) -> bytes:
    """A value in Avro's binary encoding."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def confluent(number: int, content: bytes) -> bytes:
    """A schema's id of four bytes, and what was written with it."""
    return b"\0" + struct.pack(">I", number) + content


def apicurio(number: int, content: bytes) -> bytes:
    """The same with eight bytes."""
    return b"\0" + struct.pack(">Q", number) + content


def container(schema: Schema, rows: list[Any]) -> bytes:
    """A container file, without compression."""
    stream = io.BytesIO()
    fastavro.writer(stream, schema, rows, sync_marker=SYNC)
    return stream.getvalue()


def schema_of(name: str, values: list[Any]) -> Schema:
    """A type that has each of some values, which may be null, as Connect makes one."""
    (kind,) = {type(each) for each in values if each is not None} or {str}
    if kind is not dict:
        return [
            "null",
            {bool: "boolean", int: "long", float: "double", str: "string"}[kind],
        ]
    rows = [each for each in values if each is not None]
    fields = [
        {"name": each, "type": schema_of(f"{name}_{each}", [row[each] for row in rows])}
        for each in rows[0]
    ]
    return ["null", {"type": "record", "name": name, "fields": fields}]
