"""The run of ``deploy/aws/schedule.yml`` as an Airflow DAG: ingest, build, glue, dashboard.

Each task is a job on the EMR Serverless application of ``deploy/aws/jobs.yml``. Airflow's
variables ``cdc_lakehouse_bucket``, ``cdc_lakehouse_application`` and
``cdc_lakehouse_job_role`` are the outputs of the stacks ``storage.yml`` and ``jobs.yml``.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from airflow.providers.amazon.aws.hooks.s3 import S3Hook
from airflow.providers.amazon.aws.operators.emr import EmrServerlessStartJobOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from botocore.exceptions import ClientError

LAKE = "lake"
BUCKET = "{{ var.value.cdc_lakehouse_bucket }}"
RUN = "runs/{{ run_id }}"
# The exit codes of every command of the project.
TOO_MUCH_REJECTED, TRY_AGAIN = 3, 75
COMMANDS = {
    "ingest": f"ingest files s3://{BUCKET}/landing/topics/",
    "build": "dbt.cli.main build --profiles-dir profiles",
    "glue": f"cdc_lakehouse glue --prefix {LAKE}",
    "dashboard": "cdc_lakehouse dashboard",
}


class Step(EmrServerlessStartJobOperator):  # type: ignore[misc]  # it has no types here
    """A job that is tried again only where its exit code says that this may help.

    Args:
        outcome: the key of what ``entry.py`` writes in the end.
        bucket: where.
    """

    template_fields = (*EmrServerlessStartJobOperator.template_fields, "bucket", "outcome")

    def __init__(self, *, bucket: str, outcome: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.bucket = bucket
        self.outcome = outcome

    def execute(self, context: Any, event: dict[str, Any] | None = None) -> str | None:
        """Run the job to its end."""
        try:
            job: str | None = super().execute(context, event)
        except AirflowException as error:
            code = self.exit_code()
            if code == TOO_MUCH_REJECTED:
                self.log.warning(
                    "too many records rejected; everything readable is committed"
                )
                return None
            if code == TRY_AGAIN:
                raise
            raise AirflowFailException(f"exit code {code}: {error}") from error
        return job

    def exit_code(self) -> int:
        """The job's exit code; of a driver that was killed, that of a try again."""
        try:
            text = S3Hook(aws_conn_id=self.aws_conn_id).read_key(self.outcome, self.bucket)
        except ClientError:
            return TRY_AGAIN
        return int(json.loads(text)["exit_code"])


def step(name: str, command: str) -> Step:
    """The task of a command."""
    return Step(
        task_id=name,
        name=f"{name}-{{{{ ti.try_number }}}}",
        application_id="{{ var.value.cdc_lakehouse_application }}",
        execution_role_arn="{{ var.value.cdc_lakehouse_job_role }}",
        bucket=BUCKET,
        outcome=f"{RUN}/{name}-{{{{ ti.try_number }}}}.json",
        job_driver={
            "sparkSubmit": {
                "entryPoint": f"s3://{BUCKET}/package/spark_job.py",
                "entryPointArguments": [
                    *("deploy.aws.entry", "--lake", LAKE),
                    *("--run", f"s3://{BUCKET}/{RUN}"),
                    *("--step", name, "--attempt", "{{ ti.try_number }}"),
                    command,
                ],
            }
        },
    )


with DAG(
    dag_id="cdc_lakehouse",
    schedule=timedelta(minutes=15),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # one writer a lake
    default_args={
        "retries": 2,
        "retry_delay": timedelta(minutes=1),
        "retry_exponential_backoff": True,
    },
) as dag:
    tasks = [step(name, command) for name, command in COMMANDS.items()]
    for before, after in pairwise(tasks):
        before >> after
