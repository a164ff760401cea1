"""The lineage of a build, sent by OpenLineage's own dbt integration to a file."""

import json
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from tests.conftest import NewLake
from tests.support.commands import run
from tests.support.own_environment import own_environment
from tests.support.records import flattened, record
from tests.support.required import required


def test_events_name_what_a_build_read_and_wrote(
    new_lake: NewLake, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    with required():
        tool = own_environment("openlineage") / "dbt-ol"
    lake = new_lake()
    key = {"customer_id": "ALFKI"}
    value = flattened("c", key, 100, table="customers")
    lake.land([record(key, value, 1, topic="demo.datalake.customers")])
    assert lake.ingest().code == 0
    built = lake.dbt("run", "-s", "stg_customers", "customers")
    file = tmp_path / "lineage.json"
    run(
        *(tool, "send-events", "--profiles-dir", "profiles"),
        *("--target", "thrift", "--target-path", built["target"]),
        env={
            "LAKE_THRIFT_HOST": "the-lake",
            "OPENLINEAGE__TRANSPORT__TYPE": "file",
            "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(file),
            "OPENLINEAGE__TRANSPORT__APPEND": "true",
        },
    )
    events = [json.loads(line) for line in file.read_text().splitlines()]
    of_models = {
        entry["job"]["name"]: [
            [(table["namespace"], table["name"]) for table in entry[side]]
            for side in ("inputs", "outputs")
        ]
        for entry in events
        if entry["eventType"] == "COMPLETE" and entry["outputs"]
    }
    assert of_models == snapshot
