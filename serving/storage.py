"""Hudi tables as a reader sees them that is not Spark, in a folder or on S3."""

from __future__ import annotations

import os
from collections.abc import Sequence

import boto3  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
from hudi import HudiReadOptions, HudiTable, HudiTableBuilder


def open_table(location: str) -> HudiTable:
    """Open the Hudi table at a folder or below ``s3://``.

    On S3 it has the credentials, the region and the endpoint that boto3 finds.
    """
    builder = HudiTableBuilder.from_base_uri(location)
    if location.startswith("s3://"):
        for name, value in _s3_options().items():
            builder = builder.with_storage_option(name, value)
    return builder.build()


def read_columns(table: HudiTable, columns: Sequence[str] | None = None) -> pa.Table:
    """A table's rows in Arrow: these columns, or all but Hudi's own."""
    schema = table.get_schema()
    kept = list(columns or schema.names)
    batches = table.read(HudiReadOptions(projection=kept))
    # No batch says no columns either, so those of a table without rows come from it.
    found = pa.Table.from_batches(batches) if batches else schema.empty_table()
    return found.select(kept)


def _s3_options() -> dict[str, str]:
    session = boto3.Session()
    options = {"aws_region": session.region_name}
    if (credentials := session.get_credentials()) is not None:
        frozen = credentials.get_frozen_credentials()
        options |= {
            "aws_access_key_id": frozen.access_key,
            "aws_secret_access_key": frozen.secret_key,
            "aws_session_token": frozen.token,
        }
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        options["aws_endpoint"] = endpoint
        options["aws_allow_http"] = str(endpoint.startswith("http://")).lower()
    return {name: value for name, value in options.items() if value is not None}
