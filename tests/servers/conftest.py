"""Servers that the modules of this tier share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.stack import jars
from lab.stack.northwind import NorthwindStack
from lab.stack.postgres import PostgresServer, find_binaries
from tests.support import trino_server
from tests.support.aws import JARS, Aws
from tests.support.ports import free_port
from tests.support.required import missing, required
from tests.support.trino_server import Trino

# No test loses the machine's power: what a process wrote survives its end. Commits still
# wait for their write-ahead log, as logical decoding sends only what is written.
FAST_POSTGRES = {"fsync": "off"}


@pytest.fixture(scope="session")
def servers() -> None:
    """Skips where the machine lacks what the stack needs; in CI that is a failure."""
    with required():
        find_binaries()
        jars.find_java()
        jars.fetch(*jars.STACK)


@pytest.fixture(scope="session")
def stack_root() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can enter, which pytest's are not."""
    root = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="session")
def fast_stack() -> Iterator[None]:
    """The PostgreSQL of every stack in this process runs without fsync."""
    with pytest.MonkeyPatch.context() as patch:
        fast: Any = partial(PostgresServer, settings=FAST_POSTGRES)
        patch.setattr("lab.stack.northwind.PostgresServer", fast)
        yield


def start_stack(stack: NorthwindStack, hold_back: int | None = None) -> None:
    """Start a stack for the first time, at ports that it finds again after a kill."""
    stack.start(hold_back=hold_back, ports={name: free_port() for name in stack.PORTS})


@pytest.fixture(scope="session")
def started_stack(
    servers: None, fast_stack: None, stack_root: Path
) -> Iterator[tuple[NorthwindStack, dict[str, int]]]:
    """A stack that streams, without order 11075, and the ends of its topics at first."""
    stack = NorthwindStack(stack_root)
    try:
        start_stack(stack, hold_back=11075)
        stack.wait_until_caught_up()
        yield stack, stack.topic_ends()
    finally:
        stack.remove()


@pytest.fixture(scope="session")
def stack(started_stack: tuple[NorthwindStack, dict[str, int]]) -> NorthwindStack:
    """The stack that most modules of this tier share."""
    return started_stack[0]


@pytest.fixture(scope="session")
def first_ends(started_stack: tuple[NorthwindStack, dict[str, int]]) -> dict[str, int]:
    """The ends of the stack's topics after its snapshot."""
    return started_stack[1]


@pytest.fixture(scope="module")
def s3_jars() -> None:
    """Skips where Spark cannot reach S3; in CI that is a failure."""
    if not JARS:
        missing("the S3 jars are missing: run `make s3`")


@pytest.fixture(scope="module")
def trino(aws: Aws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """A Trino; skipped where the machine lacks what it needs, an error in CI."""
    with required():
        trino_server.fetch()
    server = Trino(tmp_path_factory.mktemp("trino"), aws.endpoint)
    yield server
    server.stop()
