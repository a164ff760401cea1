"""Commands as a user runs them, in this process."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from cdc_lakehouse.cli import main


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Cli = Callable[..., Said]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs ``cdc-lakehouse``, or another command by its ``main``."""

    def call(*arguments: str, main: Callable[[list[str]], int] = main) -> Said:
        capsys.readouterr()
        code = main([*arguments])
        return Said(code, *capsys.readouterr())

    return call
