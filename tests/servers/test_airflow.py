"""The DAG of ``deploy/airflow``, imported and rendered by Airflow itself."""

import json
import os
from typing import Any

import pytest

from tests.support.cloudformation import template
from tests.support.commands import run
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
def dag(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What ``tests/support/airflow_dag.py`` finds, in an environment with Airflow."""
    with required():
        python = own_environment("airflow") / "python"
    home = tmp_path_factory.mktemp("airflow")
    environment = {
        f"AIRFLOW_VAR_CDC_LAKEHOUSE_{name.upper()}": value
        for name, value in VARIABLES.items()
    }
    environment |= {"PATH": os.defpath, "AIRFLOW_HOME": str(home), "PYTHONPATH": ""}
    script = PROJECT / "tests/support/airflow_dag.py"
    run(python, script, FOLDER, home / "found.json", cwd=home, env=environment)
    found: dict[str, Any] = json.loads((home / "found.json").read_text())
    return found


def test_dag_takes_the_steps_of_the_state_machine(dag: dict[str, Any]) -> None:
    """One after the other; Airflow and CloudFormation fill in the places."""
    machine = template("schedule")["Resources"]["Run"]["Properties"]["Definition"]
    steps = machine["States"]["ListSteps"]["Result"]
    tasks = dag["tasks"]
    assert (list(tasks), dag["runs at once"]) == ([step["step"] for step in steps], 1)
    before: list[str] = []
    for step, (name, task) in zip(steps, tasks.items(), strict=True):
        driver = task.pop("driver")["sparkSubmit"]
        assert driver["entryPoint"] == "s3://the-bucket/package/spark_job.py"
        *arguments, command = driver["entryPointArguments"]
        run = ["--run", "s3://the-bucket/runs/scheduled__1", "--step", name]
        start = ["deploy.aws.entry", "--lake", "lake"]
        assert arguments == [*start, *run, "--attempt", "2"]
        command = command.replace(VARIABLES["bucket"], "${Bucket}")
        command = command.replace("--prefix lake", "--prefix ${Lake}")
        assert json.dumps(command) in json.dumps(step["command"])
        assert task == {
            "job": f"{name}-2",
            "application": VARIABLES["application"],
            "role": VARIABLES["job_role"],
            "outcome": f"the-bucket/runs/scheduled__1/{name}-2.json",
            "after": before,
            "retries": 2,
        }
        before = [name]


def test_exit_code_decides_how_a_task_ends(dag: dict[str, Any]) -> None:
    """Only an AirflowException is tried again."""
    assert dag["endings"] == {
        **dict.fromkeys(("1", "2", "143"), "AirflowFailException"),
        **dict.fromkeys(("75", "None"), "AirflowException"),
        "3": "success",
    }
