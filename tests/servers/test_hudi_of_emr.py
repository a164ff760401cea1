"""The contract of the merge on the Hudi that EMR ships."""

import os
import subprocess
import sys

import pytest

from tests.nightly import HUDI_OF_EMR
from tests.support.project import PROJECT


@pytest.mark.timeout(1200)
def test_contract() -> None:
    """In a process of its own; without a class archive, which takes a minute to record."""
    environment = {**os.environ, "HUDI_VERSION": HUDI_OF_EMR}
    for command in (
        ("cdc_lakehouse", "setup"),
        ("pytest", "-n0", "--durations=5", "tests/lake/test_contract.py"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    print(done.stdout)
