"""Tables whose rows are in other tables, and a truncate, from PostgreSQL to silver."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.cli import main
from lab.stack.northwind import NorthwindStack
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import copy_project, replace_once
from tests.support.records import UNAVAILABLE
from tests.support.source_database import SourceDatabase

pytestmark = pytest.mark.timeout(900)

NAME = "partitions"
TABLES = {
    "parts": ("id", "at", "n", "v"),
    "parent": ("id", "v"),
    "plain": ("id", "v"),
}
# Its values are stored beside their rows: an update of another column does not bring them.
LONG = "".join(random.Random(45).choices("abcdefghijklmnop", k=20_000))
CREATE = f"""
    create table parts (id bigint, at date, n int, v text, primary key (id, at))
        partition by range (at);
    alter table parts alter column v set storage external;
    create table parts_1 partition of parts
        for values from ('2026-01-01') to ('2027-01-01');
    create table parts_2 partition of parts
        for values from ('2027-01-01') to ('2028-01-01');
    alter table parts_2 replica identity full;
    insert into parts values
        (1, '2026-05-05', 1, '{LONG}'),
        (2, '2026-06-06', 2, 'x'),
        (3, '2027-01-01', 3, '{LONG}');
    create table parent (id int primary key, v text);
    create table child (extra text) inherits (parent);
    insert into parent values (1, 'a'), (2, 'b');
    insert into child values (3, 'c', 'd');
    create table plain (id int primary key, v text);
    insert into plain values (1, 'a'), (2, 'b');
    create table signals (id varchar(42) primary key, type varchar(32), data varchar(2048));
    create table complete_snapshots (
        id text primary key, topic text, bronze_table text, row_count bigint
    );
    insert into complete_snapshots values ('first');
    grant select on complete_snapshots to debezium;
"""
CHANGES = f"""
    update parts set n = n + 10;
    create table parts_3 partition of parts
        for values from ('2028-01-01') to ('2029-01-01');
    insert into parts values (4, '2028-02-02', 4, '{LONG}'), (5, '2028-02-02', 5, 'y');
    update parts set n = 40 where id = 4;
    update parts set at = '2028-03-03' where id = 2;
    delete from parts where id in (3, 5);
    update parent set v = v || '!';
    insert into child values (4, 'c', 'd');
    delete from only parent where id = 2;
"""
# None of these rows has an event.
UNSEEN = """
    alter table parts detach partition parts_1;
    create table loose (like parts including all);
    insert into loose values (7, '2029-01-01', 7, 'z');
    alter table parts attach partition loose
        for values from ('2029-01-01') to ('2030-01-01')
"""


class Copy:
    """The database, and a lake whose models `add` wrote."""

    def __init__(self, source: SourceDatabase, lake: Lake, project: Path) -> None:
        self.source = source
        self.lake = lake
        self.project = project
        self.connector = project / "partitions.json"

    def command(self, *arguments: str) -> int:
        places = ("--connector", str(self.connector), "--project-dir", str(self.project))
        return main([*arguments, *places])

    def build(self, **variables: Any) -> dict[str, Any]:
        """Bring what Kafka has to silver."""
        self.source.wait_until_caught_up()
        topics = [f"{NAME}.public.{name}" for name in (*TABLES, "complete_snapshots")]
        ingested = self.lake.ingest_kafka(
            *("--bootstrap-servers", self.source.stack.bootstrap_servers),
            *("--topics", str(self.project / "topics.toml"), "--topic", *topics),
        )
        assert (ingested.code, ingested.counts[2]) == (0, 0), ingested.err
        given = json.dumps({"cdc_lakehouse_resync": True} | variables)
        models = [f"+{name}" for name in TABLES]
        return self.lake.try_dbt(
            "run", "--vars", given, "-s", *models, project=self.project
        )

    def different(self) -> set[str]:
        """The tables whose live rows are not the source's."""
        found = set()
        for table, columns in TABLES.items():
            live = sorted(
                tuple(row[name] for name in columns)
                for row in self.lake.rows(f"silver.{table}")
                if not row["is_deleted"]
            )
            only = "only " if table == "parent" else ""
            wanted = self.source.execute(f"select {', '.join(columns)} from {only}{table}")
            if live != sorted(wanted):
                found.add(table)
        return found


@pytest.fixture(scope="module")
def copy(
    stack: NorthwindStack, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Copy]:
    """Before a connector reads the database."""
    source = SourceDatabase(stack, NAME)
    project = copy_project(tmp_path_factory.mktemp(NAME) / "project")
    copy = Copy(source, new_lake(project / "topics.toml"), project)
    overrides = "snapshot.select.statement.overrides"
    config = source.configuration(NAME, "public.complete_snapshots") | {
        "signal.data.collection": "public.signals",
        overrides: "public.parent",
        f"{overrides}.public.parent": "select * from only public.parent",
    }
    copy.connector.write_text(json.dumps(config, indent=2))
    line = f'"{NAME}.public.complete_snapshots" = "complete_snapshots"\n'
    replace_once(project / "topics.toml", "[topics]\n", f"[topics]\n{line}")
    try:
        source.create()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in source.environment().items():
                patch.setenv(name, value)
            yield copy
    finally:
        source.remove()


def test_rows_of_partitions_arrive_by_what_add_prints(
    copy: Copy, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of partitions with either identity, of a new one, and of rows that move."""
    source = copy.source
    source.execute(CREATE)
    assert copy.command("add", *(f"public.{name}" for name in TABLES)) == 0
    printed = re.findall(r"(?:create|alter|grant) [^;]*;", capsys.readouterr().out)
    wanted = ["alter table public.parts_1 replica identity full;"]
    assert [each for each in printed if "public.parts_" in each] == wanted
    source.execute("".join(each for each in printed if "identity full" not in each))
    source.configure(NAME, json.loads(copy.connector.read_text()))
    source.execute(CHANGES)
    assert copy.build()["success"]
    assert copy.different() == set()
    events = copy.lake.rows("bronze.parts")
    assert UNAVAILABLE in "".join(event["value"] for event in events)


def test_rows_without_an_event_come_with_resync(copy: Copy) -> None:
    copy.source.execute(UNSEEN)
    assert copy.build()["success"]
    assert copy.different() == {"parts"}
    for table in ("parts", "parent"):
        assert copy.command("resync", f"public.{table}") == 0
    assert copy.build()["success"]
    assert copy.different() == set()


def test_truncate_stops_the_build_until_it_is_decided_on(copy: Copy) -> None:
    """As the shipped connector sends it."""
    copy.source.execute("truncate plain, parts; insert into plain values (2, 'again')")
    said = str(copy.build()["error"])
    assert "holds a TRUNCATE at position " in said
    truncates = {
        event["source_position"]: "apply"
        for table in ("plain", "parts")
        for event in copy.lake.rows(f"bronze.{table}")
        if event["op"] == "t"
    }
    assert copy.build(cdc_lakehouse_truncates=truncates)["success"]
    assert copy.different() == set()
    assert copy.command("diff") == 0
