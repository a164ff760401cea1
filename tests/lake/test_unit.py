"""The models' own unit tests, which dbt runs only when asked."""

from __future__ import annotations

from tests.support.lake import Lake
from tests.support.records import flattened, record

ROW = {"order_id": 1, "customer_id": "ALFKI", "order_items": "[]"}
ASKED = ("--vars", "{unit_tests: true}")


def test_unit_tests_of_the_models_pass(lake: Lake) -> None:
    lake.land([record({"order_id": 1}, flattened("c", ROW, 1), 1)])
    assert lake.ingest().code == 0
    lake.dbt("run")
    answer = lake.dbt("test", "-s", "test_type:unit", *ASKED)
    outcomes = {
        name: node["status"]
        for name, node in answer["nodes"].items()
        if node["kind"] == "unit_test"
    }
    assert outcomes, "the project has no unit tests"
    assert set(outcomes.values()) == {"pass"}, outcomes
