"""What ``spark-submit`` runs: the command that the arguments name.

``spark_job.py ingest files …`` is ``python -m ingest files …``; ``spark_job.py dbt build``
is ``dbt build --profiles-dir profiles`` on the target ``cluster``. Paths are relative to
the project's folder: the one that this file is in, or ``project`` below the working folder,
where an archive was unpacked.
"""

import os
import runpy
import sys
from pathlib import Path

PLACES = (Path(__file__).absolute().parent, Path.cwd() / "project")


def main() -> None:
    """Run the module that the first argument names, in the project's folder."""
    module, *arguments = sys.argv[1:]
    for place in PLACES:
        if (place / "dbt_project.yml").exists():
            os.chdir(place)
            sys.path.insert(0, str(place))
            break
    else:
        sys.exit(f"spark_job: no dbt_project.yml in {' or '.join(map(str, PLACES))}")
    if module != "dbt":
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    os.environ.setdefault("LAKE_TARGET", "cluster")
    from dbt.cli.main import cli

    cli([*arguments, "--profiles-dir", "profiles"])


if __name__ == "__main__":
    main()
