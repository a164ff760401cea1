"""The benchmarks that stand beside other code of ours still run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import PROJECT


@pytest.mark.timeout(900)
def test_build_and_the_program_by_hand_come_to_the_same(tmp_path: Path) -> None:
    """``lab.benchmarks.build`` compares the sums of revenue itself."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "lab.benchmarks.build"),
            *("--orders", "50", "--events", "10", "--runs", "1"),
        ],
        cwd=PROJECT,
        env={
            **os.environ,
            "DBT_TARGET_PATH": str(tmp_path),
            "DBT_LOG_PATH": str(tmp_path),
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "50 orders, 10 events, 1 rounds" in done.stdout
