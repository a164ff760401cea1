"""Rules that every model keeps, by what dbt makes of the project and its examples."""

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from lab.benchmarks.settings import table_properties
from tests.support.project import MOMA, PROJECT, TICKIT, parsed

Node = dict[str, Any]

# The museum's, which show how a table can be stored (examples/moma/tests/test_storage.py).
STORED_OTHERWISE = {
    f"{table}{kind}" for table in ("artists", "artworks") for kind in ("", "_merge_on_read")
}


@pytest.fixture(
    scope="module", params=[PROJECT, TICKIT, MOMA], ids=["northwind", "tickit", "moma"]
)
def project(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


@pytest.fixture(scope="module")
def whole(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The manifest with the models that a variable adds."""
    names = (
        ("cdc_lakehouse_base_tables", "cdc_lakehouse_history") if project == PROJECT else ()
    )
    variables = json.dumps(dict.fromkeys(names, True))
    return parsed(tmp_path_factory.mktemp("target"), "--vars", variables, project=project)


@pytest.fixture(scope="module")
def models(whole: dict[str, Any]) -> list[Node]:
    return [node for node in whole["nodes"].values() if node["resource_type"] == "model"]


def test_every_model_is_parsed(project: Path, models: list[Node]) -> None:
    files = {str(file.relative_to(project)) for file in (project / "models").rglob("*.sql")}
    assert {model["original_file_path"] for model in models} == files


def test_each_layer_has_its_materialization(models: list[Node]) -> None:
    """And gold is never dropped."""
    assert {
        (model["schema"], model["config"]["materialized"], model["config"]["full_refresh"])
        for model in models
    } <= {
        ("staging", "staging_view", None),
        ("silver", "cdc_history", None),
        ("silver", "cdc_merge", None),
        ("gold", "atomic_overwrite", False),
    }


def test_only_staging_reads_a_source(whole: dict[str, Any], models: list[Node]) -> None:
    """And gold reads silver only, or a seed, which any layer may."""
    nodes = whole["nodes"] | whole["sources"]
    reads = {
        (model["schema"], parent["schema"])
        for model in models
        for parent in map(nodes.get, model["depends_on"]["nodes"])
        if parent["resource_type"] != "seed"
    }
    assert {layer for layer, read in reads if read == "bronze"} == {"staging"}
    assert {read for layer, read in reads if layer == "gold"} <= {"silver", "gold"}


def test_analyses_read_gold_alone(manifest: dict[str, Any]) -> None:
    """As analysts may read no other table (``docs/aws.md``); those of the past are off."""
    nodes = manifest["nodes"]
    read = {
        nodes[parent]["schema"]
        for node in nodes.values()
        if node["resource_type"] == "analysis"
        for parent in node["depends_on"]["nodes"]
    }
    assert read == {"gold"}


def test_unique_key_is_tested(whole: dict[str, Any], models: list[Node]) -> None:
    tested = {
        (test["attached_node"], test["column_name"], test["test_metadata"]["name"])
        for test in whole["nodes"].values()
        if test["resource_type"] == "test" and "test_metadata" in test
    }
    for model in models:
        if model["schema"] != "staging":
            column = (model["unique_id"], model["config"]["unique_key"])
            assert {(*column, "unique"), (*column, "not_null")} <= tested


def test_models_keys_and_columns_of_gold_are_described(models: list[Node]) -> None:
    """In a file beside the model's."""
    for model in models:
        assert model["description"], model["name"]
        beside = model["original_file_path"].replace(".sql", ".yml")
        assert model["patch_path"].endswith(f"://{beside}"), model["name"]
        columns = {name: one["description"] for name, one in model["columns"].items()}
        key = model["config"]["unique_key"]
        assert not key or columns.get(key), (model["name"], key)
        if model["schema"] == "gold":
            assert all(columns.values()), model["name"]


def test_no_model_leaves_the_version_that_athena_reads(models: list[Node]) -> None:
    """Or is merge-on-read or partitioned, but for those that show how it is done."""
    ours = table_properties(partitioned=False)
    for model in models:
        config = model["config"]
        is_partitioned = bool(config.get("partition_by"))
        assert is_partitioned == (model["name"] in STORED_OTHERWISE), model["name"]
        if model["schema"] != "staging" and not is_partitioned:
            options = ours | (config.get("tblproperties") or {})
            assert options["hoodie.write.table.version"] == "6", model["name"]
            assert options["hoodie.write.auto.upgrade"] == "false", model["name"]
            assert options["type"] == "cow", model["name"]
            assert config["file_format"] == "hudi", model["name"]


def test_models_name_no_catalogue(models: list[Node]) -> None:
    """Where tables are known, and where they lie, is the profile's matter."""
    for model in models:
        assert model["database"] is None, model["name"]
        assert model["relation_name"] == f"{model['schema']}.{model['alias']}"
        assert "location_root" not in model["config"], model["name"]


def test_odd_values_of_the_source_are_warnings(manifest: dict[str, Any]) -> None:
    """One order line with a quantity of zero must not stop every gold table."""
    for name in ("assert_live_order_lines_are_complete", "assert_no_row_was_rejected"):
        node = manifest["nodes"][f"test.cdc_lakehouse.{name}"]
        assert node["config"]["severity"].lower() == "warn", name


@pytest.mark.parametrize("exposure", ["quicksight_dashboard", "dashboard"])
def test_what_feeds_an_exposure_is_listed(
    exposure: str, manifest: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    """By the graph that ``dbt ls --select +exposure:…`` walks."""
    found: set[str] = set()
    due = [f"exposure.cdc_lakehouse.{exposure}"]
    while due:
        name = due.pop()
        if name not in found:
            found.add(name)
            due.extend(manifest["parent_map"][name])
    assert (
        sorted(name for name in found if name.startswith(("model", "source"))) == snapshot
    )
