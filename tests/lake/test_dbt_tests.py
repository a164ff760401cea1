"""The models' own unit tests, which the variable ``cdc_lakehouse_unit_tests`` adds."""

from __future__ import annotations

from tests.support.lake import Lake
from tests.support.scenario import order


def test_unit_tests_of_the_models_pass(lake: Lake) -> None:
    # dbt reads the columns of the tables that a test replaces; rows are not needed.
    models = ("orders", "order_items", "products")
    lake.build([order("c", 1, 1, 1)], "-s", "stg_orders", "stg_products", *models)
    variable = ("--vars", "{cdc_lakehouse_unit_tests: true}")
    answer = lake.dbt("test", "-s", "test_type:unit", *variable)
    outcomes = {
        name: node["status"]
        for name, node in answer["nodes"].items()
        if node["kind"] == "unit_test"
    }
    assert outcomes, "the project has no unit tests"
    assert set(outcomes.values()) == {"pass"}, outcomes
