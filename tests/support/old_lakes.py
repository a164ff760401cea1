"""Lakes that earlier versions have written, kept in ``tests/support/lakes``.

An archive has the whole folder of a lake: tables, metastore, checkpoints and landing
files. To add one of the version that is checked out, or of another version of Hudi:

    python -m tests.support.old_lakes 1.2.0
    export HUDI_VERSION=1.0.2
    cdc-lakehouse setup && python -m tests.support.old_lakes 1.0.2

Keep the archives of before: a user upgrades the code, and the lake is an old one.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from cdc_lakehouse.spark.metastore import metastore
from cdc_lakehouse.spark.session import spark_session
from lab.stack import jars
from tests.support.lake import Lake, SparkProcess
from tests.support.records import UNAVAILABLE, Record
from tests.support.scenario import customer, order, product
from tests.support.tables import Tables

ARCHIVES = Path(__file__).with_name("lakes")
# Where the lakes were made: their metastores and checkpoints have it in their locations.
MADE_AT = "/tmp/cdc-lakehouse-upgrade/lake"

FIRST: list[Record | str] = [
    order("r", 1, 100, 0),
    order("r", 2, 100, 1),
    order("c", 3, 110, 2, customer_id="BONAP"),
    order("c", 4, 120, 3, customer_id="BONAP"),
    customer("c", "ALFKI", 100, 0, company_name="Alfreds Futterkiste"),
    customer("c", "BONAP", 110, 1, company_name="Bon app'"),
    product("c", 11, 100, 0, product_name="Queso Cabrales", unit_price="14.0000"),
    "not JSON",
]
SECOND: list[Record | str] = [
    order("u", 1, 200, 4, customer_id="BONAP", employee=UNAVAILABLE),
    order("d", 2, 210, 5),
    order("u", "x1", 220, 6),
    customer("u", "ALFKI", 200, 2, company_name="Alfred's"),
]
# Columns of the metastore that have locations in them.
LOCATIONS = {
    "DBS": "DB_LOCATION_URI",
    "SDS": "LOCATION",
    "SERDE_PARAMS": "PARAM_VALUE",
}


def archive(version: str) -> Path:
    """The archive of a lake that was written with a version of Hudi."""
    return ARCHIVES / f"hudi-{version}.tar.xz"


def unpack(folder: Path, version: str) -> Tables:
    """Unpack an archive, for readers that use nothing but the tables."""
    jars.unpack(archive(version), folder)
    return Tables(folder)


def restore(lake: Lake, version: str) -> None:
    """Make a new lake what an archive has."""
    root = lake.root
    unpack(root, version)
    for path in (root / "checkpoints").rglob("*"):
        if path.is_file():
            path.write_text(path.read_text().replace(MADE_AT, str(root)))
    lake.spark.ask("relocate", MADE_AT)


def relocate(made_at: str) -> None:
    """Within Spark's process: set the locations in the metastore to the lake's own.

    Args:
        made_at: the lake's folder when they were written.
    """
    spark_session()
    gateway: Any = SparkContext._gateway
    connection = gateway.jvm.java.sql.DriverManager.getConnection(
        f"jdbc:derby:;databaseName={metastore()}"
    )
    statement = connection.createStatement()
    for table, column in LOCATIONS.items():
        found = f"locate('{made_at}', {column})"
        statement.executeUpdate(
            f"update APP.{table} set {column} = substr({column}, 1, {found} - 1)"
            f" || '{os.environ['LAKE_ROOT']}' || substr({column}, {found} + {len(made_at)})"
            f" where {found} > 0"
        )
    connection.close()


def main(version: str) -> None:
    """Make a lake and keep it."""
    os.environ["HUDI_VERSION"] = version
    place = Path(MADE_AT)
    place.parent.mkdir()
    spark = SparkProcess(place.parent)
    try:
        lake = spark.new_lake()
        # The first is a record, not a line of text.
        topic = FIRST[0]["metadata"]["topic"]  # type: ignore[index]  # a record is a dict of objects
        lake.land(FIRST)
        assert lake.ingest(str(lake.landing), "--topic", topic).code == 0
        lake.dbt("run")
        lake.land(SECOND)
        assert lake.ingest(str(lake.landing), "--topic", topic).code == 0
        lake.dbt("run")
        lake.release()
        ARCHIVES.mkdir(exist_ok=True)
        with tarfile.open(archive(version), "w:xz", preset=9) as file:
            for name in ("warehouse", "metastore", "checkpoints", "landing"):
                file.add(place / name, name, filter=_kept)
    finally:
        spark.kill()
        shutil.rmtree(place.parent)


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What belongs in an archive: no checksums, which a relocated file does not match."""
    path = Path(member.name)
    if path.suffix in (".crc", ".lck") or "metastore/tmp" in member.name:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main(*sys.argv[1:])
