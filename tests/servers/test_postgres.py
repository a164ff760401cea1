"""The source database on a real server: the outbox's triggers, the loader, the rights."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import struct
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from psycopg2 import errors

from cdc_lakehouse.errors import UserError
from lab.demo.landing import EVENTS, recorded
from lab.northwind import northwind
from lab.northwind.__main__ import main
from lab.northwind.load import Source, load
from lab.stack.postgres import PostgresServer, find_binaries
from lab.stack.processes import wait_until
from tests.support.ports import free_port
from tests.support.project import PROJECT
from tests.support.required import required

PASSWORD = "sesame 'and' more"
REPLICATION_PASSWORD = "read \"only\" 'me'"
STATEMENTS = PROJECT / "tests/support/source_sql/outbox"
# What the outbox has to hold, by the base tables alone.
REFERENCE = (STATEMENTS / "reference.sql").read_text()
JSON_COLUMNS = ("order_items", "products", "customer", "employee", "shipper", "shipment")
SETTINGS = {
    "fsync": "off",
    "log_statement": "all",
    "deadlock_timeout": "50ms",
    "max_replication_slots": "50",
}
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can enter, which pytest's are not."""
    with required():
        find_binaries()
    path = Path(tempfile.mkdtemp(prefix="test-postgres-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(folder / "server", free_port(), PASSWORD, SETTINGS)
    server.start()
    server.wait_until_ready()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def template(server: PostgresServer) -> Source:
    source = Source(port=server.port, database="northwind", password=PASSWORD)
    load(source, REPLICATION_PASSWORD)
    return source


@pytest.fixture
def source(server: PostgresServer, template: Source) -> Source:
    """Northwind, as the loader made it."""
    name = f"copy_{next(NUMBERS)}"
    administer(server, f"create database {name} template {template.database}")
    return replace(template, database=name)


def administer(server: PostgresServer, *statements: str) -> None:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        for statement in statements:
            cursor.execute(statement)


class Session:
    """A connection to a database; ``run`` commits, ``do`` does not."""

    def __init__(self, source: Source, user: str = "", password: str = "") -> None:
        self.connection = psycopg2.connect(
            host=source.host,
            port=source.port,
            dbname=source.database,
            user=user or source.user,
            password=password or source.password,
            options="-c search_path=datalake -c statement_timeout=20s",
        )

    def do(self, statement: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor) if cursor.description else []

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.do(statement)
        self.connection.commit()

    def try_to_run(self, *statements: str) -> None:
        """Run a transaction, unless it breaks a key or a reference."""
        try:
            self.run(*statements)
        except psycopg2.IntegrityError:
            self.connection.rollback()

    def one(self, query: str) -> Any:
        ((value,),) = self.do(query)
        self.connection.commit()
        return value

    def close(self) -> None:
        self.connection.close()

    @property
    def process(self) -> int:
        return int(self.connection.info.backend_pid)


@pytest.fixture
def session(source: Source) -> Iterator[Session]:
    with closing(Session(source)) as session:
        yield session


class Capture:
    """What the publication sends of the outbox."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.slot = f"slot_{next(NUMBERS)}"
        session.run(f"select pg_create_logical_replication_slot('{self.slot}', 'pgoutput')")

    def events(self) -> list[tuple[str, int]]:
        """The operation and the order of each change since the last call."""
        messages = self.session.do(
            f"select data from pg_logical_slot_get_binary_changes('{self.slot}', null,"
            " null, 'proto_version', '1', 'publication_names', 'datalake')"
        )
        self.session.connection.commit()
        tables: dict[bytes, bytes] = {}
        found = []
        for (data,) in messages:
            message = bytes(data)
            kind, relation = chr(message[0]), message[1:5]
            if kind == "R":
                tables[relation] = message[5:].split(b"\0")[1]
            elif kind in "IUD" and tables[relation] == b"cdc_events":
                (length,) = struct.unpack("!i", message[9:13])
                found.append((kind, int(message[13 : 13 + length])))
        return found


@pytest.fixture
def capture(session: Session) -> Capture:
    return Capture(session)


def reference(session: Session) -> dict[int, str]:
    """The digest of what the outbox has to hold of each order."""
    rows = session.do(f"select order_id, md5(to_jsonb(t)::text) from ({REFERENCE}) as t")
    return dict(rows)


def outbox(session: Session) -> dict[int, str]:
    """The digest of what the outbox holds of each order."""
    rows = session.do(
        "select order_id, md5((to_jsonb(t) - 'updated_at')::text) from cdc_events as t"
    )
    # What the statements noted, they have also taken away.
    assert session.one("select count(*) from changed_orders") == 0
    return dict(rows)


# ----------------------------------------------------------------- the outbox

# Few rows, so that statements meet.
VALUES: dict[str, Any] = {
    "order": (10248, 10249, 10250, 11078, 11079),
    "another": (10251, 10252, 11081),
    "customer": ("ALFKI", "VINET", "TOMSP"),
    "employee": (3, 5, 6),
    "shipper": (1, 2, 3),
    "product": (11, 42, 72),
    "supplier": (5, 8, 20),
    "territory": ("01581", "02903", "30346"),
    "region": (1, 4),
    "number": range(1, 100),
}
# Transactions of one of these each never deadlock.
ONE_ROW = (STATEMENTS / "one_row.sql").read_text().split(";\n")[:-1]
INSERT_ORDER, DELETE_ORDER = ONE_ROW[0], ONE_ROW[4]
# An order that shows all that the other statements write, and as yet something else.
WHOLE_ORDER = (
    *ONE_ROW[:4],
    "update products set supplier_id = 1 where product_id = {product}",
    "update territories set region_id = 2 where territory_id = '{territory}'",
)
MANY_ROWS = (STATEMENTS / "many_rows.sql").read_text().split(";\n")[:-1]
EVERY = [*ONE_ROW, *MANY_ROWS]
SAVEPOINTS = ("savepoint here", "rollback to here", "release here; savepoint here")
CONSTRAINTS = ("set constraints all immediate", "set constraints all deferred")


def values_of(dice: random.Random) -> dict[str, Any]:
    return {name: dice.choice(choices) for name, choices in VALUES.items()}


def transaction(dice: random.Random) -> list[str]:
    """A savepoint, and up to five statements with what may come between them."""
    statements = ["savepoint here"]
    for _ in range(dice.randint(1, 5)):
        # Not the last one: filling waits for writers, who may wait for this transaction.
        statements.append(dice.choice(EVERY[:-1]).format(**values_of(dice)))
        if dice.random() < 0.4:
            statements.append(dice.choice((*SAVEPOINTS, *CONSTRAINTS)))
    return statements


@pytest.fixture
def few_orders(session: Session) -> None:
    """Thirteen orders are left, so that the outbox is soon compared."""
    session.run("delete from orders where order_id > 10260")


def test_a_transaction_writes_one_event_for_each_order_that_it_changes(
    session: Session, few_orders: None, capture: Capture
) -> None:
    dice = random.Random(1)
    kinds: Counter[str] = Counter()
    before = reference(session)
    for _ in range(500):
        statements = transaction(dice)
        session.try_to_run(*statements)
        after = reference(session)
        assert outbox(session) == after, statements
        events = capture.events()
        changed = [
            ("I" if order not in before else "D" if order not in after else "U", order)
            for order in before.keys() | after.keys()
            if before.get(order) != after.get(order)
        ]
        # Where constraints are checked early, an order may be written twice.
        if not set(CONSTRAINTS) & {*statements}:
            assert sorted(events) == sorted(changed), statements
            kinds.update(kind for kind, _ in events)
        before = after
    assert min(kinds[kind] for kind in "IUD") > 20


def interleave(
    observer: Session, first: Session, one: str, second: Session, other: str
) -> None:
    """Begin the second transaction when the first is all but committed."""
    try:
        first.do(one)
        first.do("set constraints all immediate")
    except psycopg2.IntegrityError:
        first.connection.rollback()
    blockers = f"select pg_blocking_pids({second.process})"
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(second.try_to_run, other)
        try:
            wait_until(lambda: ended.done() or observer.one(blockers), 20, other, 0.001)
        finally:
            first.connection.commit()
    ended.result()


def test_outbox_is_right_after_any_two_statements_that_do_not_see_each_other(
    source: Source, session: Session, few_orders: None
) -> None:
    dice = random.Random(2)
    with closing(Session(source)) as first, closing(Session(source)) as second:
        for one, other in itertools.product(EVERY, repeat=2):
            values = values_of(dice)  # of both, so that they meet
            is_new = INSERT_ORDER in (one, other)
            for statement in (DELETE_ORDER,) if is_new else WHOLE_ORDER:
                session.try_to_run(statement.format(**values))
            begun = one.format(**values)
            values["number"] += 100  # what the second one writes is always new
            interleave(session, first, begun, second, other.format(**values))
            assert outbox(session) == reference(session), (begun, other)


# What any writer has to try again: a missing reference, a duplicate key; and, where it
# writes several rows, a deadlock.
CONFLICTS = {"23503", "23505"}
DEADLOCK = "40P01"


@pytest.mark.parametrize(
    ("transact", "conflicts"),
    [
        (lambda dice: [dice.choice(ONE_ROW).format(**values_of(dice))], CONFLICTS),
        (transaction, {*CONFLICTS, DEADLOCK}),
    ],
    ids=["one statement each", "up to five"],
)
def test_outbox_is_right_after_the_transactions_of_six_writers(
    source: Source,
    session: Session,
    few_orders: None,
    transact: Callable[[random.Random], list[str]],
    conflicts: set[str],
) -> None:
    def write(seed: int) -> Counter[str]:
        dice = random.Random(seed)
        endings: Counter[str] = Counter()
        with closing(Session(source)) as writer:
            for _ in range(25):
                try:
                    writer.run(*transact(dice))
                    endings["committed"] += 1
                except psycopg2.Error as error:
                    endings[error.pgcode or str(error)] += 1
                    writer.connection.rollback()
        return endings

    endings: Counter[str] = Counter()
    for start in range(0, 60, 6):
        with ThreadPoolExecutor(6) as writers:
            endings.update(sum(writers.map(write, range(start, start + 6)), Counter()))
        assert outbox(session) == reference(session)
    assert endings["committed"] > 500
    assert endings.keys() <= {"committed", *conflicts}


def test_orders_that_take_from_stock_do_not_deadlock(
    source: Source, session: Session
) -> None:
    """Two transactions write a line of one product each, and then that product's stock."""
    with closing(Session(source)) as one, closing(Session(source)) as other:
        one.do("insert into order_details values (10248, 1, 18, 1, 0)")
        other.do("insert into order_details values (10249, 1, 18, 1, 0)")
        for clerk in (one, other):
            clerk.run("update products set units_in_stock = 7 where product_id = 1")
    assert outbox(session) == reference(session)


def test_filling_repairs_the_outbox(session: Session, capture: Capture) -> None:
    session.run(
        "update cdc_events set customer = null where order_id = 10248",
        "delete from cdc_events where order_id = 10249",
        "insert into cdc_events (order_id, updated_at) values (1, now())",
    )
    assert len(capture.events()) == 3
    session.run("call fill_cdc_events()")
    assert sorted(capture.events()) == [("D", 1), ("I", 10249), ("U", 10248)]
    assert outbox(session) == reference(session)


@pytest.mark.parametrize("table", [*northwind.TABLES, "cdc_events"])
def test_a_truncate_is_refused(session: Session, table: str) -> None:
    with pytest.raises(errors.FeatureNotSupported, match="cannot be truncated") as error:
        session.do(f"truncate {table} cascade")
    assert "Use: delete from datalake." in str(error.value)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_an_older_snapshot_may_not_write(session: Session, isolation: str) -> None:
    session.do(f"set transaction isolation level {isolation}")
    with pytest.raises(errors.FeatureNotSupported, match=f"made in a {isolation} trans"):
        session.do("update orders set freight = 1 where order_id = 10248")


def test_settings_and_rights_of_a_writer_do_not_matter(
    server: PostgresServer, source: Source, session: Session
) -> None:
    administer(server, "create role clerk login password 'clerk'")
    session.run(
        "grant usage on schema datalake to clerk",
        "grant select, update on employees to clerk",
    )
    with closing(Session(source, "clerk", "clerk")) as clerk:
        clerk.run(
            "set extra_float_digits = -10",
            "set bytea_output = escape",
            "set datestyle = 'German'",
            "update employees set photo = '\\x00ff' where employee_id = 5",
        )
        with pytest.raises(errors.InsufficientPrivilege):
            clerk.do("select * from cdc_events")
    photo = "select employee->>'photo' from cdc_events where order_id = 10248"
    assert session.one(photo) == "\\x00ff"
    assert outbox(session) == reference(session)
    session.run("drop owned by clerk", "drop role clerk")


# ----------------------------------------------------------------- the loader


def test_load_brings_every_row_and_one_event_an_order(session: Session) -> None:
    counts = [
        session.one(f"select count(*) from {table}")
        for table in (*northwind.TABLES, "cdc_events")
    ]
    assert counts == [4, 53, 9, 49, 91, 6, 29, 8, 77, 830, 2155, 830]
    assert outbox(session) == reference(session)


def test_json_is_what_the_capture_has(session: Session) -> None:
    """Every snapshot event of the recorded stream, text by text but for one order."""
    columns = ", ".join(f"{column}::text" for column in JSON_COLUMNS)
    stored = {
        row[0]: row[1:] for row in session.do(f"select order_id, {columns} from cdc_events")
    }
    values = [
        json.loads(record["value"])
        for record in recorded(EVENTS / "northwind_unwrapped.jsonl.gz")
    ]
    snapshot = [value for value in values if value["__op"] == "r"]
    assert len(snapshot) == 829
    for value in snapshot:
        if value["order_id"] != 11077:  # the one whose lines were not in order
            recorded_texts = tuple(value[column] for column in JSON_COLUMNS)
            assert stored[value["order_id"]] == recorded_texts


def test_held_back_order_is_inserted_later(template: Source) -> None:
    source = replace(template, database="without_an_order")
    loaded = load(source, REPLICATION_PASSWORD, hold_back=[11075], replace=True)
    assert (loaded.rows["orders"], loaded.rows["order_details"]) == (829, 2152)
    with closing(Session(source)) as session, closing(Session(template)) as everything:
        capture = Capture(session)
        northwind.insert_order(session.connection, 11075)
        session.connection.commit()
        assert capture.events() == [("I", 11075)]
        assert outbox(session) == reference(session) == outbox(everything)


def test_broken_row_leaves_everything_as_it_was(
    tmp_path: Path, source: Source, session: Session
) -> None:
    rows = tmp_path / "rows"
    shutil.copytree(northwind.ROWS, rows)
    with (rows / "order_details.csv").open("a", encoding="utf-8") as file:
        file.write("1,1,1,1,1\n")
    fresh = replace(source, database="fresh")
    for target in (fresh, source):
        with pytest.raises(UserError, match="foreign key"):
            load(target, "other password", folder=rows, replace=True)
    with pytest.raises(psycopg2.OperationalError, match="does not exist"):
        Session(fresh)
    assert len(outbox(session)) == 830
    Session(source, "debezium", REPLICATION_PASSWORD).close()


Loader = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_loader(
    source: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Loader:
    """Runs the command on the copy: its exit code, and what it wrote."""
    monkeypatch.setenv("PGPORT", str(source.port))
    monkeypatch.setenv("PGDATABASE", source.database)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("REPLICATION_PASSWORD", REPLICATION_PASSWORD)

    def run(*arguments: str) -> tuple[int, str, str]:
        return (main([*arguments]), *capsys.readouterr())

    return run


def test_nothing_is_replaced_without_consent(
    run_loader: Loader, source: Source, session: Session
) -> None:
    session.run("delete from orders where order_id = 10248")
    code, _, error = run_loader()
    assert code == 1
    assert "has schema datalake, publication datalake, the password of role" in error
    assert error.count("\n") == 1
    assert len(outbox(session)) == 829
    code, output, error = run_loader("--yes", "--hold-back", "11075")
    assert (code, error) == (0, "")
    assert output == (
        f"loaded 3,307 rows into 11 tables of 127.0.0.1:{source.port}/{source.database}:"
        " 829 orders with 2,152 lines; the outbox holds 829 events\n"
    )
    assert session.one("select count(*) from orders where order_id = 10248") == 1


def test_server_that_does_not_answer_is_worth_another_try(
    run_loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, error = run_loader("--port", "1")
    assert code == 75
    assert "lab.northwind: no session on 127.0.0.1:1, database " in error
    monkeypatch.setenv("PGPASSWORD", "wrong")
    code, _, error = run_loader()
    assert code == 1
    assert "password authentication failed for user" in error


def test_what_others_need_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch, run_loader: Loader, session: Session, capture: Capture
) -> None:
    """A slot that reads the database, a view outside the schema, a session's lock."""
    code, _, error = run_loader("--yes")
    assert code == 1
    assert f"a replication slot reads this database: {capture.slot}; it" in error
    session.run(
        f"select pg_drop_replication_slot('{capture.slot}')",
        "create view public.mine as select order_id from orders",
    )
    code, _, error = run_loader("--yes")
    assert code == 1
    assert "these need it and would go with it: view mine; drop" in error
    session.run("drop view public.mine")
    monkeypatch.setattr("lab.northwind.load.LOCK_TIMEOUT", "100ms")
    session.do("select from orders limit 1")
    code, _, error = run_loader("--yes")
    assert code == 1
    assert f"in use by process {session.process} (user" in error
    assert len(outbox(session)) == 830


# ------------------------------------------------------- the replication role


def test_the_replication_role_reads_captured_tables_and_writes_nothing(
    source: Source, session: Session
) -> None:
    session.run("create table secrets (secret text)")
    rows = {*northwind.TABLES, "cdc_events"}
    signals = {"debezium_signals_outbox", "debezium_signals_tables"}
    captured = {*rows, "complete_snapshots"}
    published = session.do("select tablename from pg_publication_tables")
    assert {table for (table,) in published} == captured | signals
    whole_old_rows = (
        "select count(*) from pg_publication_rel join pg_class on prrelid = pg_class.oid"
        " where relreplident = 'f'"
    )
    assert session.one(whole_old_rows) == len(rows)
    with closing(Session(source, "debezium", REPLICATION_PASSWORD)) as role:
        for table in captured:
            assert role.one(f"select count(*) > 0 from {table}")
        for statement in (
            "select * from secrets",
            "select * from changed_orders",
            "select * from debezium_signals_tables",
            "insert into shippers values (99, 'x')",
            "update orders set freight = 0",
            "delete from cdc_events",
            "create table mine (id int)",
            "create publication mine",
            "call fill_cdc_events()",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                role.do(statement)
            role.connection.rollback()
    attributes = session.do(
        "select rolreplication, rolsuper, rolcreaterole, rolcreatedb, rolbypassrls"
        " from pg_roles where rolname = 'debezium'"
    )
    assert attributes == [(True, False, False, False, False)]


def test_role_with_more_rights_than_reading_is_refused(
    server: PostgresServer, source: Source
) -> None:
    administer(server, "alter role debezium superuser createdb")
    too_much = "debezium is there with SUPERUSER, CREATEDB, .* run (ALTER ROLE [^,]*)"
    with pytest.raises(UserError, match=too_much) as error:
        load(source, REPLICATION_PASSWORD, replace=True)
    alter = re.search(too_much, str(error.value))
    assert alter is not None
    administer(server, alter[1])
    load(source, REPLICATION_PASSWORD, replace=True)


def test_no_password_is_in_the_servers_log(
    server: PostgresServer, template: Source
) -> None:
    log = server.log.read_text(encoding="utf-8")
    assert 'alter role "debezium" password \'SCRAM-SHA-256$' in log
    for password in (PASSWORD, REPLICATION_PASSWORD):
        assert password not in log
        assert password.replace("'", "''") not in log
