"""The source database on a real server: the loader, the outbox's triggers, the rights."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from psycopg2 import errors

from connectors.postgres import northwind
from connectors.postgres.__main__ import main
from connectors.postgres.load import Source, existing, load
from connectors.stack.postgres import PostgresServer, find_binaries
from demo.landing import EVENTS, recorded
from lake.errors import UserError
from tests.support.ports import free_port
from tests.support.project import PROJECT
from tests.support.records import UNAVAILABLE
from tests.support.required import required

PASSWORD = "sesame 'and' more"
REPLICATION_PASSWORD = "read \"only\" 'me'"
TEMPLATE = "northwind"
JSON_COLUMNS = ("order_items", "products", "customer", "employee", "shipper", "shipment")

# Commits stay synchronous: tests interrupt them.
FAST = {"fsync": "off", "full_page_writes": "off"}

Row = dict[str, Any]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where the server's own user can go, which pytest's folders do not let it."""
    with required():
        find_binaries()
    path = Path(tempfile.mkdtemp(prefix="test-postgres-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PostgresServer]:
    settings = {
        **FAST,
        "log_statement": "all",
        "track_functions": "all",
        "deadlock_timeout": "50ms",
    }
    yield from running(folder / "server", settings)


@pytest.fixture(scope="module")
def bare_server(folder: Path) -> Iterator[PostgresServer]:
    """A server without the roles of a load; roles belong to all databases of a server."""
    yield from running(folder / "bare", FAST)


def running(folder: Path, settings: dict[str, str]) -> Iterator[PostgresServer]:
    """A server with settings of its own, which is stopped afterwards."""
    server = start_server(folder, settings)
    try:
        yield server
    finally:
        server.stop()


def start_server(folder: Path, settings: dict[str, str] | None = None) -> PostgresServer:
    server = PostgresServer(folder, free_port(), PASSWORD, settings)
    server.start()
    return server


@pytest.fixture(scope="module")
def template(server: PostgresServer) -> Source:
    source = Source(port=server.port, database=TEMPLATE, password=PASSWORD)
    load(source, REPLICATION_PASSWORD)
    return source


@pytest.fixture
def fresh(server: PostgresServer) -> Iterator[Source]:
    """A database that is not there yet, on a server without the role."""
    yield from database(server, "fresh")


@pytest.fixture
def source(server: PostgresServer, template: Source) -> Iterator[Source]:
    """Northwind, as the loader made it."""
    administer(server, f"create database copy template {template.database}")
    yield from database(server, "copy")


def database(server: PostgresServer, name: str) -> Iterator[Source]:
    yield Source(port=server.port, database=name, password=PASSWORD)
    administer(
        server,
        f"select pg_drop_replication_slot(slot_name) from pg_replication_slots"
        f" where database = '{name}'",
        f"drop database if exists {name} with (force)",
    )


def administer(server: PostgresServer, *statements: str) -> None:
    connection = server.connect()
    connection.autocommit = True
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    connection.close()


class Session:
    """A connection to the copy; ``run`` commits, ``do`` does not."""

    def __init__(self, source: Source, **overrides: Any) -> None:
        parameters = {
            "host": source.host,
            "port": source.port,
            "dbname": source.database,
            "user": source.user,
            "password": source.password,
        }
        self.connection = psycopg2.connect(**{**parameters, **overrides})

    def do(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor) if cursor.description else []

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.do(statement)
        self.connection.commit()

    def one(self, statement: str, *values: Any) -> Any:
        ((value,),) = self.do(statement, *values)
        return value

    def wait_until(self, condition: str) -> None:
        """Poll the server, at most for 20 seconds."""
        for _ in range(400):
            is_so = self.one(f"select {condition}")
            self.connection.rollback()
            if is_so:
                return
            time.sleep(0.05)
        raise AssertionError(f"not within 20 seconds: {condition}")

    def event(self, order_id: int) -> Row:
        found: Row = self.one(
            "select to_jsonb(cdc_events) from datalake.cdc_events where order_id = %s",
            order_id,
        )
        return found


@pytest.fixture
def session(source: Source) -> Iterator[Session]:
    session = Session(source)
    yield session
    session.connection.close()


class Capture:
    """What the publication sends: ``(operation, table, first column)`` of each change."""

    def __init__(self, source: Source) -> None:
        self.session = Session(source)
        self.session.connection.autocommit = True
        self.session.do("select pg_create_logical_replication_slot('test', 'pgoutput')")

    def changes(self) -> list[tuple[str, str, str]]:
        messages = self.session.do(
            "select data from pg_logical_slot_get_binary_changes('test', null, null,"
            " 'proto_version', '1', 'publication_names', 'datalake')"
        )
        tables: dict[bytes, str] = {}
        changes = []
        for (data,) in messages:
            message = bytes(data)
            kind, relation = chr(message[0]), message[1:5]
            if kind == "R":
                tables[relation] = message[5:].split(b"\0")[1].decode()
            elif kind in "IUD":
                changes.append((kind, tables[relation], first_column(message[6:])))
        return changes

    def events(self) -> list[tuple[str, int]]:
        """Operation and order of the outbox's changes."""
        return [
            (kind, int(key)) for kind, table, key in self.changes() if table == "cdc_events"
        ]


def first_column(tuple_data: bytes) -> str:
    (length,) = struct.unpack("!i", tuple_data[3:7])
    return tuple_data[7 : 7 + length].decode()


@pytest.fixture
def capture(source: Source) -> Iterator[Capture]:
    capture = Capture(source)
    yield capture
    capture.session.connection.close()


def expected_events(session: Session) -> dict[int, Row]:
    """The outbox as the base tables say, put together without any of its SQL."""
    tables = {
        table: [row for (row,) in session.do(f"select to_jsonb(t) from datalake.{table} t")]
        for table in northwind.TABLES
    }

    def by(table: str, column: str) -> dict[Any, Row]:
        return {row[column]: row for row in tables[table]}

    products, suppliers = by("products", "product_id"), by("suppliers", "supplier_id")
    categories, regions = by("categories", "category_id"), by("region", "region_id")
    territories = by("territories", "territory_id")
    customers, shippers = by("customers", "customer_id"), by("shippers", "shipper_id")
    employees = by("employees", "employee_id")
    no_supplier = dict.fromkeys(tables["suppliers"][0])
    no_category = dict.fromkeys(tables["categories"][0])
    for employee_id, employee in employees.items():
        sales_area = [
            territories[row["territory_id"]]
            for row in tables["employee_territories"]
            if row["employee_id"] == employee_id
        ]
        employee["territories"] = [
            {**territory, **regions[territory["region_id"]]}
            for territory in sorted(sales_area, key=lambda row: row["territory_id"])
        ] or None

    events = {}
    for order in tables["orders"]:
        lines = [
            row for row in tables["order_details"] if row["order_id"] == order["order_id"]
        ]
        lines.sort(key=lambda row: row["product_id"])
        sold = [products[line["product_id"]] for line in lines]
        events[order["order_id"]] = {
            **{
                name: order[name]
                for name in (
                    "order_id",
                    "customer_id",
                    "order_date",
                    "required_date",
                    "shipped_date",
                )
            },
            "order_items": [
                {name: value for name, value in line.items() if name != "order_id"}
                for line in lines
            ]
            or None,
            "products": [
                {
                    **suppliers.get(product["supplier_id"], no_supplier),
                    **categories.get(product["category_id"], no_category),
                    **product,
                }
                for product in sold
            ]
            or None,
            "customer": customers.get(order["customer_id"]),
            "employee": employees.get(order["employee_id"]),
            "shipper": shippers.get(order["ship_via"]),
            "shipment": {
                name: value
                for name, value in order.items()
                if name == "freight" or (name.startswith("ship_") and name != "ship_via")
            },
        }
    return events


def stored_events(session: Session) -> dict[int, Row]:
    rows = session.do("select to_jsonb(t) - 'updated_at' from datalake.cdc_events t")
    return {row["order_id"]: row for (row,) in rows}


def assert_outbox_is_right(session: Session) -> None:
    session.connection.rollback()
    stored, expected = stored_events(session), expected_events(session)
    wrong = {
        order_id: (stored.get(order_id), expected.get(order_id))
        for order_id in stored.keys() | expected.keys()
        if stored.get(order_id) != expected.get(order_id)
    }
    assert not wrong
    # What the statements left behind, they have also taken away.
    assert session.one("select count(*) from datalake.changed_orders") == 0
    session.connection.rollback()


# ---------------------------------------------------------------- the loader


def test_load_brings_every_row_and_one_event_an_order(session: Session) -> None:
    counts = {
        table: session.one(f"select count(*) from datalake.{table}")
        for table in (*northwind.TABLES, "cdc_events")
    }
    assert counts == {
        "region": 4,
        "territories": 53,
        "employees": 9,
        "employee_territories": 49,
        "customers": 91,
        "shippers": 6,
        "suppliers": 29,
        "categories": 8,
        "products": 77,
        "orders": 830,
        "order_details": 2155,
        "cdc_events": 830,
    }
    revenue = """
        select round(sum(unit_price::numeric * quantity * (1 - discount::numeric)), 4)
    """
    assert session.one(revenue + "from datalake.order_details") == Decimal("1265793.0395")
    lines = """
        from datalake.cdc_events, jsonb_to_recordset(order_items) as line(
            unit_price numeric, quantity numeric, discount numeric
        )
    """
    assert session.one(revenue + lines) == Decimal("1265793.0395")
    assert_outbox_is_right(session)


def test_empty_fields_are_null_and_text_stays_as_it_is(session: Session) -> None:
    assert session.do(
        "select region, fax from datalake.customers where customer_id = 'ALFKI'"
    ) == [(None, "030-0076545")]
    address = session.one("select address from datalake.employees where employee_id = 1")
    assert address == "507 - 20th Ave. E.\\nApt. 2A"
    assert session.one("select count(*) from datalake.employees where photo = ''") == 9
    assert (
        session.one("select count(*) from datalake.orders where shipped_date is null") == 21
    )


def test_the_outbox_has_the_columns_and_keys_of_the_issue(session: Session) -> None:
    columns = session.do(
        "select attname::text, format_type(atttypid, atttypmod) from pg_attribute"
        " where attrelid = 'datalake.cdc_events'::regclass and attnum > 0 order by attnum"
    )
    assert columns == [
        ("order_id", "smallint"),
        ("customer_id", "bpchar"),
        ("order_date", "date"),
        ("required_date", "date"),
        ("shipped_date", "date"),
        *((name, "jsonb") for name in JSON_COLUMNS),
        ("updated_at", "timestamp with time zone"),
    ]
    keys = session.do(
        "select conrelid::regclass::text, pg_get_constraintdef(oid) from pg_constraint"
        " where contype = 'p' and connamespace = 'datalake'::regnamespace"
    )
    assert ("datalake.cdc_events", "PRIMARY KEY (order_id)") in keys
    assert len(keys) == 12


def test_json_is_what_the_capture_has(session: Session) -> None:
    """Every snapshot event of the recorded stream, text by text but for one order."""
    events = stored_events(session)
    texts = {
        row[0]: dict(zip(JSON_COLUMNS, row[1:], strict=True))
        for row in session.do(
            "select order_id, order_items::text, products::text, customer::text,"
            " employee::text, shipper::text, shipment::text from datalake.cdc_events"
        )
    }
    compared: Counter[str] = Counter()
    for record in recorded(EVENTS / "northwind_unwrapped.jsonl.gz"):
        value = json.loads(record["value"])
        if value["__op"] != "r":
            continue
        order_id = value["order_id"]
        for column in JSON_COLUMNS:
            assert value[column] != UNAVAILABLE
            recorded_json = json.loads(value[column])
            if isinstance(recorded_json, list):
                recorded_json.sort(key=lambda item: item["product_id"])
                assert events[order_id][column] == recorded_json
            if order_id != 11077:  # the one whose lines were not in order
                assert texts[order_id][column] == value[column]
            compared[column] += 1
    assert compared == dict.fromkeys(JSON_COLUMNS, 829)


def test_held_back_order_is_inserted_later(
    server: PostgresServer, template: Source, fresh: Source
) -> None:
    loaded = load(fresh, REPLICATION_PASSWORD, hold_back=[11075], replace=True)
    assert (loaded.rows["orders"], loaded.rows["order_details"]) == (829, 2152)
    assert loaded.events == 829
    session = Session(fresh)
    capture = Capture(fresh)
    northwind.insert_order(session.connection, 11075)
    session.connection.commit()
    assert capture.events() == [("I", 11075)]
    lines = session.event(11075)["order_items"]
    assert [(line["product_id"], line["quantity"]) for line in lines] == [
        (2, 10),
        (46, 30),
        (76, 2),
    ]
    assert_outbox_is_right(session)
    everything = Session(template)
    assert stored_events(session) == stored_events(everything)
    for open_session in (session, capture.session, everything):
        open_session.connection.close()


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "order_details.csv",
            "10248,11,cheap,12,0\n",
            "invalid input syntax for type real",
        ),
        ("order_details.csv", "10248,11,1,12,0\n10248,11,1,12,0\n", "duplicate key"),
        ("order_details.csv", "1,11,14,12,0\n", "foreign key"),
        ("order_details.csv", "10248,11\n", "order_details from"),
        ("shippers.csv", None, "No such file"),
    ],
)
def test_a_broken_row_leaves_nothing_behind(
    tmp_path: Path, fresh: Source, file: str, text: str | None, message: str
) -> None:
    rows = tmp_path / "rows"
    shutil.copytree(northwind.ROWS, rows)
    header = (rows / file).read_text(encoding="utf-8").splitlines()[0]
    (rows / file).unlink()
    if text is not None:
        (rows / file).write_text(f"{header}\n{text}", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        load(fresh, "other password", folder=rows, replace=True)
    administration = Session(replace(fresh, database="postgres"))
    assert (
        administration.one("select count(*) from pg_database where datname = 'fresh'") == 0
    )
    administration.connection.close()


def test_a_failed_replacement_keeps_what_was_there(
    tmp_path: Path, source: Source, session: Session
) -> None:
    session.run("update datalake.shippers set phone = '1' where shipper_id = 1")
    rows = tmp_path / "rows"
    shutil.copytree(northwind.ROWS, rows)
    with (rows / "order_details.csv").open("a", encoding="utf-8") as file:
        file.write("1,1,1,1,1\n")
    session.connection.rollback()
    with pytest.raises(UserError, match="nothing was changed"):
        load(source, "other password", folder=rows, replace=True)
    assert session.one("select phone from datalake.shippers where shipper_id = 1") == "1"
    Session(source, user="debezium", password=REPLICATION_PASSWORD).connection.close()


def test_nothing_is_replaced_without_consent(source: Source, session: Session) -> None:
    assert existing(source) == [
        "schema datalake",
        "publication datalake",
        "the password of role debezium",
    ]
    session.run("update datalake.shippers set phone = '1' where shipper_id = 1")
    with pytest.raises(UserError, match="has schema datalake, publication datalake"):
        load(source, REPLICATION_PASSWORD)
    assert session.one("select phone from datalake.shippers where shipper_id = 1") == "1"
    session.connection.rollback()
    load(source, REPLICATION_PASSWORD, replace=True)
    phone = session.one("select phone from datalake.shippers where shipper_id = 1")
    assert phone == "(503) 555-9831"


def start_loader(
    source: Source, *arguments: str, **environment: str
) -> subprocess.Popen[str]:
    # Whoever runs the tests in the background may have SIGINT ignored; Python keeps that.
    program = (
        "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        " runpy.run_module('connectors.postgres', run_name='__main__')"
    )
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "REPLICATION"))}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **clean,
            "PGPORT": str(source.port),
            "PGDATABASE": source.database,
            "PGPASSWORD": PASSWORD,
            "REPLICATION_PASSWORD": REPLICATION_PASSWORD,
            **environment,
        },
    )


def run_loader(
    source: Source, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    loader = start_loader(source, *arguments, **environment)
    stdout, stderr = loader.communicate(timeout=60)
    return subprocess.CompletedProcess(loader.args, loader.returncode, stdout, stderr)


def test_command_reports_the_loaded_rows(source: Source) -> None:
    refused = run_loader(source)
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr == (
        "connectors.postgres: database copy has schema datalake, publication datalake, the"
        " password of role debezium already; --yes replaces that, with all data in it\n"
    )
    loaded = run_loader(source, "--yes", "--hold-back", "11075", "--hold-back", "11077")
    assert (loaded.returncode, loaded.stderr) == (0, "")
    assert loaded.stdout == (
        f"loaded 3,281 rows into 11 tables of 127.0.0.1:{source.port}/copy:"
        " 828 orders with 2,127 lines; the outbox holds 828 events\n"
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ([], {"PGPASSWORD": "wrong"}, "password authentication failed for user"),
        ([], {"REPLICATION_PASSWORD": ""}, "set REPLICATION_PASSWORD"),
        (["--yes", "--hold-back", "7"], {}, "Northwind has no order 7"),
        (
            ["--yes", "--user", "debezium"],
            {"PGPASSWORD": REPLICATION_PASSWORD},
            "as user debezium: must be owner of publication datalake; nothing was changed",
        ),
        (
            ["--yes", "--user", "debezium", "--database", "elsewhere"],
            {"PGPASSWORD": REPLICATION_PASSWORD},
            "as user debezium: permission denied to create database",
        ),
    ],
)
def test_an_error_is_one_sentence(
    source: Source, arguments: list[str], environment: dict[str, str], message: str
) -> None:
    answer = run_loader(source, *arguments, **environment)
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr.startswith("connectors.postgres: ")
    assert message in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert PASSWORD not in answer.stderr


def test_server_that_does_not_answer_is_worth_another_try(source: Source) -> None:
    answer = run_loader(source, "--port", "1")
    assert answer.returncode == 75
    assert "no session on 127.0.0.1:1, database copy, as user postgres: " in answer.stderr


def test_port_that_is_no_number_is_wrong_usage(source: Source) -> None:
    answer = run_loader(source, PGPORT="many")
    assert answer.returncode == 2
    assert "(env var: 'PGPORT'): 'many' is not a valid" in answer.stderr


def test_interactive_user_is_prompted(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    source: Source,
    session: Session,
) -> None:
    """Defaults are in brackets; passwords are not echoed; "no" and "yes" are obeyed."""
    for name in ("PGHOST", "PGPASSWORD", "REPLICATION_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGPORT", str(source.port))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    asked: list[str] = []
    answers: Iterator[str]

    def answer(prompt: str = "") -> str:
        asked.append(prompt)
        return next(answers)

    monkeypatch.setattr("click.termui.visible_prompt_func", answer)
    monkeypatch.setattr("getpass.getpass", answer)

    session.run("delete from datalake.orders where order_id = 10248")
    typed = ["", "", "copy", "", PASSWORD, REPLICATION_PASSWORD]
    answers = iter([*typed, ""])
    assert main([]) == 1
    assert asked == [
        "host [127.0.0.1]: ",
        f"port [{source.port}]: ",
        "database [northwind]: ",
        "user [postgres]: ",
        "password of postgres: ",
        "password for the role debezium: ",
        "replace schema datalake, publication datalake, the password of role debezium"
        " in copy, with all data? [y/N]: ",
    ]
    assert capsys.readouterr().err == "connectors.postgres: nothing was changed\n"
    assert session.one("select count(*) from datalake.cdc_events") == 829
    session.connection.rollback()

    answers = iter([*typed, "y"])
    assert main([]) == 0
    bar = capsys.readouterr().err.split("\r")
    assert "3,311 of 3,311 rows  order_details" in bar[-1]
    assert bar[-1].startswith("█" * 30)
    assert session.one("select count(*) from datalake.cdc_events") == 830


def test_database_with_a_replication_slot_is_not_replaced(
    source: Source, session: Session, capture: Capture
) -> None:
    """The slot would decode the load's rows with a catalog that has no publication yet.

    It never gets past them.
    """
    message = "a replication slot reads this database: test; it could not go on after a"
    with pytest.raises(UserError, match=message):
        existing(source)
    with pytest.raises(UserError, match=message):
        load(source, REPLICATION_PASSWORD, replace=True)
    refused = run_loader(source, "--yes")
    assert refused.returncode == 1
    assert "select pg_drop_replication_slot(" in refused.stderr
    assert refused.stderr.endswith("; nothing was changed\n")
    session.run("update datalake.orders set freight = 1 where order_id = 10248")
    assert capture.events() == [("U", 10248)]

    capture.session.do("select pg_drop_replication_slot('test')")
    load(source, REPLICATION_PASSWORD, replace=True)


def test_slot_of_another_database_does_not_prevent_a_load(
    source: Source, template: Source, capture: Capture, fresh: Source
) -> None:
    load(fresh, REPLICATION_PASSWORD, replace=True)


def test_dependent_objects_of_others_are_not_dropped(
    source: Source, session: Session
) -> None:
    session.run(
        "create view public.mine as select order_id from datalake.orders",
        "create view public.of_mine as select * from public.mine",
        "create table public.notes (order_id smallint references datalake.orders)",
        "create table public.kept (stored datalake.orders, number int)",
        "create view datalake.inside as select * from datalake.orders",
    )
    named = (
        "these need it and would go with it: column stored of table kept, constraint"
        " notes_order_id_fkey on table notes, view mine, view of_mine; drop them"
    )
    with pytest.raises(UserError, match=named):
        existing(source)
    with pytest.raises(UserError, match=named):
        load(source, REPLICATION_PASSWORD, replace=True)
    assert session.one("select count(*) from public.of_mine") == 830
    session.run(
        "drop view public.mine cascade",
        "drop table public.notes, public.kept",
    )
    load(source, REPLICATION_PASSWORD, replace=True)
    assert session.one("select to_regclass('datalake.inside')") is None


def test_blocking_session_is_reported(
    monkeypatch: pytest.MonkeyPatch, source: Source, session: Session
) -> None:
    monkeypatch.setattr("connectors.postgres.load.LOCK_TIMEOUT", "100ms")
    session.run("set application_name = 'clerk'")
    process = session.one("select pg_backend_pid() from datalake.orders limit 1")
    message = (
        rf"the schema datalake is in use by process {process} \(user postgres, application"
        r' "clerk", idle in transaction\); nothing was changed'
    )
    with pytest.raises(UserError, match=message):
        load(source, REPLICATION_PASSWORD, replace=True)
    assert session.one("select count(*) from datalake.cdc_events") == 830


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_during_create_database_leaves_none(
    number: signal.Signals, fresh: Source
) -> None:
    beside = Session(replace(fresh, database="postgres"))
    # CREATE DATABASE waits for the end of this session: it copies what it is in.
    blocking = Session(replace(fresh, database="template1"))
    with start_loader(fresh, "--yes") as loader:
        beside.wait_until(
            "exists (select from pg_stat_activity where state = 'active'"
            " and query like 'create database%')"
        )
        loader.send_signal(number)
        blocking.connection.close()
        stderr = loader.communicate(timeout=30)[1]
        assert stderr == "\nconnectors.postgres: stopped; nothing was changed\n"
    assert loader.returncode == 128 + number
    assert beside.one("select count(*) from pg_database where datname = 'fresh'") == 0
    beside.connection.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_during_commit_is_too_late(
    number: signal.Signals, server: PostgresServer, source: Source, session: Session
) -> None:
    session.run("delete from datalake.orders where order_id = 10248")
    # A commit then waits for a standby that never comes.
    waiting = "alter system set synchronous_standby_names = 'nobody'"
    administer(server, waiting, "select pg_reload_conf()")
    try:
        with start_loader(source, "--yes") as loader:
            session.wait_until(
                "exists (select from pg_stat_activity where wait_event = 'SyncRep'"
                " and application_name = 'connectors.postgres')"
            )
            loader.send_signal(number)
            administer(
                server,
                "alter system reset synchronous_standby_names",
                "select pg_reload_conf()",
            )
            stdout, stderr = loader.communicate(timeout=30)
    finally:
        administer(
            server,
            "alter system reset synchronous_standby_names",
            "select pg_reload_conf()",
        )
    assert (loader.returncode, stderr) == (0, "")
    assert stdout.startswith("loaded 3,311 rows")
    assert session.one("select count(*) from datalake.orders") == 830


def test_connection_lost_during_commit_is_reported_as_unknown_outcome(
    server: PostgresServer, source: Source
) -> None:
    end = (
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where application_name = 'connectors.postgres'"
    )
    with pytest.raises(
        UserError, match="not known whether anything was changed: "
    ) as error:
        load(
            source,
            REPLICATION_PASSWORD,
            replace=True,
            on_commit=lambda: administer(server, end),
        )
    assert "nothing was changed" not in str(error.value)


def test_new_database_that_cannot_be_dropped_is_reported(
    server: PostgresServer, template: Source, fresh: Source
) -> None:
    def interrupt() -> None:
        administer(server, "alter database fresh is_template true")
        raise KeyboardInterrupt

    left = "cannot drop a template database; the new database is left, .* an interrupt"
    with pytest.raises(UserError, match=left):
        load(fresh, REPLICATION_PASSWORD, replace=True, on_commit=interrupt)
    administer(server, "alter database fresh is_template false")


def test_a_server_that_cannot_capture_is_refused(folder: Path) -> None:
    server = start_server(folder / "replica", {**FAST, "wal_level": "replica"})
    try:
        source = Source(port=server.port, password=PASSWORD)
        with pytest.raises(
            UserError, match=r"wal_level is replica.*ALTER SYSTEM SET wal_l"
        ):
            load(source, REPLICATION_PASSWORD)
        connection = server.connect()
        with connection.cursor() as cursor:
            cursor.execute("select from pg_database where datname = 'northwind'")
            assert cursor.rowcount == 0
        connection.close()
    finally:
        server.stop()


# ------------------------------------------------------- the replication role


def test_the_replication_role_reads_captured_tables_and_writes_nothing(
    source: Source, session: Session
) -> None:
    session.run("create table datalake.secrets (secret text)")
    role = Session(source, user="debezium", password=REPLICATION_PASSWORD)
    for table in (*northwind.TABLES, "cdc_events"):
        assert role.one(f"select count(*) > 0 from datalake.{table}")
    role.connection.rollback()
    forbidden = [
        "select * from datalake.secrets",
        "select * from datalake.order_events",
        "select * from datalake.changed_orders",
        "insert into datalake.shippers values (99, 'x')",
        "update datalake.orders set freight = 0",
        "delete from datalake.cdc_events",
        "truncate datalake.cdc_events",
        "create table datalake.mine (id int)",
        "create table public.mine (id int)",
        "create publication mine",
        "call datalake.fill_cdc_events()",
        "select datalake.write_events('{1}')",
    ]
    for statement in forbidden:
        with pytest.raises(errors.InsufficientPrivilege):
            role.do(statement)
        role.connection.rollback()
    role.connection.close()
    attributes = session.do(
        "select rolcanlogin, rolreplication, rolsuper, rolcreaterole, rolcreatedb,"
        " rolbypassrls from pg_roles where rolname = 'debezium'"
    )
    assert attributes == [(True, True, False, False, False, False)]
    assert session.one("select count(*) from pg_auth_members") == 3  # PostgreSQL's own


def test_role_replicates_without_any_superuser(
    bare_server: PostgresServer,
) -> None:
    """As on RDS: nobody can grant the attribute; membership in ``rds_replication`` does."""
    administer(
        bare_server,
        "create role rds_replication",
        "create role master login createdb createrole password 'master'",
        "grant rds_replication to master with admin option",
    )
    source = Source(port=bare_server.port, database="rds", user="master", password="master")
    load(source, "first password")
    load(source, REPLICATION_PASSWORD, replace=True)
    role = Session(source, user="debezium", password=REPLICATION_PASSWORD)
    assert role.one("select count(*) from datalake.cdc_events") == 830
    assert role.one("select pg_has_role('rds_replication', 'member')")
    assert not role.one("select rolreplication from pg_roles where rolname = 'debezium'")
    role.connection.close()
    administer(
        bare_server,
        "drop database rds with (force)",
        "drop role debezium, master, rds_replication",
    )


def test_role_with_more_rights_than_reading_is_refused(bare_server: PostgresServer) -> None:
    source = Source(port=bare_server.port, database="fresh", password=PASSWORD)
    administer(bare_server, "create role debezium superuser createdb bypassrls")
    too_much = "debezium is there with SUPERUSER, CREATEDB, BYPASSRLS, .* run ALTER ROLE "
    for replaces in (False, True):
        with pytest.raises(UserError, match=too_much) as error:
            load(source, REPLICATION_PASSWORD, replace=replaces)
    alter = re.search("ALTER ROLE [^,]*", str(error.value))
    assert alter is not None
    with pytest.raises(psycopg2.OperationalError, match="does not exist"):
        Session(source)
    administer(bare_server, alter[0])
    load(source, REPLICATION_PASSWORD, replace=True)
    administer(bare_server, "drop database fresh", "drop role debezium")


def test_the_publication_names_twelve_tables_with_their_whole_old_rows(
    session: Session,
) -> None:
    tables = session.do(
        "select tablename::text from pg_publication_tables where pubname = 'datalake'"
    )
    assert {table for (table,) in tables} == {*northwind.TABLES, "cdc_events"}
    identities = session.do(
        "select distinct relreplident from pg_class join pg_publication_rel"
        " on pg_class.oid = prrelid"
    )
    assert identities == [("f",)]


def test_no_password_is_in_the_servers_log(
    server: PostgresServer, session: Session
) -> None:
    log = server.log.read_text(encoding="utf-8")
    assert 'alter role "debezium" password \'SCRAM-SHA-256$' in log
    for password in (PASSWORD, REPLICATION_PASSWORD):
        quoted = password.replace("'", "''")
        assert password not in log
        assert quoted not in log


# ----------------------------------------------------------------- the outbox


def test_a_new_order_with_its_lines_is_one_event(
    session: Session, capture: Capture
) -> None:
    session.run(
        "insert into datalake.orders (order_id, customer_id, employee_id, ship_via)"
        " values (11078, 'ALFKI', 1, 1)",
        "insert into datalake.order_details"
        " values (11078, 2, 19, 3, 0), (11078, 1, 18, 1, 0)",
    )
    assert capture.events() == [("I", 11078)]
    event = session.event(11078)
    assert [line["product_id"] for line in event["order_items"]] == [1, 2]
    assert [product["product_name"] for product in event["products"]] == ["Chai", "Chang"]
    assert_outbox_is_right(session)


@pytest.mark.parametrize(
    "missing", ["customer_id", "employee_id", "ship_via", "all", "lines"]
)
def test_order_without_references_still_makes_an_event(
    session: Session, capture: Capture, missing: str
) -> None:
    values = {"customer_id": "'ALFKI'", "employee_id": "1", "ship_via": "1"}
    for column in values:
        if missing in (column, "all"):
            values[column] = "null"
    session.do(
        "insert into datalake.orders (order_id, customer_id, employee_id, ship_via)"
        f" values (11078, {', '.join(values.values())})"
    )
    if missing not in ("lines", "all"):
        session.do("insert into datalake.order_details values (11078, 1, 18, 1, 0)")
    session.connection.commit()
    assert capture.events() == [("I", 11078)]
    event = session.event(11078)
    assert (event["customer"] is None) == (missing in ("customer_id", "all"))
    assert (event["employee"] is None) == (missing in ("employee_id", "all"))
    assert (event["shipper"] is None) == (missing in ("ship_via", "all"))
    assert (event["order_items"] is None) == (missing in ("lines", "all"))
    assert_outbox_is_right(session)


def test_a_deleted_order_takes_its_lines_and_is_one_delete(
    session: Session, capture: Capture
) -> None:
    session.run("delete from datalake.orders where order_id = 10248")
    changes = capture.changes()
    assert Counter((kind, table) for kind, table, _ in changes) == {
        ("D", "orders"): 1,
        ("D", "order_details"): 3,
        ("D", "cdc_events"): 1,
    }
    assert_outbox_is_right(session)


def test_a_deleted_line_leaves_the_event(session: Session, capture: Capture) -> None:
    session.run(
        "delete from datalake.order_details where order_id = 10248 and product_id = 42"
    )
    assert capture.events() == [("U", 10248)]
    event = session.event(10248)
    assert [line["product_id"] for line in event["order_items"]] == [11, 72]
    assert [product["product_id"] for product in event["products"]] == [11, 72]
    session.run("delete from datalake.order_details where order_id = 10248")
    assert session.event(10248)["order_items"] is None
    assert_outbox_is_right(session)


def test_a_line_that_moves_changes_both_orders(session: Session, capture: Capture) -> None:
    session.run(
        "update datalake.order_details set order_id = 10249"
        " where order_id = 10248 and product_id = 42"
    )
    assert sorted(capture.events()) == [("U", 10248), ("U", 10249)]
    assert_outbox_is_right(session)


EMBEDDED = {
    "customers": (
        "update datalake.customers set company_name = 'New' where customer_id = 'ALFKI'",
        "customer_id = 'ALFKI'",
    ),
    "employees": (
        "update datalake.employees set title = 'New' where employee_id = 5",
        "employee_id = 5",
    ),
    "shippers": (
        "update datalake.shippers set phone = 'New' where shipper_id = 2",
        "ship_via = 2",
    ),
    "products": (
        "update datalake.products set product_name = 'New' where product_id in (11, 42)",
        "order_id in (select order_id from datalake.order_details"
        " where product_id in (11, 42))",
    ),
    "suppliers": (
        "update datalake.suppliers set city = 'New' where supplier_id = 5",
        "order_id in (select order_id from datalake.order_details"
        " join datalake.products using (product_id) where supplier_id = 5)",
    ),
    "categories": (
        "update datalake.categories set description = 'New' where category_id = 8",
        "order_id in (select order_id from datalake.order_details"
        " join datalake.products using (product_id) where category_id = 8)",
    ),
    "territories": (
        "update datalake.territories set territory_description = 'New'"
        " where territory_id = '02903'",
        "employee_id = 5",
    ),
    "region": (
        "update datalake.region set region_description = 'New' where region_id = 4",
        "employee_id = 3",
    ),
    "employee_territories, one more": (
        "insert into datalake.employee_territories values (5, '01581')",
        "employee_id = 5",
    ),
    "employee_territories, one less": (
        "delete from datalake.employee_territories where territory_id = '02903'",
        "employee_id = 5",
    ),
    "employee_territories, another": (
        "update datalake.employee_territories set employee_id = 6"
        " where territory_id = '02903'",
        "employee_id in (5, 6)",
    ),
}


@pytest.mark.parametrize("changed", EMBEDDED)
def test_change_updates_every_event_that_embeds_it_in_one_statement(
    session: Session, capture: Capture, changed: str
) -> None:
    statement, condition = EMBEDDED[changed]
    affected = sorted(
        order_id
        for (order_id,) in session.do(
            f"select order_id from datalake.orders where {condition}"
        )
    )
    assert 0 < len(affected) < 830
    session.do(statement)
    session.do("set constraints all immediate")
    assert count_calls(session, "write_events") == 1
    session.connection.commit()
    events = capture.events()
    assert sorted(events) == [("U", order_id) for order_id in affected]
    assert_outbox_is_right(session)


@pytest.mark.parametrize(
    "statement",
    [
        "update datalake.orders set freight = freight",
        "update datalake.products set product_name = product_name",
        "update datalake.customers set company_name = company_name",
        "update datalake.order_details set quantity = quantity",
        "update datalake.employees set title = 'x' where false",
        "insert into datalake.customers values ('NOONE', 'Nobody')",
        "delete from datalake.customers where customer_id = 'PARIS'",
        "insert into datalake.products values (99, 'Air', 1, 1, '', 1, 1, 1, 1, 0)",
        "insert into datalake.shippers values (99, 'Nobody')",
        "call datalake.fill_cdc_events()",
    ],
)
def test_nothing_changed_is_no_event(
    session: Session, capture: Capture, statement: str
) -> None:
    session.run(statement)
    assert capture.events() == []
    assert_outbox_is_right(session)


def test_lines_replaced_by_the_same_lines_are_no_event(
    session: Session, capture: Capture
) -> None:
    """As programs do that write a whole order back."""
    session.run(
        "create temporary table lines as select * from datalake.order_details"
        " where order_id = 10248",
        "delete from datalake.order_details where order_id = 10248",
        "insert into datalake.order_details select * from lines",
    )
    assert capture.events() == []
    assert_outbox_is_right(session)


def test_what_is_rolled_back_to_a_savepoint_is_no_event(
    session: Session, capture: Capture
) -> None:
    session.run(
        "update datalake.orders set freight = 1 where order_id = 10248",
        "savepoint before",
        "update datalake.orders set freight = 2 where order_id = 10249",
        "rollback to before",
    )
    assert capture.events() == [("U", 10248)]
    assert_outbox_is_right(session)


def count_calls(session: Session, function: str) -> int:
    """How often the open transaction has called it."""
    calls: int = session.one(
        "select coalesce(sum(calls), 0)::int from pg_stat_xact_user_functions"
        " where funcname = %s",
        function,
    )
    return calls


def test_many_statements_are_one_call_at_commit(session: Session, capture: Capture) -> None:
    """A call a statement, each over all noted rows, took the square of their number."""
    for order_id in range(10248, 10298):
        session.do("update datalake.orders set freight = 1 where order_id = %s", order_id)
    session.do(
        "with lines as (update datalake.order_details set quantity = 1"
        " where order_id = 10300 returning *)"
        " update datalake.orders set freight = 1 where order_id = 10301"
    )
    session.do("set constraints all immediate")
    assert count_calls(session, "write_changed_orders") == 1
    # And again once it has been called, though the transaction goes on.
    session.do("set constraints all deferred")
    for order_id in (10248, 10302, 10303):
        session.do("update datalake.orders set freight = 2 where order_id = %s", order_id)
    session.do("set constraints all immediate")
    assert count_calls(session, "write_changed_orders") == 2
    session.connection.commit()
    changed = [*range(10248, 10298), 10300, 10301, 10248, 10302, 10303]
    assert capture.events() == [("U", order_id) for order_id in changed]
    assert_outbox_is_right(session)


FREIGHT = "update datalake.orders set freight = 1 where order_id = "


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (
            ["savepoint here", f"{FREIGHT} 10248", "rollback to here", f"{FREIGHT} 10249"],
            [10249],
        ),
        (
            ["savepoint here", f"{FREIGHT} 10248", "release here", f"{FREIGHT} 10249"],
            [10248, 10249],
        ),
        (
            [
                f"{FREIGHT} 10248",
                "savepoint here",
                "set constraints all immediate",
                f"{FREIGHT} 10249",
                "rollback to here",
                f"{FREIGHT} 10250",
            ],
            [10248, 10250],
        ),
        (
            [
                f"{FREIGHT} 10248",
                "set constraints all immediate",
                "set constraints all deferred",
                "savepoint here",
                f"{FREIGHT} 10249",
                "rollback to here",
                f"{FREIGHT} 10250",
            ],
            [10248, 10250],
        ),
        (
            [
                "merge into datalake.orders using (values (10248, 'delete'),"
                " (10249, 'update'), (11078, 'insert')) as wanted (id, what)"
                " on order_id = id"
                " when matched and what = 'delete' then delete"
                " when matched then update set freight = 1"
                " when not matched then insert (order_id) values (id)"
            ],
            [10248, 10249, 11078],
        ),
    ],
    ids=["undone", "released", "undone call", "called before", "merge"],
)
def test_no_noted_order_is_lost(
    session: Session, capture: Capture, statements: list[str], expected: list[int]
) -> None:
    session.run(*statements)
    assert sorted(order_id for _, order_id in capture.events()) == expected
    assert_outbox_is_right(session)


def test_updated_at_follows_the_clock_not_the_transactions_start(
    source: Source, session: Session
) -> None:
    """A transaction that begins first and commits last has the later time."""
    early = Session(source)
    early.do("select now()")
    session.run("update datalake.orders set freight = 1 where order_id = 10248")
    between = session.event(10248)["updated_at"]
    early.run("update datalake.orders set freight = 2 where order_id = 10248")
    assert early.event(10248)["updated_at"] > between
    early.connection.close()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "update datalake.orders set order_id = 20000 where order_id = 10252",
            [("D", 10252), ("I", 20000)],
        ),
        (
            "update datalake.order_details set product_id = 1"
            " where order_id = 10248 and product_id = 11",
            [("U", 10248)],
        ),
        (
            "update datalake.customers set customer_id = 'OTHER'"
            " where customer_id = 'CENTC'",
            [("U", 10259)],
        ),
        (
            "update datalake.employees set employee_id = 50 where employee_id = 5",
            224,  # theirs, and those of the three who report to them
        ),
        ("update datalake.products set product_id = 120 where product_id = 9", 5),
        ("update datalake.shippers set shipper_id = 30 where shipper_id = 3", 255),
        (
            "update datalake.territories set territory_id = '0'"
            " where territory_id = '02903'",
            42,
        ),
    ],
)
def test_a_key_change_takes_its_references_along(
    session: Session,
    capture: Capture,
    statement: str,
    expected: int | list[tuple[str, int]],
) -> None:
    session.run(statement)
    events = capture.events()
    if isinstance(expected, int):
        assert Counter(kind for kind, _ in events) == {"U": expected}
    else:
        assert sorted(events) == expected
    assert_outbox_is_right(session)


@pytest.mark.parametrize("table", [*northwind.TABLES, "cdc_events"])
def test_a_truncate_is_refused(session: Session, table: str) -> None:
    with pytest.raises(errors.FeatureNotSupported, match="cannot be truncated") as error:
        session.do(f"truncate datalake.{table} cascade")
    assert "Use: delete from datalake." in str(error.value)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_an_older_snapshot_may_not_write(session: Session, isolation: str) -> None:
    session.do(f"set transaction isolation level {isolation}")
    assert session.one("select count(*) from datalake.orders") == 830
    with pytest.raises(errors.FeatureNotSupported, match=f"made in a {isolation} trans"):
        session.do("update datalake.orders set freight = 1 where order_id = 10248")


def test_filling_repairs_the_outbox(session: Session, capture: Capture) -> None:
    session.run(
        "update datalake.cdc_events set customer = null where order_id = 10248",
        "delete from datalake.cdc_events where order_id = 10249",
        "insert into datalake.cdc_events (order_id, updated_at) values (1, now())",
    )
    assert len(capture.events()) == 3
    session.run("call datalake.fill_cdc_events()")
    assert sorted(capture.events()) == [("D", 1), ("I", 10249), ("U", 10248)]
    assert_outbox_is_right(session)


def test_settings_of_a_writer_do_not_change_the_json(
    session: Session, capture: Capture
) -> None:
    session.run(
        "set extra_float_digits = -10",
        "set bytea_output = escape",
        "set datestyle = 'German'",
        "set search_path = public",
        "create table public.orders (order_id int)",
        "update datalake.employees set photo = '\\x00ff' where employee_id = 5",
    )
    session.run("reset all")
    assert len(capture.events()) == 42
    assert session.event(10248)["employee"]["photo"] == "\\x00ff"
    assert session.event(10248)["order_items"][1]["unit_price"] == 9.8
    assert_outbox_is_right(session)


def test_a_writer_needs_no_rights_on_the_outbox(source: Source, session: Session) -> None:
    session.run(
        "drop role if exists clerk",
        "create role clerk login password 'clerk'",
        "grant usage on schema datalake to clerk",
        "grant select, insert, update, delete on datalake.orders, datalake.order_details"
        " to clerk",
    )
    clerk = Session(source, user="clerk", password="clerk")
    clerk.run("update datalake.orders set freight = 7 where order_id = 10248")
    with pytest.raises(errors.InsufficientPrivilege):
        clerk.do("select * from datalake.cdc_events")
    clerk.connection.close()
    assert session.event(10248)["shipment"]["freight"] == 7
    session.run("drop owned by clerk", "drop role clerk")


def test_a_new_column_changes_no_event(session: Session, capture: Capture) -> None:
    session.run("alter table datalake.customers add column vip boolean default true")
    session.run("update datalake.customers set vip = false")
    session.run("alter table datalake.customers drop column vip")
    assert capture.events() == []
    assert_outbox_is_right(session)


# --------------------------------------------------------------- concurrency


def wait_until_blocked(observer: Session, waiting: Session, by: Session) -> None:
    """Wait until PostgreSQL itself names one session as the one that blocks another."""
    pids = [session.connection.info.backend_pid for session in (by, waiting)]
    observer.wait_until("{} = any(pg_blocking_pids({}))".format(*pids))


def assert_commit_waits(observer: Session, first: Session, second: Session) -> None:
    """The second one waits for the first, and both succeed."""
    with ThreadPoolExecutor(1) as pool:
        committed = pool.submit(second.connection.commit)
        wait_until_blocked(observer, second, by=first)
        assert not committed.done()
        first.connection.commit()
        committed.result(timeout=10)


RACES = {
    "two lines of one order": (
        "update datalake.order_details set quantity = 1"
        " where order_id = 10248 and product_id = 11",
        "update datalake.order_details set quantity = 1"
        " where order_id = 10248 and product_id = 42",
    ),
    "a customer's name and a new order": (
        "update datalake.customers set company_name = 'New' where customer_id = 'ALFKI'",
        "insert into datalake.orders (order_id, customer_id) values (11078, 'ALFKI')",
    ),
    "a customer's name and an order that becomes theirs": (
        "update datalake.customers set company_name = 'New' where customer_id = 'ALFKI'",
        "update datalake.orders set customer_id = 'ALFKI' where order_id = 10248",
    ),
    "a product's name and a new line": (
        "update datalake.products set product_name = 'New' where product_id = 1",
        "insert into datalake.order_details values (10248, 1, 1, 1, 0)",
    ),
    "a supplier's name and a new line": (
        "update datalake.suppliers set city = 'New' where supplier_id = 8",
        "insert into datalake.order_details values (10248, 1, 1, 1, 0)",
    ),
    "a region's name and a new order": (
        "update datalake.region set region_description = 'New' where region_id = 4",
        "insert into datalake.orders (order_id, employee_id) values (11078, 3)",
    ),
    "an employee's new territory and a new order": (
        "insert into datalake.employee_territories values (5, '01581')",
        "insert into datalake.orders (order_id, employee_id) values (11078, 5)",
    ),
    "a customer's name and an order's new key": (
        "update datalake.customers set company_name = 'New' where customer_id = 'VINET'",
        "update datalake.orders set order_id = 20000 where order_id = 10248",
    ),
    "a customer and a product of one order": (
        "update datalake.customers set company_name = 'New' where customer_id = 'VINET'",
        "update datalake.products set product_name = 'New' where product_id = 11",
    ),
}


@pytest.mark.parametrize("race", RACES)
def test_concurrent_transactions_that_do_not_see_each_other(
    source: Source, session: Session, race: str
) -> None:
    one, other = Session(source), Session(source)
    first, second = RACES[race]
    one.do(first)
    one.do("set constraints all immediate")  # as far as a commit that is not through yet
    other.do(second)
    assert_commit_waits(session, one, other)
    assert_outbox_is_right(session)
    one.connection.close()
    other.connection.close()


def test_a_change_waits_for_an_order_that_is_being_committed(
    source: Source, session: Session
) -> None:
    """The order first this time: the new name's statement waits, then finds the order."""
    ordering, naming = Session(source), Session(source)
    ordering.do(
        "insert into datalake.orders (order_id, customer_id) values (11078, 'ALFKI')"
    )
    ordering.do("set constraints all immediate")
    rename = (
        "update datalake.customers set company_name = 'New' where customer_id = 'ALFKI'"
    )
    with ThreadPoolExecutor(1) as pool:
        renamed = pool.submit(naming.run, rename)
        wait_until_blocked(session, naming, by=ordering)
        assert not renamed.done()
        ordering.connection.commit()
        renamed.result(timeout=10)
    assert session.event(11078)["customer"]["company_name"] == "New"
    assert_outbox_is_right(session)
    ordering.connection.close()
    naming.connection.close()


def test_orders_that_take_from_stock_do_not_deadlock(
    source: Source, session: Session
) -> None:
    """The usual transaction: a line, then the product's stock. Two, of one product."""

    def sell(order_id: int, barrier: threading.Barrier) -> None:
        clerk = Session(source)
        clerk.do(f"insert into datalake.order_details values ({order_id}, 1, 18, 1, 0)")
        barrier.wait(10)
        clerk.do(
            "update datalake.products set units_in_stock = units_in_stock - 1"
            " where product_id = 1"
        )
        clerk.connection.commit()
        clerk.connection.close()

    barrier = threading.Barrier(2)
    with ThreadPoolExecutor(2) as clerks:
        list(clerks.map(sell, (10248, 10249), (barrier, barrier)))
    stock = session.one("select units_in_stock from datalake.products where product_id = 1")
    assert stock == 37
    assert_outbox_is_right(session)


@pytest.mark.parametrize(
    "statements",
    [
        (
            "insert into datalake.order_details values (10248, 1, 18, 1, 0)",
            "update datalake.orders set freight = 1 where order_id = 10248",
        ),
        (
            "insert into datalake.orders (order_id) values (11078)",
            "insert into datalake.order_details values (11078, 1, 18, 1, 0)",
        ),
    ],
    ids=["line first", "order first"],
)
def test_filling_waits_for_writers_and_they_for_it(
    source: Source, session: Session, statements: tuple[str, str]
) -> None:
    """Whichever table a writer comes to first, nobody is ended as part of a deadlock."""
    session.run("update datalake.cdc_events set customer = null where order_id = 10248")
    clerk, other, filling = Session(source), Session(source), Session(source)
    first, second = statements
    clerk.do(first)
    with ThreadPoolExecutor(1) as pool:
        filled = pool.submit(filling.run, "call datalake.fill_cdc_events()")
        wait_until_blocked(session, filling, by=clerk)
        assert not filled.done()
        clerk.do(second)
        clerk.connection.commit()
        filled.result(timeout=10)
    assert_outbox_is_right(session)

    filling.do("call datalake.fill_cdc_events()")
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(other.run, f"{FREIGHT} 10249")
        wait_until_blocked(session, other, by=filling)
        assert not written.done()
        filling.connection.commit()
        written.result(timeout=10)
    assert_outbox_is_right(session)
    for open_session in (clerk, other, filling):
        open_session.connection.close()


CUSTOMERS = ("ALFKI", "VINET", "TOMSP")


def random_statement(dice: random.Random, changes_keys: bool) -> str:
    """A statement over few rows, so that transactions meet."""
    order = dice.choice((10248, 10249, 10250, 10251, 11078, 11079))
    product, other = dice.choice((11, 42, 72, 14, 51)), dice.choice((11, 42, 1))
    number, employee = dice.randrange(1, 100), dice.choice((3, 5, 6))
    customer, shipper = dice.choice(CUSTOMERS), dice.choice((1, 2, 3))
    territory = dice.choice(("01581", "02903", "30346"))
    if changes_keys and dice.random() < 0.1:
        step = dice.choice((100, -100))
        return (
            f"update datalake.orders set order_id = order_id + {step}"
            f" where order_id = {order - min(step, 0)}"
        )
    return dice.choice(
        (
            f"insert into datalake.orders (order_id, customer_id, employee_id, ship_via)"
            f" values ({order}, '{customer}', {employee}, {shipper})"
            f" on conflict do nothing",
            f"delete from datalake.orders where order_id = {order}",
            f"update datalake.orders set customer_id = '{customer}', ship_via = {shipper},"
            f" employee_id = {employee} where order_id = {order}",
            f"update datalake.orders set freight = {number} where order_id = {order}",
            f"insert into datalake.order_details select order_id, {product}, 1, {number}, 0"
            f" from datalake.orders where order_id = {order} on conflict do nothing",
            f"update datalake.order_details set quantity = {number}"
            f" where order_id = {order} and product_id = {product}",
            f"update datalake.order_details set product_id = {other}"
            f" where order_id = {order} and product_id = {product}",
            f"delete from datalake.order_details"
            f" where order_id = {order} and product_id = {product}",
            f"update datalake.customers set city = '{number}'"
            f" where customer_id = '{customer}'",
            f"update datalake.products set units_in_stock = {number}"
            f" where product_id = {product}",
            f"update datalake.products set supplier_id = {dice.choice((5, 8, 20))}"
            f" where product_id = {product}",
            f"update datalake.suppliers set city = '{number}'"
            f" where supplier_id = {dice.choice((5, 8, 20))}",
            f"update datalake.shippers set phone = '{number}' where shipper_id = {shipper}",
            f"update datalake.employees set title = '{number}'"
            f" where employee_id = {employee}",
            f"insert into datalake.employee_territories values ({employee}, '{territory}')"
            f" on conflict do nothing",
            f"delete from datalake.employee_territories"
            f" where employee_id = {employee} and territory_id = '{territory}'",
            f"update datalake.territories set territory_description = '{number}'"
            f" where territory_id = '{territory}'",
            f"update datalake.region set region_description = '{number}'"
            f" where region_id = {dice.choice((1, 4))}",
        )
    )


# What a transaction may do between its statements: an order that was noted stays noted.
INTERLUDES = (
    "savepoint here",
    "rollback to here",
    "set constraints all immediate",
    "set constraints all deferred",
)


def storm(
    source: Source, seed: int, count: int, longest: int, changes_keys: bool = True
) -> Counter[str]:
    """Random transactions one after another; how they ended, by SQLSTATE."""
    dice, session = random.Random(seed), Session(source)
    endings: Counter[str] = Counter()
    for _ in range(count):
        try:
            if longest > 1:
                session.do("savepoint here")
            for _ in range(dice.randrange(longest) + 1):
                session.do(random_statement(dice, changes_keys))
                if longest > 1 and dice.random() < 0.3:
                    session.do(dice.choice(INTERLUDES))
            if dice.random() < 0.1:
                session.connection.rollback()
                endings["rolled back"] += 1
            else:
                session.connection.commit()
                endings["committed"] += 1
        except psycopg2.Error as error:
            endings[error.pgcode or str(error)] += 1
            session.connection.rollback()
    session.connection.close()
    return endings


# What any writer can get: a duplicate key, a missing reference, and, of transactions that
# change keys or lock several rows, a deadlock. All can be retried.
CONFLICTS = {"23503", "23505"}
DEADLOCK = "40P01"


@pytest.mark.parametrize(
    ("longest", "changes_keys", "conflicts"),
    [(1, False, CONFLICTS), (5, True, {*CONFLICTS, DEADLOCK})],
    ids=["one statement each", "up to five"],
)
def test_outbox_is_right_after_a_storm_of_transactions(
    source: Source, session: Session, longest: int, changes_keys: bool, conflicts: set[str]
) -> None:
    """Where no two statements lock rows in different orders, none deadlocks."""

    def write(seed: int) -> Counter[str]:
        return storm(source, seed, 120 // longest, longest, changes_keys)

    with ThreadPoolExecutor(6) as writers:
        endings = sum(writers.map(write, range(6)), Counter[str]())
    assert endings["committed"] > 60
    assert endings.keys() <= {"committed", "rolled back", *conflicts}
    assert_outbox_is_right(session)


# ----------------------------------------------------------------- the server


def test_server_recovers_from_a_crash_and_can_be_stopped_by_another_process(
    folder: Path,
) -> None:
    server = start_server(folder / "crash")
    port = server.port
    try:
        connection = server.connect()
        with connection, connection.cursor() as cursor:
            cursor.execute("create table kept as select 1 as number")
            cursor.execute("show wal_level")
            assert cursor.fetchone() == ("logical",)
            cursor.execute("show listen_addresses")
            assert cursor.fetchone() == ("127.0.0.1",)
            cursor.execute("show timezone")
            assert cursor.fetchone() == ("UTC",)
            # As the stack has it, not as the other tests have it.
            for name in ("fsync", "synchronous_commit", "full_page_writes"):
                cursor.execute(f"show {name}")
                assert cursor.fetchone() == ("on",)
        server.kill()
        assert not server.is_running()
        assert (server.data / "postmaster.pid").exists()

        server.start()
        connection = server.connect()
        with connection, connection.cursor() as cursor:
            cursor.execute("select number from kept")
            assert cursor.fetchone() == (1,)

        same = PostgresServer(folder / "crash", port, PASSWORD)
        assert same.pid() == server.pid()
        same.stop()
        assert not server.is_running()

        wrong = PostgresServer(folder / "crash", port, "wrong")
        with pytest.raises(UserError, match="password authentication failed"):
            wrong.start()
        assert not wrong.is_running()

        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            blocked = PostgresServer(folder / "crash", taken.getsockname()[1], PASSWORD)
            with pytest.raises(UserError, match="could not bind"):
                blocked.start()
        files = {path.name for path in server.folder.iterdir()}
        assert files == {"data", "server.log"}
    finally:
        server.kill()
