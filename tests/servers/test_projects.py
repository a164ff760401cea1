"""Projects beside the shipped one, and what dbt's commands and processes do there.

They need no server; they are in this tier for their minutes.
"""

import json
import re
import shutil
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import NewLake
from tests.support.commands import run
from tests.support.lake import Lake, environment
from tests.support.project import PROJECT, copy_project, new_project, replace_once
from tests.support.records import START_MS, Record, Row, flattened, record
from tests.support.small_project import COLUMNS, GOLD, add_gold, set_columns, small_project
from tests.support.tables import Tables

pytestmark = pytest.mark.timeout(900)


def change(
    table: str,
    op: str,
    key: Row,
    lsn: int,
    topic: str = "demo.datalake",
    hours: int = 0,
    **columns: Any,
) -> Record:
    """A flattened change, some hours after the first.

    Of a delete the other columns are made up, as Debezium does.
    """
    ts_ms = START_MS + hours * 3_600_000
    value = flattened(op, {**key, **columns}, lsn, ts_ms, table)
    return record(key, value, lsn, topic=f"{topic}.{table}")


def by_key(rows: list[Row], key: str, *columns: str) -> dict[Any, Any]:
    """A column of each row, or several."""
    found = {row[key]: tuple(row[name] for name in columns) for row in rows}
    return {its: values if columns[1:] else values[0] for its, values in found.items()}


# What docs/models.md, docs/package.md and a variable say.


def test_edits_by_hand_give_a_table_of_ones_own(new_lake: NewLake, tmp_path: Path) -> None:
    """The example of ``docs/models.md``, as it stands there, in a copy of the project."""
    copy = copy_project(tmp_path / "project")
    page = (PROJECT / "docs/models.md").read_text(encoding="utf-8")
    section = page.partition("\n## By hand\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(?:toml|yaml|sql)\n(.*?)```", section, re.DOTALL)
    topic, source, staging, silver = (dedent(block) for block in blocks)
    models, listed = copy / "models", "    ref('stg_orders'),\n"
    for file, line, added in (
        (copy / "topics.toml", "[topics]\n", topic),
        # The table is an item of a list there, deeper than the step is here.
        (models / "staging/_sources.yml", "    tables:\n", indent(source, 6 * " ")),
        (models / "silver/rejected_rows.sql", listed, listed.replace("orders", "vendors")),
    ):
        replace_once(file, line, line + added)
    (models / "staging/stg_vendors.sql").write_text(staging)
    (models / "silver/vendors.sql").write_text(silver)

    def vendor(op: str, key: int, lsn: int, **columns: object) -> Record:
        row: Row = {"company_name": "Exotic Liquids", "country": "UK   ", "since": 7000}
        row |= {"credit_limit": "1200.50", "phone": "1", **columns}
        return change("vendors", op, {"vendor_id": key}, lsn, "shop.public", **row)

    lake = new_lake(project=copy)
    lake.land([vendor("c", 1, 10), vendor("c", 2, 20), vendor("d", 2, 40)])
    lake.land([vendor("u", 1, 30, credit_limit="99.90")])
    assert lake.ingest().code == 0
    # All that reads vendors, and the views that the quarantine reads.
    built = lake.dbt("build", "-s", "path:models/staging", "vendors", "rejected_rows")
    warning = "model 'stg_vendors' does not list the field 'phone'"
    assert any(warning in said for said in built["said"])
    names = ("is_deleted", "company_name", "country", "credit_limit", "since")
    found = by_key(lake.rows("silver.vendors"), "vendor_id", *names)
    expected = ("Exotic Liquids", "UK", Decimal("99.90"), date(1989, 3, 2))
    assert found[1] == (False, *expected)
    assert found[2][0]


def test_package_builds_the_tables_of_another_project(
    new_lake: NewLake, tmp_path: Path
) -> None:
    """As ``init`` and ``docs/package.md`` write it: a first build, an increment, a full
    refresh. A project without a table for rejected rows is refused.
    """
    shop = new_project(tmp_path / "shop")
    page = (PROJECT / "docs/package.md").read_text(encoding="utf-8")
    fenced = r"^`([\w/.]+)`[^`]*:\n\n```\w+\n(.*?)```$"
    for name, text in re.findall(fenced, page, re.DOTALL | re.M):
        (shop / name).parent.mkdir(parents=True, exist_ok=True)
        (shop / name).write_text(text)
    lake = new_lake(project=shop)

    def payment(op: str, key: int, lsn: int, amount: str) -> Record:
        its = {"payment_id": key}
        return change("payments", op, its, lsn, "shop.public", amount=amount)

    def build(*events: Record) -> set[str]:
        lake.land(events)
        assert lake.ingest().code == 0
        built = lake.dbt("build")
        assert built["said"] == []
        return {name for name, its in built["nodes"].items() if its["kind"] == "model"}

    def payments() -> dict[int, Any]:
        columns = ("amount", "is_deleted", "untyped_columns")
        return by_key(lake.rows("silver.payments"), "payment_id", *columns)

    assert build(
        payment("c", 1, 10, "1.50"),
        payment("c", 2, 20, "2.50"),
        payment("c", 3, 30, "dear"),
        payment("u", 1, 40, "9.90"),
        payment("d", 2, 50, "2.50"),
    ) == {"stg_payments", "payments", "rejected_rows", "paid_by_size", "rejected_records"}
    expected = {
        1: (Decimal("9.90"), False, []),
        2: (None, True, None),
        3: (None, False, ["amount"]),
    }
    assert payments() == expected
    assert lake.rows("silver.rejected_rows") == []
    paid = by_key(lake.rows("gold.paid_by_size"), "is_large", "amount")
    assert paid == {True: Decimal("9.90")}
    build(payment("c", 4, 60, "4.00"), payment("u", 2, 45, "7.00"))
    expected[4] = (Decimal("4.00"), False, [])
    assert payments() == expected
    lake.dbt("build", "--full-refresh")
    assert payments() == expected
    # What Athena reads.
    for table in ("silver.payments", "silver.rejected_rows", "gold.paid_by_size"):
        assert lake.tables.properties(table)["hoodie.table.version"] == "6", table

    (shop / "models/silver/rejected_rows.sql").unlink()
    refused = lake.try_dbt("build")
    assert not refused["success"]
    said = str([refused["error"], refused["said"], refused["nodes"]])
    assert "the model 'rejected_rows', which is not there, has to list 'stg_pay" in said


def test_a_key_of_two_columns_is_their_values_joined(new_lake: NewLake) -> None:
    """A dash within a value makes another key; one that is not whole is rejected."""
    lake = new_lake(PROJECT / "topics.toml")
    base_tables = ("--vars", json.dumps({"cdc_lakehouse_base_tables": True}))
    models = ("order_details", "employee_territories", "rejected_rows")

    def line(op: str, order_id: Any, product_id: Any, lsn: int, count: int = 0) -> Record:
        key = {"order_id": order_id, "product_id": product_id}
        price: Row = {"unit_price": 14.5, "quantity": count, "discount": 0.05}
        return change("order_details", op, key, lsn, **price)

    def territory(op: str, territory_id: str, lsn: int) -> Record:
        key = {"employee_id": 1, "territory_id": territory_id}
        return change("employee_territories", op, key, lsn)

    words = ("-s", "path:models/staging", *models, *base_tables)
    first = [
        *(line("c", 1, 11, 10, 5), line("c", 1, 12, 20, 6), line("c", 11, 1, 30, 7)),
        *(line("c", 1, None, 40), line("c", 1, "x", 50)),
        *(territory("c", "06897", 60), territory("c", "06-897", 70)),
    ]
    lake.build(first, *words)
    assert by_key(lake.rows("silver.rejected_rows"), "kafka_offset", "reason") == {
        40: "no product_id, which is the key",
        50: "product_id: 'x' is no int",
    }
    second = [
        *(line("u", 1, 11, 80, 9), line("d", 1, 12, 90), line("d", 11, 1, 100)),
        *(line("c", 11, 1, 110, 8), territory("d", "06897", 120)),
    ]
    lake.build(second, *words)
    columns = ("quantity", "is_deleted", "source_lsn")
    details = lake.rows("silver.order_details")
    assert by_key(details, "order_detail_id", *columns) == {
        "1-11": (9, False, 80),
        "11-1": (8, False, 110),
        "1-12": (None, True, 90),
    }
    territories = lake.rows("silver.employee_territories")
    assert by_key(territories, "employee_territory_id", "is_deleted") == {
        **{"1-06897": True, "1-06\\-897": False}
    }


# dbt's commands beyond `build`, as its users run them: what they leave in the lake.


def order(
    lsn: int, op: str, key: int, customer_id: str | None = "ALFKI", **others: Any
) -> Record:
    row = {"customer_id": customer_id, "customer": None, **others}
    return change("cdc_events", op, {"order_id": key}, lsn, **row)


def ingest(lake: Lake, *events: Record) -> None:
    lake.land(events)
    assert lake.ingest().code == 0


def test_dbt_s_own_commands_mean_what_dbt_says(new_lake: NewLake, tmp_path: Path) -> None:
    """Retries, with an ingest in between; a modified model, the others deferred."""
    project = small_project(tmp_path / "project")
    add_gold(project)
    gold, silver = (
        project / "models/gold/by_customer.sql",
        project / "models/silver/orders.sql",
    )
    lake = new_lake(project=project)
    lake.build([order(1, "c", 1), order(2, "c", 2)], "--threads", "8")

    def counts() -> dict[str, int]:
        return by_key(lake.rows("gold.by_customer"), "customer_id", "orders")

    def models(answer: Row) -> set[str]:
        """The models that a command built, without dbt's hooks."""
        return {name for name, node in answer["nodes"].items() if node["kind"] == "model"}

    # The retry builds what failed; the next run reads what arrived meanwhile.
    assert counts() == {"ALFKI": 2}
    ingest(lake, order(3, "u", 1, "BONAP"))
    gold.write_text(GOLD.replace("count(*)", "no_such_function(1)"))
    assert not lake.try_dbt("run")["success"]
    customers = by_key(lake.rows("silver.orders"), "order_id", "customer_id")
    assert customers == {1: "BONAP", 2: "ALFKI"}
    assert counts() == {"ALFKI": 2}
    ingest(lake, order(4, "c", 3, "CHOPS"))
    gold.write_text(GOLD)
    assert models(lake.dbt("retry")) == {"by_customer"}
    assert counts() == {"ALFKI": 1, "BONAP": 1}
    lake.dbt("run")
    assert counts() == {"ALFKI": 1, "BONAP": 1, "CHOPS": 1}

    # That of a silver model reads what arrived meanwhile.
    right = silver.read_text()
    silver.write_text(right + "\nwhere no_such_function(1)")
    ingest(lake, order(5, "u", 2, "DRACD"))
    assert not lake.try_dbt("run")["success"]
    silver.write_text(right)
    ingest(lake, order(6, "d", 3))
    lake.dbt("retry")
    assert counts() == {"BONAP": 1, "DRACD": 1}

    shutil.copy(Path(lake.dbt("run")["target"], "manifest.json"), tmp_path)
    ingest(lake, order(7, "c", 4, "EASTC"))
    gold.write_text(GOLD.replace("count(*)", "count(1)"))
    arguments = ("-s", "state:modified+", "--defer", "--state", str(tmp_path))
    assert models(lake.dbt("build", *arguments)) == {"by_customer"}
    assert counts() == {"BONAP": 1, "DRACD": 1}
    lake.dbt("run")
    assert counts() == {"BONAP": 1, "DRACD": 1, "EASTC": 1}

    before = lake.tables.instants()
    for command in ("show -s orders --limit 2", "compile", "test", "run --sample 1_day"):
        lake.dbt(*(word.replace("_", " ") for word in command.split()))
        assert lake.tables.instants() == before, command


# The past of a table, read by analyses.


def at(hour: float) -> str:
    """A time some hours after the first change, in UTC."""
    moment = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(hours=hour)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


HISTORY: dict[str, Any] = {"cdc_lakehouse_history": True}
WITH_HISTORY = ("--vars", json.dumps(HISTORY))


def test_past_of_a_table_is_read_by_analyses(
    new_lake: NewLake, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """At times between two changes, whenever they were built."""
    project = small_project(tmp_path / "project")
    columns = {"order_id": "int", "customer_id": "bpchar"}
    set_columns(project, columns | dict.fromkeys(("order_date", "shipped_date"), "date"))
    shutil.copytree(PROJECT / "analyses/history", project / "analyses/history")
    history = PROJECT / "models/silver/history/orders_history.sql"
    shutil.copy(history, project / "models/silver")
    lake = new_lake(project=project)

    first: Row = {"hours": 1, "order_date": 1, "shipped_date": None}
    later, last = first | {"hours": 3}, first | {"hours": 5}
    for events in (
        [order(1, "c", 1, "ALFKI", **first), order(2, "c", 2, "BONAP", **first)],
        [
            *(order(3, "u", 1, "CACTU", **later), order(4, "d", 2, **later)),
            *(order(5, "c", 3, "X", **later), order(6, "u", 1, "LATER", **last)),
        ],
    ):
        lake.build(events, *WITH_HISTORY)

    def answer(name: str, **variables: Any) -> str:
        """The rows of an analysis, as ``dbt compile`` writes it."""
        said = ("--vars", json.dumps(HISTORY | variables))
        done = lake.dbt("compile", "-s", name, *said)
        (file,) = Path(done["target"]).glob(f"compiled/*/analyses/history/{name}.sql")
        rows = lake.sql(file.read_text())
        return "\n".join([f"{name} {variables}", *map(", ".join, rows)])

    name = "orders_changed_between"
    said = [answer("orders_as_of", as_of=at(hour)) for hour in (0.9, 1, 2.9, 3, 9)]
    said += [answer("orders_as_of"), answer("order_history", order_id=1)]
    said.append(answer(name, changed_from=at(1), changed_to=at(4)))
    said.append(answer(name, changed_from=at(5)))
    assert "\n\n".join(said) == snapshot


# Processes whose environment is another: time zone, locale, a link.

TYPED = COLUMNS | {
    "ordered_on": "date",
    "shipped_at": "timestamp(3)",
    "packed_at": "timestamp",
    "paid_at": "timestamptz",
}
# In New York the clock went from 2 to 3 that night, and had no whole hours before 1883.
SPRING_MS = 1_772_955_000_000  # 2026-03-08 07:30 in UTC
OF_EACH_RUN = {"ingested_at", "ingest_batch", "ingest_date"}


def test_environment_of_the_process_changes_no_row(tmp_path: Path) -> None:
    """Time zone and locale; nor does a link to the lake."""
    project, landing = small_project(tmp_path / "project"), tmp_path / "Käufe"
    set_columns(project, TYPED)
    lines = ["kein JSON: ä"]
    for number, milliseconds in enumerate(
        (-3_000_000_000_000, -1, 0, START_MS, SPRING_MS - 3_600_000, SPRING_MS)
    ):
        row = {
            "order_id": number,
            "customer_id": "Ærø ",
            "customer": '{"name": "Käse \\"1\\" 木"}',
            "ordered_on": milliseconds // 86_400_000,
            "shipped_at": milliseconds,
            "packed_at": milliseconds * 1_000 + 1,
            "paid_at": "2026-03-08T02:30:00.123456-05:00",
        }
        moment = max(milliseconds, 0)
        value = flattened("c", row, 10 + number, moment)
        line = record({"order_id": number}, value, number, timestamp=moment)
        lines.append(json.dumps(line, ensure_ascii=False))
    landing.mkdir()
    (landing / "März.json").write_text("\n".join(lines), encoding="utf-8")

    def tables(root: Path, **variables: str) -> dict[str, list[Row]]:
        """The rows of a new lake, without what differs between any two runs."""
        for command in (
            ["ingest", "files", str(landing), "--topic", "demo.datalake.cdc_events"],
            ["dbt.cli.main", "build", "--profiles-dir", "profiles"],
        ):
            own = environment(root) | {"PYTHONPATH": str(project)} | variables
            run(sys.executable, "-m", *command, cwd=project, env=own)
        return {
            name: [
                {key: value for key, value in row.items() if key not in OF_EACH_RUN}
                for row in Tables(root).rows(name)
            ]
            for name in ("bronze.cdc_events", "bronze.rejected_events", "silver.orders")
        }

    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder")
    expected = tables(tmp_path / "utc", TZ="UTC")
    assert [len(rows) for rows in expected.values()] == [6, 1, 6]
    assert tables(tmp_path / "new_york", TZ="America/New_York") == expected
    assert tables(link, LANG="C", LC_ALL="C") == expected
    assert Tables(tmp_path / "folder").names() == Tables(link).names()
