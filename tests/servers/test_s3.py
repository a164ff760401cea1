"""A lake on S3 (moto's server): files of the two S3 sinks, to gold and Trino."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.demo.landing import EVENTS, land, recorded
from tests.support.aws import Aws, rows
from tests.support.lake import TOPICS_FILE
from tests.support.project import CAPTURES, PROJECT, expected_revenue
from tests.support.trino_server import Trino

CUSTOMERS = "demo.datalake.customers"
# In the layout of Confluent's sink: values only, the place in the name.
CONFLUENT = f"confluent/topics/{CUSTOMERS}/partition=0/{CUSTOMERS}+0+0000000000.json.gz"


@pytest.fixture(scope="module")
def storage(
    s3_jars: None, aws: Aws, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The environment of a lake, beside a landing bucket with the files of both sinks."""
    local = tmp_path_factory.mktemp("s3")
    client = aws.client("s3")
    client.create_bucket(Bucket="landing")
    land(local)
    for file in sorted(local.rglob("*.json.gz")):
        # Lenses' own name: an offset, the first and the last timestamp.
        name = f"lenses/{file.relative_to(local)}"
        name = name.replace(".json.gz", "_1767225600000_1767225900000.gz")
        client.upload_file(str(file), "landing", name)
    values = (event["value"] for event in recorded(EVENTS / "customers_unwrapped.jsonl.gz"))
    lines = "".join(f"{value}\n" for value in values if value is not None)
    client.put_object(Bucket="landing", Key=CONFLUENT, Body=gzip.compress(lines.encode()))
    return aws.lake("northwind", local)


def run(storage: dict[str, str], *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **storage},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.smoke
def test_from_landing_to_gold_and_trino(
    storage: dict[str, str], trino: Trino, tmp_path: Path
) -> None:
    build = f"run --target-path {tmp_path} --log-path {tmp_path}"
    files = ("ingest", "files", "s3a://landing/lenses/", "--topics", str(TOPICS_FILE))
    output = run(storage, *files, "--then-build", build)
    assert "read 1023 records, wrote 1023 events, rejected 0" in output
    assert run(storage, *files).splitlines()[-1].startswith("read 0 records")
    orders = rows("northwind", "silver.orders")
    assert sum(not row["is_deleted"] for row in orders) == 829
    gold = rows("northwind", "gold.revenue_by_customer")
    assert {row["customer_id"]: row["revenue"] for row in gold} == expected_revenue()

    manifest = ("--manifest", str(tmp_path / "manifest.json"))
    run(storage, "cdc_lakehouse", "glue", *manifest, "--prefix", "s3")
    answer = trino.rows("select customer_id, revenue from s3_gold.revenue_by_customer")
    assert dict(answer) == expected_revenue()
    [[deleted]] = trino.rows("select count(*) from s3_silver.orders where is_deleted")
    assert deleted == sum(row["is_deleted"] for row in orders)


def test_confluent_files_bring_the_same_customers(
    storage: dict[str, str], tmp_path: Path
) -> None:
    """Their records have no offset; they are ordered by LSN."""
    own = {**storage, "LAKE_ROOT": "s3a://lake/confluent", "LAKE_METASTORE": str(tmp_path)}
    places = f"--target-path {tmp_path} --log-path {tmp_path}"
    build = f"run -s stg_customers customers {places}"
    files = ("s3a://landing/confluent/", "--topic", CUSTOMERS)
    assert "rejected 0" in run(own, "ingest", "files", *files, "--then-build", build)
    live = {
        row["customer_id"]: row["company_name"]
        for row in rows("confluent", "silver.customers")
        if not row["is_deleted"]
    }
    assert live == {
        row["customer_id"].rstrip(): row["company_name"]
        for row in recorded(CAPTURES / "customers_truth.jsonl.gz")
    }
