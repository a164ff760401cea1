"""``make package``: what ``spark-submit`` runs on a cluster, as files for a bucket.

``spark_job.py``, ``cdc-lakehouse.zip`` (the project, and the Python packages of the ingest,
dbt and serving for this machine's version of Python) and the jars. PySpark is the
cluster's own.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import click
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.spark.settings import class_path

PROJECT = Path(__file__).parents[1]
ARCHIVE = "cdc-lakehouse.zip"
FOLDERS = (
    "cdc_lakehouse",
    "deploy/aws",
    "ingest",
    "macros",
    "models",
    "profiles",
    "seeds",
    "tests/dbt",
    "analyses",
)
FILES = (
    *("dbt_project.yml", "topics.toml", "dbt_cdc_lakehouse.py"),
    "deploy/__init__.py",
)
ROOTS = (
    *("boto3", "click", "dbt-core", "dbt-spark", "hudi", "jinja2", "prometheus-client"),
    "pyarrow",
)
# Spark brings it along.
OF_THE_CLUSTER = {"pyspark", "py4j"}


def packages() -> dict[str, Distribution]:
    """What the ingest, dbt and serving import, with all that it needs in turn."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    # Each with an extra, or none.
    wanted = [(name, "") for name in ROOTS]
    while wanted:
        name, extra = wanted.pop()
        name = canonicalize_name(name)
        if (name, extra) in seen or name in OF_THE_CLUSTER:
            continue
        seen.add((name, extra))
        found[name] = distribution(name)
        for text in found[name].requires or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                wanted += [(needed.name, its) for its in ("", *needed.extras)]
    return found


def write(folder: Path) -> list[Path]:
    """Write the files into a folder.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / ARCHIVE
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for name in FILES:
            target.write(PROJECT / name, name)
        for name in FOLDERS:
            for file in sorted((PROJECT / name).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    target.write(file, file.relative_to(PROJECT))
        files = {
            f"site/{path}": str(path.locate())
            for package in packages().values()
            for path in package.files or []
            # Not the commands, which lie outside of `site-packages`.
            if ".." not in path.parts and "__pycache__" not in path.parts
        }
        for name, place in files.items():
            target.write(place, name)
    jars = folder / "jars"
    jars.mkdir(exist_ok=True)
    written = [archive, folder / "spark_job.py"]
    shutil.copy(PROJECT / "deploy/spark_job.py", folder)
    for jar in class_path(os.environ.get("HUDI_VERSION", "1.2.0")):
        written.append(jars / Path(jar).name)
        shutil.copy(PROJECT / jar, jars)
    return written


@click.command("deploy.package", context_settings=STYLE)
@version
@click.argument("folder", type=click.Path(path_type=Path), default=PROJECT / "dist")
def command(folder: Path) -> None:
    """Write the files of a job into FOLDER."""
    for file in write(folder):
        click.echo(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
