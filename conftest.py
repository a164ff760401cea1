"""The Spark that the tests of all folders share."""

from collections.abc import Iterator

import pytest

from tests.support.lake import SparkProcess


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """The process that works on the lakes of all tests; it starts with the first use."""
    process = SparkProcess(tmp_path_factory.mktemp("spark"))
    yield process
    process.kill()
