"""Avro as producers and sinks write it, by the specification, without a library."""

import json
import struct
from typing import Any

SYNC = b"sync of sixteen!"
Schema = Any


def encode(schema: Schema, value: Any) -> bytes:
    """A value in Avro's binary encoding."""
    return _encode(schema, value, {})


def _encode(schema: Schema, value: Any, known: dict[str, Schema]) -> bytes:
    """The same; a type is known by its name from where it stands first."""
    if isinstance(schema, list):
        place = schema.index("null") if value is None else _branch(schema)
        for each in schema:
            _note(each, known)
        return long(place) + _encode(schema[place], value, known)
    # Debezium names a type with its namespace, where it stands again.
    if isinstance(schema, str) and (name := schema.rpartition(".")[2]) in known:
        return _encode(known[name], value, known)
    _note(schema, known)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return _encode(kind, value, known)
    if kind == "null":
        return b""
    if kind == "boolean":
        return b"\1" if value else b"\0"
    if kind in ("int", "long"):
        return long(value)
    if kind == "float":
        return struct.pack("<f", value)
    if kind == "double":
        return struct.pack("<d", value)
    if kind in ("bytes", "string"):
        content = value.encode() if isinstance(value, str) else value
        return long(len(content)) + content
    if kind == "enum":
        return long(schema["symbols"].index(value))
    if kind == "array":
        items = [_encode(schema["items"], each, known) for each in value]
        return _blocks(items)
    if kind == "map":
        return _blocks(
            [
                _encode("string", key, known) + _encode(schema["values"], each, known)
                for key, each in value.items()
            ]
        )
    assert kind == "record", schema
    return b"".join(
        _encode(each["type"], value[each["name"]], known) for each in schema["fields"]
    )


def _note(schema: Schema, known: dict[str, Schema]) -> None:
    if isinstance(schema, dict) and "name" in schema:
        known[schema["name"]] = schema


def _blocks(items: list[bytes]) -> bytes:
    return (long(len(items)) + b"".join(items) if items else b"") + long(0)


def long(number: int) -> bytes:
    """A number in zig-zag, seven bits a byte."""
    left, found = (number << 1) ^ (number >> 63), b""
    while left > 0x7F:
        found += bytes([left & 0x7F | 0x80])
        left >>= 7
    return found + bytes([left])


def _branch(union: list[Schema]) -> int:
    return next(place for place, each in enumerate(union) if each != "null")


def confluent(number: int, content: bytes) -> bytes:
    """A schema's id of four bytes, and what was written with it."""
    return b"\0" + struct.pack(">I", number) + content


def apicurio(number: int, content: bytes) -> bytes:
    """The same with eight bytes."""
    return b"\0" + struct.pack(">Q", number) + content


def container(schema: Schema, rows: list[Any]) -> bytes:
    """A container file of one block, without compression."""
    metadata = {"avro.schema": json.dumps(schema), "avro.codec": "null"}
    header = encode({"type": "map", "values": "bytes"}, metadata)
    block = b"".join(encode(schema, row) for row in rows)
    return b"Obj\1" + header + SYNC + long(len(rows)) + long(len(block)) + block + SYNC


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
