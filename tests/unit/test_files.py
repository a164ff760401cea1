"""When a continuous ingest of files looks for more."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from ingest.files import occasions
from lake.command import StopRequest


def test_change_below_a_local_folder_is_an_occasion_at_once(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    looks = occasions([str(tmp_path)], 60, StopRequest())
    timer = threading.Timer(0.5, (tmp_path / "day" / "new.json").touch)
    timer.start()
    start = time.monotonic()
    next(looks)
    assert time.monotonic() - start < 30
    assert timer.finished.is_set()


def test_seconds_that_pass_are_an_occasion(tmp_path: Path) -> None:
    """Where nothing changes, and where a path is no local folder."""
    for path in (str(tmp_path), "s3://bucket/landing", str(tmp_path / "*.json")):
        looks = occasions([path], 0.2, StopRequest())
        for _ in range(2):
            next(looks)


def test_stop_request_is_an_occasion(tmp_path: Path) -> None:
    stop = StopRequest()
    looks = occasions([str(tmp_path)], 60, stop)
    threading.Timer(0.3, stop.note, (15, None)).start()
    start = time.monotonic()
    next(looks)
    assert stop and time.monotonic() - start < 30
