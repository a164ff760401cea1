"""What Airflow makes of ``deploy/airflow/cdc_lakehouse.py``, as a JSON file.

Runs in an environment of its own, which has Airflow and nothing of the project
(``tests/servers/test_airflow.py``).
"""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from airflow.providers.amazon.aws.hooks.s3 import S3Hook
from airflow.providers.amazon.aws.operators.emr import EmrServerlessStartJobOperator
from airflow.sdk.exceptions import AirflowException
from airflow.sdk.execution_time.context import VariableAccessor
from airflow.serialization.serialized_objects import DagSerialization
from botocore.exceptions import ClientError


def ending(task: Any, code: int | None) -> str:
    """How a task ends whose job failed with an exit code; None is no exit code."""
    outcome: Any = (
        ClientError({}, "GetObject") if code is None else [json.dumps({"exit_code": code})]
    )
    failed = AirflowException("the job failed")
    with (
        mock.patch.object(EmrServerlessStartJobOperator, "execute", side_effect=failed),
        mock.patch.object(S3Hook, "read_key", side_effect=outcome),
    ):
        try:
            task.execute({})
        except AirflowException as error:
            return type(error).__name__
    return "success"


def main(folder: str) -> dict[str, Any]:
    """The DAG in a folder: its tasks in their order, their fields, how they end."""
    sys.path.insert(0, folder)
    dag = importlib.import_module("cdc_lakehouse").dag
    context = {
        "run_id": "scheduled__1",
        "ti": SimpleNamespace(try_number=2),
        "var": {"value": VariableAccessor(deserialize_json=False)},
    }
    tasks = {}
    for task in dag.topological_sort():
        task.render_template_fields(context)
        tasks[task.task_id] = {
            "job": task.name,
            "application": task.application_id,
            "role": task.execution_role_arn,
            "driver": task.job_driver,
            "outcome": f"{task.bucket}/{task.outcome}",
            "after": sorted(task.upstream_task_ids),
            "retries": task.retries,
        }
    assert DagSerialization.to_dict(dag)  # as Airflow keeps it
    return {
        "tasks": tasks,
        "runs at once": dag.max_active_runs,
        "endings": {str(code): ending(task, code) for code in (1, 2, 3, 75, 143, None)},
    }


if __name__ == "__main__":
    result = main(sys.argv[1])
    Path(sys.argv[2]).write_text(json.dumps(result), encoding="utf-8")
