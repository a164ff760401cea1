"""What ``--then-build`` logs and ends with, and what Prometheus is told; without Spark."""

import json
import os
import re
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import MagicMock

import click
import pytest
from dbt.cli.main import dbtRunner
from dbt.events.types import NodeFinished
from dbt_common.events.base_types import msg_from_base_event
from prometheus_client import REGISTRY

from cdc_lakehouse import log, metrics
from cdc_lakehouse.command import run
from cdc_lakehouse.dbt.runner import Project, _show
from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.storage import built
from cdc_lakehouse.storage.built import Built
from cdc_lakehouse.storage.marks import MARKER_TABLE
from ingest.build import Build, FollowUp
from ingest.status import lake_status
from ingest.stream import complete_topics, last_batch
from lab.stack.ports import reserved_ports
from tests.support.project import PROJECT


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKE_ROOT", str(tmp_path / "lake"))
    return tmp_path / "lake"


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """With JSON what other modules' libraries log would come to stderr, too."""
    yield
    log.stop("ingest")


def commit(root: Path, table: str, name: str, *stats: dict[str, int]) -> None:
    folder = root / "warehouse" / table / ".hoodie"
    folder.mkdir(parents=True, exist_ok=True)
    none = {"numInserts": 0, "numUpdateWrites": 0, "numDeletes": 0, "numWrites": 900}
    content = {"partitionToWriteStats": {"": [none | stat for stat in stats]}}
    (folder / name).write_text(json.dumps(content))


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What is on stderr, where every line must be an object.

    But for the empty one that click writes after Ctrl-C.
    """
    return [json.loads(line) for line in capsys.readouterr().err.strip().splitlines()]


def test_rows_are_those_of_a_models_newest_commit(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the log, the metrics and the status."""
    orders = "silver.db/orders"
    commit(root, orders, "20260101000000000.commit", {"numInserts": 70})
    newest = {"numInserts": 2, "numUpdateWrites": 5}, {"numDeletes": 1}
    commit(root, orders, "20260102000000000.commit", *newest)
    commit(root, "gold.db/answers", "20260102000000000.replacecommit", {"numInserts": 9})
    log.start("ingest", "json")
    name = "cdc_lakehouse_rows_changed_total", {"model": "silver.orders"}
    before = REGISTRY.get_sample_value(*name) or 0.0
    node: dict[str, Any] = {"resource_type": "model", "node_name": "orders"}
    node["node_relation"] = {"schema": "silver", "alias": "orders"}
    for materialized, status, answer in (
        ("cdc_merge", "success", {"_message": "OK"}),
        ("cdc_merge", "success", {"_message": "nothing new", "rows_affected": 0}),
        ("staging_view", "success", {"_message": "OK"}),
        ("cdc_merge", "error", {}),
    ):
        result = {"status": status, "execution_time": 3.25, "adapter_response": answer}
        info = {**node, "materialized": materialized}
        _show(msg_from_base_event(NodeFinished(node_info=info, run_result=result)))
    place = {"model": "silver.orders", "seconds": 3.25}
    lines = logged(capsys)
    assert [line for line in lines if not line.items() >= place.items()] == []
    assert [(line["message"], line["rows"]) for line in lines] == [
        ("silver.orders: 8 rows, 3.2 s", 8),
        ("silver.orders: 0 rows, 3.2 s", 0),
        ("silver.orders: 3.2 s", None),
    ]
    assert REGISTRY.get_sample_value(*name) == before + 8
    known = lake_status(str(root))
    assert known.rows_changed == {"gold.answers": 9, "silver.orders": 8}
    written = "  silver.orders written 2026-01-02 00:00:00 UTC, 8 rows changed"
    assert written in known.lines()


def test_build_that_a_lock_refuses_is_worth_another_try(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of an empty lake is not."""
    log.start("ingest", "json")
    command = f"run --target-path {tmp_path} --log-path {tmp_path}"
    assert Build(command, retries=False).run(lambda table: 0) == 1
    assert f"nothing has been ingested into {root}" in capsys.readouterr().err
    (root / "warehouse" / "bronze.db").mkdir(parents=True)
    with exclusive_lock(str(root), "dbt build"):
        assert Build(command, retries=False).run(lambda table: 0) == 75
    [line] = logged(capsys)
    assert line["level"] == "error"
    assert "another dbt build (process " in line["message"]


def test_what_ended_a_command_is_logged_as_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for error, code, message in [
        (UserError("wrong"), 1, "wrong"),
        (TransientError("busy"), 75, "busy"),
        (click.UsageError("which?"), 2, "which?"),
        (KeyboardInterrupt(), 130, "stopped"),
        (RuntimeError("a defect"), 1, "unexpected error"),
    ]:

        @click.command("ingest")
        @log.option
        def command(error: BaseException = error) -> None:
            raise error

        assert run(command, ["--log-format", "json"]) == code
        [line] = logged(capsys)
        assert (line["logger"], line["message"]) == ("ingest", message)
        if isinstance(error, RuntimeError):
            assert "RuntimeError: a defect" in line["trace"]
        elif not isinstance(error, click.UsageError):
            assert run(command, []) == code
            assert capsys.readouterr().err.strip() == f"ingest: {message}"


def test_only_what_has_news_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """By this process or a later one; a marker may concern a table that brought nothing."""
    kept: list[Built] = []
    monkeypatch.setattr(built, "read", lambda *place: kept[-1] if kept else None)
    monkeypatch.setattr(built, "keep", lambda spark, lake, built: kept.append(built))
    clock = MagicMock()
    clock.now.return_value = datetime(2026, 1, 1)
    monkeypatch.setattr("ingest.build.datetime", clock)
    batches = {"orders": 1, "customers": 1, MARKER_TABLE: 0}
    project = MagicMock(checksum="a", bronze_tables=[*batches])
    project.refreshes.return_value = False
    glue = MagicMock()

    def new(words: str = "build") -> Build:
        build = Build(words, retries=False, glue=glue)
        build._project = project
        build.open_ahead(None)
        return build

    def selected(build: Build, code: int = 0, registers: int = 0, **changed: int) -> Any:
        batches.update(changed)
        project.run.reset_mock()
        project.run.return_value = code
        glue.register.return_value = registers
        assert build.run(batches.__getitem__) == (code or registers)
        return project.run.call_args and project.run.call_args.args[0]

    orders, both = ["source:bronze.orders+"], ["source:bronze.customers+"]
    both += orders
    build = new()
    assert selected(build, code=1) == []  # what came before is not known
    assert selected(build) == []
    assert selected(build) is None
    assert selected(build, orders=2, code=1) == ["--select", *orders]
    assert selected(build, customers=2, registers=75) == ["--select", *both]
    assert selected(new(), registers=75) == ["--select", *both]
    assert selected(build) == ["--select", *both]
    assert selected(new()) is None
    assert selected(new("run -s orders")) == []
    assert selected(build, **{MARKER_TABLE: 1}) == []
    assert selected(build) is None
    project.checksum = "b"
    assert selected(build) == []
    assert selected(build) is None
    clock.now.return_value = datetime(2026, 1, 2)
    assert selected(new()) == []
    project.refreshes.return_value = True
    assert selected(new()) == []
    assert glue.register.call_args.args == (project.manifest_file,)


def test_next_batch_waits_for_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds at most; at no time where nothing is built, or all is to end."""
    waiting, was_held = [5], []
    batches, build = MagicMock(), MagicMock(is_whole=False)
    batches.has_ended = lambda: bool(waiting)
    batches.ended = lambda: [waiting.pop()]
    follow_up = FollowUp(batches, build, continuous=True)
    held = Thread(target=follow_up.wait_for_build)

    def run(_: object) -> int:
        held.join(0.3)
        was_held.append(held.is_alive())
        return 0

    build.run = run
    held.start()
    follow_up.build_if_due()
    held.join(5)
    assert (was_held, held.is_alive()) == ([True], False)

    waiting.append(5)  # and nobody builds
    others: list[dict[str, Any]] = [{"build": None}, {"continuous": False}, {"stop": True}]
    for other in others:
        words: dict[str, Any] = {"build": build, "continuous": True} | other
        FollowUp(batches, **words).wait_for_build()
    monkeypatch.setattr("ingest.build.LONGEST_WAIT", 0.1)
    follow_up.wait_for_build()
    assert waiting == [5]


def test_project_is_parsed_again_when_a_file_changes(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).with_name("project"), tmp_path, dirs_exist_ok=True)
    models = tmp_path / "models"
    project = Project([])
    assert project.manifest() is None
    places = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    assert dbtRunner().invoke(["--quiet", "parse", *places]).success
    (tmp_path / "written_later.txt").touch()
    project.make_copy()
    first, second = project.manifest(), project.manifest()
    assert first is not None and second is not None and first is not second
    assert {*first.nodes} == {f"model.small.{name}" for name in ("one", "all", "read")}
    # What a run looks up, each in its own index.
    assert first.ref_lookup.find("one", None, None, first) is not None
    assert first.source_lookup.find("raw.events", None, first) is not None
    one, settings = models / "one.sql", tmp_path / "dbt_project.yml"
    for path, change in (
        (one, one.touch),
        (settings, settings.touch),
        (models, (models / "two.sql").touch),
        (one, one.unlink),
    ):
        project.make_copy()
        assert project.manifest() is not None
        before = path.stat().st_mtime_ns
        change()
        assert project.manifest() is None
        if path.exists():
            os.utime(path, ns=(before, before))
    checksums = [project.checksum]
    for changed, words in ("", []), ("", ["--vars", "{a: 1}"]), ("select 3 as id", []):
        one.write_text(changed or "select 1 as id")
        assert dbtRunner().invoke(["--quiet", "parse", *places, *words]).success
        checksums.append(project.checksum)
    assert len({*checksums}) == 4
    assert dbtRunner().invoke(["--quiet", "parse", *places]).success
    assert project.checksum == checksums[-1]


# Metrics, and the dashboard that draws them


def test_dashboard_draws_series_that_exist() -> None:
    dashboard = json.loads((PROJECT / "deploy/grafana/ingest.json").read_text())
    drawn = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"cdc_lakehouse_\w+", target["expr"])
    }
    assert len(dashboard["panels"]) == 8
    assert drawn <= set(REGISTRY._names_to_collectors)


def test_metrics_are_served() -> None:
    metrics.builds.labels("succeeded").inc()
    with reserved_ports() as reserve:
        port = reserve()
        metrics.serve("127.0.0.1", port)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert re.search(r'^cdc_lakehouse_builds_total\{outcome="succeeded"\} \d', text, re.M)


def test_lag_is_not_nothing_while_a_batch_brings_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is the age of what is missing: of what came last once, and for ever.

    The query's progress is that of the batch before, and is seen again and again.
    """
    now = 1_800_000_000.0
    clock = MagicMock(time=lambda: now)
    monkeypatch.setattr(metrics, "time", clock)
    monkeypatch.setattr(metrics, "_batch", 0)

    def lags(progress: dict[str, Any], *complete: str) -> list[float | None]:
        metrics.note_complete({*complete}, last_batch(progress))
        return [
            REGISTRY.get_sample_value("cdc_lakehouse_lag_seconds", {"table": table})
            for table in ("busy", "idle")
        ]

    written = {"batchId": 6, "durationMs": {"addBatch": 5}}
    waiting = {"batchId": 7, "durationMs": {"triggerExecution": 5}}
    with suppress(UserError), metrics.batch():  # a batch that failed is not under way
        raise UserError("no space")
    with metrics.batch(6):
        metrics.note_written("busy", now - 300)
        metrics.note_written("idle", now - 9000)
    assert lags(written) == [300, 9000]
    for progress in (written, waiting):
        assert lags(progress, "busy", "idle") == [0, 0]
    with metrics.batch(7):
        now += 60
        assert lags(waiting, "busy", "idle") == [60, 60]
        metrics.note_written("busy", now - 7200)
        assert lags(waiting, "busy", "idle") == [7200, 60]
    assert lags(waiting, "busy", "idle") == [7200, 0]
    assert lags(waiting, "idle") == [7200, 0]
    assert lags(waiting | written | {"batchId": 7}, "busy", "idle") == [0, 0]


def test_topics_are_complete_where_all_of_their_partitions_are() -> None:
    """As Spark reports its Kafka source; a partition may be new."""
    end = {"all": {"0": 5}, "some": {"0": 5, "1": 7}, "new": {"0": 1}}
    latest = {"all": {"0": 5}, "some": {"0": 5, "1": 8}, "new": {"0": 1, "1": 1}}
    for ends, latests, complete in ((end, latest, {"all"}), (None, None, set())):
        source = {"endOffset": ends, "latestOffset": latests}
        assert complete_topics({"sources": [source]}) == complete
