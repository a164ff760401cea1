"""The checks of the live tests fail when they should."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import faults
from tests.support.pipeline import Pipeline
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


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    """A pipeline with a process that does nothing."""
    stack: Any = SimpleNamespace(root=tmp_path)
    pipeline = Pipeline(stack)
    pipeline.process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield pipeline
    pipeline.kill()


@pytest.mark.parametrize(
    ("log", "is_building"),
    [
        ("", False),
        ("wrote 0 events\n", False),
        ("wrote 12 events\n", True),
        ("wrote 12 events\nwrote 0 events\ningest: dbt: a warning\n", True),
        ("wrote 12 events\nbuilt (3.4 s)\n", False),
        ("wrote 12 events\nthe build failed; it is tried again (3.4 s)\n", False),
        ("built (3.4 s)\nwrote 12 events\nwrote 1 events\n", True),
    ],
)
def test_only_a_build_in_flight_is_killed(
    pipeline: Pipeline, log: str, is_building: bool
) -> None:
    pipeline.log.write_text(log)
    assert pipeline.is_building == is_building
    assert pipeline.kill_during_build() == is_building
    assert pipeline.has_ended == is_building
