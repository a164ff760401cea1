"""Servers that the modules of this tier share."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.stack import jars, trino_server
from lab.stack.mariadb import find_binary
from lab.stack.northwind import NorthwindStack
from lab.stack.postgres import PostgresServer, find_binaries
from lab.stack.trino_server import Trino
from tests.support.aws import JARS, Aws
from tests.support.mariadb import MariaDBSource
from tests.support.ports import free_port
from tests.support.required import missing, required

# No test loses the machine's power: what a process wrote survives its end. Commits still
# wait for their write-ahead log, as logical decoding sends only what is written. When they
# commit is what a history is compared with.
FAST_POSTGRES = {"fsync": "off", "track_commit_timestamp": "on"}
# Transactions of tests meet, each test has a slot, and the log has the statements of roles.
OF_A_MODULE = {
    "deadlock_timeout": "50ms",
    "log_statement": "ddl",
    "max_replication_slots": "50",
}


@pytest.fixture(scope="session")
def servers() -> None:
    """Skips where the machine lacks what the stack needs; in CI that is a failure."""
    with required():
        find_binaries()
        jars.find_java()
        # Connect knows the plugins that are there when it starts.
        jars.fetch(*jars.STACK, "mariadb")


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that the databases' own users can enter, which pytest's are not."""
    with open_root() as root:
        yield root


@contextmanager
def open_root() -> Iterator[Path]:
    """The same for as long as a block."""
    temporary = tempfile.TemporaryDirectory
    with temporary(prefix="cdc-lakehouse-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def postgres(open_folder: Path) -> Iterator[PostgresServer]:
    """A PostgreSQL of a module's own; skips where there is none."""
    with required():
        find_binaries()
    settings = FAST_POSTGRES | OF_A_MODULE
    server = PostgresServer(open_folder / "server", free_port(), "a password", settings)
    server.start()
    server.wait_until_ready()
    yield server
    server.stop()


@contextmanager
def streaming(root: Path) -> Iterator[NorthwindStack]:
    """A stack that streams, at ports that it finds again after a kill.

    Its PostgreSQL runs without fsync, also that of its other objects.
    """
    fast: Any = partial(PostgresServer, settings=FAST_POSTGRES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lab.stack.northwind.PostgresServer", fast)
        stack = NorthwindStack(root)
        try:
            stack.start(ports={name: free_port() for name in stack.PORTS})
            stack.wait_until_caught_up()
            yield stack
        finally:
            stack.remove()


@pytest.fixture(scope="session")
def stack(servers: None) -> Iterator[NorthwindStack]:
    """The stack that most modules of this tier share."""
    with open_root() as root, streaming(root) as stack:
        yield stack


@pytest.fixture(scope="module")
def own_stack(servers: None, open_folder: Path) -> Iterator[NorthwindStack]:
    """A stack of a module's own."""
    with streaming(open_folder) as stack:
        yield stack


@pytest.fixture(scope="module")
def mariadb_source(stack: NorthwindStack, open_folder: Path) -> Iterator[MariaDBSource]:
    """A MariaDB that Debezium can read; skips where there is none."""
    with required():
        find_binary("mariadbd")
    source = MariaDBSource(stack, open_folder)
    source.start()
    yield source
    source.server.stop()


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
    server = Trino(tmp_path_factory.mktemp("trino"), aws.endpoint, free_port())
    server.start()
    server.wait_until_ready(180)
    yield server
    server.stop()
