"""What Prometheus is told, and the dashboard that draws it."""

from __future__ import annotations

import json
import re
import socket
import urllib.request

import pytest
from prometheus_client import REGISTRY

from connectors.stack.ports import reserved_ports
from ingest import metrics
from lake.errors import UserError
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
        metrics.serve(port)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert re.search(r'^cdc_lakehouse_builds_total\{outcome="succeeded"\} \d', text, re.M)


def test_port_that_is_taken_is_named() -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot serve metrics at port {port}"):
            metrics.serve(port)
