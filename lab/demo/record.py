"""Record the JVM's class archive: run the demonstration once, in a lake of its own.

A JVM that maps its classes from an archive starts seconds sooner (docs/decisions/0004).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import Any

from pyspark import SparkContext

from cdc_lakehouse.spark.session import spark_session
from cdc_lakehouse.spark.settings import class_archive
from lab.demo.__main__ import main


def record() -> int:
    """Run the demonstration and wait until its JVM has written the archive."""
    class_archive().parent.mkdir(exist_ok=True)
    lake = tempfile.mkdtemp(prefix="lake-")
    os.environ |= {"LAKE_ROOT": lake, "LAKE_CLASS_ARCHIVE": "ArchiveClassesAtExit"}
    try:
        outcome = main([])
        spark_session().stop()
        gateway: Any = SparkContext._gateway
        java = gateway.proc
        java.stdin.close()
        java.wait(timeout=600)
        return outcome
    finally:
        shutil.rmtree(lake, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(record())
