"""``python -m lab.cluster start|status|stop|submit|start-thrift|stop-thrift``."""

from __future__ import annotations

import os
import sys
import time

import click

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.storage.place import lake_folder
from lab.cluster.cluster import BUCKET, Cluster
from lab.stack.status import read_parts, table
from lab.stack.status import stop as stop_stack

LAKE = click.option(
    "--lake", default="lake", metavar="NAME", help=f"the lake: s3a://{BUCKET}/NAME"
)


def _cluster() -> Cluster:
    return Cluster(lake_folder("the cluster needs a folder on this machine"))


@click.group("lab.cluster", context_settings=STYLE)
@version
def command() -> None:
    """Run a Spark cluster, a Hive metastore and an S3 server below LAKE_ROOT."""


@command.command()
def start() -> None:
    """Start PostgreSQL, the metastore, S3, a Spark master and two workers."""
    begin = time.monotonic()
    cluster = _cluster()
    click.echo("starting the cluster; the first time fetches jars")
    cluster.start()
    click.echo(f"started in {time.monotonic() - begin:.0f} s")
    _describe(cluster)


@command.command()
def status() -> None:
    """Show the processes, the workers and the applications."""
    cluster = _cluster()
    _describe(cluster)
    if "master" in cluster.running():
        for application in cluster.state()["activeapps"]:
            click.echo(f"running: {application['name']} ({application['id']})")


def _describe(cluster: Cluster) -> None:
    click.echo("\n".join(table(read_parts(cluster))))
    if "master" in cluster.running():
        click.echo(f"master {cluster.master}, {cluster.alive_workers()} workers")
        click.echo(f"page of the master http://127.0.0.1:{cluster.ports['master_page']}")
        click.echo(f"S3 {cluster.endpoint}, bucket {BUCKET}")


@command.command()
def stop() -> None:
    """Stop all processes; the tables and the catalogue are removed."""
    stop_stack(_cluster())


@command.command(context_settings={"ignore_unknown_options": True})
@LAKE
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def submit(lake: str, words: tuple[str, ...]) -> None:
    """Run `ingest …` or `dbt …` by spark-submit on the cluster."""
    cluster = _cluster()
    # In this process's place, so that signals reach it.
    program, *arguments = cluster.submit_command(*words)
    os.execve(program, [program, *arguments], {**os.environ, **cluster.environment(lake)})


@command.command()
@LAKE
def start_thrift(lake: str) -> None:
    """Start a Spark Thrift Server on a lake, for the target `thrift`."""
    cluster = _cluster()
    cluster.start_thrift(lake)
    click.echo(
        f"next: export LAKE_THRIFT_PORT={cluster.ports['thrift']} LAKE_TARGET=thrift"
    )


@command.command()
def stop_thrift() -> None:
    """Stop the Thrift Server."""
    _cluster().stop_thrift()


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
