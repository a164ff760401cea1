"""The source database on a real server: the triggers that keep the outbox."""

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from typing import Any

import psycopg2
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from psycopg2 import errors

from lab.northwind import northwind
from lab.northwind.checks import REPLICATION_ROLE
from lab.northwind.load import Source, load
from lab.stack.postgres import PostgresServer
from lab.stack.processes import wait_until
from tests.support.storm import (
    FOLDER,
    MANY_ROWS,
    NORTHWIND,
    ONE_ROW,
    read_statements,
    read_values,
)

# What the outbox has to hold, by the base tables alone.
REFERENCE = (FOLDER / "outbox/reference.sql").read_text()
REPLICATION_PASSWORD = "it's sesame"
VALUES = read_values("outbox/few_values.toml")
INSERT_ORDER, DELETE_ORDER = ONE_ROW[0], ONE_ROW[4]
# An order that shows all that the other statements write, and as yet something else.
WHOLE_ORDER = (
    *ONE_ROW[:4],
    "update products set supplier_id = 1 where product_id = {product}",
    "update territories set region_id = 2 where territory_id = '{territory}'",
)
SAVEPOINTS = ("savepoint here", "rollback to here", "release here; savepoint here")
NUMBERS = itertools.count()
Events = Callable[[], list[tuple[str, int]]]
# A change of the outbox, as test_decoding writes it: its operation and its order.
EVENT = re.compile(r"table datalake\.cdc_events: (.)[^[]*order_id\[\w+\]:(\d+)")
KINDS: Counter[str] = Counter()  # how often each was written and compared
CONSTRAINTS = ("set constraints all immediate", "set constraints all deferred")


class Session:
    """A connection to a database; ``run`` commits, ``do`` does not."""

    def __init__(self, server: PostgresServer, database: str, **user: str) -> None:
        options = "-c search_path=datalake -c statement_timeout=20s"
        self.connection = server.connect(dbname=database, options=options, **user)
        self.process = int(self.connection.info.backend_pid)
        self.close = self.connection.close
        self.another = partial(Session, server, database)

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


@pytest.fixture(scope="module")
def template(postgres: PostgresServer) -> str:
    """Northwind with thirteen orders, so that the outbox is soon compared."""
    name = "northwind"
    source = Source(port=postgres.port, database=name, password=postgres.password)
    load(source, REPLICATION_PASSWORD)
    with closing(Session(postgres, name)) as session:
        session.run("delete from orders where order_id > 10260")
    return name


@contextmanager
def copied(postgres: PostgresServer, template: str) -> Iterator[Session]:
    """A session in a copy of a database, which is removed with it."""
    name = f"copy_{next(NUMBERS)}"
    postgres.execute(f"create database {name} template {template}")
    with closing(Session(postgres, name)) as session:
        yield session
        session.connection.rollback()
        session.run("select pg_drop_replication_slot(slot_name) from pg_replication_slots")
    postgres.execute(f"drop database {name} with (force)")


@pytest.fixture
def session(postgres: PostgresServer, template: str) -> Iterator[Session]:
    """One in a copy of the test's own."""
    with copied(postgres, template) as session:
        yield session


def followed(session: Session) -> Events:
    """Tells operation and order of each change of the outbox since the last call."""
    slot = f"'{session.one('select current_database()')}'"
    session.run(f"select pg_create_logical_replication_slot({slot}, 'test_decoding')")

    def changes() -> list[tuple[str, int]]:
        lines = session.do(
            f"select data from pg_logical_slot_get_changes({slot}, null, null)"
        )
        session.connection.commit()
        found = [EVENT.match(line) for (line,) in lines]
        return sorted((match[1], int(match[2])) for match in found if match)

    return changes


def reference(session: Session) -> dict[int, str]:
    """The digest of what the outbox has to hold of each order."""
    rows = session.do(f"select order_id, md5(to_jsonb(t)::text) from ({REFERENCE}) as t")
    return dict(rows)


def assert_right(session: Session, *statements: object) -> dict[int, str]:
    """The outbox holds what it has to; the digest of each order."""
    rows = session.do(
        "select order_id, md5((to_jsonb(t) - 'updated_at')::text) from cdc_events as t"
    )
    expected = reference(session)
    assert dict(rows) == expected, statements
    # What the statements noted, they have also taken away.
    assert session.one("select count(*) from changed_orders") == 0
    return expected


class Transactions(RuleBasedStateMachine):
    """What one session does, statement by statement; each commit is compared."""

    def __init__(self, database: AbstractContextManager[Session]) -> None:
        super().__init__()
        self.database = database
        self.session = database.__enter__()
        self.events = followed(self.session)
        self.before = reference(self.session)
        self.begin()

    def begin(self) -> None:
        self.statements: list[str] = []
        self.run("savepoint here")

    @rule(words=st.sampled_from((*SAVEPOINTS * 4, *CONSTRAINTS)))
    def run(self, words: str) -> None:
        self.statements.append(words)
        self.session.do(words)

    @rule(
        # Orders come and go more often than the other forty changes would let them.
        statement=st.sampled_from([*NORTHWIND, *[INSERT_ORDER, DELETE_ORDER] * 8]),
        values=st.fixed_dictionaries({k: st.sampled_from(v) for k, v in VALUES.items()}),
    )
    def change(self, statement: str, values: dict[str, Any]) -> None:
        try:
            self.run(statement.format(**values))
        except psycopg2.IntegrityError:
            self.run("rollback to here")

    @rule()
    def commit(self) -> None:
        self.session.connection.commit()
        after = assert_right(self.session, self.statements)
        changed = sorted(
            ("I" if each not in self.before else "D" if each not in after else "U", each)
            for each in dict(self.before.items() ^ after.items())
        )
        written = self.events()
        # Where constraints are checked early, an order may be written twice.
        if not set(CONSTRAINTS) & {*self.statements}:
            assert written == changed, self.statements
            KINDS.update(kind for kind, _ in written)
        self.before = after
        self.begin()

    def teardown(self) -> None:
        self.database.__exit__(None, None, None)


def test_a_transaction_writes_one_event_for_each_order_that_it_changes(
    postgres: PostgresServer, template: str
) -> None:
    run_state_machine_as_test(
        lambda: Transactions(copied(postgres, template)),  # type: ignore[arg-type]  # any factory will do
        settings=settings(
            max_examples=100, stateful_step_count=50, derandomize=True, deadline=None
        ),
    )
    assert min(KINDS[kind] for kind in "IUD") > 20


def interleave(
    observer: Session, one: Session, first: str, other: Session, second: str
) -> None:
    """Begin the second transaction when the first is all but committed."""
    try:
        one.do(first)
        one.do("set constraints all immediate")
    except psycopg2.IntegrityError:
        one.connection.rollback()
    blockers = f"select pg_blocking_pids({other.process})"
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(other.try_to_run, second)
        try:
            wait_until(lambda: ended.done() or observer.one(blockers), 20, second, 0.001)
        finally:
            one.connection.commit()
    ended.result()


def test_outbox_is_right_after_any_two_statements_that_do_not_see_each_other(
    session: Session,
) -> None:
    dice = random.Random(2)
    one, other = session.another(), session.another()
    for first, second in itertools.product([*ONE_ROW, *MANY_ROWS], repeat=2):
        # Of both, so that they meet.
        values = {name: dice.choice(choices) for name, choices in VALUES.items()}
        is_new = INSERT_ORDER in (first, second)
        for statement in (DELETE_ORDER,) if is_new else WHOLE_ORDER:
            session.try_to_run(statement.format(**values))
        begun = first.format(**values)
        values["number"] += 100  # what the second one writes is always new
        interleave(session, one, begun, other, second.format(**values))
        assert_right(session, begun, second.format(**values))
    one.close()
    other.close()


def test_filling_repairs_the_outbox(session: Session) -> None:
    events = followed(session)
    session.run(
        "update cdc_events set customer = null where order_id = 10248",
        "delete from cdc_events where order_id = 10249",
        "insert into cdc_events (order_id, updated_at) values (1, now())",
    )
    assert len(events()) == 3
    session.run("call fill_cdc_events()")
    assert events() == [("D", 1), ("I", 10249), ("U", 10248)]
    assert_right(session)


def test_what_would_pass_by_the_triggers_is_refused(session: Session) -> None:
    """A truncate, and a transaction that may not see what others committed."""
    for table in (*northwind.TABLES, "cdc_events"):
        with pytest.raises(errors.FeatureNotSupported, match="cannot be truncated"):
            session.do(f"truncate {table} cascade")
        session.connection.rollback()
    for isolation in ("repeatable read", "serializable"):
        session.do(f"set transaction isolation level {isolation}")
        with pytest.raises(errors.FeatureNotSupported, match=f"in a {isolation} trans"):
            session.do("update orders set freight = 1 where order_id = 10248")
        session.connection.rollback()


def test_connectors_role_reads_and_writes_nothing(
    postgres: PostgresServer, session: Session
) -> None:
    """And no password is in the server's log, which has the statement that sets one."""
    role = {"user": REPLICATION_ROLE, "password": REPLICATION_PASSWORD}
    with closing(session.another(**role)) as connectors:
        assert connectors.one("select count(*) from cdc_events") > 0
        for statement in read_statements("outbox/forbidden.sql"):
            with pytest.raises(errors.InsufficientPrivilege):
                connectors.do(statement)
            connectors.connection.rollback()
    log = postgres.log.read_text()
    assert f'alter role "{REPLICATION_ROLE}" password \'SCRAM-SHA-256$' in log
    assert postgres.password not in log
    assert "sesame" not in log


def test_settings_and_rights_of_a_writer_do_not_matter(session: Session) -> None:
    session.run(
        "create role clerk login password 'clerk'",
        "grant usage on schema datalake to clerk",
        "grant select, update on employees to clerk",
    )
    with closing(session.another(user="clerk", password="clerk")) as clerk:
        clerk.run(
            *("set extra_float_digits = -10", "set bytea_output = escape"),
            "set datestyle = 'German'",
            "update employees set photo = '\\x00ff' where employee_id = 5",
        )
    photo = "select employee->>'photo' from cdc_events where order_id = 10248"
    assert session.one(photo) == "\\x00ff"
    assert_right(session)
