"""Commands in processes of their own."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tests.support.project import PROJECT

Process = subprocess.Popen[str]


def start(
    *words: str | Path,
    cwd: Path = PROJECT,
    env: Mapping[str, str] | None = None,
    output: IO[str] | int = subprocess.PIPE,
) -> Process:
    """Start a command in a group of processes; what it says is one stream.

    Args:
        words: the command.
        cwd: its folder, whose project Python finds.
        env: what its environment has beside this process's.
        output: where what it says goes.
    """
    return subprocess.Popen(
        words,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(cwd), **(env or {})},
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(process: Process, code: int = 0) -> str:
    """What a process said that ends with a code."""
    try:
        said, _ = process.communicate(timeout=540)
    finally:
        process.kill()
    assert process.returncode == code, said[-5000:]
    return said


def run(
    *words: str | Path,
    code: int = 0,
    cwd: Path = PROJECT,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a command to its end; what it said."""
    return ended(start(*words, cwd=cwd, env=env), code)
