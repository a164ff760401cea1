"""Python environments of tools that do not go with the project's own packages."""

import hashlib
import subprocess
import sys
from pathlib import Path

from cdc_lakehouse.errors import UserError
from lab.stack.downloads import download_once
from tests.support.project import PROJECT

# What each is made of.
REQUIREMENTS = {
    name: PROJECT / "deploy" / name / "requirements.txt"
    for name in ("airflow", "openlineage")
}


def own_environment(name: str) -> Path:
    """The ``bin`` of a tool's environment; made once, in a minute or so.

    Raises:
        UserError: it cannot be made.
    """
    requirements = REQUIREMENTS[name]

    def install(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        installed = subprocess.run(
            [folder / "bin/pip", "install", "--quiet", "-r", requirements],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if installed.returncode != 0:
            raise UserError(f"{name} cannot be installed: {installed.stderr[-500:]}")

    folder = PROJECT / ".venv" / name
    download_once(folder, hashlib.sha256(requirements.read_bytes()).hexdigest(), install)
    return folder / "bin"
