"""The lake's files without Spark: in a folder, or on S3."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import boto3
from pyarrow import fs

from cdc_lakehouse.errors import UserError


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
    access = s3_access()
    return (
        fs.S3FileSystem(
            access_key=access.access_key,
            secret_key=access.secret_key,
            session_token=access.session_token,
            region=access.region,
            endpoint_override=access.endpoint,
        ),
        bucket[1],
    )


@dataclass(frozen=True)
class S3Access:
    """How S3 is reached; None is what a client finds by itself.

    Attributes:
        region: where it is.
        access_key: who asks, with the secret key and, of a role, the session token.
        endpoint: the URL of a server other than Amazon's.
    """

    region: str | None
    access_key: str | None
    secret_key: str | None
    session_token: str | None
    endpoint: str | None


def s3_access() -> S3Access:
    """What boto3 finds in the environment, its files and the machine's role."""
    session = boto3.Session()
    endpoint = session.client("s3").meta.endpoint_url
    credentials = session.get_credentials()
    frozen = None if credentials is None else credentials.get_frozen_credentials()
    return S3Access(
        region=session.region_name,
        access_key=frozen and frozen.access_key,
        secret_key=frozen and frozen.secret_key,
        session_token=frozen and frozen.token,
        endpoint=None if ".amazonaws.com" in endpoint else endpoint,
    )
