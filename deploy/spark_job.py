"""What ``spark-submit`` runs: the command that the arguments name.

``spark_job.py ingest files …`` is ``python -m ingest files …``; ``spark_job.py dbt build``
is ``dbt build --profiles-dir profiles``. dbt's target is ``cluster``, unless LAKE_TARGET
names another. Paths are relative to the project's folder: the one that this file is in, or
what ``cdc-lakehouse.zip`` among ``--py-files`` is unpacked to (``make package``).
"""

import atexit
import os
import runpy
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

ARCHIVE = "cdc-lakehouse.zip"


def project() -> Path:
    """The project's folder."""
    here = Path(__file__).absolute().parents[1]
    if (here / "dbt_project.yml").exists():
        return here
    for entry in sys.path:
        if Path(entry).name == ARCHIVE:
            folder = tempfile.mkdtemp(prefix="cdc-lakehouse-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            with zipfile.ZipFile(entry) as archive:
                archive.extractall(folder)
            return Path(folder)
    sys.exit(f"spark_job: no dbt_project.yml in {here}, and no {ARCHIVE} in --py-files")


def main() -> None:
    """Run the command in the project's folder."""
    module, *arguments = sys.argv[1:]
    folder = project()
    os.chdir(folder)
    sys.path[:0] = [str(folder), str(folder / "site")]
    os.environ.setdefault("LAKE_TARGET", "cluster")
    if module != "dbt":
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    from dbt.cli.main import cli

    cli([*arguments, "--profiles-dir", "profiles"])


if __name__ == "__main__":
    main()
