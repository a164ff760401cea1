"""The lake's tables in AWS Glue, where Athena finds them.

For a lake on S3 whose Spark keeps its tables elsewhere. Columns and types are those that
the Hudi tables have, descriptions are dbt's. Nothing is removed, ever: a table whose model
is gone is named, and stays until its owner drops it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import boto3
import click
import pyarrow as pa
from botocore.exceptions import ClientError

from cdc_lakehouse.command import STYLE, complain, version
from cdc_lakehouse.errors import DONE, UserError
from cdc_lakehouse.serving.aws import aws_errors, user_error
from cdc_lakehouse.serving.gold import find_place
from cdc_lakehouse.serving.manifest import Manifest, Relation, catalogue_options
from cdc_lakehouse.storage.place import lake_root
from cdc_lakehouse.storage.tables import list_folder, open_table, schema_of

# Says which lake's a table is; one that lacks it is not this command's to update.
MARK = "cdc_lakehouse"
# The longest that Glue takes (API reference, Column and TableInput).
COMMENT_LENGTH, DESCRIPTION_LENGTH = 255, 2048
# As many partitions as one call takes (API reference, BatchCreatePartition).
PARTITIONS_A_CALL = 100

FORMAT = {
    "InputFormat": "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {
        "SerializationLibrary": (
            "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
        ),
        "Parameters": {"serialization.format": "1"},
    },
}
# The format of a reader that merges the logs of a merge-on-read table.
REALTIME = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
# What Hudi's own sync makes of one (HiveSyncTool): by the end of the name, whether a reader
# leaves its logs out.
MERGE_ON_READ = {"": False, "_ro": True, "_rt": False}
PARAMETERS = {
    "EXTERNAL": "TRUE",
    "classification": "parquet",
    # Athena reads with its own Hudi 0.15 connector (Athena user guide, "Query Apache Hudi
    # datasets", considerations); without it, with an older one.
    "athena_enable_native_hudi_connector_implementation": "true",
}


@dataclass(frozen=True)
class Table:
    """A table as Glue shall have it.

    Attributes:
        database: its Glue database.
        definition: Glue's ``TableInput``.
        partitions: the folders of its partitions, ``<column>=<value>``, where a value has
            what a folder's name cannot hold as ``%2F``; none without a partition column.
    """

    database: str
    definition: dict[str, Any]
    partitions: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name, with the database."""
        return f"{self.database}.{self.definition['Name']}"


class Lake:
    """The Hudi tables of a lake on S3.

    Args:
        root: ``LAKE_ROOT``.

    Attributes:
        location: its ``s3://`` folder; Athena returns nothing, and says nothing, for
            ``s3a://``.

    Raises:
        UserError: the lake is elsewhere.
    """

    def __init__(self, root: str) -> None:
        scheme, _, place = root.partition("://")
        parts = [part for part in place.split("/") if part]
        if scheme not in ("s3", "s3a") or not parts:
            raise UserError(
                f"LAKE_ROOT is {root}: Glue is for a lake on S3 (s3a://bucket/folder)"
            )
        self.location = f"s3://{'/'.join(parts)}"

    def tables(self, relation: Relation, prefix: str) -> list[Table]:
        """A table as it is now, of merge-on-read one for each way to read it.

        There is none where it has not been written yet.

        Raises:
            UserError: it cannot be read.
        """
        place = find_place(self.location, relation.schemas, relation.name)
        if place is None:
            return []
        folder = f"{self.location}/{place}"
        opened = open_table(folder)
        settings = opened.hudi_options()
        partition = settings.get("hoodie.table.partition.fields")
        columns = [
            _column(relation, field.name, glue_type(field.type))
            for field in schema_of(opened)
            if field.name != partition
        ]
        definition = {
            "Description": _cut(relation.description, DESCRIPTION_LENGTH),
            "TableType": "EXTERNAL_TABLE",
            "PartitionKeys": [_column(relation, partition, "string")] if partition else [],
            "StorageDescriptor": {
                "Columns": columns,
                "Location": folder,
                **FORMAT,
            },
            "Parameters": {**PARAMETERS, MARK: self.location},
        }
        partitions = tuple(list_folder(f"{folder}/{partition}=")) if partition else ()
        named = {relation.name: definition}
        if settings.get("hoodie.table.type") == "MERGE_ON_READ":
            named = {
                relation.name + suffix: _merge_on_read(definition, without_logs)
                for suffix, without_logs in MERGE_ON_READ.items()
            }
        return [
            Table(f"{prefix}_{relation.layer}", {"Name": name, **each}, partitions)
            for name, each in named.items()
        ]


class Catalogue:
    """Glue, of which only what differs is written.

    Args:
        lake: whose tables are written; those of others are left as they are.
        is_dry: whether it only says what it would do.
    """

    def __init__(self, lake: str, *, is_dry: bool) -> None:
        self.client = boto3.client("glue")
        self.lake = lake
        self.is_dry = is_dry
        self._known: dict[str, Table] = {}

    def create_database(self, name: str) -> bool:
        """Make a database where there is none; whether there was none.

        Raises:
            UserError: it is another lake's.
        """
        try:
            found = self.client.get_database(Name=name)["Database"]
        except self.client.exceptions.EntityNotFoundException:
            if not self.is_dry:
                own = {"Name": name, "Parameters": {MARK: self.lake}}
                self.client.create_database(DatabaseInput=own)
            return True
        owner = found.get("Parameters", {}).get(MARK, self.lake)
        if owner != self.lake:
            raise UserError(
                f"Glue has a database of this name, of the lake at {owner}: choose other"
                " databases with --prefix"
            )
        return False

    def put(self, table: Table) -> list[str]:
        """Bring a table to its state; one that was put as it is now is not asked for again.

        Returns:
            What was different, in words; nothing where nothing was.

        Raises:
            UserError: Glue has a table of this name that is another lake's, or that
                something else made.
        """
        if self._known.get(table.name) == table:
            return []
        stored = self._stored(table)
        if stored is None:
            if not self.is_dry:
                self.client.create_table(
                    DatabaseName=table.database, TableInput=table.definition
                )
            changes = ["new table"]
        else:
            owner = stored.get("Parameters", {}).get(MARK)
            if owner != self.lake:
                raise UserError(
                    "Glue has a table of this name, "
                    + (f"of the lake at {owner}" if owner else "that something else made")
                    + ": drop it there, or choose other databases with --prefix"
                )
            changes = list(_differences(stored, table.definition))
            if changes and not self.is_dry:
                # What somebody else has set beside it stays.
                parameters = stored["Parameters"] | table.definition["Parameters"]
                self.client.update_table(
                    DatabaseName=table.database,
                    TableInput={**table.definition, "Parameters": parameters},
                )
        changes += self._put_partitions(table, is_new=stored is None)
        self._known[table.name] = table
        return changes

    def leftovers(self, database: str, known: set[str]) -> list[str]:
        """The tables of this lake in a database that are not among those known."""
        try:
            pages = self.client.get_paginator("get_tables").paginate(DatabaseName=database)
            return [
                f"{database}.{table['Name']}"
                for page in pages
                for table in page["TableList"]
                if table["Name"] not in known
                and table.get("Parameters", {}).get(MARK) == self.lake
            ]
        except self.client.exceptions.EntityNotFoundException:
            return []

    def _stored(self, table: Table) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self.client.get_table(
                DatabaseName=table.database, Name=table.definition["Name"]
            )["Table"]
        except self.client.exceptions.EntityNotFoundException:
            return None
        return found

    def _put_partitions(self, table: Table, *, is_new: bool) -> list[str]:
        if not table.partitions:
            return []
        place = {"DatabaseName": table.database, "TableName": table.definition["Name"]}
        stored: set[str] = set()
        if not is_new:
            pages = self.client.get_paginator("get_partitions").paginate(**place)
            stored = {part["Values"][0] for page in pages for part in page["Partitions"]}
        folders = {unquote(name.partition("=")[2]): name for name in table.partitions}
        missing = [value for value in folders if value not in stored]
        storage = table.definition["StorageDescriptor"]
        for first in range(0, 0 if self.is_dry else len(missing), PARTITIONS_A_CALL):
            failed = self.client.batch_create_partition(
                **place,
                PartitionInputList=[
                    {
                        "Values": [value],
                        "StorageDescriptor": {
                            **storage,
                            "Location": f"{storage['Location']}/{folders[value]}",
                        },
                    }
                    for value in missing[first : first + PARTITIONS_A_CALL]
                ],
            ).get("Errors")
            if failed:
                detail = failed[0]["ErrorDetail"]
                raise UserError(f"{table.name}: {detail['ErrorMessage']}")
        return [f"{len(missing)} new partitions"] if missing else []


def glue_type(arrow: pa.DataType) -> str:
    """The Hive type, as Glue writes it, of an Arrow type.

    Raises:
        UserError: Hive has none.
    """
    simple = {
        pa.string(): "string",
        pa.large_string(): "string",
        pa.binary(): "binary",
        pa.bool_(): "boolean",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.date32(): "date",
    }
    if arrow in simple:
        return simple[arrow]
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_timestamp(arrow):
        return "timestamp"
    if pa.types.is_list(arrow):
        return f"array<{glue_type(arrow.value_type)}>"
    if pa.types.is_map(arrow):
        return f"map<{glue_type(arrow.key_type)},{glue_type(arrow.item_type)}>"
    if pa.types.is_struct(arrow):
        fields = (f"{field.name}:{glue_type(field.type)}" for field in arrow)
        return f"struct<{','.join(fields)}>"
    raise UserError(f"Glue has no type for {arrow}")


def _merge_on_read(definition: dict[str, Any], without_logs: bool) -> dict[str, Any]:
    storage = definition["StorageDescriptor"]
    serde = storage["SerdeInfo"]
    read_as = {"hoodie.query.as.ro.table": str(without_logs).lower()}
    return {
        **definition,
        "StorageDescriptor": {
            **storage,
            "InputFormat": storage["InputFormat"] if without_logs else REALTIME,
            "SerdeInfo": {**serde, "Parameters": serde["Parameters"] | read_as},
        },
    }


def _column(relation: Relation, name: str, kind: str) -> dict[str, str]:
    comment = _cut(relation.columns.get(name, ""), COMMENT_LENGTH)
    return {"Name": name, "Type": kind} | ({"Comment": comment} if comment else {})


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _differences(stored: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    old, new = (
        {column["Name"]: column for column in table["StorageDescriptor"]["Columns"]}
        for table in (stored, wanted)
    )
    for name, column in new.items():
        if name not in old:
            yield f"new column {name} {column['Type']}"
            continue
        if old[name]["Type"] != column["Type"]:
            yield f"column {name} is {column['Type']}, was {old[name]['Type']}"
        if old[name].get("Comment", "") != column.get("Comment", ""):
            yield f"column {name}: description changed"
    for name in old:
        if name not in new:
            yield f"column {name}: removed"
    if list(old) != list(new) and old.keys() == new.keys():
        yield "another order of columns"
    for name, value in wanted["Parameters"].items():
        if stored["Parameters"].get(name) != value:
            yield f"property {name}"
    tables = (stored, wanted)
    storages = (stored["StorageDescriptor"], wanted["StorageDescriptor"])
    for (before, after), names in (
        (tables, ("Description", "PartitionKeys", "TableType")),
        (storages, ("Location", *FORMAT)),
    ):
        for name in names:
            if (before.get(name) or None) != (after.get(name) or None):
                yield f"another {name}"


@dataclass(frozen=True)
class Outcome:
    """What was done with a table or a database.

    Attributes:
        state: in words.
        name: of the table or database.
        details: what is different, or why it failed.
    """

    state: str
    name: str
    details: list[str] = field(default_factory=list)

    @property
    def is_news(self) -> bool:
        """Whether something was written."""
        return self.state in ("changed", "new database")

    def __str__(self) -> str:
        details = f": {', '.join(self.details)}" if self.details else ""
        return f"{self.state:<16} {self.name}{details}"


def register(
    manifest: Manifest, lake: Lake, catalogue: Catalogue, prefix: str
) -> Iterator[Outcome | UserError]:
    """Bring every table of the lake into Glue.

    Yields:
        What was done, one by one; in place of it the error of a table that failed.

    Raises:
        UserError: the lake holds no table.
    """
    is_empty = True
    known: dict[str, set[str]] = {}
    made: set[str] = set()
    for relation in manifest.relations():
        database = f"{prefix}_{relation.layer}"
        known.setdefault(database, set()).add(relation.name)
        try:
            tables = lake.tables(relation, prefix)
            if not tables:
                yield Outcome("not written yet", f"{relation.schema}.{relation.name}")
                continue
            is_empty = False
            if database not in made and catalogue.create_database(database):
                yield Outcome("new database", database)
            made.add(database)
            for table in tables:
                known[database].add(table.definition["Name"])
                changes = catalogue.put(table)
                changed = "would change" if catalogue.is_dry else "changed"
                yield Outcome(changed if changes else "unchanged", table.name, changes)
        except (UserError, ClientError) as error:
            is_empty = False
            yield _failure(f"{database}.{relation.name}", error)
    if is_empty:
        raise UserError(f"there is no table below {lake.location}/warehouse")
    for database, names in known.items():
        for name in catalogue.leftovers(database, names):
            yield Outcome("left alone", name, ["it is not in this manifest"])


def _failure(table: str, error: UserError | ClientError) -> UserError:
    message = f"{table}: {error}"
    if isinstance(error, ClientError):
        return user_error(error, message)
    return type(error)(message)


def exit_code(errors: list[UserError]) -> int:
    """What a registration ends with: 75 where another try may mend every table."""
    return min((error.exit_code for error in errors), default=DONE)


@click.command("glue", context_settings=STYLE)
@version
@catalogue_options
@click.option("--dry-run", is_flag=True, help="Print what would change; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
def command(prefix: str, manifest_file: Path, dry_run: bool, as_json: bool) -> int:
    """Register the lake's tables (LAKE_ROOT, on S3) in AWS Glue."""
    outcomes: list[dict[str, Any]] = []
    errors: list[UserError] = []
    with aws_errors():
        manifest, lake = Manifest.read(manifest_file), Lake(lake_root())
        catalogue = Catalogue(lake.location, is_dry=dry_run)
        for outcome in register(manifest, lake, catalogue, prefix):
            if isinstance(outcome, UserError):
                errors.append(outcome)
                complain(str(outcome))
                continue
            outcomes.append(asdict(outcome))
            if not as_json:
                click.echo(outcome)
    if as_json:
        click.echo(json.dumps(outcomes, indent=2))
    return exit_code(errors)
