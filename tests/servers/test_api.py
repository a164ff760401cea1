"""The API as processes that share a real Redis; its statements in Athena's engine."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis
import requests
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from lab.stack import jars
from tests.support.ports import free_port
from tests.support.project import PROJECT, parsed
from tests.support.required import require_program
from tests.support.tables import SMALL_LAKE, Tables

KEY = {"Authorization": "Bearer a key"}


@contextmanager
def process(*command: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended with the block, as its exit code says."""
    environment = os.environ | settings
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=PROJECT, env=environment, stderr=pipe, stdout=pipe, text=True
    ) as started:
        yield started
        started.terminate()
        started.communicate(timeout=60)
        assert started.returncode in (0, 143)


def computed(url: str) -> float:
    text = requests.get(f"{url}/metrics", headers=KEY, timeout=30).text
    found = re.search(r'^cdc_\w+_answers_total{outcome="computed"} (.+)', text, re.M)
    return float(found[1]) if found else 0


@pytest.mark.smoke
def test_processes_share_answers_through_redis(tmp_path: Path) -> None:
    server = require_program("redis-server", "redis-server")
    jars.unpack(SMALL_LAKE, tmp_path)
    parsed(tmp_path / "target")
    port = free_port()
    settings = {
        "LAKE_ROOT": str(tmp_path),
        "REDIS_URL": f"redis://127.0.0.1:{port}/0",
        "LAKE_API_KEY": "a key",
    }
    words = ["api", "--manifest", f"{tmp_path}/target/manifest.json"]
    words += ["--host", "0.0.0.0", "--port", "0"]
    with ExitStack() as stack:
        run = (server, "--port", str(port), "--bind", "127.0.0.1", "--save", "")
        stack.enter_context(process(*run))
        half_a_minute = Retry(ConstantBackoff(0.1), 300)
        redis.Redis.from_url(settings["REDIS_URL"], retry=half_a_minute).ping()
        client = redis.Redis.from_url(settings["REDIS_URL"])
        urls = []
        for _ in range(2):
            command = (sys.executable, "-m", "cdc_lakehouse", *words)
            api = stack.enter_context(process(*command, **settings))
            assert api.stderr
            # What is not built in the small lake is named first.
            place = re.compile(r"described at http://0.0.0.0(:\d+)/docs")
            found = next(filter(None, map(place.search, api.stderr)))
            urls.append(f"http://127.0.0.1{found[1]}")

        def ask() -> list[requests.Response]:
            asked = [f"{each}/gold/revenue_by_month?order=-revenue" for each in urls]
            return [requests.get(each, headers=KEY, timeout=30) for each in asked]

        first = ask()
        assert [each.status_code for each in first] == [200, 200]
        assert first[0].content == first[1].content
        assert [computed(each) for each in urls] == [1, 0]
        Tables(tmp_path).commit_later("gold.revenue_by_month", hours=1)
        newer = ask()
        tags = [each.headers["ETag"] for each in (*newer, *first)]
        assert tags[0] == tags[1] != tags[2] == tags[3]
        assert [computed(each) for each in urls] == [2, 0]
        # One answer of one question is kept, however many commits there were.
        assert client.dbsize() == 1
        client.shutdown(nosave=True)
        assert [each.content for each in ask()] == [each.content for each in newer]
        assert [computed(each) for each in urls] == [3, 1]
