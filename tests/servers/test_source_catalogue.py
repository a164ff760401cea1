"""What `add` and `diff` find in a PostgreSQL that keeps changes from the lake."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.cli import main
from lab.stack.postgres import PostgresServer
from tests.support.project import PROJECT, copy_project
from tests.support.source_database import Database
from tests.support.storm import FOLDER

pytestmark = pytest.mark.timeout(300)

DATA = tomllib.loads((FOLDER / "catalogue.toml").read_text())
CHANGES: dict[str, dict[str, dict[str, Any]]] = DATA["changes"]
# Whether a resync is needed after a change of a table; None where it is nothing to a model.
NEEDED = {"needs_resync": True, "needs_none": False, "is_nothing": None}
ALTERED = [(each, NEEDED[name]) for name in NEEDED for each in DATA["altered"][name]]
Execute = Callable[..., Any]
Run = Callable[..., tuple[int, str]]


def script(entry: dict[str, Any], table: str) -> str:
    begins = [DATA["scripts"][name] for name in entry.get("begins", ())]
    return "".join([*begins, entry.get("script", "")]).format(table)


@pytest.fixture
def execute(
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Execute:
    """Runs statements in a database of the test's own, which commands read."""
    database = Database(postgres, request.node.name[:63])
    database.create()
    for variable, value in database.environment().items():
        monkeypatch.setenv(variable, value)
    return lambda *scripts: database.execute(";".join(scripts))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With a connector for each publication."""
    folder = copy_project(tmp_path / "project")
    config = json.loads((PROJECT / "connectors/source-tables.json").read_text())
    for name in ("shop", *CHANGES):
        own = {"publication.name": name, "slot.name": name}
        own |= {"table.include.list": "public.none"}
        (folder / f"{name}.json").write_text(json.dumps(config | own, indent=2))
    (folder / "topics.toml").write_text("[topics]\n")
    return folder


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command with connectors of the project; its exit code and what it says."""

    def call(command: str, *arguments: str, connectors: tuple[str, ...] = ("shop",)) -> Any:
        files = [str(project / f"{name}.json") for name in connectors]
        places = [word for file in files for word in ("--connector", file)]
        code = main([command, *arguments, *places, "--project-dir", str(project)])
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def statements(said: str) -> list[str]:
    kinds = "table|publication|schema|role"
    pattern = rf"(?:(?:alter|create) (?:{kinds})|grant|insert into) [^;]*;"
    return re.findall(pattern, said)


def test_add_refuses_a_table_whose_changes_do_not_name_its_rows(
    execute: Execute, run: Run
) -> None:
    """And takes it once its statement was run at the source."""
    for name, entry in DATA["identities"].items():
        execute(script(entry, name))
        code, found = run("add", f"public.{name}", "--dry-run")
        assert code == ("says" in entry), found
        if "says" in entry:
            assert f"public.{name}" in found and entry["says"].format(name) in found
            assert len(found.splitlines()) == 2, found
            if mended := statements(found):
                execute(*mended)
                assert run("add", f"public.{name}", "--dry-run")[0] == 0


def test_diff_names_what_is_not_published_and_its_remedy(
    execute: Execute, run: Run
) -> None:
    for name, tables in CHANGES.items():
        for table in tables:
            kind = "partitioned" if table in ("parts", "leaf") else "key"
            execute(script({"begins": [kind]}, table))
        named = [f"public.{table}" for table in tables]
        code, said = run("add", *named, connectors=(name,))
        assert code == 0
        # What `add` prints is what `diff` wants.
        execute(*statements(said))
    connectors = tuple(CHANGES)
    assert run("diff", connectors=connectors) == (0, "")
    expected = []
    for tables in CHANGES.values():
        for table, entry in tables.items():
            execute(script(entry, table))
            expected.append(entry["says"].format(table))
    code, said = run("diff", connectors=connectors)
    *found, advice = said.splitlines()
    assert code == 3 and "resync TABLE" in advice
    missing = [
        text for text in expected if not any(line.startswith(text) for line in found)
    ]
    assert (missing, len(found)) == ([], len(expected))
    execute(*statements(said))
    assert run("diff", connectors=connectors) == (0, "")


def test_diff_names_a_resync_where_no_event_brought_a_value(
    execute: Execute, run: Run
) -> None:
    """Of each way to alter a table."""
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
