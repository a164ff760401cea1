"""What a lake of many small tables costs a month: CPU, requests and bytes, and their price.

The tables of ``lab.benchmarks.tables``, in a lake in a local S3 (moto's server), which
counts what it is asked. Batches of ten changes of some tables land there, of as many as
change between two builds, and are brought to silver: by a run in a process of its own,
which ends, and by an ingest that stays. Prints of a batch the seconds, the seconds of CPU,
the requests that S3 charges for and the bytes sent, and what a month of them costs by the
prices that are given. EMR Serverless charges for workers as long as a process runs, of one
that ends a minute at least, whatever CPU it takes.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import boto3
import click
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    create_backend_app,
)
from werkzeug import Request
from werkzeug.serving import WSGIRequestHandler, make_server

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.errors import UserError
from lab.benchmarks.tables import Tables, declare, resident, source
from lab.benchmarks.watched import watched
from lab.stack.s3 import upload

BUCKET = "lake"
LANDING = f"s3a://{BUCKET}/landing"
JARS = sorted(Path(sys.prefix, "s3/jars").glob("*.jar"))
SECONDS_A_MONTH = 30 * 86_400
CHANGES = 10
IDLE_SECONDS = 60.0


class Found(NamedTuple):
    """What a batch took.

    Attributes:
        seconds: until it was built.
        cpu_seconds: of all processes but S3's.
        counts: of S3, by ``kind_of``, and ``bytes`` sent to it.
    """

    seconds: float
    cpu_seconds: float
    counts: Counter[str]


class Prices(NamedTuple):
    """Of a month, in dollars.

    Attributes:
        vcpu_hour: of EMR Serverless.
        gb_hour: of EMR Serverless.
        writes: of S3, a thousand requests that write or list.
        reads: of S3, a thousand other ones.
        vcpus: of the workers, the driver among them.
        gigabytes: of their memory.
    """

    vcpu_hour: float
    gb_hour: float
    writes: float
    reads: float
    vcpus: float
    gigabytes: float

    def of_workers(self, seconds: float) -> float:
        """What the workers cost."""
        an_hour = self.vcpus * self.vcpu_hour + self.gigabytes * self.gb_hour
        return an_hour * seconds / 3600

    def of_requests(self, counts: Counter[str]) -> float:
        """What S3 charges for requests; deletes are free."""
        return (counts["writes"] * self.writes + counts["reads"] * self.reads) / 1000


def kind_of(request: Request) -> str:
    """How S3 charges for a request: ``writes`` (and lists), ``reads``, ``deletes``."""
    if request.method == "DELETE" or "delete" in request.args:
        return "deletes"
    is_of_object = "/" in request.path.strip("/")
    is_read = request.method == "HEAD" or (request.method == "GET" and is_of_object)
    return "reads" if is_read else "writes"


class Quiet(WSGIRequestHandler):
    """Says nothing of a request."""

    def log_request(self, *_: Any) -> None:
        """Nothing."""


class S3:
    """A server in this process that counts.

    Attributes:
        endpoint: where it answers.
        counts: by ``kind_of``, and the ``bytes`` that it was sent.
        environment: of the commands whose lake it has.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._application = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._count, threaded=True, request_handler=Quiet
        )
        Thread(target=self._server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.environment = {
            **{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"},
            **{"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"},
            **{"AWS_ENDPOINT_URL": self.endpoint},
            **{"AWS_ENDPOINT_URL_S3": self.endpoint},
            **{"LAKE_ROOT": f"s3a://{BUCKET}/lake"},
            **{"LAKE_JARS": ",".join(map(os.fspath, JARS))},
        }
        self._client = boto3.client(
            *("s3", "us-east-1"),
            endpoint_url=self.endpoint,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        self._client.create_bucket(Bucket=BUCKET)

    def _count(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        self.counts[kind_of(request)] += 1
        self.counts["bytes"] += request.content_length or 0
        answer: Iterable[bytes] = self._application(environ, start_response)
        return answer

    def land(self, tables: Tables, count: int, rows: int, op: str = "u") -> None:
        """Bring a batch's files to the bucket, as the sink does; not counted."""
        tables.change(count, rows, op)
        self.put(tables.landing, "landing")
        for file in tables.landing.glob("*.json"):
            file.unlink()
        self.counts.clear()

    def put(self, folder: Path, prefix: str) -> None:
        """Bring the files below a folder to the bucket."""
        upload(self._client, folder, BUCKET, prefix)

    def stored_bytes(self) -> int:
        """Of the lake's objects."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix="lake/"
        )
        return sum(each["Size"] for page in pages for each in page.get("Contents", ()))


def typical(found: list[Found]) -> Found:
    """The medians, each by itself."""
    counts: Counter[str] = Counter()
    for kind in {kind for each in found for kind in each.counts}:
        counts[kind] = int(statistics.median(each.counts[kind] for each in found))
    return Found(
        statistics.median(each.seconds for each in found),
        statistics.median(each.cpu_seconds for each in found),
        counts,
    )


def show(name: str, minutes: float, found: Found, workers: float, requests: float) -> None:
    """Print what a batch took, and what a month costs."""
    counts = found.counts
    click.echo(
        f"{name:<34} {minutes:>4.0f} min"
        f"  {found.seconds:>6.1f} s {found.cpu_seconds:>6.1f} s CPU"
        f" {counts['writes']:>6,} writes {counts['reads']:>7,} reads"
        f" {counts['bytes'] / 2**20:>6.2f} MiB"
        f"  a month: workers ${workers:>8,.2f}, requests ${requests:>8,.2f}"
    )


def measure(
    schedules: dict[int, int], count: int, rows: int, batches: int, prices: Prices
) -> None:
    """Print what each schedule costs, by runs that end and by an ingest that stays.

    Args:
        schedules: of the minutes between two builds how many tables change in them.
        count: of tables.
        rows: of each.
        batches: of each schedule, whose medians are printed.
        prices: of what it takes.
    """
    s3 = S3()
    with source() as (server, folder):
        tables = Tables(folder / "landing", count, rows)
        project, environment, _ = declare(server, tables, folder)
        environment |= s3.environment | {"LAKE_METASTORE": str(folder / "metastore")}
        command = ("cdc_lakehouse", "ingest", "files", LANDING, "--then-build")

        def taken(changed: int, changed_rows: int, op: str = "u") -> Found:
            s3.land(tables, changed, changed_rows, op)
            took = watched(*command, folder=project, environment=environment)
            return Found(took.seconds, took.cpu_seconds, Counter(s3.counts))

        first = taken(count, rows, "r")
        once = prices.of_workers(first.seconds), prices.of_requests(first.counts)
        show("first load, once", 0, first, *once)
        for minutes, changed in schedules.items():
            found = typical([taken(changed, CHANGES) for _ in range(batches)])
            runs = SECONDS_A_MONTH / (minutes * 60)
            show(
                f"a run that ends, {changed} tables",
                minutes,
                found,
                prices.of_workers(max(60.0, found.seconds)) * runs,
                prices.of_requests(found.counts) * runs,
            )
        with resident(project, LANDING, environment) as built:
            s3.land(tables, 1, CHANGES)
            next(built)  # which has the start, too

            def built_of(changed: int) -> Found:
                s3.land(tables, changed, CHANGES)
                return Found(*next(built), Counter(s3.counts))

            for minutes, changed in schedules.items():
                found = typical([built_of(changed) for _ in range(batches)])
                s3.counts.clear()
                time.sleep(IDLE_SECONDS)
                idle = prices.of_requests(s3.counts) * SECONDS_A_MONTH / IDLE_SECONDS
                runs = SECONDS_A_MONTH / (minutes * 60)
                show(
                    f"an ingest that stays, {changed} tables",
                    minutes,
                    found,
                    prices.of_workers(SECONDS_A_MONTH),
                    idle + prices.of_requests(found.counts) * runs,
                )
        click.echo(f"the lake has {s3.stored_bytes() / 2**20:,.1f} MiB")


@click.command("lab.benchmarks.cost", help=__doc__, context_settings=STYLE)
@version
@click.option("--tables", type=click.IntRange(min=1), default=50)
@click.option("--rows", type=click.IntRange(min=CHANGES), default=200, help="Of each.")
@click.option(
    "--batches", type=click.IntRange(min=1), default=3, help="Of each; medians are printed."
)
@click.option("--vcpu-hour", default=0.052624, help="EMR Serverless, x86, on demand.")
@click.option("--gb-hour", default=0.0057785, help="The same, of memory.")
@click.option("--writes", default=0.005, help="S3: a thousand PUT, COPY, POST and LIST.")
@click.option("--reads", default=0.0004, help="S3: a thousand GET and HEAD.")
@click.option("--vcpus", default=8.0, help="Of the workers: a driver and an executor.")
@click.option("--gigabytes", default=32.0, help="Of their memory.")
def command(tables: int, rows: int, batches: int, **prices: float) -> None:
    if not JARS:
        raise UserError("Hadoop's S3 file system is not there: run make s3")
    schedules = {1: -(-tables // 5), 5: -(-tables // 2), 60: tables}
    measure(schedules, tables, rows, batches, Prices(**prices))


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
