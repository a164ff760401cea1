"""Settings of a connector by which its events are not what a declaration says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cdc_lakehouse.sources.catalogue import Table

Config = Mapping[str, str]


@dataclass(frozen=True)
class Encoding:
    """A setting that says how values of some types are sent.

    Attributes:
        default: Debezium's.
        known: the values by which they are sent as ``connectors/types`` has them.
        types: the types of the source, a regular expression of how they begin.
    """

    default: str
    known: tuple[str, ...]
    types: str


ENCODINGS = {
    "time.precision.mode": Encoding(
        "adaptive",
        ("adaptive", "adaptive_time_microseconds"),
        r"date\b|datetime|time(stamp)?(\(\d\))? without|time(\(\d\))?$",
    ),
    "interval.handling.mode": Encoding("numeric", ("numeric",), "interval"),
    "binary.handling.mode": Encoding(
        "bytes", ("bytes", "base64"), "bytea|binary|varbinary|(tiny|medium|long)?blob"
    ),
    # The text of a JSON object, and the object.
    "hstore.handling.mode": Encoding("json", ("json", "map"), "hstore"),
    "bigint.unsigned.handling.mode": Encoding("long", ("precise",), "bigint.*unsigned"),
    "money.fraction.digits": Encoding("2", ("2",), "money"),
}
# What names a topic, changes values by code of one's own, and leaves events out.
FIXED = {
    "topic.naming.strategy": "io.debezium.schema.SchemaTopicNamingStrategy",
    "topic.delimiter": ".",
    "converters": "",
    # An event that cannot be read is left out.
    "errors.tolerance": "none",
    "event.processing.failure.handling.mode": "fail",
    "inconsistent.schema.handling.mode": "fail",
}
# The modes in which a snapshot of rows is taken, or was, and changes follow.
SNAPSHOTS = ("initial", "always", "when_needed", "recovery", "schema_only_recovery")
STATEMENTS = "snapshot.select.statement.overrides"
JSON = "org.apache.kafka.connect.json.JsonConverter"
CONFLUENT = "io.confluent.connect.avro.AvroConverter"
CONVERTERS = (JSON, CONFLUENT, "io.apicurio.registry.utils.converter.AvroConverter")
# What makes a converter send a null as a null.
NULL_KEPT = {
    JSON: ("value.converter.replace.null.with.default", "false"),
    CONFLUENT: ("value.converter.ignore.default.for.nullables", "true"),
}
UNWRAP = ".ExtractNewRecordState"


def unreadable(config: Config) -> Iterator[str]:
    """What makes every table's events, or their topics, others than the ingest reads."""
    known = dict(FIXED)
    for name in listed(config, "transforms"):
        transform = f"transforms.{name}"
        if not config.get(f"{transform}.type", "").endswith(UNWRAP):
            yield f"{transform}.type={config.get(f'{transform}.type')}"
        known |= {
            f"{transform}.predicate": "",
            f"{transform}.route.by.field": "",
            f"{transform}.add.fields.prefix": "__",
        }
    for setting, value in known.items():
        if config.get(setting, value) != value:
            yield f"{setting}={config[setting]}"
    for setting in ("key.converter", "value.converter"):
        if config.get(setting, JSON) not in CONVERTERS:
            yield f"{setting}={config[setting]}"


def unreadable_columns(
    config: Config, table: Table, types: Mapping[str, str], masked: Mapping[str, str]
) -> Iterator[str]:
    """What makes values of a table others than the source's, with a setting's name.

    Args:
        config: the connector's.
        table: as the source's catalogue describes it.
        types: what is declared of the columns, by the source's name.
        masked: the setting that masks or cuts a column.
    """
    for column in table.columns:
        name = column.name
        if name not in types:
            continue
        for setting, encoding in ENCODINGS.items():
            mode = config.get(setting, encoding.default)
            if mode not in encoding.known and re.match(encoding.types, column.type):
                yield f"{name} ({column.type}) with {setting}={mode}"
        for kind in ("value", "key") if name in table.key else ("value",):
            setting = f"{kind}.converter.decimal.format"
            if types[name].endswith(" base64") and config.get(setting, "") == "NUMERIC":
                yield f"{name} ({column.type}) with {setting}=NUMERIC"
        needed = _null_setting(config)
        if column.is_nullable and column.has_default and needed:
            yield f"{name}, where null is sent as the column's default, without {needed}"
        if name in masked and name in table.key:
            yield f"{name}, which is of the key, with {masked[name]}"
        elif name in masked and column.is_toasted and not table.has_full_identity:
            yield (
                f"{name}, of which a value that was not sent is changed, too, by"
                f" {masked[name]} without replica identity full"
            )
    for entry in re.split(r"(?<!\\);", config.get("message.key.columns", "")):
        pattern, _, names = entry.strip().rpartition(":")
        columns = {each.strip() for each in names.split(",")}
        if pattern and re.fullmatch(pattern, str(table)) and columns != {*table.key}:
            yield f"the key {', '.join(table.key)} with message.key.columns={entry.strip()}"


def _null_setting(config: Config) -> str | None:
    """The setting that is missing, without which a null becomes the column's default."""
    for name in listed(config, "transforms"):
        setting = f"transforms.{name}.replace.null.with.default"
        if config.get(setting) != "false":
            return f"{setting}=false"
    converter = config.get("value.converter", JSON)
    wanted = NULL_KEPT.get(converter)
    if wanted is None:
        return f"value.converter={JSON} ({converter} has no setting for it)"
    return None if config.get(wanted[0]) == wanted[1] else "=".join(wanted)


def listed(config: Config, name: str) -> list[str]:
    """The entries of a list, in which a backslash stands before a comma that parts none."""
    parts = re.split(r"(?<!\\),", config.get(name, ""))
    return [part.strip() for part in parts if part.strip()]


def field_name(config: Config, column: str) -> str:
    """What a column is called in an event (``field.name.adjustment.mode``)."""
    mode = config.get("field.name.adjustment.mode", "none")
    if mode == "none":
        return column
    if mode == "avro":
        return ("_" if column[:1].isdigit() else "") + replaced(column, "A-Za-z0-9_")
    units = column.encode("utf-16-be")
    return "".join(
        chr(unit)
        if re.fullmatch(r"[A-Za-z]" if not place else "[A-Za-z0-9]", chr(unit))
        else f"_u{unit:04x}"
        for place in range(0, len(units), 2)
        for unit in [int.from_bytes(units[place : place + 2])]
    )


def replaced(name: str, allowed: str) -> str:
    """A name with an underscore for each unit of UTF-16 that is not allowed."""
    return re.sub(
        rf"[^{allowed}]", lambda found: "_" if found[0] <= "\uffff" else "__", name
    )
