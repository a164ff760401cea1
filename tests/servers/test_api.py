"""The API as a process, and a real Redis that two of them share."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
import requests

from lab.stack import jars
from lab.stack.processes import wait_until
from tests.support.ports import free_port
from tests.support.project import PROJECT, parse
from tests.support.required import require_program
from tests.support.tables import SMALL_LAKE, Tables

pytestmark = pytest.mark.smoke
KEY = {"Authorization": "Bearer a key"}


@contextmanager
def process(*command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended with the block."""
    with subprocess.Popen(command, text=True, **options) as started:
        try:
            yield started
        finally:
            started.terminate()


def is_up(client: redis.Redis) -> bool:
    with suppress(redis.ConnectionError):
        return bool(client.ping())
    return False


@contextmanager
def api(lake: Path, manifest: Path, redis_url: str) -> Iterator[str]:
    """`cdc-lakehouse api` for any machine; its URL."""
    words = ("api", "--manifest", str(manifest), "--host", "0.0.0.0", "--port", "0")
    settings = {"LAKE_ROOT": str(lake), "REDIS_URL": redis_url, "LAKE_API_KEY": "a key"}
    with process(
        *(sys.executable, "-m", "cdc_lakehouse", *words),
        cwd=PROJECT,
        env=os.environ | settings,
        stderr=subprocess.PIPE,
    ) as started:
        assert started.stderr
        line = started.stderr.readline()
        port = re.search(r"endpoints, described at http://0.0.0.0:(\d+)/docs", line)
        assert port, line + started.stderr.read()
        yield f"http://127.0.0.1:{port[1]}"
        started.send_signal(signal.SIGTERM)
        assert started.wait(30) == 128 + signal.SIGTERM


def computed(url: str) -> float:
    text = requests.get(f"{url}/metrics", headers=KEY, timeout=30).text
    found = re.search(r'^cdc_\w+_answers_total{outcome="computed"} (.+)', text, re.M)
    return float(found[1]) if found else 0


def test_processes_share_answers_through_redis(tmp_path: Path) -> None:
    server = require_program("redis-server", "redis-server")
    jars.unpack(SMALL_LAKE, tmp_path)
    done = parse(tmp_path / "target")
    assert done.returncode == 0, done.stdout
    manifest = tmp_path / "target/manifest.json"
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    with ExitStack() as stack:
        words = ("--port", str(port), "--bind", "127.0.0.1", "--save", "")
        stack.enter_context(process(server, *words, stdout=subprocess.DEVNULL))
        client = redis.Redis.from_url(url)
        wait_until(lambda: is_up(client), 30, "Redis")
        urls = [stack.enter_context(api(tmp_path, manifest, url)) for _ in range(2)]

        def ask() -> list[requests.Response]:
            path = "gold/revenue_by_month?order=-revenue"
            return [
                requests.get(f"{each}/{path}", headers=KEY, timeout=30) for each in urls
            ]

        found = ask()
        assert [each.status_code for each in found] == [200, 200]
        assert found[0].content == found[1].content
        assert [computed(each) for each in urls] == [1, 0]
        Tables(tmp_path).commit_later("gold.revenue_by_month", hours=1)
        newer = ask()
        assert newer[0].headers["ETag"] == newer[1].headers["ETag"]
        assert newer[0].headers["ETag"] != found[0].headers["ETag"]
        assert [computed(each) for each in urls] == [2, 0]
        # One answer of one question is kept, however many commits there were.
        assert client.dbsize() == 1
        client.shutdown(nosave=True)
        assert [each.content for each in ask()] == [each.content for each in newer]
        assert [computed(each) for each in urls] == [3, 1]
