"""What a test needs of the machine: without it a test skips; with ``CI=true`` it fails."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from cdc_lakehouse.errors import UserError


def missing(reason: str) -> NoReturn:
    """End a test whose machine lacks something.

    Args:
        reason: what is missing, and how to install it.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def required() -> Iterator[None]:
    """Take the error of a part that is not installed for the reason."""
    try:
        yield
    except UserError as error:
        missing(str(error))


def require_program(name: str, package: str) -> str:
    """The path of a program.

    Args:
        name: the program.
        package: Debian's package that has it.
    """
    path = shutil.which(name)
    if path is None:
        missing(f"there is no `{name}`: apt-get install {package}")
    return path
