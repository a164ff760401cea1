"""The DAG of ``deploy/airflow``, imported and rendered by Airflow itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

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


def test_steps_are_those_of_the_state_machine(dag: dict[str, Any]) -> None:
    template = (PROJECT / "deploy/aws/schedule.yml").read_text(encoding="utf-8")
    tasks = dag["tasks"]
    assert list(tasks) == ["ingest", "build", "glue", "dashboard"]
    assert [task["after"] for task in tasks.values()] == [
        [],
        ["ingest"],
        ["build"],
        ["glue"],
    ]
    for name, task in tasks.items():
        command = task["driver"]["sparkSubmit"]["entryPointArguments"][-1]
        text = command.replace("the-bucket", "${Bucket}")
        if name == "glue":
            text = text.replace("--prefix lake", "--prefix ${Lake}")
        assert text in template
    assert dag["runs at once"] == 1
    assert dag["serialized"] == 4


def test_fields_are_rendered(dag: dict[str, Any]) -> None:
    assert dag["tasks"]["build"] == {
        "job": "build-2",
        "application": "00abcdef",
        "role": "arn:aws:iam::x",
        "driver": {
            "sparkSubmit": {
                "entryPoint": "s3://the-bucket/package/spark_job.py",
                "entryPointArguments": [
                    *("deploy.aws.entry", "--lake", "lake"),
                    *("--run", "s3://the-bucket/runs/scheduled__1"),
                    *("--step", "build", "--attempt", "2"),
                    "dbt.cli.main build --profiles-dir profiles",
                ],
            }
        },
        "outcome": "the-bucket/runs/scheduled__1/build-2.json",
        "after": ["ingest"],
        "retries": 2,
    }


def test_exit_code_decides_whether_a_task_is_tried_again(dag: dict[str, Any]) -> None:
    assert dag["endings"] == {
        "1": "AirflowFailException",
        "2": "AirflowFailException",
        "3": "success",
        "75": "AirflowException",
        "143": "AirflowFailException",
        "None": "AirflowException",
    }
