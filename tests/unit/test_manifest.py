"""Rules that every model keeps, checked on what dbt makes of the project."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from benchmarks.settings import table_properties
from tests.support.project import PROJECT, parse

Node = dict[str, Any]

# A misspelt Hudi option is ignored without a word: only known ones may be used.
HUDI_OPTIONS = {
    "type",
    "primaryKey",
    "preCombineField",
    "hoodie.bucket.index.num.buckets",
    "hoodie.bulkinsert.shuffle.parallelism",
    "hoodie.clean.commits.retained",
    "hoodie.clean.trigger.max.commits",
    "hoodie.datasource.hive_sync.enable",
    "hoodie.datasource.meta.sync.enable",
    "hoodie.datasource.write.payload.class",
    "hoodie.datasource.write.record.merger.impls",
    "hoodie.embed.timeline.server",
    "hoodie.index.bucket.engine",
    "hoodie.index.type",
    "hoodie.merge.allow.duplicate.on.inserts",
    "hoodie.metadata.enable",
    "hoodie.parquet.compression.codec",
    "hoodie.parquet.small.file.limit",
    "hoodie.simple.index.parallelism",
    "hoodie.simple.index.update.partition.path",
    "hoodie.upsert.shuffle.parallelism",
    "hoodie.insert.shuffle.parallelism",
    "hoodie.keep.max.commits",
    "hoodie.keep.min.commits",
    "hoodie.write.auto.upgrade",
    "hoodie.write.markers.type",
    "hoodie.write.record.merge.mode",
    "hoodie.write.table.version",
}

# The museum's, which show how a table can be stored (tests/servers/test_storage.py).
STORED_OTHERWISE = {"artists", "artworks"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The manifest with the models that a variable adds."""
    target = tmp_path_factory.mktemp("target")
    names = ("base_tables", "tickit", "moma")
    variables = {f"cdc_lakehouse_{name}": True for name in names}
    done = parse(target, "--vars", json.dumps(variables))
    assert done.returncode == 0, done.stdout + done.stderr
    content: dict[str, Any] = json.loads((target / "manifest.json").read_text())
    return content


@pytest.fixture(scope="module")
def models(whole: dict[str, Any]) -> list[Node]:
    return [node for node in whole["nodes"].values() if node["resource_type"] == "model"]


def test_every_model_is_parsed(models: list[Node]) -> None:
    files = {str(file.relative_to(PROJECT)) for file in (PROJECT / "models").rglob("*.sql")}
    assert {model["original_file_path"] for model in models} == files


def test_tickit_is_not_in_the_way_of_northwind(manifest: dict[str, Any]) -> None:
    for name in [*manifest["nodes"], *manifest["sources"]]:
        # A disabled model's tests are parsed, and run nowhere.
        assert name.startswith("test.") or "tickit" not in name


def layer(node: Node) -> str:
    return str(node["schema"])


def test_schemas_are_exactly_the_layers(models: list[Node]) -> None:
    assert {layer(model) for model in models} == {"staging", "silver", "gold"}


def test_only_staging_reads_a_source(models: list[Node]) -> None:
    readers = {
        layer(model)
        for model in models
        for parent in model["depends_on"]["nodes"]
        if parent.startswith("source.")
    }
    assert readers == {"staging"}


def test_gold_reads_silver_only(whole: dict[str, Any], models: list[Node]) -> None:
    for model in models:
        if layer(model) == "gold":
            for parent in model["depends_on"]["nodes"]:
                node = whole["nodes"][parent]
                # a seed is reference data that any layer may read
                assert node["resource_type"] == "seed" or layer(node) in (
                    "silver",
                    "gold",
                ), (model["name"], parent)


def test_each_layer_has_its_materialization(models: list[Node]) -> None:
    wanted = {"staging": "staging_view", "silver": "cdc_merge", "gold": "atomic_overwrite"}
    for model in models:
        assert model["config"]["materialized"] == wanted[layer(model)], model["name"]


def test_unique_key_is_tested(whole: dict[str, Any], models: list[Node]) -> None:
    tests = [node for node in whole["nodes"].values() if node["resource_type"] == "test"]
    for model in models:
        key = model["config"]["unique_key"]
        if layer(model) == "staging":
            continue
        assert isinstance(key, str), model["name"]
        found = {
            test["test_metadata"]["name"]
            for test in tests
            if test.get("test_metadata")
            and test["attached_node"] == model["unique_id"]
            and test["column_name"] == key
        }
        assert found >= {"unique", "not_null"}, (model["name"], key)


def test_every_model_is_described(models: list[Node]) -> None:
    assert [model["name"] for model in models if not model["description"]] == []


def test_key_columns_are_described(models: list[Node]) -> None:
    for model in models:
        key = model["config"]["unique_key"]
        if key:
            columns = model["columns"]
            assert columns.get(key, {}).get("description"), (model["name"], key)


def test_every_column_of_gold_is_described(models: list[Node]) -> None:
    for model in models:
        if layer(model) == "gold":
            columns = model["columns"]
            assert columns, model["name"]
            for name, column in columns.items():
                assert column["description"], (model["name"], name)


def test_hudi_options_are_known(models: list[Node]) -> None:
    ours = table_properties()
    assert (ours["type"], ours["hoodie.write.table.version"]) == ("cow", "6")
    assert set(ours) <= HUDI_OPTIONS
    for model in models:
        options = {
            **(model["config"].get("tblproperties") or {}),
            **(model["config"].get("options") or {}),
        }
        assert set(options) <= HUDI_OPTIONS, model["name"]


def test_no_model_leaves_the_version_that_athena_reads(models: list[Node]) -> None:
    for model in models:
        if layer(model) != "staging" and model["name"] not in STORED_OTHERWISE:
            options = model["config"]["tblproperties"]
            assert options["hoodie.write.table.version"] == "6", model["name"]
            assert options["hoodie.write.auto.upgrade"] == "false", model["name"]
            assert "type" not in options, model["name"]
            assert model["config"]["file_format"] == "hudi", model["name"]


@pytest.mark.parametrize(
    ("exposure", "fed_by"),
    [
        (
            "quicksight_dashboard",
            {
                "gold.revenue_by_customer",
                "gold.revenue_by_month",
                "silver.order_items",
                "silver.orders",
                "staging.stg_orders",
                "source:bronze.cdc_events",
            },
        ),
        (
            "dashboard",
            {
                "gold.late_shipments",
                "gold.revenue_by_category",
                "gold.revenue_by_customer",
                "gold.revenue_by_month",
                "gold.revenue_by_product",
                "silver.customers",
                "silver.order_items",
                "silver.orders",
                "silver.products",
                "silver.rejected_rows",
                "staging.stg_customers",
                "staging.stg_orders",
                "staging.stg_products",
                "source:bronze.cdc_events",
                "source:bronze.customers",
                "source:bronze.products",
                "source:bronze.rejected_events",
            },
        ),
    ],
)
def test_what_feeds_an_exposure_is_listed(
    exposure: str, fed_by: set[str], manifest: dict[str, Any]
) -> None:
    """By the graph that ``dbt ls --select +exposure:…`` walks."""
    parents: dict[str, list[str]] = manifest["parent_map"]
    found: set[str] = set()
    due = parents[f"exposure.cdc_lakehouse.{exposure}"].copy()
    while due:
        name = due.pop()
        if name not in found:
            found.add(name)
            due.extend(parents[name])
    sources = {
        f"source:{node['source_name']}.{node['name']}"
        for node in (manifest["sources"].get(name) for name in found)
        if node
    }
    models = {
        ".".join(node["fqn"][1:])
        for node in (manifest["nodes"].get(name) for name in found)
        if node and node["resource_type"] == "model"
    }
    assert sources | models == fed_by


def test_exposures_say_whose_they_are(manifest: dict[str, Any]) -> None:
    for exposure in manifest["exposures"].values():
        assert exposure["description"]
        assert exposure["label"]
        assert exposure["maturity"]
        assert exposure["owner"]["name"]
        assert exposure["owner"]["email"]


def test_gold_is_never_dropped(models: list[Node]) -> None:
    for model in models:
        if layer(model) == "gold":
            assert model["config"]["full_refresh"] is False, model["name"]


def test_odd_values_of_the_source_are_warnings(manifest: dict[str, Any]) -> None:
    """One order line with a quantity of zero must not stop every gold table."""
    for name in ("assert_live_order_lines_are_complete", "assert_no_row_was_rejected"):
        node = manifest["nodes"][f"test.cdc_lakehouse.{name}"]
        assert node["config"]["severity"].lower() == "warn", name


def test_no_model_is_partitioned(models: list[Node]) -> None:
    for model in models:
        is_partitioned = bool(model["config"].get("partition_by"))
        assert is_partitioned == (model["name"] in STORED_OTHERWISE), model["name"]


def test_every_model_has_its_yml_beside_it(models: list[Node]) -> None:
    for model in models:
        sql = PROJECT / model["original_file_path"]
        assert sql.with_suffix(".yml").is_file(), sql


def test_one_macro_a_file() -> None:
    for file in sorted((PROJECT / "macros").rglob("*.sql")):
        text = file.read_text()
        assert text.count("{% macro ") + text.count("{% materialization ") == 1, file
        names = (f"macro {file.stem}(", f"materialization {file.stem},")
        assert any(name in text for name in names), file
        assert text.lstrip().startswith("{#"), f"{file}: no comment says what it yields"


def test_models_name_no_catalogue() -> None:
    """Where tables are known, and where they lie, is the profile's matter."""
    for folder in ("models", "macros"):
        for file in (PROJECT / folder).rglob("*.sql"):
            text = file.read_text().lower()
            for name in ("derby", "glue", "thrift", "s3://", "s3a://"):
                assert name not in text, f"{file} names {name}"


SOURCE_NAMES = "model 'stg_odd': setting 'source_names' under meta is"


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        (
            "{'key': 'a', 'columns': {'a': 'int'}, 'colums': {}}",
            "model 'stg_odd': unknown setting 'colums' under meta",
        ),
        ("{'key': 'b', 'columns': {'a': 'int'}}", "model 'stg_odd': setting 'key'"),
        ("{'key': 'a'}", "model 'stg_odd': setting 'columns' under meta"),
        (
            "{'key': 'a', 'columns': {'a': 'integer'}}",
            "setting 'columns' under meta gives 'a' the type 'integer'",
        ),
        (
            "{'key': 'a', 'columns': {'a': 'int', 'b': 'json or null'}}",
            "gives 'b' the type 'json or null': a text holds any value",
        ),
        ("{'key': 'a', 'columns': {'a': 'int or null'}}", "and a key has one"),
        (
            "{'key': 'a', 'columns': {'a': 'int', 'op': 'string'}}",
            "model 'stg_odd': setting 'columns' under meta names 'op'",
        ),
        (
            "{'key': 'a', 'columns': {'a': 'int', 'weird-n.x': 'string'}}",
            "names 'weird-n.x', which no column here can be called",
        ),
        ("{'key': 'a', 'columns': {'a': 'int', 'A': 'int'}}", "names 'A', which no column"),
        ("{'key': 'a', 'columns': {'a': 'int', 'fold_a': 'int'}}", "names 'fold_a', which"),
        (
            "{'key': 'Op', 'columns': {'a': 'int', 'b': 'int'}, 'key_columns': ['a', 'b']}",
            "names 'Op', which no column",
        ),
        ("{'key': 'a', 'columns': {'a': 'int'}, 'source_names': {'b': 'c'}}", SOURCE_NAMES),
        ("{'key': 'a', 'columns': {'a': 'int'}, 'source_names': ['a']}", SOURCE_NAMES),
        (
            "{'key': 'a', 'columns': {'a': 'int', 'b': 'int'}, 'source_names': {'a': 'b'}}",
            SOURCE_NAMES,
        ),
        (
            "{'key': 'a', 'columns': {'a': 'int'}, 'source_names': {'a': \"it's\"}}",
            SOURCE_NAMES,
        ),
    ],
)
def test_wrong_setting_is_a_compile_error(meta: str, said: str) -> None:
    """It names the model and the setting."""
    from dbt_common.exceptions import CompilationError

    with pytest.raises(CompilationError, match=said):
        declared(meta)


@pytest.mark.parametrize(
    "type_", ["decimal(10, 2)", "decimal(38,0) base64", "timestamp(3)"]
)
def test_right_setting_is_taken(type_: str) -> None:
    columns = f"{{'a': '{type_}', 'Name': 'string', 'name_2': 'string'}}"
    # Names at the source may differ by case alone.
    names = "{'a': 'Name', 'Name': 'Order Id', 'name_2': 'name'}"
    meta = f"{{'key': 'a', 'columns': {columns}, 'source_names': {names}}}"
    assert declared(meta) == "a"


def declared(meta: str) -> str:
    """Render the macro that checks a declaration, as dbt renders it."""
    from types import SimpleNamespace

    from dbt_common.exceptions import CompilationError
    from jinja2.sandbox import SandboxedEnvironment

    class Returned(Exception):  # noqa: N818  # it is no error: dbt's return ends a macro
        pass

    def give_back(value: Any) -> None:
        raise Returned(value)

    def complain(message: str) -> None:
        raise CompilationError(message)

    environment = SandboxedEnvironment(extensions=["jinja2.ext.do"])
    text = (PROJECT / "macros/events/change_table.sql").read_text()
    columns = (PROJECT / "macros/fold/position_columns.sql").read_text()
    names = re.findall(r"'(\w+)'", columns)
    environment.globals |= {
        "return": give_back,
        "exceptions": SimpleNamespace(raise_compiler_error=complain),
        "modules": SimpleNamespace(re=re),
        "cdc_lakehouse": SimpleNamespace(position_columns=lambda: names),
    }
    try:
        environment.from_string(f"{text}{{{{ change_table('stg_odd', {meta}) }}}}").render()
    except Returned as returned:
        return str(returned.args[0]["key"])
    raise AssertionError("the macro returned nothing")
