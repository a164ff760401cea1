"""What ``python -m ingest status`` says of a lake, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

from ingest.status import LakeStatus, lake_status


def test_table_that_is_being_created_holds_nothing(tmp_path: Path) -> None:
    timeline = tmp_path / "warehouse/bronze.db/rejected_events/.hoodie"
    timeline.mkdir(parents=True)
    (timeline / "hoodie.properties").write_text("hoodie.table.name=rejected_events\n")
    (timeline / "20260102030405000.commit.requested").touch()
    assert lake_status(str(tmp_path)).rejected == 0


def test_topics_that_kafka_lacks_have_no_lag() -> None:
    status = LakeStatus("lake", offsets={"a/0": 9, "a/1": 4, "b/0": 7, "gone/0": 3})
    # A partition that bronze does not know, and a topic that was recreated shorter.
    status.note_lag({("a", 0): 13, ("a", 1): 5, ("a", 2): 1_000, ("b", 0): 2})
    assert json.loads(status.as_json())["lag_by_topic"] == {
        "a": 1_003,
        "b": 0,
        "gone": None,
    }
    assert status.lag_records == 1_003
    lines = list(status.lines())
    start = lines.index("lag: 1,003 records")
    assert lines[start + 1 : start + 4] == ["  a 1,003", "  b 0", "  gone not in Kafka"]


def test_lag_is_unknown_where_nobody_asked_kafka() -> None:
    status = LakeStatus("lake", offsets={"a/0": 9})
    assert (status.lag_records, status.lag_by_topic) == (None, {})
    assert not any(line.startswith("lag") for line in status.lines())
