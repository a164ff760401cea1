"""The lakes and servers of the examples' tests."""

from tests.conftest import aws, lake, new_lake
from tests.servers.conftest import (
    fast_stack,
    new_postgres,
    open_folder,
    servers,
    stack,
    trino,
)

__all__ = [
    "aws",
    "fast_stack",
    "lake",
    "new_lake",
    "new_postgres",
    "open_folder",
    "servers",
    "stack",
    "trino",
]
