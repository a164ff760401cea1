"""Which of dbt's commands get a session and which locks; without starting Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from dbt.cli.main import cli, dbtRunner
from dbt_common.exceptions import DbtRuntimeError

from cdc_lakehouse.dbt import plugin
from cdc_lakehouse.errors import TransientError
from cdc_lakehouse.storage.clock import Commit

LOCK = "lock of dbt build"
UNDER_WAY = "lock of build under way"
INGEST = "lock of ingest"
SESSION = "session"
EVERYWHERE = "dbt build, for all machines"
INGEST_EVERYWHERE = "ingest, for all machines"
# The commits that the clock must be past.
COMMITS = "commits without bronze"
ALL_COMMITS = "commits"

NOTHING: list[str] = []
READS = [LOCK, SESSION]
WRITES = [LOCK, UNDER_WAY, SESSION, EVERYWHERE, COMMITS]
ERASES = [LOCK, UNDER_WAY, INGEST, SESSION, EVERYWHERE, INGEST_EVERYWHERE, ALL_COMMITS]
# As dbt names them itself: of two words the second.
COMMANDS = {
    "build": WRITES,
    "clean": NOTHING,
    "clone": WRITES,
    "compile": READS,
    # It loads no plugin.
    "debug": NOTHING,
    "deps": NOTHING,
    "freshness": READS,
    "generate": READS,
    "init": NOTHING,
    "list": NOTHING,
    "ls": NOTHING,
    "parse": NOTHING,
    "retry": WRITES,
    "run": WRITES,
    "run-operation": WRITES,
    "seed": WRITES,
    "serve": NOTHING,
    "show": READS,
    "snapshot": WRITES,
    "snapshot-freshness": READS,
    "test": READS,
}


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a command takes, in this order; its lake holds something."""
    taken: list[str] = []

    @contextmanager
    def exclusive_lock(lake: str, name: str) -> Iterator[None]:
        taken.append(f"lock of {name}")
        yield

    @contextmanager
    def only_one_anywhere(spark: object, lake: str, name: str) -> Iterator[None]:
        taken.append(f"{name}, for all machines")
        yield

    def newest_commit(spark: object, warehouse: str, *, without: str) -> Commit:
        taken.append(f"commits without {without}" if without else "commits")
        return Commit(0.0, "")

    for layer in ("bronze", "silver"):
        (tmp_path / f"lake/warehouse/{layer}.db").mkdir(parents=True)
    monkeypatch.setenv("LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.delenv("LAKE_METASTORE", raising=False)
    monkeypatch.delenv("LAKE_TARGET", raising=False)
    monkeypatch.setattr(plugin, "keep_parsed", None)
    monkeypatch.setattr(plugin, "exclusive_lock", exclusive_lock)
    monkeypatch.setattr(plugin, "waited_lock", exclusive_lock)
    monkeypatch.setattr(plugin, "only_one_anywhere", only_one_anywhere)
    monkeypatch.setattr(plugin, "newest_commit", newest_commit)
    monkeypatch.setattr(plugin, "spark_session", lambda: taken.append(SESSION))
    monkeypatch.setattr(plugin, "add_callback_to_manager", lambda callback: None)
    yield taken
    plugin.release()


def start(
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    target: str = "embedded",
    method: str = "session",
    **flags: object,
) -> None:
    """Have dbt load the plugin for a command."""
    known = {"STATE": None, "TARGET_PATH": None, "PROJECT_DIR": "."}
    flags = known | {"WHICH": command} | flags
    monkeypatch.setattr(plugin, "get_flags", lambda: SimpleNamespace(**flags))
    profile = SimpleNamespace(
        target_name=target, credentials=SimpleNamespace(method=method)
    )
    project = SimpleNamespace(
        project_name="cdc_lakehouse",
        project_root=".",
        packages_install_path="dbt_packages",
        packages=SimpleNamespace(packages=[]),
    )
    with click.Context(cli, obj={"profile": profile, "project": project}):
        plugin.SingleBuild("cdc_lakehouse")


def names(command: click.Command) -> Iterator[str]:
    """All of a group's commands."""
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from names(one) if isinstance(one, click.Group) else [name]


def test_every_command_of_dbts_is_known() -> None:
    assert sorted(names(cli)) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_takes_what_it_needs(
    command: str, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start(monkeypatch, command)
    assert taken == COMMANDS[command]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("target", ["cluster", "emr"])
def test_command_on_a_cluster_takes_no_lock_of_one_machine(
    target: str, command: str, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "is_given", lambda: True)
    start(monkeypatch, command, target)
    assert taken == [part for part in COMMANDS[command] if part not in (LOCK, UNDER_WAY)]


def test_command_on_a_cluster_needs_spark_submit(
    taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "is_given", lambda: False)
    with pytest.raises(DbtRuntimeError, match="run it with spark-submit"):
        start(monkeypatch, "clone", "cluster")
    start(monkeypatch, "clone", "thrift", "thrift")
    assert taken == NOTHING


@pytest.mark.parametrize(
    ("name", "package", "method", "takes"),
    [
        ("shop", "cdc_lakehouse", "session", WRITES),
        ("cdc_lakehouse", None, "session", WRITES),
        ("shop", None, "session", NOTHING),
        ("shop", "dbt_utils", "session", NOTHING),
        ("shop", "cdc_lakehouse", "thrift", NOTHING),
    ],
)
def test_only_projects_that_use_the_package_are_prepared(
    name: str,
    package: str | None,
    method: str,
    takes: list[str],
    taken: list[str],
    tmp_path: Path,
) -> None:
    """dbt loads the plugin for every project of the environment."""
    output = {"type": "spark", "method": method, "host": "NA", "schema": "dev"}
    profiles = {"shop": {"target": "dev", "outputs": {"dev": output}}}
    (tmp_path / "profiles.yml").write_text(json.dumps(profiles))
    for folder, project in ((".", name), (f"dbt_packages/{package}", package)):
        if project:
            file = tmp_path / folder / "dbt_project.yml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"name": project, "profile": "shop"}))
    places = ("--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path))
    done = dbtRunner().invoke(["run", *places, "--quiet"])
    assert done.success, done.exception
    assert taken == takes


@pytest.mark.parametrize(
    "macro", ["erase_key", "cdc_lakehouse.drop_bronze_day", "run_statement"]
)
def test_operation_on_bronze_takes_the_ingests_locks(
    macro: str, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start(monkeypatch, "run-operation", MACRO=macro)
    assert taken == ERASES


def test_other_operation_lets_the_ingest_run(
    taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start(monkeypatch, "run-operation", MACRO="compact")
    assert taken == WRITES


@pytest.mark.parametrize("target", [None, "embedded", "thrift"])
def test_metastore_is_opened_ahead_by_who_holds_its_lock(
    target: str | None, taken: list[str]
) -> None:
    plugin.open_ahead(None, target)
    assert taken == ([] if target == "thrift" else [LOCK])


def test_database_that_a_thread_makes_is_not_prepared_again(
    taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is half made would be removed."""
    monkeypatch.setattr(plugin, "prepare", lambda: taken.append("prepared"))
    plugin.open_ahead(None, None)
    start(monkeypatch, "build")
    assert taken.count("prepared") == 1


def test_each_build_of_a_process_asks_for_the_newest_commit(
    taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine may have written since."""
    start(monkeypatch, "build")
    start(monkeypatch, "build")
    assert taken.count(COMMITS) == 2


def test_metastore_that_another_process_has_is_not_opened_ahead(
    taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def refuse(lake: str, name: str) -> Iterator[None]:
        raise TransientError("another dbt build")
        yield

    monkeypatch.setattr(plugin, "exclusive_lock", refuse)
    monkeypatch.setattr(plugin, "_open_metastore", taken.append)
    plugin.open_ahead(None, None)
    assert taken == []


@pytest.mark.parametrize("place", ["TARGET_PATH", "STATE", None])
def test_retry_takes_what_the_run_before_took(
    place: str | None, taken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("target" if place is None else "results")
    folder.mkdir()
    arguments = {"which": "run-operation", "macro": "remove_versions"}
    (folder / "run_results.json").write_text(json.dumps({"args": arguments}))
    flags = {"PROJECT_DIR": str(tmp_path)} | ({place: str(folder)} if place else {})
    start(monkeypatch, "retry", **flags)
    assert taken == ERASES
