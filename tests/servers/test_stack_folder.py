"""Where PostgreSQL keeps its files, also where its user cannot enter the lake."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.folders import ELSEWHERE, claim, clear
from lab.stack.postgres import PostgresServer, find_binaries
from tests.servers.conftest import FAST_POSTGRES
from tests.support.ports import free_port
from tests.support.required import required

PASSWORD = "sesame"
root_only = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root's servers run as another user"
)


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that everybody may enter, with one below that is root's alone."""
    with required():
        find_binaries()
    folder = Path(tempfile.mkdtemp(prefix="test-stack-"))
    folder.chmod(0o755)
    (folder / "closed").mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder)


def start(folder: Path) -> PostgresServer:
    """Start the server of a folder."""
    server = PostgresServer(folder, free_port(), PASSWORD, FAST_POSTGRES)
    server.start()
    server.wait_until_ready()
    return server


def ask(server: PostgresServer, statement: str) -> list[tuple[int]]:
    """Run a statement; what it returns."""
    with closing(server.connect()) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor) if cursor.description else []


@root_only
def test_folder_that_the_servers_user_cannot_enter_is_made_elsewhere(home: Path) -> None:
    """As below /root; other processes find it, and it is removed with the stack."""
    stack = home / "closed" / "lake" / "stack"
    claim(stack, "a stack\n")
    server = start(stack / "postgres")
    try:
        place = (stack / "postgres").readlink()
        assert place.parent == Path(ELSEWHERE)
        assert place.stat().st_mode & 0o777 == 0o700
        ask(server, "create table kept as select 7 as number")
        another = PostgresServer(stack / "postgres", server.port, PASSWORD)
        assert another.pid() == server.pid()
        another.stop()
        assert server.pid() is None
        server = start(stack / "postgres")
        assert ask(server, "select number from kept") == [(7,)]
        assert server.folder == place
    finally:
        server.stop()
    clear(stack)
    assert not place.exists()
    assert not list(stack.iterdir())


@root_only
def test_folder_that_its_user_can_enter_stays(home: Path) -> None:
    server = start(home / "lake" / "stack" / "postgres")
    try:
        assert (server.folder, server.folder.is_symlink()) == (
            home / "lake" / "stack" / "postgres",
            False,
        )
    finally:
        server.stop()


@root_only
def test_data_that_the_servers_user_cannot_enter_any_more_are_named(home: Path) -> None:
    server = PostgresServer(home / "closed" / "postgres", 1, PASSWORD)
    server.data.mkdir(parents=True)
    with pytest.raises(UserError, match=f"cannot enter {home}/closed: set LAKE_ROOT"):
        server.start()
