"""What a build reports of rare events of a source, and the operations of the runbook.

One lake goes through most. Which rows truncates delete, ``test_decisions.py`` compares.
"""

import json
import re
import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import NewLake
from tests.support.commands import run
from tests.support.lake import environment
from tests.support.project import copy_project, replace_once
from tests.support.records import TOPIC, Record, flattened, record
from tests.support.scenario import live, made, order, product
from tests.support.small_project import add_gold, small_project, write_model

SILVER = ("orders", "order_items", "customers", "products", "rejected_rows")
STEPS = tomllib.loads(Path(__file__).with_name("operations.toml").read_text())
# The data test of one model's column ``untyped_columns``.
UNTYPED = "cdc_lakehouse_no_untyped_values_orders_untyped_columns"
HISTORY = "select * from {{ ref('stg_orders') }}"


def decided(decisions: dict[str, str]) -> tuple[str, str]:
    """The variable ``cdc_lakehouse_truncates``, by LSN."""
    return ("--vars", json.dumps({"cdc_lakehouse_truncates": decisions}))


@pytest.fixture(scope="module")
def builds(new_lake: NewLake) -> SimpleNamespace:
    """The lake after all of its builds, and what they left and reported."""
    lake = new_lake()
    left = SimpleNamespace(lake=lake, steps={})

    def keep(step: str) -> None:
        left.steps[step] = {table: lake.rows(f"silver.{table}") for table in SILVER}

    lake.build(map(made, STEPS["first"]), "-s", "path:models/staging", *SILVER)
    lake.land(map(made, STEPS["second"]))
    assert lake.ingest().code == 0
    before = lake.tables.instants()
    left.stopped = lake.dbt_error("run", "-s", *SILVER)
    wrong = {"300": "maybe"}
    left.wrongly_decided = lake.dbt_error("run", "-s", *SILVER, *decided(wrong))
    left.is_untouched = lake.tables.instants() == before
    decisions = decided({"200": "ignore", "300": "apply"})
    left.warnings = lake.dbt("run", "-s", *SILVER, *decisions)["said"]
    keep("decided")
    rejected = ("rejected_rows", "assert_no_row_was_rejected", UNTYPED)
    alone = ("--indirect-selection", "empty")
    rebuilt = lake.dbt("build", "--full-refresh", "-s", "orders", *rejected, *alone)
    left.tests = rebuilt["nodes"]
    keep("rebuilt without the variable")
    lake.land(map(made, STEPS["third"]))
    assert lake.ingest().code == 0
    left.of_one_table = lake.dbt("run", "-s", "customers")["said"]
    models = ("orders", "products", "rejected_rows")
    left.of_redelivery = lake.dbt("run", "-s", *models)["said"]
    keep("third")
    return left


BUILDS = ("decided", "rebuilt without the variable", "third")


@pytest.mark.parametrize("step", BUILDS[:2])
def test_event_without_a_key_is_in_rejected_rows(
    step: str, builds: SimpleNamespace
) -> None:
    """With the reason and the event's id; the good rows of its batch are merged."""
    (rejected,) = builds.steps[step]["rejected_rows"]
    assert (rejected["kafka_offset"], rejected["table_name"]) == (13, "orders")
    assert rejected["reason"] == "order_id: 'x1' is no int"
    events = {row["kafka_offset"]: row for row in builds.lake.rows("bronze.cdc_events")}
    assert rejected["event_id"] == events[13]["event_id"]
    orders = {row["order_id"]: row for row in builds.steps[step]["orders"]}
    assert orders[12]["customer_id"] == "BONAP"
    # A delete whose record has no key: the row that it ended has it.
    assert (orders[16]["is_deleted"], orders[16]["source_lsn"]) == (True, 1_090)


def test_what_is_warned_of(builds: SimpleNamespace) -> None:
    """A truncate that is decided on is not, nor what is not of this build or not new.

    A field's name does nothing to a terminal. A source that was restored is no redelivery.
    """
    field, restored = sorted(builds.warnings, reverse=True)
    assert r"""model 'stg_orders' does not list the field '"gift\u001b[2Jnote"'""" in field
    assert "1 new events of bronze.products arrived at higher offsets" in restored
    assert "topics.toml" in restored
    assert builds.of_one_table == builds.of_redelivery == []
    # The next build merges what the one of another table left.
    assert 79 in live(builds.steps["third"]["orders"], "orders")
    assert builds.tests["assert_no_row_was_rejected"]["status"] == "warn"
    untyped = builds.tests[UNTYPED]
    said = "Got 1 result, configured to warn if != 0"
    assert (untyped["status"], untyped["message"]) == ("warn", said)


def test_undecided_truncate_stops_the_build(builds: SimpleNamespace) -> None:
    said = "bronze.cdc_events holds a TRUNCATE at position 0@000000000000012c"
    assert said in builds.stopped
    assert "'maybe' for position 300" in builds.wrongly_decided
    assert builds.is_untouched


@pytest.mark.parametrize("step", BUILDS)
def test_applied_truncate_deletes_what_is_older(step: str, builds: SimpleNamespace) -> None:
    """Stored, in its batch or late, and in a full refresh without the variable.

    One that is ignored deletes nothing.
    """
    rows = builds.steps[step]
    deleted = {
        row["order_id"]: row["source_lsn"]
        for row in rows["orders"]
        if row["is_deleted"] and row["order_id"] != 16
    }
    late = {5: 300} if step == "third" else {}
    assert deleted == {1: 300, 3: 300, 4: 300, **late}
    if not late:
        of_lines, of_orders = (live(rows[name], name) for name in ("order_items", "orders"))
        assert of_lines == of_orders == {2, 11, 12}
    assert live(rows["customers"], "customers") == {"ALFKI", "BONAP", "CHOPS"}


def failure(lake: Path, command: str) -> str:
    """What a dbt command says that fails in a process of its own, without our path."""
    known = environment(lake) | {"DBT_TARGET_PATH": f"{lake}/target", "PYTHONPATH": ""}
    words = [*command.split(), "--profiles-dir", "profiles"]
    return run("dbt", *words, env=known, code=2)


LACKING = {"build": "ingested into", "docs generate": "built in"}


@pytest.mark.parametrize("command", LACKING)
def test_empty_lake_is_reported(command: str, tmp_path: Path) -> None:
    said = failure(tmp_path, command)
    assert f"nothing has been {LACKING[command]} {tmp_path}" in said


def test_second_build_names_the_process_of_the_first(builds: SimpleNamespace) -> None:
    # The lock is taken by a dbt command, and kept until another lake's turn comes.
    builds.lake.dbt("show", "--inline", "select 1")
    said = failure(builds.lake.root, "run -s stg_orders")
    assert str(builds.lake.spark.pid) in said
    assert "Traceback" not in said


def test_missing_bronze_table_is_named(builds: SimpleNamespace) -> None:
    said = builds.lake.dbt_error("run", "--vars", "{cdc_lakehouse_base_tables: true}")
    assert "bronze.categories has not been ingested: list its topic" in said


def test_staging_model_that_rejected_rows_does_not_list_stops_the_build(
    builds: SimpleNamespace, tmp_path: Path
) -> None:
    copy = copy_project(tmp_path / "project")
    model = copy / "models/silver/rejected_rows.sql"
    replace_once(model, "    ref('stg_products'),\n", "")
    said = builds.lake.dbt_error("run", "-s", "stg_orders", project=copy)
    assert "'rejected_rows' does not list 'stg_products'" in said


def test_ingest_builds_in_its_own_process(builds: SimpleNamespace, tmp_path: Path) -> None:
    """And reports what it wrote, also where the build failed."""
    lake = builds.lake
    landing = str(lake.landing)
    build = f"run -s stg_orders orders --target-path {shlex.quote(str(tmp_path))}"

    lake.land([order("c", 77, 7_000, 700)])
    wrong = f"{build} --vars '{{cdc_lakehouse_complete_snapshots: {{cdc_events: 5}}}}'"
    done = lake.ingest(landing, "--then-build", wrong)
    failed, counts = done.out.splitlines()
    assert failed.startswith("the build failed (")
    assert counts == "read 1 records, wrote 1 events, rejected 0, skipped 0"
    assert f"position {5:016x} of bronze.cdc_events, which holds no snapshot" in done.err
    assert done.code == 1

    # What a failed build left is built although nothing is new.
    done = lake.ingest(landing, "--then-build", build)
    built, counts = done.out.splitlines()
    assert built.startswith("built (")
    assert counts == "read 0 records, wrote 0 events, rejected 0, skipped 0"
    assert (done.code, 77 in live(lake.rows("silver.orders"), "orders")) == (0, True)


def test_operations_of_the_runbook(builds: SimpleNamespace) -> None:
    """Erase a key, drop a table and build it again, drop a day of bronze."""
    lake = builds.lake
    in_files = lake.tables.values_in_files

    def operate(name: str, **arguments: str) -> None:
        lake.dbt("run-operation", name, "--args", json.dumps(arguments))

    # As a build leaves it that is killed.
    scratch = lake.tables.path("staging.scratch") / "silver__products__rows"
    query = "using parquet select * from silver.products"
    lake.sql(f"insert overwrite directory '{scratch}' {query}")
    assert lake.tables.count_scratch_rows() > 0
    # Product 1 has an event without Kafka's key, and a record that is no event; 'x1' is
    # quoted where its event is rejected.
    topic, key = "demo.datalake.products", '{"product_id":1}'
    keyless = product("u", 1, 1_100, 30) | {"key": None}
    no_event = record({"product_id": 1}, {"product_name": "Chai"}, 31, topic=topic)
    unusable = flattened("u", {"product_id": "x1"}, 1_200, table="products")
    lake.land([keyless, no_event, record({"product_id": "x1"}, unusable, 32, topic=topic)])
    wrong_order = {"order_id": "y2"}
    lake.land([record(wrong_order, flattened("u", wrong_order, 1_300), 50)])
    lake.ingest()
    lake.dbt("run", "-s", "stg_products", "products", "rejected_rows")
    events = lake.rows("bronze.products")
    assert key in {row["key"] for row in events}
    operate("erase_key", table="products", key=key)
    assert key not in in_files("bronze.rejected_events", "key")
    operate("erase_key", table="products", key='{"product_id":"x1"}')
    left = lake.rows("bronze.products")
    assert left == [row for row in events if row["key"] == '{"product_id":2}']
    assert lake.tables.properties("bronze.products")["hoodie.table.version"] == "6"
    assert in_files("bronze.products", "key") == {'{"product_id":2}'}
    reasons = in_files("silver.rejected_rows", "reason")
    assert reasons == {"order_id: 'x1' is no int"}
    assert lake.tables.count_scratch_rows() == 0

    orders = lake.rows("silver.orders")
    files = lake.tables.path("silver.orders").rglob
    assert len([*files("*.parquet")]) > 1
    operate("remove_versions", table="silver.orders")
    assert len([*files("*.parquet")]) == 1
    assert lake.rows("silver.orders") == orders
    # A delete is in a log of a merge-on-read table, and its row in the file.
    lake.sql(
        "create table silver.logged using hudi"
        " tblproperties (type = 'mor', primaryKey = 'key')"
        " as select explode(array('kept', 'erased')) as key"
    )
    lake.sql("delete from silver.logged where key = 'erased'")
    operate("remove_versions", table="silver.logged")
    assert in_files("silver.logged", "key") == {"kept"}

    operate("drop_table", table="silver.products")
    lake.dbt("run", "-s", "products")
    assert live(lake.rows("silver.products"), "products") == {2}

    day = str(left[0]["ingest_date"])
    operate("drop_bronze_day", table="products", day=day)
    others = [row for row in left if row["ingest_date"] != day]
    assert lake.rows("bronze.products") == others

    new = [product("u", 2, 4_000, 20, product_name="Chang"), product("c", 3, 5_000, 21)]
    assert lake.build(new, "-s", "products", "rejected_rows") == []
    rows = {row["product_id"]: row for row in lake.rows("silver.products")}
    assert (set(rows), rows[2]["product_name"]) == ({2, 3}, "Chang")
    topics = {row["topic"] for row in lake.rows("bronze.products")}
    assert topics == {TOPIC.replace("cdc_events", "products")}
    # No run before read the rejected rows of orders: none had selected them.
    assert "order_id: 'y2' is no int" in in_files("silver.rejected_rows", "reason")


def test_freshness_of_bronze_is_checked(builds: SimpleNamespace) -> None:
    answer = builds.lake.dbt("source", "freshness", "-s", "source:bronze.cdc_events")
    statuses = {n["status"] for n in answer["nodes"].values() if n["kind"] == "source"}
    assert statuses == {"pass"}


def test_build_that_follows_leaves_out_what_has_nothing_new(
    new_lake: NewLake, tmp_path: Path
) -> None:
    """Of another process, too, unless something was written since."""
    project = small_project(tmp_path / "project")
    add_gold(project)
    lake = new_lake(project=project)
    places = f"--project-dir {project} --target-path {tmp_path}"

    def models(*events: Record) -> set[str]:
        lake.land(events)
        done = lake.ingest(str(lake.landing), "--then-build", f"run {places}")
        assert done.code == 0, done.err
        built = set(re.findall(r": (\w+\.\w+): (?:[\d,]+ rows, )?\d+\.\d s", done.err))
        said = "built (" if built else "nothing new to build"
        assert done.out.startswith(said)
        return built

    every = {f"silver.{table}" for table in ("orders", "rejected_rows")}
    every |= {"staging.stg_orders", "gold.by_customer"}
    assert models(order("c", 1, 1, 1)) == every
    assert models() == set()
    assert models(order("c", 2, 2, 2)) == every
    lake.dbt("run-operation", "drop_table", "--args", "{table: silver.orders}")
    assert models() == every
    assert {row["order_id"] for row in lake.rows("silver.orders")} == {1, 2}
    model = project / "models/gold/by_customer.sql"
    model.write_text(f"{model.read_text()}\n-- Changed.\n")
    assert models() == every
    assert models() == set()


def test_old_days_go_where_no_full_refresh_needs_them(
    new_lake: NewLake, tmp_path: Path
) -> None:
    """By the first build of a day that follows an ingest, which says why others stay."""
    project = small_project(tmp_path / "project")
    lake = new_lake(project=project)
    settings = {"materialized": "cdc_merge", "scd_type": 2, "unique_key": "history_id"}
    said = re.compile(r"\b(kept|dropped) \S+ to \S+ of bronze\.cdc_events(.*)")
    for step in STEPS["retention"]:
        write_model(project, "silver/orders_history", HISTORY, **settings)
        if not step["has_history"]:
            (project / "models/silver/orders_history.sql").unlink()
        lake.land(map(made, step["events"]))
        (lake.root / "checkpoints/built.json").unlink(missing_ok=True)
        build = f"run --project-dir {project} --target-path {tmp_path} --vars "
        build += shlex.quote(json.dumps({"cdc_lakehouse_bronze_retention": step["kept"]}))
        paths, ago = str(lake.landing), step["days_ago"]
        done = lake.ingest(paths, "--then-build", build, days_ago=ago)
        assert done.code == 0 and "error" not in done.err
        assert said.findall(done.err) == [*map(tuple, step["said"])]
        held = {row["kafka_offset"] for row in lake.rows("bronze.cdc_events")}
        assert held == {*step["offsets"]}
        before = [row for row in lake.rows("silver.orders") if not row["is_deleted"]]
        lake.dbt("run", "--full-refresh", "-s", "orders")
        after = lake.rows("silver.orders")
        assert [row for row in after if not row["is_deleted"]] == before
