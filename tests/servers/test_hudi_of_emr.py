"""The contract of the merge on the Hudi that EMR ships."""

import sys

import pytest

from tests.nightly import HUDI_OF_EMR
from tests.support.commands import run


@pytest.mark.timeout(1200)
def test_contract() -> None:
    """In a process of its own; without a class archive, which takes a minute to record."""
    hudi = {"HUDI_VERSION": HUDI_OF_EMR}
    run(sys.executable, "-m", "cdc_lakehouse", "setup", env=hudi)
    print(
        run(sys.executable, "-m", "pytest", "-n0", "tests/lake/test_contract.py", env=hudi)
    )
