"""The embedded metastore: a Derby database, one folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.folders import note_own, noted_own
from cdc_lakehouse.storage.place import lake_root


def metastore_root() -> str:
    """The folder of the database and its log: ``LAKE_METASTORE``, or the lake's own."""
    return os.environ.get("LAKE_METASTORE") or lake_root()


def metastore() -> Path:
    """The database's folder."""
    return Path(metastore_root()) / "metastore"


def is_prepared() -> bool:
    """Whether Spark may open or make the database: nothing is left to ``prepare``."""
    folder = metastore()
    if folder.exists():
        return (folder / "service.properties").exists()
    return folder.name in noted_own(metastore_root())


def prepare() -> None:
    """Have a place for the database, without what a kill left half made.

    Derby writes ``service.properties`` last, and refuses to open a folder without it or to
    make the database there (its error XBM0A). No table can be registered in one yet.

    Only for who holds the lake's lock for builds: another process may be making it.

    Raises:
        UserError: the folder is there, and is neither a database nor of our making.
    """
    folder = metastore()
    if folder.exists() and not is_prepared():
        if folder.name not in noted_own(metastore_root()):
            raise UserError(
                f"{folder} is no metastore, and holds what may be somebody else's; move it"
                " away, or set LAKE_ROOT (or LAKE_METASTORE) to another folder"
            )
        shutil.rmtree(folder)
    note_own(metastore_root(), folder.name, "derby.log")
