"""Python environments of tools that do not go with the project's own packages."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.project import PROJECT
from tests.support.required import missing


def own_environment(name: str, requirements: Path) -> Path:
    """The ``bin`` of an environment with what a file lists; made once, in a minute or so.

    Skips where it cannot be made; in CI that is a failure.
    """
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = PROJECT / ".venv" / f"{name}-{digest}"
    done = folder / "done"
    if done.exists():
        return folder / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    installed = subprocess.run(
        [folder / "bin/pip", "install", "--quiet", "-r", requirements],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if installed.returncode != 0:
        missing(f"{name} cannot be installed: {installed.stderr[-500:]}")
    done.touch()
    return folder / "bin"
