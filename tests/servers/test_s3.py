"""A lake on S3 (moto's server): files of the two S3 sinks, to gold and Trino."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.demo.landing import EVENTS, land, recorded
from tests.support.aws import Aws, rows
from tests.support.project import CAPTURES, PROJECT, expected_revenue
from tests.support.trino_server import Trino

CUSTOMERS = "demo.datalake.customers"


def confluent_file(folder: Path) -> Path:
    """Customers in the layout of Confluent's sink: values only, the place in the name."""
    file = folder / f"topics/{CUSTOMERS}/partition=0/{CUSTOMERS}+0+0000000000.json.gz"
    file.parent.mkdir(parents=True)
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        for event in recorded(EVENTS / "customers_unwrapped.jsonl.gz"):
            if event["value"] is not None:
                lines.write(event["value"] + "\n")
    return file


@pytest.fixture(scope="module")
def storage(
    s3_jars: None, aws: Aws, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The environment of a lake, beside a landing bucket with the files of both sinks."""
    local = tmp_path_factory.mktemp("s3")
    client = aws.client("s3")
    client.create_bucket(Bucket="landing")
    land(local / "lenses")
    confluent_file(local / "confluent")
    for file in sorted(local.rglob("*.json.gz")):
        name = str(file.relative_to(local))
        if name.startswith("lenses/"):
            # Lenses' own name: an offset, the first and the last timestamp.
            name = name.replace(".json.gz", "_1767225600000_1767225900000.gz")
        client.upload_file(str(file), "landing", name)
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


@pytest.fixture(scope="module")
def manifest(storage: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifest of the build that brought Lenses' files to gold."""
    target = tmp_path_factory.mktemp("target")
    build = f"run --target-path {target} --log-path {target}"
    files = ("ingest", "files", "s3a://landing/lenses/")
    output = run(storage, *files, "--then-build", build)
    assert "read 1023 records, wrote 1023 events, rejected 0" in output
    return target / "manifest.json"


@pytest.mark.smoke
def test_from_landing_to_gold_on_s3(storage: dict[str, str], manifest: Path) -> None:
    orders = [row for row in rows("northwind", "silver.orders") if not row["is_deleted"]]
    assert len(orders) == 829
    gold = rows("northwind", "gold.revenue_by_customer")
    assert {row["customer_id"]: row["revenue"] for row in gold} == expected_revenue()
    again = run(storage, "ingest", "files", "s3a://landing/lenses/")
    assert again.splitlines()[-1].startswith("read 0 records")


@pytest.mark.smoke
def test_trino_answers_as_the_source_does(
    storage: dict[str, str], manifest: Path, trino: Trino
) -> None:
    run(storage, "cdc_lakehouse", "glue", "--manifest", str(manifest), "--prefix", "s3")
    answer = trino.rows("select customer_id, revenue from s3_gold.revenue_by_customer")
    assert dict(answer) == expected_revenue()
    [[deleted]] = trino.rows("select count(*) from s3_silver.orders where is_deleted")
    assert deleted == sum(row["is_deleted"] for row in rows("northwind", "silver.orders"))


def test_confluent_files_bring_the_same_customers(
    storage: dict[str, str], tmp_path: Path
) -> None:
    """Their records have no offset; they are ordered by LSN."""
    own = {**storage, "LAKE_ROOT": "s3a://lake/confluent", "LAKE_METASTORE": str(tmp_path)}
    places = f"--target-path {tmp_path} --log-path {tmp_path}"
    build = f"run -s stg_customers customers {places}"
    files = ("s3a://landing/confluent/", "--topic", CUSTOMERS)
    output = run(own, "ingest", "files", *files, "--then-build", build)
    assert "rejected 0" in output
    live = {
        row["customer_id"]: row["company_name"]
        for row in rows("confluent", "silver.customers")
        if not row["is_deleted"]
    }
    truth = {
        row["customer_id"].rstrip(): row["company_name"]
        for row in recorded(CAPTURES / "customers_truth.jsonl.gz")
    }
    assert live == truth
