"""Records to change events: DataFrame in, DataFrame out, no session, no effect.

Only the envelope is read here, to file a record and to place it in the change stream.
What a row means is decided in ``models/``, so that a new column needs no new ingest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.storage.marks import REJECTED_TABLE
from ingest.positions import CONNECTORS, DEFAULT_CONNECTOR, FIELDS, Log, number
from ingest.topics import Topics

SKIPPED = "skipped"

# A record as a source hands it over: the position is null where the source has none, and
# `decode_error` says why there is no text of it (`ingest/avro.py`).
RECORD = (
    "topic string, kafka_partition int, kafka_offset bigint, kafka_timestamp timestamp, "
    "key string, value string, record string, source_file string, schema_id bigint, "
    "decode_error string"
)
# The name of a member that no record has. Behind a text it shows where the text's object
# ends; in the parser's answer it holds the input that is no JSON object.
END_MARK = "__end_of_record"
# Every field is read as text, so that a number out of range is seen and not lost.
SINK_ENVELOPE = (
    "key string, value string, op string, __op string,"
    " metadata struct<topic: string, partition: string, offset: string, timestamp: string>,"
    f" `{END_MARK}` string"
)
# What an event says of its connector, and of its place in the source's log.
ORIGIN = ("connector", "db", "schema", *FIELDS)
# Debezium's transform names a field of `source` by how its `add.fields` lists it: `lsn` as
# `__lsn`, `source.lsn` as `__source_lsn`.
PREFIXES = ("__", "__source_")
BODY = (
    "__op string, __source_ts_ms string, __table string, __source_table string, "
    + "".join(f"{prefix}{name} string, " for prefix in PREFIXES for name in ORIGIN)
    + "op string, source string, schema string, payload string, "
    f"ts_ms string, status string, id string, `{END_MARK}` string"
)
# A record's text, and behind it the mark.
FRAMED = f"record struct<{BODY}>, `{END_MARK}` string"
SOURCE = "ts_ms string, `table` string" + "".join(f", `{name}` string" for name in ORIGIN)
LAST_MILLISECOND = 253_402_300_799_999  # of the year 9999 in UTC


# Spark takes these for JSON unless told not to. Options also keep it from parsing the text
# once for every field that is used.
PARSER = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


def _parsed(text: Column, schema: str) -> Column:
    return F.from_json(text, schema, PARSER | {"columnNameOfCorruptRecord": END_MARK})


# A number that a double would round, JSON's other tokens, and a text that certainly has no
# such number: its digits are whole numbers, or few, or stand where no number of JSON can.
# In Java's expressions; the macro _exact_numbers has the same.
LONG_NUMBER = r"-?(?:(?=[0-9.]{17}|[0-9]{16}[eE])[0-9]+[.eE]|[0-9.]+[eE][+-]?[0-9]{3})"
STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
NUMBER = r"[0-9-][0-9.eE+-]*+"
# Digits one by one: Java matches a range several times as slowly.
SHORT_NUMBERS = (
    r"^(?>[^0-9]*(?>[0-9]++(?![.eE])"
    r"|[0-9][0-9.]{0,15}+(?![0-9.]|(?<=[0-9]{16})[eE]|[eE][+-]?[0-9]{3})"
    r"|(?<![\s:,\[-])[0-9][0-9.]*+))*+[^0-9]*$"
).replace("0-9", "0123456789")
UP_TO_LONG_NUMBER = rf'\G((?:[^"0-9-]++|{STRING}|(?!{LONG_NUMBER}){NUMBER})*+)({NUMBER})'


def _with_marked_numbers(text: Column, mark: Column) -> Column:
    """JSON whose long numbers are strings within marks; no mark, and it is as it was.

    Spark takes a number with a point through a double.
    """
    marked = F.concat(F.lit('$1"'), mark, F.lit("$2"), mark, F.lit('"'))
    return F.when(mark.isNull(), text).otherwise(
        F.regexp_replace(text, F.lit(UP_TO_LONG_NUMBER), marked)
    )


def _unmarked(text: str) -> Column:
    """The numbers of an object as they were before the mark of their line."""
    begun = F.replace(F.col(text), F.concat(F.lit('"'), F.col("mark")), F.lit(""))
    ended = F.replace(begun, F.concat(F.col("mark"), F.lit('"')), F.lit(""))
    return F.when(F.col("mark").isNull(), F.col(text)).otherwise(ended)


def _quoted(text: Column) -> Column:
    """A value for a reason, cut to a length that can be printed."""
    return F.concat(F.lit("'"), F.substring(text, 1, 60), F.lit("'"))


def _time(milliseconds: Column) -> Column:
    """The time of a Unix timestamp; null where it is not between 1970 and 9999.

    Spark's own function fails on a number that is too large, and the failure ends the
    batch. Parquet and most readers refuse years that are much earlier or later.
    """
    return F.when(
        milliseconds.between(0, LAST_MILLISECOND), F.timestamp_millis(milliseconds)
    )


def number_of_topic(numbers: dict[str, int]) -> Column:
    """An int for each topic, 0 for those that are not listed."""
    number = F.lit(0)
    for topic, its_number in numbers.items():
        number = F.when(F.col("topic") == topic, F.lit(its_number)).otherwise(number)
    return number.cast("int")


def _is_of_another_table(topics: Topics, carried: dict[str, str]) -> Column:
    """Whether an event names another table than those whose events its topic carries.

    Debezium names a topic ``<prefix>.<schema>.<table>``, with ``_`` or ``_u`` and a number
    for a character that a topic cannot have. Of a topic with another kind of name only the
    topics file can say it, and of the schema, which a router may have renamed, only the
    events of before (``carried``). An event that names no table is of the topic's.
    """
    table = F.col("source_table")
    ending = F.concat(F.lit("."), _alike("table_name"))
    is_named = F.col("topic").endswith(F.concat(F.lit("."), F.col("table_name")))
    is_named = is_named | _alike("topic").endswith(ending)
    # The slow pattern is last: most events name the table that their topic does.
    is_other = ~is_named & F.col("topic").like("%.%.%")
    for topic, names in topics.source_tables.items():
        patterns = [".*".join(map(re.escape, name.split("*"))) for name in names]
        pattern = f"^({'|'.join(patterns)})$"
        is_listed = table.rlike(pattern) | F.col("table_name").rlike(pattern)
        is_other = F.when(F.col("topic") == topic, ~is_listed).otherwise(is_other)
    for topic, name in carried.items():
        known = F.lit(name)
        is_same = (
            (table == known)
            | table.endswith(F.concat(F.lit("."), known))
            | known.endswith(F.concat(F.lit("."), table))
        )
        is_other = is_other | ((F.col("topic") == topic) & ~is_same)
    return F.coalesce(is_other, F.lit(False))


def _alike(column: str) -> Column:
    """A name in which all that Debezium may replace is the same."""
    return F.regexp_replace(column, "(_u[0-9a-f]{4}|[^A-Za-z0-9.])+", "_")


def records_from_lines(lines: DataFrame, topic: str | None) -> DataFrame:
    """One record per non-empty line of a file.

    Args:
        lines: ``value`` (the line) and ``source_file``; other columns are kept.
        topic: the topic of lines that do not name theirs.

    Returns:
        The columns of ``RECORD``. A line in the S3 sink's own envelope
        (``{"key", "value", "headers", "metadata"}``, Lenses' ``store.envelope``) gives
        its parts, any other line is a value; so is an envelope that is no JSON, or whose
        place is no number. A value that the sink nested as JSON is the sink's text without
        its white space, each number but a short one of a double as it was written.
    """
    others = [name for name in lines.columns if name != "value"]
    # It also replaces bytes that are no UTF-8.
    decoded = F.decode(F.col("value").cast("binary"), "UTF-8")
    without_mark = F.when(decoded.startswith("\ufeff"), F.substring(decoded, 2, 2**31 - 1))
    line = F.trim(F.coalesce(without_mark, decoded))
    # Nothing else in a line can be its hash.
    mark = F.when(~F.col("line").rlike(SHORT_NUMBERS), F.md5("line"))
    marked = _with_marked_numbers(F.col("line"), F.col("mark"))
    unwrapped = (
        lines.select(line.alias("line"), *others)
        .where(F.col("line") != "")
        .withColumn("mark", mark)
        .withColumn("sink", _parsed(marked, SINK_ENVELOPE))
    )
    parts = unwrapped.withColumn(
        "metadata",
        F.when(
            F.col(f"sink.{END_MARK}").isNull()
            & F.col("sink.op").isNull()
            & F.col("sink.__op").isNull(),
            F.col("sink.metadata"),
        ),
    )
    # Columns of their own, as Spark would compute them once for each use.
    placed = parts.withColumns(
        {
            "kafka_partition": number(F.col("metadata.partition"), "int"),
            "kafka_offset": number(F.col("metadata.offset")),
            "milliseconds": number(F.col("metadata.timestamp")),
        }
    )
    is_partition = F.col("kafka_partition").isNotNull()
    is_offset = F.col("kafka_offset").isNotNull()
    placed = placed.withColumn(
        "has_envelope",
        F.col("metadata.topic").isNotNull()
        & (is_partition == F.col("metadata.partition").isNotNull())
        & (is_offset == F.col("metadata.offset").isNotNull()),
    )
    has_envelope = F.col("has_envelope")
    return placed.select(
        F.coalesce("metadata.topic", F.lit(topic)).alias("topic"),
        F.when(has_envelope, F.col("kafka_partition")).alias("kafka_partition"),
        F.when(has_envelope, F.col("kafka_offset")).alias("kafka_offset"),
        _time(F.col("milliseconds")).alias("kafka_timestamp"),
        F.when(has_envelope, _unmarked("sink.key")).alias("key"),
        F.when(has_envelope, _unmarked("sink.value"))
        .otherwise(F.col("line"))
        .alias("value"),
        F.col("line").alias("record"),
        F.lit(None).cast("bigint").alias("schema_id"),
        F.lit(None).cast("string").alias("decode_error"),
        *others,
    )


def _without_strings(text: Column) -> Column:
    """The text with every JSON string emptied, so that only its structure is left."""
    unescaped = F.regexp_replace(text, r"\\.", "")
    return F.regexp_replace(unescaped, '"[^"]*"', "")


def _opened(structure: Column) -> Column:
    return F.length(F.regexp_replace(structure, r"[^{\[]", ""))


def _closed(structure: Column) -> Column:
    return F.length(F.regexp_replace(structure, r"[^}\]]", ""))


def _malformed_reason(text: Column) -> Column:
    structure = _without_strings(text)
    return (
        F.when(
            text.rlike(r"^[{\[]")
            & ((_opened(structure) > _closed(structure)) | structure.contains('"')),
            F.lit("truncated: the JSON text ends before the record does"),
        )
        .when(
            text.rlike(r'^(\[.*\]|".*"|-?[0-9][0-9.eE+-]*|true|false)$'),
            F.lit("not an object: a change event is a JSON object"),
        )
        .otherwise(F.lit("not JSON"))
    )


def _origin(name: str) -> Column:
    """A field of an event's ``source``, in whichever form the event has it."""
    flattened = F.coalesce(*[f"body.{prefix}{name}" for prefix in PREFIXES])
    return F.when(F.col("body.__op").isNotNull(), flattened).otherwise(
        F.col(f"source.{name}")
    )


def _of_connector(value: Callable[[Log], Column]) -> Column:
    """What a function gives for the log of an event's connector; null of an unknown one."""
    found = F.lit(None)
    for connector, log in CONNECTORS.items():
        found = F.when(F.col("connector") == connector, value(log)).otherwise(found)
    return found


def _values(log: Log) -> list[Column]:
    return [F.col(f"origin.{name}") for name in log.fields]


def _is_malformed(log: Log) -> Column:
    return _values(log)[0].isNotNull() & F.col("source_position").isNull()


def _is_incomplete(log: Log) -> Column:
    return reduce(or_, (value.isNull() for value in _values(log)))


def _malformed_position(log: Log) -> Column:
    given = _quoted(F.concat_ws(" ", *_values(log)))
    return F.concat(given, F.lit(f" is not {log.term}: {log.form}"))


class Classifier:
    """Says of every record where it goes, and places the events in the stream.

    Its expressions are made once: thousands of calls into Spark's JVM.

    Args:
        topics: which table a topic's events go to, its epoch, and whose events they are.
        carried: of topics with events of one source table, which it is.
    """

    def __init__(self, topics: Topics, carried: dict[str, str] | None = None) -> None:
        text = F.trim("value")
        framed = F.concat(F.lit('{"record":'), text, F.lit(f',"{END_MARK}":true}}'))
        self._framed = F.from_json(framed, FRAMED, PARSER)
        # Spark's parser stops after the first object: with something behind it, or too
        # little, the mark is not where it belongs, and the text alone tells what it is.
        is_object = (
            F.col(f"framed.{END_MARK}").isNotNull() & F.col("framed.record").isNotNull()
        )
        self._outer = F.when(is_object, F.col("framed.record")).otherwise(
            _parsed(text, BODY)
        )
        # JsonConverter with schemas puts `schema` and `payload` around the whole record.
        is_wrapped = (
            F.col("outer.payload").isNotNull()
            & F.col("outer.schema").isNotNull()
            & F.col("outer.__op").isNull()
            & F.col("outer.op").isNull()
        )
        self._body = F.when(is_wrapped, _parsed(F.col("outer.payload"), BODY)).otherwise(
            F.col("outer")
        )
        self._source = F.when(
            F.col("body.__op").isNull(), F.from_json("body.source", SOURCE)
        )
        self._place = _place(topics)
        self._position = {
            "source_position": _of_connector(lambda log: log.position(*_values(log))),
            "source_lsn": F.when(
                F.col("connector") == "postgresql", number(F.col("origin.lsn"))
            ),
        }
        is_skipped = _is_skipped()
        reason = _reason(topics, carried or {})
        self._reason = F.when(is_skipped, None).otherwise(reason)
        self._destination = (
            F.when(is_skipped, SKIPPED)
            .when(F.col("reason").isNotNull(), REJECTED_TABLE)
            .otherwise(F.col("bronze_table"))
        )
        self._event_id = event_id()

    def classified(self, records: DataFrame) -> DataFrame:
        """The records, each with its destination.

        Args:
            records: the columns of ``RECORD``.

        Returns:
            The records with ``destination`` (a bronze table, ``rejected_events`` or
            ``skipped``), ``reason`` (of a rejection), ``event_id`` and the envelope's
            ``op``, ``source_epoch``, ``source_position`` (text that sorts as the source's
            log does), ``source_lsn`` (PostgreSQL's), ``source_ts``, ``source_table``.
            Tombstones, heartbeats and transaction markers are skipped.
        """
        return (
            records.withColumn("framed", self._framed)
            .withColumn("outer", self._outer)
            .withColumn("body", self._body)
            .withColumn("source", self._source)
            .select(*records.columns, *self._place)
            .withColumns(self._position)
            .withColumn("reason", self._reason)
            .withColumn("destination", self._destination)
            .withColumn("event_id", self._event_id)
            .drop("body", "text", "bronze_table", "table_name", "connector", "origin")
            .drop("decode_error", "has_more")
        )


def _place(topics: Topics) -> list[Column]:
    """What an event's body says of it, and the body."""
    ts_text = F.when(
        F.col("body.__op").isNotNull(), F.col("body.__source_ts_ms")
    ).otherwise(F.col("source.ts_ms"))
    table_of_topic = F.element_at(
        F.create_map(*[F.lit(part) for pair in topics.tables.items() for part in pair]),
        F.col("topic"),
    )
    table = F.coalesce("body.__table", "body.__source_table", "source.table")
    connector = F.coalesce(_origin("connector"), F.lit(DEFAULT_CONNECTOR))
    # Of MySQL and MariaDB a database is what others call a schema.
    database = F.when(connector.isin("mysql", "mariadb"), _origin("db"))
    name = F.concat_ws(".", F.coalesce(_origin("schema"), database), table)
    return [
        F.col("body").alias("body"),
        F.trim("value").alias("text"),
        F.col(f"framed.{END_MARK}").isNull().alias("has_more"),
        table_of_topic.alias("bronze_table"),
        F.coalesce("body.__op", "body.op").alias("op"),
        number_of_topic(topics.epochs).alias("source_epoch"),
        connector.alias("connector"),
        F.struct(*[_origin(name).alias(name) for name in FIELDS]).alias("origin"),
        _time(ts_text.cast("bigint")).alias("source_ts"),
        table.alias("table_name"),
        F.when(table.isNotNull(), name).alias("source_table"),
    ]


def _is_skipped() -> Column:
    """Whether a record is a tombstone, a heartbeat or a transaction marker."""
    no_operation = F.col("op").isNull()
    is_tombstone = F.col("text").isNull() | F.col("text").isin("", "null")
    is_heartbeat = no_operation & (
        F.col("topic").startswith("__debezium-heartbeat")
        | F.expr("json_object_keys(text) = array('ts_ms')")
        | F.expr("json_object_keys(get_json_object(text, '$.payload')) = array('ts_ms')")
    )
    is_transaction_marker = (
        no_operation
        & F.col("body.status").isin("BEGIN", "END")
        & F.col("body.id").isNotNull()
    )
    return is_tombstone | is_heartbeat | is_transaction_marker


def _reason(topics: Topics, carried: dict[str, str]) -> Column:
    """Why a record that is not skipped is rejected; null where it is not."""
    no_operation = F.col("op").isNull()
    place = F.get_json_object("text", "$.metadata.topic")
    return (
        F.when(F.col("decode_error").isNotNull(), F.col("decode_error"))
        .when(F.col(f"body.{END_MARK}").isNotNull(), _malformed_reason(F.col("text")))
        .when(F.col("has_more"), F.lit("not JSON: something follows the object"))
        .when(
            no_operation & place.isNotNull(),
            F.lit("no place: metadata's partition or offset is no number in range"),
        )
        .when(no_operation, F.lit("no operation: neither __op nor op says what changed"))
        .when(
            ~F.col("op").isin("c", "u", "d", "r", "t"),
            F.concat(F.lit("unknown operation "), _quoted(F.col("op"))),
        )
        .when(
            ~F.col("connector").isin(*CONNECTORS),
            F.concat(
                F.lit("unknown connector "),
                _quoted(F.col("connector")),
                F.lit(f": the ingest knows the positions of {', '.join(CONNECTORS)}"),
            ),
        )
        .when(_of_connector(_is_malformed), _of_connector(_malformed_position))
        .when(
            (F.col("op") != "r") & _of_connector(_is_incomplete),
            F.format_string(
                "operation '%s' without %s: only a snapshot read may lack it",
                F.col("op"),
                _of_connector(lambda log: F.lit(log.term)),
            ),
        )
        .when(
            F.col("topic").isNull(),
            F.lit("no topic: the record names none, and --topic was not given"),
        )
        .when(
            F.col("bronze_table").isNull(),
            F.concat(
                F.lit("no table: topics.toml does not list the topic "),
                _quoted(F.col("topic")),
            ),
        )
        .when(
            _is_of_another_table(topics, carried),
            F.concat(
                F.lit("of another table: "),
                _quoted(F.col("source_table")),
                F.lit("; [source_tables] in the topics file says which a topic carries"),
            ),
        )
    )


def event_id() -> Column:
    """The same record always gets the same id, whichever file or topic it is read from.

    The position alone will not do: a recreated topic starts its offsets again. For the same
    change at the same offset of a later generation, ``ingest/batches.py`` adds that.
    A rejected record without a position is known by its file as well.
    """
    absent = F.lit("")
    return F.md5(
        F.concat_ws(
            "\x1f",
            F.coalesce("topic", absent),
            F.coalesce(F.col("kafka_partition").cast("string"), absent),
            F.coalesce(F.col("kafka_offset").cast("string"), absent),
            F.coalesce("key", absent),
            F.coalesce("value", absent),
            F.when(
                F.col("reason").isNotNull() & F.col("kafka_offset").isNull(),
                F.col("source_file"),
            ).otherwise(absent),
        )
    )
