"""The session that the ingest and dbt work in, on a real JVM."""

import subprocess
import sys
from pathlib import Path

from tests.support.lake import environment
from tests.support.project import PROJECT

# A write to the file system loads the classes of all that Spark knows.
WRITE = """
import sys
from cdc_lakehouse.spark.session import spark_session

session = spark_session(has_catalogue=False)
session.range(1).write.parquet(sys.argv[1])
settings = session.sparkContext._jsc.hadoopConfiguration()
names = ("fs.defaultFS", "yarn.resourcemanager.address")
print(settings.size() > 900, *map(settings.getPropertySources, names))
print(session._jvm.java.time.ZoneId.systemDefault())
"""


def test_own_session_is_in_utc_and_sends_hadoops_settings_without_sources(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(tmp_path / "written")],
        cwd=PROJECT,
        env=environment(tmp_path / "lake") | {"TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True None None\nUTC\n", done.stderr
