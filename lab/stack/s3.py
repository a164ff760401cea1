"""Objects of a local S3."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def upload(client: Any, folder: Path, bucket: str, prefix: str) -> None:
    """Put the files of a folder below a prefix; boto3's client of S3 has no types."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        key = f"{prefix}/{file.relative_to(folder).as_posix()}"
        client.put_object(Bucket=bucket, Key=key, Body=file.read_bytes())
