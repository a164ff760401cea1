"""The embedded metastore: a Derby database, one folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lake.place import lake_root


def metastore_root() -> str:
    """The folder of the database and its log: ``LAKE_METASTORE``, or the lake's own."""
    return os.environ.get("LAKE_METASTORE") or lake_root()


def metastore() -> Path:
    """The database's folder."""
    return Path(metastore_root()) / "metastore"


def is_half_made() -> bool:
    """Whether Derby was killed while it made the database.

    It writes ``service.properties`` last, and refuses to open a folder without it or to
    make the database there (its error XBM0A). No table can be registered in one yet.
    """
    folder = metastore()
    return folder.exists() and not (folder / "service.properties").exists()


def remove_half_made() -> None:
    """Remove the folder that such a kill left, so that the next start makes it anew.

    Only for who holds the lake's lock for builds: another process may be making it.
    """
    if is_half_made():
        shutil.rmtree(metastore())
