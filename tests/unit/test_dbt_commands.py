"""Which of dbt's commands get a session and which locks; without starting Spark."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from dbt.cli.main import cli, dbtRunner
from dbt_common.exceptions import DbtRuntimeError
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.dbt import plugin
from cdc_lakehouse.storage import built
from cdc_lakehouse.storage.clock import Commit


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a command takes, in this order; its lake holds something."""
    taken: list[str] = []

    def noting(text: str) -> Callable[..., AbstractContextManager[None]]:
        def lock(*arguments: object) -> AbstractContextManager[None]:
            taken.append(text.format(*arguments))
            return nullcontext()

        return lock

    def newest_commit(spark: object, warehouse: str, *, without: str) -> Commit:
        taken.append(f"commits without {without}" if without else "commits")
        return Commit(0.0, "")

    for layer in ("bronze", "silver"):
        (tmp_path / f"lake/warehouse/{layer}.db").mkdir(parents=True)
    monkeypatch.setenv("LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.delenv("LAKE_METASTORE", raising=False)
    monkeypatch.delenv("LAKE_TARGET", raising=False)
    monkeypatch.setattr(plugin, "keep_parsed", None)
    monkeypatch.setattr(plugin, "exclusive_lock", noting("lock of {1}"))
    monkeypatch.setattr(plugin, "waited_lock", noting("lock of {1}"))
    anywhere = noting("{2}, for all machines")
    monkeypatch.setattr(plugin, "only_one_anywhere", anywhere)
    monkeypatch.setattr(built, "forget", lambda *place: taken.append("forget"))
    monkeypatch.setattr(plugin, "newest_commit", newest_commit)
    monkeypatch.setattr(plugin, "spark_session", lambda: taken.append("session"))
    monkeypatch.setattr(plugin, "add_callback_to_manager", lambda callback: None)
    yield taken
    plugin.release()


Start = Callable[..., None]


@pytest.fixture
def start(taken: list[str], monkeypatch: pytest.MonkeyPatch) -> Start:
    """Has dbt load the plugin for a command."""
    monkeypatch.setattr(plugin, "is_given", lambda: True)

    def call(
        command: str, target: str = "embedded", method: str = "session", **flags: object
    ) -> None:
        known = {"STATE": None, "TARGET_PATH": None, "PROJECT_DIR": "."}
        all_flags = SimpleNamespace(**known | {"WHICH": command} | flags)
        monkeypatch.setattr(plugin, "get_flags", lambda: all_flags)
        credentials = SimpleNamespace(method=method)
        profile = SimpleNamespace(target_name=target, credentials=credentials)
        project = SimpleNamespace(
            project_name="cdc_lakehouse",
            project_root=".",
            packages_install_path="dbt_packages",
            packages=SimpleNamespace(packages=[]),
        )
        with click.Context(cli, obj={"profile": profile, "project": project}):
            plugin.SingleBuild("cdc_lakehouse")

    return call


def names(command: click.Command) -> Iterator[str]:
    """All of a group's commands."""
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from names(one) if isinstance(one, click.Group) else [name]


@pytest.mark.parametrize("target", ["embedded", "cluster", "emr"])
def test_command_takes_what_it_needs(
    target: str, taken: list[str], start: Start, snapshot: SnapshotAssertion
) -> None:
    """On a cluster no lock of one machine; every command of dbt's, by its last word."""
    commands = defaultdict(list)
    for command in sorted(names(cli)):
        start(command, target)
        commands[", ".join(taken)].append(command)
        plugin.release()
        taken.clear()
    assert dict(commands) == snapshot


def test_command_on_a_cluster_needs_spark_submit(
    taken: list[str], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "is_given", lambda: False)
    with pytest.raises(DbtRuntimeError, match="run it with spark-submit"):
        start("clone", "cluster")
    start("clone", "thrift", "thrift")
    assert taken == []


@pytest.mark.parametrize(
    ("name", "package", "method"),
    [
        ("shop", "cdc_lakehouse", "session"),
        ("cdc_lakehouse", None, "session"),
        ("shop", None, "session"),
        ("shop", "dbt_utils", "session"),
        ("shop", "cdc_lakehouse", "thrift"),
    ],
)
def test_only_projects_that_use_the_package_are_prepared(
    name: str,
    package: str | None,
    method: str,
    taken: list[str],
    tmp_path: Path,
    snapshot: SnapshotAssertion,
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
    assert ", ".join(taken) == snapshot


@pytest.mark.parametrize("target", [None, "embedded", "thrift"])
def test_metastore_is_opened_ahead_by_who_holds_its_lock(
    target: str | None, taken: list[str]
) -> None:
    plugin.open_ahead(None, target)
    assert taken == ([] if target == "thrift" else ["lock of dbt build"])


def test_what_a_build_asks_anew(
    taken: list[str], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest commit, as another machine may have written; not a half made metastore."""
    monkeypatch.setattr(plugin, "prepare", lambda: taken.append("prepared"))
    plugin.open_ahead(None, None)
    start("build")
    start("build")
    assert (taken.count("prepared"), taken.count("commits without bronze")) == (1, 2)


@pytest.mark.parametrize(
    "macro", ["erase_key", "cdc_lakehouse.drop_bronze_day", "run_statement", "compact"]
)
@pytest.mark.parametrize("place", ["run-operation", "TARGET_PATH", "STATE", "target"])
def test_operation_on_bronze_takes_the_ingests_locks(
    place: str,
    macro: str,
    taken: list[str],
    tmp_path: Path,
    start: Start,
    snapshot: SnapshotAssertion,
) -> None:
    """Also where it is tried again, by its results; another one lets the ingest run."""
    if place == "run-operation":
        start(place, MACRO=macro)
    else:
        folder = tmp_path / place
        folder.mkdir()
        arguments = {"which": "run-operation", "macro": macro}
        (folder / "run_results.json").write_text(json.dumps({"args": arguments}))
        start("retry", **{place: str(folder), "PROJECT_DIR": str(tmp_path)})
    assert ", ".join(taken) == snapshot
