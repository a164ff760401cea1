"""The checks of the live tests fail when they should."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import faults
from tests.support.source import SILVER


@pytest.mark.parametrize(
    ("offsets", "is_complete"),
    [([0, 1, 2], True), ([0, 1], False), ([], False), ([0, 2], False), ([0, 1, 1], False)],
)
def test_missing_or_duplicate_record_fails_the_check(
    offsets: list[int], is_complete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bronze:
        def rows(self, table: str) -> list[dict[str, int]]:
            return [{"kafka_offset": offset} for offset in offsets]

        def topic_ends(self) -> dict[str, int]:
            return {f"demo.datalake.{table}/0": 3 for table, _ in SILVER.values()}

    monkeypatch.setattr(faults, "Tables", lambda root: Bronze())
    pipeline: Any = SimpleNamespace(lake=Path(), stack=Bronze())
    if is_complete:
        faults.assert_each_record_once(pipeline)
    else:
        with pytest.raises(AssertionError):
            faults.assert_each_record_once(pipeline)
