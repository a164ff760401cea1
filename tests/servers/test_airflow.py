"""The DAG of ``deploy/airflow``, imported and rendered by Airflow itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.support.cloudformation import template
from tests.support.own_environment import own_environment
from tests.support.project import PROJECT
from tests.support.required import required

FOLDER = PROJECT / "deploy/airflow"
VARIABLES = {
    "bucket": "the-bucket",
    "application": "00abcdef",
    "job_role": "arn:aws:iam::x",
}


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python of an environment with Airflow."""
    with required():
        return own_environment("airflow") / "python"


@pytest.fixture(scope="module")
def dag(python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What ``tests/support/airflow_dag.py`` finds."""
    home = tmp_path_factory.mktemp("airflow")
    environment = {
        "PATH": os.defpath,
        "AIRFLOW_HOME": str(home),
        **{
            f"AIRFLOW_VAR_CDC_LAKEHOUSE_{name.upper()}": value
            for name, value in VARIABLES.items()
        },
    }
    script = PROJECT / "tests/support/airflow_dag.py"
    done = subprocess.run(
        [python, script, FOLDER, home / "found.json"],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((home / "found.json").read_text())
    return found


def test_dag_is_rendered(dag: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    """Four tasks, one after the other, and how a job's exit code ends one."""
    assert dag == snapshot


def test_commands_are_those_of_the_state_machine(dag: dict[str, Any]) -> None:
    """But for the places, which Airflow and CloudFormation fill in."""
    machine = template("schedule")["Resources"]["Run"]["Properties"]["Definition"]
    steps = machine["States"]["ListSteps"]["Result"]
    assert list(dag["tasks"]) == [step["step"] for step in steps]
    for step, task in zip(steps, dag["tasks"].values(), strict=True):
        command = task["driver"]["sparkSubmit"]["entryPointArguments"][-1]
        command = command.replace(VARIABLES["bucket"], "${Bucket}")
        command = command.replace("--prefix lake", "--prefix ${Lake}")
        assert json.dumps(command) in json.dumps(step["command"])
