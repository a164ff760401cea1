"""What a source's commands say, without a server."""

import re
from pathlib import Path

import pytest

from cdc_lakehouse.errors import UserError
from lab.northwind.__main__ import main
from lab.stack.postgres import find_binaries
from tests.support.project import PROJECT
from tests.unit.conftest import Cli


def test_readme_has_every_option_and_variable(cli: Cli) -> None:
    said = cli("--help", main=main).out
    named = set(re.findall(r"--[a-z-]+|\b[A-Z]+_?PASSWORD|\bPG[A-Z]+", said))
    assert len(named) > 10
    readme = (PROJECT / "connectors" / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## The source\n")[1].split("\n## ")[0]
    assert {name for name in named if name not in section} == {"--help", "--version"}


def test_missing_postgres_is_an_error_with_the_package_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(Path, "glob", lambda _path, _pattern: iter(()))
    with pytest.raises(UserError, match="apt-get install postgresql"):
        find_binaries()


@pytest.mark.parametrize(
    "setting", ["MYSQL_TCP_PORT=abc", "MYSQL_TCP_PORT=-1", "PGPORT=abc", "PGPORT=99999"]
)
def test_port_that_is_none_is_named(
    setting: str, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    name, _, value = setting.partition("=")
    monkeypatch.setenv(name, value)
    connector = "tables" if name == "PGPORT" else "mariadb"
    said = cli("diff", "--connector", str(PROJECT / f"connectors/source-{connector}.json"))
    assert said.code in (1, 75)
    [line] = said.err.splitlines()
    assert name in line and value in line
