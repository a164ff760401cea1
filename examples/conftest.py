"""The lakes and servers of the examples' tests."""

from tests.conftest import aws, lake, new_lake
from tests.servers.conftest import new_postgres, open_folder, trino

__all__ = ["aws", "lake", "new_lake", "new_postgres", "open_folder", "trino"]
