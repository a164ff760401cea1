"""What the HTTP API costs a caller: with a cache, without one, and where nothing changed.

Asks the lake of LAKE_ROOT (`make demo` makes one) some questions, by clients that each send
the next request when they have the answer. There is a server for each kind of cache: none,
memory, and a Redis where REDIS_URL names one; they are asked in turn, round after round.
`304` sends the tag of the answer. Prints the 50th and the 99th percentile and the requests
a second.
"""

from __future__ import annotations

import http.client
import multiprocessing
import os
import socket
import statistics
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.serving.manifest import MANIFEST

PATHS = (
    "/gold/revenue_by_customer?order=-revenue&limit=20",
    "/analyses/top_customers",
    "/analyses/flattened_order_items?limit=1000",
)
HEADERS = {"": {}, "304": {"If-None-Match": "*"}}


def serve(bound: socket.socket, kind: str, manifest: Path) -> None:
    """Serve with a kind of cache; what it needs is imported in this process alone."""
    import uvicorn

    from cdc_lakehouse.serving.api.answers import Answers
    from cdc_lakehouse.serving.api.app import create_app
    from cdc_lakehouse.serving.api.cache import Memory, Redis
    from cdc_lakehouse.serving.api.engines import answer_here
    from cdc_lakehouse.serving.api.questions import questions_of
    from cdc_lakehouse.serving.manifest import Manifest
    from cdc_lakehouse.storage.place import readable_lake

    lake = readable_lake("the benchmark")
    cache: Any = Redis(_redis_url()) if kind == "redis" else Memory()
    if kind == "none":
        cache.put = lambda name, content: None
    answers = Answers(lake, partial(answer_here, lake), cache, 60)
    questions = list(questions_of(Manifest.read(manifest), lake, "lake", print))
    app = create_app(questions, answers, key=None, max_rows=10_000)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run([bound])


def _redis_url() -> str:
    return os.environ.get("REDIS_URL", "")


def latencies(
    port: int, path: str, headers: dict[str, str], clients: int, seconds: float
) -> list[float]:
    """The seconds of each request that clients made side by side."""
    found: list[float] = []
    end = time.monotonic() + seconds

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while (start := time.monotonic()) < end:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == (304 if headers else 200), answer.status
            found.append(time.monotonic() - start)
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@click.command("lab.benchmarks.api", help=__doc__, context_settings=STYLE)
@version
@click.option("--clients", default=8)
@click.option("--rounds", default=3)
@click.option("--seconds", default=5.0, help="Of each question to each server in a round.")
@click.option("--manifest", type=click.Path(path_type=Path), default=MANIFEST)
def command(clients: int, rounds: int, seconds: float, manifest: Path) -> None:
    kinds = ["none", "memory", *(["redis"] if _redis_url() else [])]
    context = multiprocessing.get_context("fork")
    ports, servers = {}, []
    for kind in kinds:
        bound = socket.create_server(("127.0.0.1", 0))
        ports[kind] = bound.getsockname()[1]
        servers.append(context.Process(target=serve, args=(bound, kind, manifest)))
        servers[-1].start()
        bound.close()
    lanes = [(kind, "") for kind in kinds] + [("memory", "304")]
    found: dict[tuple[str, str, str], list[float]] = {}
    for number in range(rounds + 1):
        for path in PATHS:
            for kind, sent in lanes:
                # The first round starts everything, and is not counted.
                took = latencies(ports[kind], path, HEADERS[sent], clients, seconds)
                if number:
                    found.setdefault((path, kind, sent), []).extend(took)
    for server in servers:
        server.terminate()
        server.join()
    click.echo(f"{clients} clients, {rounds} rounds of {seconds:.0f} s")
    click.echo(f"{'':50} {'cache':11} {'p50 ms':>8} {'p99 ms':>8} {'a second':>9}")
    for (path, kind, sent), took in found.items():
        cuts = statistics.quantiles(took, n=100)
        rate = len(took) / (rounds * seconds)
        name = f"{kind}, {sent}" if sent else kind
        click.echo(
            f"{path:50} {name:11} {cuts[49] * 1000:8.1f} {cuts[98] * 1000:8.1f} {rate:9.0f}"
        )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; its exit code."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
