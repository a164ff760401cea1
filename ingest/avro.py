"""Avro of Kafka to JSON text, by Spark's ``from_avro``: what Connect would have written.

A record of Kafka says which schema it was written with by an id: after a zero byte, in four
bytes (Confluent) or eight (Apicurio), or in a header. What a row means is not read here.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from ingest.registry import IdKind, Registry, UnknownSchemaError

# Read after a record's own bytes: found there, the schema took all of them and no more. No
# end of it is a beginning of it, so that no other place can be taken for it.
END = bytes(range(1, 17))
# What a record of Avro is decoded into, and how its text begins and ends then.
_FRAME = "cdc_lakehouse_frame"
_BEFORE = '{"value":'
_AFTER = f',"end":"{base64.b64encode(END).decode()}"}}'
# A registry that counts in 32 bits takes a higher number for an address that is not there.
HIGHEST_ID = 2**31 - 1
# A record that cannot be decoded, as bronze.rejected_events has it: base64 of its bytes.
UNDECODED = (
    "undecoded struct<key: binary, value: binary, "
    "headers: array<struct<key: string, value: binary>>>"
)
# The columns of a batch that Kafka gives.
KAFKA = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class UnusableSchemaError(Exception):
    """A schema that Spark cannot read records with; the message says why."""


@dataclass(frozen=True)
class SchemaId:
    """What a record says of its schema."""

    kind: IdKind
    number: int


@dataclass
class Schemas:
    """The schemas of a registry, each fetched once.

    Attributes:
        spark: says whether it can read records with a schema.
        registry: where the schemas are.
    """

    spark: SparkSession
    registry: Registry
    _known: dict[SchemaId, str | UnusableSchemaError] = field(default_factory=dict)

    def of(self, wanted: list[SchemaId]) -> dict[SchemaId, str | Exception]:
        """The schema of each id, as ``from_avro`` takes it; or why there is none.

        Raises:
            UserError: as ``Registry.schema`` does.
        """
        found: dict[SchemaId, str | Exception] = {}
        for each in wanted:
            if each not in self._known:
                try:
                    text = self.registry.schema(each.kind, each.number)
                except UnknownSchemaError as error:
                    # It may be there the next time.
                    found[each] = error
                    continue
                self._known[each] = self._usable(text)
            found[each] = self._known[each]
        return found

    def _usable(self, text: str) -> str | UnusableSchemaError:
        try:
            return _framed(usable_schema(self.spark, text))
        except UnusableSchemaError as error:
            return error


def usable_schema(spark: SparkSession, text: str) -> Any:
    """A schema that Spark can read records with.

    Args:
        spark: the session.
        text: the schema, JSON; a bare name of a type, too.

    Returns:
        The schema without what says how a value is meant, and without defaults. Logical
        types would turn numbers and bytes into dates and decimals; Connect's JSON has the
        numbers, and base64 of the bytes, which are what Avro stores.

    Raises:
        UnusableSchemaError: it is none, has fields that differ in case only, or refers to
            itself, which no table's columns can.
    """
    empty = spark.createDataFrame([], "payload binary")
    try:
        plain = plain_schema(text)
        empty.select(from_avro("payload", _framed(plain)))
    except ValueError as error:
        raise UnusableSchemaError(f"it is no JSON: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UnusableSchemaError(f"it is no Avro schema: {error!r}") from error
    except Py4JJavaError as error:
        lines = str(error.java_exception.getMessage()).split("\n")
        said = next((line for line in lines if line.strip()), "")
        raise UnusableSchemaError(said[:200]) from error
    return plain


def plain_schema(text: str) -> Any:
    """The parts of a schema that say how its bytes are read."""
    return _plain(json.loads(text))


def _plain(schema: Any) -> Any:
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    kind = schema["type"]
    named = {key: schema[key] for key in ("name", "namespace") if key in schema}
    if kind == "record":
        names = [each["name"] for each in schema["fields"]]
        if len({name.lower() for name in names}) < len(names):
            raise UnusableSchemaError("names of fields differ in case only")
        fields = [
            {"name": each["name"], "type": _plain(each["type"])}
            for each in schema["fields"]
        ]
        return {"type": kind, **named, "fields": fields}
    if kind == "enum":
        return {"type": kind, **named, "symbols": schema["symbols"]}
    if kind == "fixed":
        return {"type": kind, **named, "size": schema["size"]}
    if kind == "array":
        return {"type": kind, "items": _plain(schema["items"])}
    if kind == "map":
        return {"type": kind, "values": _plain(schema["values"])}
    return _plain(kind)


def _framed(schema: Any) -> str:
    """A record of the schema's value and the bytes that follow; Avro only joins the two."""
    end = {"type": "fixed", "name": f"{_FRAME}_end", "size": len(END)}
    fields = [{"name": "value", "type": schema}, {"name": "end", "type": end}]
    return json.dumps({"type": "record", "name": _FRAME, "fields": fields})


def records_from_kafka(
    batch: DataFrame, schemas: Schemas | None, ids: list[SchemaId] | None = None
) -> DataFrame:
    """One record per Kafka record.

    Args:
        batch: the columns of Spark's Kafka source with ``headers``; others are kept.
        schemas: of the registry; None where all records are text.
        ids: those that the records have; where none are given, the batch is read for them,
            and is no stream.

    Returns:
        The columns of ``RECORD``. Of Avro, key and value are JSON text; the record's text
        is its value. What cannot be decoded has a ``decode_error``, and base64 of its bytes
        as its value.

    Raises:
        UserError: the registry refuses to answer, or does not answer.
    """
    others = [name for name in batch.columns if name not in KAFKA]
    found = {}
    if schemas is not None:
        found = schemas.of(schema_ids(batch) if ids is None else ids)
    parts = _parts(batch)
    texts = parts.withColumn("key_text", _text("key_part", found)).withColumn(
        "value_text", _text("value_part", found)
    )
    decode_error = _error("value", found)
    if schemas is None:
        # A key of other bytes is none of Avro's business.
        needs = F.lit("Avro value: --registry says where its schema is")
        decode_error = F.when(F.col("value_part").isNotNull(), needs)
    else:
        decode_error = F.coalesce(decode_error, _error("key", found))
    decoded = texts.withColumn("decode_error", decode_error)
    undecoded = F.to_json(F.struct(F.struct("key", "value", "headers").alias("undecoded")))
    has_failed = F.col("decode_error").isNotNull()
    value = F.when(has_failed, undecoded).otherwise(_result("value"))
    return decoded.select(
        "topic",
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
        F.col("timestamp").alias("kafka_timestamp"),
        F.when(~has_failed, _result("key")).alias("key"),
        value.alias("value"),
        value.alias("record"),
        F.lit(None).cast("string").alias("source_file"),
        F.col("value_part.id").alias("schema_id"),
        "decode_error",
        *others,
    )


def schema_ids(batch: DataFrame) -> list[SchemaId]:
    """The ids that records of Kafka have, by reading them once."""
    rows = (
        _parts(batch)
        .select(F.explode(F.array("key_part", "value_part")).alias("part"))
        .select("part.kind", "part.id")
        .where("id is not null")
        .distinct()
        .collect()
    )
    return [SchemaId(IdKind(row["kind"]), row["id"]) for row in sorted(rows)]


def _parts(batch: DataFrame) -> DataFrame:
    return batch.withColumns({"key_part": _part("key"), "value_part": _part("value")})


def _part(name: str) -> Column:
    """A key's or a value's schema id and the bytes after it; null where it is text."""
    content = F.col(name)
    global_id = _header_number(f"apicurio.{name}.globalId")
    content_id = _header_number(f"apicurio.{name}.contentId")
    # Only Avro has it; other records with an id in a header are text.
    encoding = _header(f"apicurio.{name}.encoding").cast("string")
    short_id = _number(F.substring(content, 2, 4))
    long_id = _number(F.substring(content, 2, 8))

    def part(kind: IdKind, number: Column, payload: Column) -> Column:
        return F.struct(
            F.lit(kind).alias("kind"), number.alias("id"), payload.alias("payload")
        )

    is_framed = F.substring(content, 1, 1) == F.lit(b"\0")
    # No registry gives the id 0: there, the four bytes are the upper half of eight.
    is_short = (F.length(content) >= 5) & short_id.between(1, HIGHEST_ID)
    is_long = (F.length(content) >= 9) & (short_id == 0) & long_id.between(1, HIGHEST_ID)
    no_id = F.lit(None).cast("bigint")
    part_of = (
        F.when(content.isNull(), F.lit(None))
        .when(encoding != "BINARY", part(IdKind.GLOBAL, no_id, content))
        .when(
            encoding.isNotNull() & content_id.isNotNull(),
            part(IdKind.CONTENT, content_id, content),
        )
        .when(encoding.isNotNull(), part(IdKind.GLOBAL, global_id, content))
        .when(is_framed & is_short, part(IdKind.FRAMED, short_id, _from(content, 6)))
        .when(is_framed & is_long, part(IdKind.FRAMED, long_id, _from(content, 10)))
    )
    if name == "key":
        # A number of a few bytes may begin with a zero byte, too.
        return part_of
    return part_of.when(is_framed, part(IdKind.FRAMED, no_id, content))


def _header(name: str) -> Column:
    """The last header of a name, as Kafka's own readers take it."""
    values = F.filter("headers", lambda header: header["key"] == name)
    return F.try_element_at(values, F.lit(-1))["value"]


def _header_number(name: str) -> Column:
    value = _header(name)
    number = _number(value)
    return F.when((F.length(value) == 8) & number.between(1, HIGHEST_ID), number)


def _number(content: Column) -> Column:
    """A number from 0 in bytes, the highest first; null beyond a bigint."""
    return F.conv(F.hex(content), 16, 10).cast("bigint")


def _from(content: Column, position: int) -> Column:
    return F.substring(content, position, HIGHEST_ID)


def _is(part: str, each: SchemaId) -> Column:
    return (F.col(f"{part}.kind") == each.kind) & (F.col(f"{part}.id") == each.number)


def _text(part: str, found: dict[SchemaId, str | Exception]) -> Column:
    """The JSON of a frame; one of nulls where the bytes are not what the schema says."""
    framed = F.concat(F.col(f"{part}.payload"), F.lit(END))
    text = F.when(F.lit(False), F.lit(None).cast("string"))
    for each, schema in found.items():
        if isinstance(schema, str):
            frame = from_avro(framed, schema, {"mode": "PERMISSIVE"})
            json_text = F.to_json(frame, {"ignoreNullFields": "false"})
            text = text.when(_is(part, each), json_text)
    return text


def _is_whole(name: str) -> Column:
    text = F.col(f"{name}_text")
    return F.coalesce(text.startswith(_BEFORE) & text.endswith(_AFTER), F.lit(False))


def _result(name: str) -> Column:
    """The text of a key or value."""
    text = F.col(f"{name}_text")
    inner = F.expr(
        f"substring({name}_text, {len(_BEFORE) + 1},"
        f" length({name}_text) - {len(_BEFORE) + len(_AFTER)})"
    )
    return F.when(text.isNull(), F.col(name).cast("string")).otherwise(inner)


def _error(name: str, found: dict[SchemaId, str | Exception]) -> Column:
    """Why a key or value cannot be decoded; null where it can, or is text."""
    part = f"{name}_part"
    number = F.col(f"{part}.id").cast("string")
    said = F.concat(F.lit("the registry has no schema "), number)
    for each, schema in found.items():
        if isinstance(schema, UnusableSchemaError):
            text = f"schema {each.number} cannot be used: {schema}"
            said = F.when(_is(part, each), F.lit(text)).otherwise(said)
        elif isinstance(schema, UnknownSchemaError):
            said = F.when(_is(part, each), F.lit(str(schema))).otherwise(said)
    reason = (
        F.when(F.col(part).isNull() | _is_whole(name), F.lit(None))
        .when(number.isNull(), F.lit("there is no schema id, or Avro's JSON follows"))
        .when(
            F.col(f"{name}_text").isNotNull(),
            F.concat(F.lit("the bytes are not what schema "), number, F.lit(" says")),
        )
        .otherwise(said)
    )
    return F.concat(F.lit(f"Avro {name}: "), reason)
