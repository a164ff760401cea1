"""The lake's files without Spark: in a folder, or on S3."""

from __future__ import annotations

import re
from pathlib import Path

import boto3
from pyarrow import fs

from lake.errors import UserError


def file_system(root: str) -> tuple[fs.FileSystem, str]:
    """Where a lake's files are.

    Args:
        root: a folder, or a URL of S3 (``s3a://bucket/prefix``), which is reached with the
            credentials, the region and the endpoint that boto3 finds.

    Returns:
        The file system, and the root's path in it.

    Raises:
        UserError: it is a URL of something else.
    """
    bucket = re.fullmatch(r"s3[an]?://(.+)", root)
    if not bucket and "://" in root:
        raise UserError(f"cannot look into {root} without Spark; s3:// and folders can be")
    if not bucket:
        return fs.LocalFileSystem(), str(Path(root).absolute())
    session = boto3.Session()
    endpoint = session.client("s3").meta.endpoint_url
    credentials = session.get_credentials()
    if credentials is None:
        return fs.S3FileSystem(region=session.region_name), bucket[1]
    frozen = credentials.get_frozen_credentials()
    return (
        fs.S3FileSystem(
            access_key=frozen.access_key,
            secret_key=frozen.secret_key,
            session_token=frozen.token,
            region=session.region_name,
            endpoint_override=None if ".amazonaws.com" in endpoint else endpoint,
        ),
        bucket[1],
    )
