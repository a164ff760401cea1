"""Servers that the modules of this tier share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.stack import jars
from connectors.stack.postgres import find_binaries
from connectors.stack.stack import Stack
from ingest.errors import UserError
from tests.support.aws import JARS


@pytest.fixture(scope="session")
def servers() -> None:
    """Skips where the machine lacks what the stack needs; in CI that is a failure."""
    try:
        find_binaries()
        jars.find_java()
        jars.fetch()
    except UserError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def stack_root() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can enter, which pytest's are not."""
    root = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="session")
def stack(servers: None, stack_root: Path) -> Iterator[Stack]:
    """A stack that streams, without order 11075."""
    stack = Stack(stack_root)
    stack.start(hold_back=11075)
    yield stack
    stack.remove()


@pytest.fixture(scope="module")
def s3_jars() -> None:
    """Skips where Spark cannot reach S3; in CI that is a failure."""
    if not JARS:
        said = "the S3 jars are not there: run `make s3`"
        if os.environ.get("CI") == "true":
            pytest.fail(said)
        pytest.skip(said)
