"""A job on EMR Serverless: one command of the project, and its outcome.

``deploy.aws.entry --lake lake --run s3://BUCKET/runs/ID --step ingest "ingest files …"``
runs ``python -m ingest files …`` in this process, which has the driver's Spark session;
``spark_job.py`` starts it, in the project's folder (``make package``). Afterwards it writes
the exit code to ``<run>/<step>-<attempt>.json``, which the state machine reads, and metrics
to CloudWatch.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import runpy
import shlex
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import boto3
from botocore.exceptions import BotoCoreError, ClientError

NAMESPACE = "cdc-lakehouse"
# dbt's last run, which `cdc-lakehouse glue` reads in a later job.
MANIFEST = Path("target/manifest.json")
# The line that the ingest ends with.
COUNTS = re.compile(
    r"^read (\d+) records, wrote (\d+) events, rejected (\d+),", re.MULTILINE
)
COUNTED = ("RecordsRead", "RecordsWritten", "RecordsRejected")


class Tee:
    """A stream that remembers the end of what was written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.end = ""

    def write(self, text: str) -> int:
        """Write on, and remember."""
        self.end = (self.end + text)[-10_000:]
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Run:
    """The folder of one execution of the state machine.

    Args:
        location: its ``s3://`` URL.
    """

    def __init__(self, location: str) -> None:
        self.bucket, _, self.folder = location.removeprefix("s3://").partition("/")
        self.client = boto3.client("s3")

    def load_manifest(self) -> None:
        """Take the manifest that an earlier step has left, if there is one."""
        with contextlib.suppress(BotoCoreError, ClientError):
            found = self.client.get_object(Bucket=self.bucket, Key=self._key(MANIFEST.name))
            MANIFEST.parent.mkdir(exist_ok=True)
            MANIFEST.write_bytes(found["Body"].read())

    def save_manifest(self) -> None:
        """Leave the manifest for later steps, if there is one."""
        if MANIFEST.exists():
            self._put(MANIFEST.name, MANIFEST.read_bytes())

    def save_outcome(self, step: str, attempt: int, outcome: dict[str, Any]) -> None:
        """Write how a step ended."""
        self._put(f"{step}-{attempt}.json", json.dumps(outcome).encode())

    def _put(self, name: str, content: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=self._key(name), Body=content)

    def _key(self, name: str) -> str:
        return f"{self.folder}/{name}"


def run_module(command: str) -> tuple[int, str]:
    """Run ``python -m COMMAND`` in this process.

    Returns:
        Its exit code, and the end of what it wrote to stdout.
    """
    module, *arguments = shlex.split(command)
    sys.argv = [module, *arguments]
    tee = Tee(sys.stdout)
    code = 0
    try:
        with contextlib.redirect_stdout(tee):
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        code = 130
    except Exception:  # whatever the command raises, its outcome is written
        traceback.print_exc()
        code = 1
    return code, tee.end


def metrics(code: int, seconds: float, output: str) -> dict[str, float]:
    """The metrics of a step, for CloudWatch."""
    found = COUNTS.findall(output)
    counts = dict(zip(COUNTED, map(float, found[-1]), strict=True)) if found else {}
    return {"Succeeded": float(code == 0), "Seconds": seconds, **counts}


def put_metrics(lake: str, step: str, values: dict[str, float]) -> None:
    """Send metrics with the dimensions ``Lake`` and ``Step``."""
    dimensions = [{"Name": "Lake", "Value": lake}, {"Name": "Step", "Value": step}]
    boto3.client("cloudwatch").put_metric_data(
        Namespace=NAMESPACE,
        MetricData=[
            {"MetricName": name, "Dimensions": dimensions, "Value": value}
            for name, value in values.items()
        ],
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit code."""
    parser = argparse.ArgumentParser(description="Run one command of the project.")
    parser.add_argument("--lake", required=True, help="the lake's name, for the metrics")
    parser.add_argument("--run", required=True, help="s3:// folder of the execution")
    parser.add_argument("--step", required=True, help="the step's name")
    parser.add_argument("--attempt", type=int, default=1, help="its number, from 1 on")
    parser.add_argument("command", help="module and arguments, as after `python -m`")
    options = parser.parse_args(arguments)

    run = Run(options.run)
    start = time.monotonic()
    run.load_manifest()
    code, output = run_module(options.command)
    values = metrics(code, time.monotonic() - start, output)
    outcome = {"exit_code": code, "command": options.command, "metrics": values}
    saves: tuple[Callable[[], None], ...] = (
        lambda: run.save_outcome(options.step, options.attempt, outcome),
        run.save_manifest,
        lambda: put_metrics(options.lake, options.step, values),
    )
    # The command's own exit code counts, whatever becomes of these.
    for save in saves:
        try:
            save()
        except (BotoCoreError, ClientError) as error:
            print(f"entry: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
