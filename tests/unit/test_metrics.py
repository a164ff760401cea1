"""What Prometheus is told, and the dashboard that draws it."""

import json
import re
import urllib.request
from contextlib import suppress
from unittest.mock import MagicMock

import pytest
from prometheus_client import REGISTRY

from cdc_lakehouse import metrics
from cdc_lakehouse.errors import UserError
from ingest.stream import complete_topics, last_batch
from lab.stack.ports import reserved_ports
from tests.support.project import PROJECT


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

    def lags() -> list[float | None]:
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
    assert lags() == [300, 9000]
    for progress in (written, waiting):
        metrics.note_complete({"busy", "idle"}, last_batch(progress))
        assert lags() == [0, 0]
    with metrics.batch(7):
        now += 60
        metrics.note_complete({"busy", "idle"}, last_batch(waiting))
        assert lags() == [60, 60]
        metrics.note_written("busy", now - 7200)
        metrics.note_complete({"busy", "idle"}, last_batch(waiting))
        assert lags() == [7200, 60]
    metrics.note_complete({"busy", "idle"}, last_batch(waiting))
    assert lags() == [7200, 0]
    metrics.note_complete({"idle"}, last_batch(waiting))
    assert lags() == [7200, 0]
    metrics.note_complete({"busy", "idle"}, last_batch(waiting | written | {"batchId": 7}))
    assert lags() == [0, 0]


def test_topics_are_complete_where_all_of_their_partitions_are() -> None:
    """As Spark reports its Kafka source; a partition may be new."""
    source = {
        "endOffset": {"all": {"0": 5}, "some": {"0": 5, "1": 7}, "new": {"0": 1}},
        "latestOffset": {
            "all": {"0": 5},
            "some": {"0": 5, "1": 8},
            "new": {"0": 1, "1": 1},
        },
    }
    assert complete_topics({"sources": [source]}) == {"all"}
    unknown = {"endOffset": None, "latestOffset": None}
    assert complete_topics({"sources": [unknown]}) == set()
