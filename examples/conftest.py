"""The lakes and servers of the examples' tests."""

from tests.conftest import aws, lake, new_lake
from tests.servers.conftest import (
    open_folder,
    postgres,
    servers,
    stack,
    trino,
)

__all__ = [
    "aws",
    "lake",
    "new_lake",
    "open_folder",
    "postgres",
    "servers",
    "stack",
    "trino",
]
