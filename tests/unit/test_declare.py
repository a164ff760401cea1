"""`cdc-lakehouse add`, `diff` and `resync` on a project of `init`, without a server.

What they print and change in the stories of ``declare.yml`` is compared as a transcript
(``__snapshots__/test_declare.ambr``).
"""

import difflib
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.cli import main
from cdc_lakehouse.sources import commands as command
from cdc_lakehouse.sources.catalogue import (
    Catalogue,
    Column,
    Identity,
    Publication,
    Published,
    Table,
)
from cdc_lakehouse.sources.difference import holds
from tests.support.project import PROJECT, copy_project, new_project

CONNECTOR = Path("connectors/source.json")
TOPICS = Path("topics.toml")
Step = str | dict[str, Any]
GIVEN = yaml.safe_load(Path(__file__).with_name("declare.yml").read_text())
STORIES: dict[str, list[Step]] = GIVEN["stories"]


def column(text: str | dict[str, Any]) -> Column:
    """A column, as `total numeric(12,2) is_computed # what is paid`."""
    if isinstance(text, dict):
        return Column(**text)
    text, _, comment = text.partition(" # ")
    name, *words = text.split(" ")
    traits = {word: True for word in words if word.startswith(("is_", "has_"))}
    type_ = " ".join(word for word in words if word not in traits) or "integer"
    return Column(name, type_, comment=comment, **traits)


def tables(given: list[dict[str, Any]]) -> list[Table]:
    """Tables, whose key is `id` unless another is given."""
    found = []
    for traits in given:
        schema, _, name = traits["name"].partition(".")
        columns = tuple(map(column, traits["columns"]))
        identities = tuple(Identity(*each) for each in traits.get("identities", ()))
        own = {"name": name, "columns": columns, "identities": identities}
        own["key"] = tuple(traits.get("key", ("id",)))
        found.append(Table(schema, **traits | own))
    return found


Run = Callable[..., str]


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """What the source has, and publishes unless a test says what."""
    found = Catalogue(tables([*map(GIVEN["tables"].get, ("vendors", "lines"))]))

    def read(connector: object) -> Catalogue:
        published = dict.fromkeys(map(str, found.tables), Published())
        whole = dict.fromkeys(("shop", "datalake"), Publication(published))
        return replace(found, publications=found.publications or whole)

    monkeypatch.setattr(command, "read_catalogue", read)
    return found


@pytest.fixture
def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    catalogue: Catalogue,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command in a new project: its exit code, what it prints and changes there."""
    monkeypatch.chdir(new_project(tmp_path / "shop"))

    def call(*arguments: str) -> str:
        before = texts()
        code = main([*arguments])
        out, err = capsys.readouterr()
        changed = "\n".join(changes(before, texts()))
        return f"$ {' '.join(arguments)}\n{out}{err}{changed}\n[{code}]\n"

    return call


def texts() -> dict[str, str]:
    """The project's files."""
    return {
        str(file): file.read_bytes().decode()
        for file in sorted(Path().rglob("*"))
        if file.suffix in (".sql", ".yml", ".toml", ".json") and file.parts[0] != "target"
    }


def write(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).write_bytes(text.encode())


def changes(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """The lines that changed; new YAML, which is long, by name."""
    for file in sorted(before.keys() | after.keys()):
        old, new = before.get(file, ""), after.get(file, "")
        if file not in before and file.endswith(".yml"):
            yield f"+++ {file} is new"
        elif old != new:
            lines = old.split("\n"), new.split("\n")
            _, *found = difflib.unified_diff(*lines, "", file, n=0, lineterm="")
            yield from (line for line in found if not line.startswith("@@ "))


def configure(text: str) -> None:
    """Change settings of the connector: `a=1; b=`, and `-c`, which takes one away."""
    config: dict[str, str] = json.loads(CONNECTOR.read_text(encoding="utf-8"))
    for word in text.split("; "):
        name, sign, value = word.partition("=")
        if sign:
            config[name] = value
        else:
            del config[name.removeprefix("-")]
    written = json.dumps(config, indent=2, ensure_ascii=False)
    CONNECTOR.write_text(written, encoding="utf-8")


@pytest.mark.parametrize("story", STORIES)
def test_story(
    story: str, run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    said: list[str] = []
    for step in STORIES[story]:
        match step:
            case str():
                said.append(run(*shlex.split(step)))
            case {"quiet": str(words)}:
                run(*shlex.split(words))
            case {"sh": str(words)}:
                said.append(subprocess.check_output(words, shell=True, text=True))
            case {"source": list(given)}:
                catalogue.tables[:] = tables(given)
            case {"log": dict(settings)}:
                catalogue.log.update(settings)
            case {"published": list(names)}:
                published = Publication(dict.fromkeys(names, Published()))
                catalogue.publications["shop"] = published
            case {"connector": str(text)}:
                configure(text)
            case {"run": str(words), "with": list(changed)}:
                before = texts()
                for change in changed:
                    write(change) if isinstance(change, dict) else configure(change)
                    said.append(f"with {change}\n{run(*shlex.split(words))}")
                    for name in texts().keys() - before.keys():
                        Path(name).unlink()
                    write(before)
            case _:
                raise ValueError(step)
    assert "".join(said) == snapshot


def test_nothing_else_changes_in_a_project(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """In Northwind's, with comments and lists of many tables."""
    monkeypatch.chdir(copy_project(tmp_path / "northwind"))
    shutil.copytree(PROJECT / "deploy/aws", "deploy/aws")
    arguments = ("add", "shop.vendors", "--connector", "connectors/source-tables.json")
    before = texts()
    dry = run(*arguments, "--dry-run")
    assert texts() == before
    patch = dry.partition("\n")[2].partition("-- shop.vendors")[0]
    subprocess.run(["git", "apply", "--check", "-"], input=patch, text=True, check=True)
    assert run(*arguments) == snapshot


def test_nothing_of_a_catalogue_is_taken_for_code(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    """dbt and sqlfluff read it all, and what `init` wrote."""
    catalogue.tables[:] = tables([*GIVEN["tables"]["odd"], GIVEN["tables"]["vendors"]])
    configure("table.include.list=shop.Vögel")
    TOPICS.write_bytes(b"[topics] # of the source\r\n\r\n[epochs]\r\n")
    assert run("add", "shop") == snapshot
    assert TOPICS.read_bytes().startswith(b'[topics] # of the source\r\n"shop.shop.swit')
    before = texts()
    assert run("add", "shop").endswith("[0]\n") and texts() == before
    assert run("diff") == "$ diff\n\n[0]\n"
    for arguments in (
        ("sqlfluff", "lint", "--disable-progress-bar", "models"),
        ("dbt.cli.main", "--warn-error", "parse", "--no-partial-parse", "--quiet"),
    ):
        words = [sys.executable, "-m", *arguments]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    parsed = Path("target/manifest.json").read_text()
    assert str(Path.home()) not in parsed
    columns = json.loads(parsed)["nodes"]["model.shop.switches"]["columns"]
    assert {"no", "on"} < columns.keys()


def test_type_that_holds_another() -> None:
    for declared, (held, lost) in GIVEN["held"].items():
        assert (holds(declared, held), holds(declared, lost)) == (True, False), declared
