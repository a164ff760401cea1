"""A stand-in for AWS: moto's server."""

import json
import sys
from pathlib import Path
from typing import Any

import boto3
import requests
from moto.server import ThreadedMotoServer

from cdc_lakehouse.storage.tables import open_table, read_columns
from lab.stack.s3 import upload
from tests.support.commands import run
from tests.support.project import PROJECT
from tests.support.records import Row
from tests.support.tables import Tables

JARS = sorted((PROJECT / ".venv/s3/jars").glob("*.jar"))


class Aws:
    """A server that answers for S3, Glue and Athena, with an empty bucket ``lake``."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.endpoint = f"http://{host}:{port}"
        # AWS_ENDPOINT_URL_S3 is what Spark's settings ask for.
        self.environment = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
        }
        self.client("s3").create_bucket(Bucket="lake")

    def lake(self, folder: str, local: Path) -> dict[str, str]:
        """The environment of a lake in the bucket, whose metastore is in a folder."""
        return {
            **self.environment,
            "LAKE_ROOT": f"s3a://lake/{folder}",
            "LAKE_METASTORE": str(local),
            "LAKE_JARS": ",".join(map(str, JARS)),
        }

    def client(self, service: str) -> Any:
        """boto3's client of a service."""
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def upload(self, folder: Path, bucket: str, prefix: str) -> None:
        """Put the files of a folder below a prefix."""
        upload(self.client("s3"), folder, bucket, prefix)

    def serve(self, tables: Tables, manifest: Path, name: str) -> None:
        """Put a lake's tables to S3 as they are, and into Glue as ``<name>_<layer>``."""
        self.upload(tables.folder / "warehouse", "lake", f"{name}/warehouse")
        command = ("cdc_lakehouse", "glue", "--prefix", name, "--manifest", str(manifest))
        environment = {**self.environment, "LAKE_ROOT": f"s3a://lake/{name}"}
        run(sys.executable, "-m", *command, env=environment)

    def queue(self, *rows: list[str | None]) -> None:
        """What moto answers the next query of Athena with: names, then values."""
        column = {"CatalogName": "", "Type": "varchar"}
        result = {
            "rows": [
                {"Data": [{} if v is None else {"VarCharValue": v} for v in row]}
                for row in rows
            ],
            "column_info": [{**column, "Name": name} for name in rows[0]],
        }
        requests.post(
            f"{self.endpoint}/moto-api/static/athena/query-results",
            json={"results": [result]},
            timeout=10,
        ).raise_for_status()

    def stop(self) -> None:
        """End the server; what it held is gone, also for the next one of this process."""
        requests.post(f"{self.endpoint}/moto-api/reset", timeout=30).raise_for_status()
        self._server.stop()


def documented_policy(page: str) -> list[dict[str, Any]]:
    """The statements of the IAM policy on a page of the documentation."""
    text = (PROJECT / page).read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(
        text.partition("```json\n")[2].partition("```")[0]
    )["Statement"]
    return found


def rows(folder: str, table: str) -> list[Row]:
    """The rows of a lake's ``<layer>.<table>``, read from the bucket without Spark."""
    layer, _, name = table.partition(".")
    opened = open_table(f"s3://lake/{folder}/warehouse/{layer}.db/{name}")
    found: list[Row] = read_columns(opened).to_pylist()
    return found
