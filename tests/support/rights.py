"""Commands without root's right to read and write whatever it wants."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.lake import environment
from tests.support.project import PROJECT
from tests.support.required import missing

# Root keeps its user, so that it finds its own Python; its files' modes hold for it, too.
BOUND = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def run_bound(lake: Path, *module: str) -> subprocess.CompletedProcess[str]:
    """``python -m`` some module, with a lake, where the modes of files hold for everybody.

    Skips where root cannot be bound.
    """
    bound: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if shutil.which(BOUND[0]) is None:
            missing("runs as root, and there is no setpriv")
        if subprocess.run([*BOUND, "true"], capture_output=True).returncode != 0:
            missing("runs as root, and may not give rights away")
        bound = BOUND
    return subprocess.run(
        [*bound, sys.executable, "-m", *module],
        cwd=PROJECT,
        env=environment(lake),
        capture_output=True,
        text=True,
        timeout=300,
    )
