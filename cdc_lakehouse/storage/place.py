"""Where the lake is: `LAKE_ROOT`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cdc_lakehouse.errors import UserError


def lake_root() -> str:
    """The folder or URL that everything local lives below (``LAKE_ROOT``).

    Raises:
        UserError: it is the root of the file system, or its path has a space or another
            character that a URL writes otherwise: Hudi 1.2.0 takes the catalogue's URLs
            for paths, and does not find its own tables there.
    """
    root = (os.environ.get("LAKE_ROOT") or ".lake").rstrip("/")
    if not root:
        raise UserError("LAKE_ROOT is /: name a folder for the lake")
    place = root if "://" in root else str(Path(root).absolute())
    # Of a URL all but its scheme; Derby's URL ends at a semicolon.
    if re.search(r"""[\s%"'<>\\^`{|}\[\]#?*:;]""", place.partition("://")[2] or place):
        raise UserError(
            f"the lake's path has a character that Hudi cannot find again: {place}; set"
            " LAKE_ROOT to one without spaces, quotes, brackets and any of % # ? * : ;"
        )
    return root


def lake_folder(otherwise: str) -> Path:
    """The folder of a lake that is on this machine.

    Args:
        otherwise: what to say of a lake that is not.

    Raises:
        UserError: it is elsewhere, or as ``lake_root`` has it.
    """
    root = lake_root()
    if "://" in root:
        raise UserError(f"LAKE_ROOT is {root}; {otherwise}")
    return Path(root)


def readable_lake(reader: str) -> Path | str:
    """The lake as Python reads it: its folder; its ``s3://`` URL, if it is on S3.

    Args:
        reader: who reads it, for the message.

    Raises:
        UserError: it is elsewhere, or as ``lake_root`` has it.
    """
    scheme, _, place = lake_root().partition("://")
    if scheme in ("s3", "s3a") and place:
        return f"s3://{place}"
    return lake_folder(f"{reader} reads a lake in a folder or on S3")
