"""What `add` and `diff` find in a PostgreSQL that keeps changes from the lake."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.cli import main
from lab.stack.postgres import PostgresServer, find_binaries
from tests.servers.conftest import FAST_POSTGRES
from tests.support.ports import free_port
from tests.support.project import PROJECT, copy_project
from tests.support.required import required

pytestmark = pytest.mark.timeout(300)

PASSWORD = "secret"
KEY = "create table {0} (id int primary key, email text not null, v text);"
PARTITIONED = """
    create table {0} (id int, at date, v text, primary key (id, at))
        partition by range (at);
    create table {0}_1 partition of {0} for values from ('2026-01-01') to ('2027-01-01');
    create table {0}_2 partition of {0} for values from ('2027-01-01') to ('2028-01-01')
        partition by range (at);
    create table {0}_3 partition of {0}_2 for values from ('2027-01-01') to ('2028-01-01');
"""
BY_EMAIL = """
    create unique index {0}_email on {0} (email);
    alter table {0} replica identity using index {0}_email;
"""
Run = Callable[..., tuple[int, str]]

# A table, and what `add` says of it: none where it is declared.
IDENTITIES = {
    "index_of_another_key": (
        KEY + BY_EMAIL,
        "with REPLICA IDENTITY USING INDEX {0}_email (email), changes lack id",
    ),
    "index_that_was_dropped": (
        KEY + BY_EMAIL + "drop index {0}_email;",
        "with REPLICA IDENTITY USING INDEX, changes lack id",
    ),
    "index_of_its_key": (
        KEY + "alter table {0} replica identity using index {0}_pkey;",
        None,
    ),
    "index_of_more_than_its_key": (
        KEY + "alter table {0} add constraint {0}_more unique (email, id);"
        "alter table {0} replica identity using index {0}_more;",
        None,
    ),
    "nothing": (
        KEY + "alter table {0} replica identity nothing;",
        "with REPLICA IDENTITY NOTHING, changes lack id",
    ),
    "deferrable_key": (
        "create table {0} (id int primary key deferrable);",
        "with REPLICA IDENTITY DEFAULT, changes lack id",
    ),
    "deferrable_key_whole_row": (
        "create table {0} (id int primary key deferrable);"
        "alter table {0} replica identity full;",
        None,
    ),
    "no_key_whole_row": (
        "create table {0} (id int unique); alter table {0} replica identity full;",
        "has no primary key",
    ),
    "identity_of_the_root_alone": (
        PARTITIONED + "alter table {0} replica identity nothing;",
        None,
    ),
    "partition_without_identity": (
        PARTITIONED + "alter table {0}_3 replica identity nothing;",
        "partition public.{0}_3: with REPLICA IDENTITY NOTHING, changes lack id, at",
    ),
    "partition_not_logged": (
        PARTITIONED + "create unlogged table {0}_4 partition of {0} default;",
        "partition public.{0}_4: its changes are not in the write-ahead log",
    ),
    "inherited": (
        KEY + "create table {0}_child () inherits ({0});",
        'select * from only public.{0}"',
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with required():
        find_binaries()
    folder = Path(tempfile.mkdtemp(prefix="test-catalogue-"))
    folder.chmod(0o755)
    server = PostgresServer(folder / "server", free_port(), PASSWORD, FAST_POSTGRES)
    server.start()
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture
def execute(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[..., None]:
    """Runs statements in a database of the test's own, which commands read."""
    name = re.sub(r"\W", "_", request.node.name)
    for variable, value in {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(server.port),
        "PGDATABASE": name,
        "PGUSER": "postgres",
        "PGPASSWORD": PASSWORD,
    }.items():
        monkeypatch.setenv(variable, value)

    def call(*scripts: str, database: str = name) -> None:
        with closing(server.connect(dbname=database)) as connection:
            connection.autocommit = True
            for script in scripts:
                for statement in filter(str.strip, script.split(";")):
                    connection.cursor().execute(statement)

    call(f"create database {name}", database="postgres")
    return call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "project")


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command with connectors of the project; its exit code and what it says."""

    def call(command: str, *arguments: str, connectors: tuple[str, ...] = ()) -> Any:
        files = [str(project / f"{name}.json") for name in connectors or ("shop",)]
        places = [word for file in files for word in ("--connector", file)]
        code = main([command, *arguments, *places, "--project-dir", str(project)])
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def connector(
    project: Path, name: str, tables: str = "public.none", **settings: str
) -> None:
    config = json.loads((PROJECT / "connectors/source-tables.json").read_text())
    config |= {"publication.name": name, "slot.name": name, "table.include.list": tables}
    (project / f"{name}.json").write_text(json.dumps(config | settings, indent=2))


def statements(said: str) -> list[str]:
    kinds = "table|publication|schema|role"
    pattern = rf"(?:(?:alter|create) (?:{kinds})|grant|insert into) [^;]*;"
    return re.findall(pattern, said)


def test_add_refuses_a_table_whose_changes_do_not_name_its_rows(
    execute: Callable[..., None], run: Run, project: Path
) -> None:
    """And takes it once its statement was run at the source."""
    connector(project, "shop")
    for name, (script, said) in IDENTITIES.items():
        execute(script.format(name))
        code, found = run("add", f"public.{name}", "--dry-run")
        assert code == (0 if said is None else 1), found
        if said is not None:
            assert f"public.{name}" in found and said.format(name) in found
            assert len(found.splitlines()) == 2, found
        if said is not None and (mended := statements(found)):
            execute(*mended)
            assert run("add", f"public.{name}", "--dry-run")[0] == 0


# What is done to a table that was declared, and what `diff` says then. Publications are of
# one connector each, and its tables'.
CHANGES = {
    "whole": {
        "taken_out": (
            "alter publication whole drop table {0};",
            "public.{0}: not published (source publication whole)",
        ),
        "some_rows": (
            "alter publication whole drop table {0};"
            "alter publication whole add table {0} where (id < 9);",
            "public.{0}: rows not published (source where (id < 9))",
        ),
        "some_columns": (
            "alter publication whole drop table {0};"
            "alter publication whole add table {0} (id, email);",
            "public.{0}: columns not published (source v)",
        ),
        "named_by_an_index": (
            BY_EMAIL,
            "public.{0}: unusable (source public.{0}: with REPLICA IDENTITY USING INDEX",
        ),
        "without_key": (
            "alter table {0} replica identity default;"
            "alter table {0} drop constraint {0}_pkey;"
            "alter table {0} add primary key (id) deferrable;",
            "public.{0}: unusable (source public.{0}: with REPLICA IDENTITY DEFAULT",
        ),
    },
    "inserts": {
        "never_deleted": (
            "alter publication inserts set (publish = 'insert');",
            "publication inserts: operations not published (source delete, truncate",
        )
    },
    "leaves": {
        "parts": (
            "alter publication leaves set (publish_via_partition_root = false);",
            "publication leaves: partitions published by their own names (source pub",
        )
    },
    "one_leaf": {
        "leaf": (
            "alter publication one_leaf drop table {0};"
            "alter publication one_leaf add table {0}_1;",
            "public.{0}: not published (source publication one_leaf)",
        )
    },
    "dropped": {"lost": ("drop publication dropped;", "publication dropped: not at the")},
}


def test_diff_names_what_is_not_published_and_its_remedy(
    execute: Callable[..., None], run: Run, project: Path
) -> None:
    for name, tables in CHANGES.items():
        for table in tables:
            partitioned = table in ("parts", "leaf")
            execute((PARTITIONED if partitioned else KEY).format(table))
        connector(project, name)
        named = [f"public.{table}" for table in tables]
        code, said = run("add", *named, connectors=(name,))
        assert code == 0
        # What `add` prints is what `diff` wants.
        execute(*statements(said))
    connectors = tuple(CHANGES)
    topics = project / "topics.toml"
    lines = topics.read_text().splitlines()
    kept = [line for line in lines if not line.startswith('"demo.datalake.')]
    topics.write_text("\n".join(kept))
    assert run("diff", connectors=connectors) == (0, "")

    expected = []
    for tables in CHANGES.values():
        for table, (script, said) in tables.items():
            execute(script.format(table))
            expected.append(said.format(table))
    code, said = run("diff", connectors=connectors)
    *found, advice = said.splitlines()
    assert code == 3 and "resync TABLE" in advice
    missing = [
        text for text in expected if not any(line.startswith(text) for line in found)
    ]
    assert (missing, len(found)) == ([], len(expected))

    execute(*statements(said))
    assert run("diff", connectors=connectors) == (0, "")


# What is done to a table's columns, and whether rows that have not changed since may have
# values that no event brought.
ALTERED = [
    ("add new int", False),
    ("add new int default 7", True),
    ("add new int default 7; alter table {0} alter new drop default", True),
    ("add new int; alter table {0} alter new set default 7", True),
    ("add new timestamptz default now()", True),
    ("add new int generated always as identity", True),
    ("add new of_seven", True),
    ("add new int generated always as (n * 2) stored", None),
    ("alter n type bigint", False),
    ("drop n; alter table {0} add n bigint", True),
    ("drop v; alter table {0} add v int", True),
    ("drop v", False),
    ("drop n; alter table {0} add n int generated always as (id * 2) stored", False),
]


def test_diff_names_a_resync_where_no_event_brought_a_value(
    execute: Callable[..., None], run: Run, project: Path
) -> None:
    """Of each way to alter a table; None where a column is nothing to a model."""
    connector(project, "shop")
    (project / "topics.toml").write_text("[topics]\n")
    execute("create domain seven as int default 7; create domain of_seven as seven")
    names = [f"altered_{number}" for number in range(len(ALTERED))]
    for name in names:
        execute(f"create table {name} (id int primary key, n int, v text)")
        execute(f"alter table {name} replica identity full")
    code, said = run("add", "public.altered_*")
    assert code == 0, said
    execute(*statements(said))
    assert run("diff")[0] == 0
    for name, (changes, _) in zip(names, ALTERED, strict=True):
        execute(f"alter table {name} {changes.format(name)}")
    code, said = run("diff", "--apply")
    assert code == 0, said
    found: list[bool | None] = []
    for name in names:
        is_changed = re.search(rf"^public\.{name}\.", said, re.MULTILINE) is not None
        needs_resync = f"resync public.{name} " in said
        found.append(needs_resync if is_changed else None)
    assert found == [needed for _, needed in ALTERED], said
    assert run("diff") == (0, "")
