"""The command ``api``."""

from __future__ import annotations

import os
import socket
from functools import partial
from pathlib import Path

import click

from cdc_lakehouse import log
from cdc_lakehouse.command import STYLE, complain, version
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.athena import Athena
from cdc_lakehouse.serving.aws import aws_errors
from cdc_lakehouse.serving.manifest import Manifest, catalogue_options
from cdc_lakehouse.storage.place import readable_lake

HERE = ("127.0.0.1", "localhost")


@click.command("api", context_settings=STYLE)
@version
@catalogue_options
@click.option("--host", default=HERE[0], help="Any other needs LAKE_API_KEY.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000)
@click.option("--work-group", metavar="NAME", help="Ask this work group of Athena.")
@click.option(
    "--output-location",
    metavar="S3_URL",
    help="Where Athena's results go, if the work group names no place.",
)
@click.option("--max-rows", type=click.IntRange(1), default=10_000, help="Of an answer.")
@click.option(
    "--max-seconds", type=click.FloatRange(0, min_open=True), default=30, help="Likewise."
)
def command(
    prefix: str,
    manifest_file: Path,
    host: str,
    port: int,
    work_group: str | None,
    output_location: str | None,
    max_rows: int,
    max_seconds: float,
) -> None:
    """Serve gold and analyses/ over HTTP; /docs says how to call it.

    LAKE_API_KEY is the key that callers send, REDIS_URL where answers are kept.
    """
    key = os.environ.get("LAKE_API_KEY") or None
    if key is None and host not in HERE:
        raise UserError(f"LAKE_API_KEY is not set: without a key, {host} is not served")
    try:
        import uvicorn

        from cdc_lakehouse.serving.api.answers import Answers
        from cdc_lakehouse.serving.api.app import create_app
        from cdc_lakehouse.serving.api.cache import Memory, Redis
        from cdc_lakehouse.serving.api.engines import answer_here, answer_in_athena
        from cdc_lakehouse.serving.api.questions import questions_of
    except ModuleNotFoundError as error:
        needed = "pip install 'cdc-lakehouse[api]'"
        raise UserError(f"{error.name} is not installed: {needed}") from error
    log.start("api", "text")
    lake = readable_lake("the API")
    with aws_errors():
        engine = partial(answer_here, lake)
        if work_group is not None:
            engine = partial(answer_in_athena, Athena(work_group, output_location))
        manifest = Manifest.read(manifest_file)
        questions = list(questions_of(manifest, lake, prefix, complain))
    url = os.environ.get("REDIS_URL")
    answers = Answers(lake, engine, Redis(url) if url else Memory(), max_seconds)
    app = create_app(questions, answers, key=key, max_rows=max_rows)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UserError(f"cannot serve {host}:{port}: {error.strerror}") from error
    with bound:
        url = f"http://{host}:{bound.getsockname()[1]}"
        complain(f"{len(questions)} endpoints, described at {url}/docs")
        # Without a configuration of its own, uvicorn's warnings go to stderr.
        uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run([bound])
