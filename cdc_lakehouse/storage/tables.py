"""Hudi tables as a reader sees them that is not Spark, in a folder or on S3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import boto3
import pyarrow as pa
from hudi import HudiReadOptions, HudiTable, HudiTableBuilder

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.files import s3_access


def open_table(location: str) -> HudiTable:
    """Open the Hudi table at a folder or below ``s3://``.

    On S3 it has the credentials, the region and the endpoint that boto3 finds.

    Raises:
        UserError: there is none that can be read.
    """
    builder = HudiTableBuilder.from_base_uri(location)
    if location.startswith("s3://"):
        for name, value in _s3_options().items():
            builder = builder.with_storage_option(name, value)
    with _named(location):
        return builder.build()


def schema_of(table: HudiTable) -> pa.Schema:
    """A table's columns, but Hudi's own.

    Raises:
        UserError: they cannot be read.
    """
    with _named(table.base_url):
        schema = table.get_schema()
    # `_hoodie_key` is one of ours (macros/materializations/_create_or_alter_table.sql).
    return pa.schema(
        [each for each in schema if not each.name.startswith("_hoodie_")], schema.metadata
    )


def read_columns(table: HudiTable, columns: Sequence[str] | None = None) -> pa.Table:
    """A table's rows in Arrow: these columns, or all but Hudi's own.

    Raises:
        UserError: they cannot be read, or a column is not there.
    """
    schema = schema_of(table)
    kept = list(columns or schema.names)
    with _named(table.base_url):
        batches = table.read(HudiReadOptions(projection=kept))
        # No batch says no columns either, so those of a table without rows come from it.
        found = pa.Table.from_batches(batches) if batches else schema.empty_table()
        return found.select(kept)


def list_folder(url: str) -> list[str]:
    """The names, in their order, of what begins with an ``s3://`` URL, up to a slash."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    pages = (
        boto3.client("s3")
        .get_paginator("list_objects_v2")
        .paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    )
    return [
        found.rstrip("/").rpartition("/")[2]
        for page in pages
        for found in (
            *(folder["Prefix"] for folder in page.get("CommonPrefixes", ())),
            *(file["Key"] for file in page.get("Contents", ())),
        )
    ]


def write_object(url: str, content: bytes, content_type: str) -> None:
    """Write an object at an ``s3://`` URL."""
    bucket, _, key = url.removeprefix("s3://").partition("/")
    boto3.client("s3").put_object(
        Bucket=bucket, Key=key, Body=content, ContentType=content_type
    )


@contextmanager
def _named(location: str) -> Iterator[None]:
    """Say which table it was."""
    try:
        yield
    except Exception as error:  # ``hudi`` exports no class of its errors
        raise UserError(f"cannot read the Hudi table at {location}: {error}") from error


def _s3_options() -> dict[str, str]:
    access = s3_access()
    options = {
        "aws_region": access.region,
        "aws_access_key_id": access.access_key,
        "aws_secret_access_key": access.secret_key,
        "aws_session_token": access.session_token,
    }
    if access.endpoint is not None:
        options["aws_endpoint"] = access.endpoint
        options["aws_allow_http"] = str(access.endpoint.startswith("http://")).lower()
    return {name: value for name, value in options.items() if value is not None}
