"""The lakes and servers of the examples' tests."""

from tests.conftest import aws, lake, new_lake
from tests.servers.conftest import (
    fast_stack,
    open_folder,
    postgres,
    servers,
    stack,
    trino,
)

__all__ = [
    "aws",
    "fast_stack",
    "lake",
    "new_lake",
    "open_folder",
    "postgres",
    "servers",
    "stack",
    "trino",
]
