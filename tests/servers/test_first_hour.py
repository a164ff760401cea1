"""The first hour with one's own database: a wheel in an empty folder, without a checkout.

The commands are the README's. Events are written as Debezium writes them, so that neither
Kafka nor Connect is needed; ``test_declare`` has the real ones.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.stack.postgres import PostgresServer
from tests.support.project import PROJECT
from tests.support.records import envelope, record
from tests.support.source_database import Database
from tests.support.storm import FOLDER
from tests.support.tables import Tables

pytestmark = pytest.mark.timeout(1800)

ODD = "l{{ env_var('LAKE_ROOT') }} # é"
ODD_TOPIC = "shop.public.l___env_var__LAKE_ROOT_________"


@dataclass
class Shop:
    """A user's empty folder, the environment with Python and the source, and the source."""

    folder: Path
    environment: dict[str, str]
    source: Database

    def run(self, *words: str, code: int = 0, cwd: Path | None = None) -> str:
        """Run a command; what it prints on stdout, and in ``said`` on stderr."""
        done = subprocess.run(
            words,
            cwd=cwd or self.folder / "shop",
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        self.said = done.stderr
        return done.stdout

    def dbt(self, *words: str, code: int = 0) -> str:
        """Run dbt, which the wheel's environment has from the tests'."""
        return self.run("python", "-m", "dbt.cli.main", *words, "--quiet", code=code)

    def execute(self, script: str) -> None:
        """Run a script at the source as it is."""
        with self.source.cursor() as cursor:
            cursor.execute(script)

    def silver(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """The live rows of a silver table."""
        rows = Tables(self.folder / "shop/.lake").rows(f"silver.{table}")
        return sorted(
            tuple(row[name] for name in columns) for row in rows if not row["is_deleted"]
        )

    def land(self, table: str, lsn: int, op: str = "c", **row: Any) -> None:
        """Write an event of a table into the landing folder."""
        text = (self.folder / "shop/topics.toml").read_text(encoding="utf-8")
        name = ODD_TOPIC if table == ODD else f".{table}"
        [topic] = [each for each in tomllib.loads(text)["topics"] if each.endswith(name)]
        value = envelope(op, row, lsn, table=table)
        value["source"]["schema"] = "public"
        folder = self.folder / "shop/landing"
        folder.mkdir(exist_ok=True)
        event = record({"id": row["id"]}, value, lsn, topic=topic)
        (folder / f"{lsn}.json").write_text(json.dumps(event))


@pytest.fixture(scope="module")
def shop(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """An environment with the wheel and what it depends on, and an empty folder."""
    folder = tmp_path_factory.mktemp("first")
    copy, wheels = folder / "copy", folder / "wheels"
    listed = subprocess.run(
        ["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if not name.startswith("tests/") and (PROJECT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, copy / name)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    offline = ("--no-deps", "--no-build-isolation")
    subprocess.run([*pip, "wheel", *offline, "-w", wheels, copy], check=True)
    shutil.rmtree(copy / "cdc_lakehouse")  # no checkout helps from here on
    environment = folder / "environment"
    venv.create(environment)
    purelib = f"lib/python{sysconfig.get_python_version()}/site-packages"
    others = sysconfig.get_path("purelib")
    (environment / purelib / "others.pth").write_text(f"{others}\n")
    install = ("--python", environment / "bin/python", "install", "--no-deps", "--no-index")
    subprocess.run([*pip, *install, *wheels.iterdir()], check=True)
    source = Database(postgres, "postgres")
    variables = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("LAKE_", "PYTHON", "VIRTUAL_ENV", "DBT_"))
    }
    variables |= source.environment() | {
        "PATH": f"{environment}/bin:{os.environ['PATH']}",
        "LAKE_HOME": os.environ.get("LAKE_HOME", sys.prefix),  # the jars are there
    }
    (folder / "empty").mkdir()
    return Shop(folder / "empty", variables, source)


def test_from_a_wheel_to_silver(shop: Shop) -> None:
    shop.execute((FOLDER / "first_hour.sql").read_text(encoding="utf-8"))
    where = ("python", "-c", "import ingest; print(ingest.__file__)")
    assert "environment/lib" in shop.run(*where, cwd=shop.folder)
    shop.execute(shop.run("cdc-lakehouse", "init", "shop", cwd=shop.folder))
    shop.run("cdc-lakehouse", "init", ".", code=1)
    assert "is not empty" in shop.said
    shop.execute(shop.run("cdc-lakehouse", "add", "public.vendors"))
    script = shop.run("cdc-lakehouse", "add", "public.*", "--column", "名=name", code=3)
    assert shop.said.splitlines()[-1] == (
        "add: public.no_key has no primary key, and rows are merged by it: add one at the"
        " source"
    )
    shop.execute(script)
    assert shop.run("cdc-lakehouse", "diff") == ""
    assert shop.run("cdc-lakehouse", "add", "public.*", "--exclude", "public.no_key") == ""
    assert not [line for line in shop.said.splitlines() if "wrote" in line]

    shop.land("vendors", 10, id=1, name="Ü", since=7000)
    shop.land("orders", 11, id=5, customer_id=7, total="9.50")
    odd: dict[str, Any] = {"id": 3, "a{{ 1/0 }}b": 1, "no": 2, "c: d # e": 3, "名": 4}
    shop.land(ODD, 12, **odd)
    shop.run("cdc-lakehouse", "ingest", "files", "landing")
    shop.dbt("--warn-error", "build")
    assert shop.silver("vendors", "id", "name") == [(1, "Ü")]
    assert shop.silver("orders", "id") == [(5,)]
    columns = ("id", "a___1_0___b", "no", "c__d___e", "name")
    assert shop.silver("l___env_var__lake_root_________", *columns) == [(3, 1, 2, 3, 4)]
    assert shop.silver("products", "id") == []


def test_package_is_installed_by_dbt_deps(shop: Shop) -> None:
    """A commit of a repository's folder, and a folder beside the project."""
    repository = shop.folder / "repository"
    shutil.copytree(PROJECT / "macros", repository / "macros")
    author = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    shop.run("git", "init", "--quiet", cwd=repository)
    shop.run("git", "add", ".", cwd=repository)
    shop.run("git", *author, "commit", "--quiet", "-m", "a", cwd=repository)
    revision = shop.run("git", "rev-parse", "HEAD", cwd=repository).strip()
    installed = shop.folder / "shop/dbt_packages/cdc_lakehouse"
    for number, package in enumerate(
        (
            {"git": repository.as_uri(), "revision": revision, "subdirectory": "macros"},
            {"local": "../repository/macros"},
        )
    ):
        listed = json.dumps({"packages": [package]})
        (shop.folder / "shop/packages.yml").write_text(listed)
        shop.dbt("deps")
        assert installed.is_symlink() == ("local" in package)
        shop.land("stock", 20 + number, id=number + 10, qty=number)
        shop.run("cdc-lakehouse", "ingest", "files", "landing")
        shop.dbt("build", "--select", "stg_stock+")
        assert (number + 10, number) in shop.silver("stock", "id", "qty")


def test_other_commands_beside_a_continuous_build(shop: Shop) -> None:
    """They read the catalogue between two builds; the next build is as it would be."""
    ingest = subprocess.Popen(
        ["cdc-lakehouse", "ingest", "files", "landing", "--continuous", "--then-build"],
        cwd=shop.folder / "shop",
        env=shop.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert ingest.stdout is not None
        until = iter(ingest.stdout.readline, "")
        shop.land("orders", 30, "u", id=5, customer_id=8, total="9.50")
        assert any(line.startswith("built") for line in until)
        shown = ("--output", "json", "--inline")
        orders = shop.dbt("show", *shown, "select customer_id from {{ ref('orders') }}")
        assert '"customer_id": 8' in orders
        assert "shop.silver.orders" in shop.dbt("ls", "--select", "orders")
        shop.dbt("test", "--select", "orders")
        shop.dbt("docs", "generate")
        assert "another dbt build" in shop.dbt("run", code=2)
        shop.land("orders", 31, "u", id=5, customer_id=9, total="9.50")
        assert any(line.startswith("built") for line in until)
        assert shop.silver("orders", "id", "customer_id") == [(5, 9)]
    finally:
        ingest.send_signal(signal.SIGINT)
        ingest.wait(timeout=120)
    status = shop.run("cdc-lakehouse", "ingest", "status")
    assert re.search("^last dbt command.*build.*succeeded", status, re.MULTILINE)
