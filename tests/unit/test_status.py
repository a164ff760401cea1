"""What ``python -m ingest status`` says of a lake, without Spark."""

import json
import re
from pathlib import Path

import pytest

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.marks import MARK
from ingest.kafka import TopicState
from ingest.status import LakeStatus, lake_status


def test_table_that_is_being_created_holds_nothing(tmp_path: Path) -> None:
    timeline = tmp_path / "warehouse/bronze.db/rejected_events/.hoodie"
    timeline.mkdir(parents=True)
    (timeline / "hoodie.properties").write_text("hoodie.table.name=rejected_events\n")
    (timeline / "20260102030405000.commit.requested").touch()
    assert lake_status(str(tmp_path)).rejected == 0


COMMIT = json.dumps({"partitionToWriteStats": {}, "extraMetadata": {MARK: '{"batch": 1}'}})
WRITTEN = ".hoodie/20260102030405000"
CHECKPOINT = "checkpoints/kafka/a/offsets/3"
DAMAGED = {
    "bronze, empty": (f"warehouse/bronze.db/a/{WRITTEN}.commit", ""),
    "bronze, cut": (f"warehouse/bronze.db/a/{WRITTEN}.commit", COMMIT[:-9]),
    "bronze, its mark": (
        f"warehouse/bronze.db/a/{WRITTEN}.commit",
        COMMIT.replace(r"{\"batch\": 1}", "{"),
    ),
    "bronze, no JSON": ("warehouse/bronze.db/a/.hoodie/1.commit", "Obj\x01\xff"),
    "silver, a list": (f"warehouse/silver.db/a/{WRITTEN}.commit", "[]"),
    "silver, no time": ("warehouse/silver.db/a/.hoodie/1x.commit", COMMIT),
    "gold, a null": (
        f"warehouse/gold.db/a/{WRITTEN}.replacecommit",
        '{"partitionToWriteStats": null}',
    ),
    "checkpoint, empty": (CHECKPOINT, ""),
    "checkpoint, cut": (CHECKPOINT, 'v1\n{}\n{"a":{"0":'),
}


@pytest.mark.parametrize("place", DAMAGED)
def test_damaged_file_is_named(place: str, tmp_path: Path) -> None:
    """As a power cut leaves it: one line says which, and no trace."""
    name, content = DAMAGED[place]
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(content, encoding="latin-1")
    if name == CHECKPOINT:
        (tmp_path / "checkpoints/kafka/a/commits").mkdir()
        (tmp_path / "checkpoints/kafka/a/commits/3").touch()
    with pytest.raises(UserError, match=f"^{re.escape(str(file))} is damaged .*: restore"):
        lake_status(str(tmp_path))


def test_build_of_another_lake_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As dbt keeps them by project, and a project may build several; unfinished, too."""
    monkeypatch.chdir(tmp_path)
    results = {
        "metadata": {
            "generated_at": "2026-01-02T03:04:05Z",
            "env": {"LAKE_ROOT": str(tmp_path / "one")},
        },
        "args": {"which": "build"},
        "results": [],
        "elapsed_time": 1.5,
    }
    for name in ("one/warehouse", "other/warehouse", "target"):
        (tmp_path / name).mkdir(parents=True)
    file = tmp_path / "target/run_results.json"
    file.write_text(json.dumps(results))
    assert (lake_status("one").last_build or {})["command"] == "build"
    assert lake_status("other").last_build is None
    for text in ("", "[]", '{"results": null}', '{"results": [{}]}'):
        file.write_text(text)
        assert lake_status("one").last_build is None


def test_topics_that_kafka_lacks_have_no_lag() -> None:
    status = LakeStatus("lake", offsets={"a/0": 9, "a/1": 4, "gone/0": 3})
    # A partition that bronze does not know.
    latest = {("a", 0): 13, ("a", 1): 5, ("a", 2): 1_000}
    status.note_lag(TopicState({"a": "1"}, dict.fromkeys(latest, 0), latest))
    assert json.loads(status.as_json())["lag_by_topic"] == {"a": 1_003, "gone": None}
    assert status.lag_records == 1_003
    lines = list(status.lines())
    start = lines.index("lag: 1,003 records")
    assert lines[start + 1 : start + 3] == ["  a 1,003", "  gone not in Kafka"]


def test_lag_is_what_kafka_has_and_bronze_lacks() -> None:
    for offset, read_to, known_id, earliest, latest, lag in [
        (9, None, None, 0, 13, 3),
        (9, 10, "new", 0, 13, 3),
        # Skipped records, and the markers of transactions, are in no table.
        (9, 13, "new", 0, 13, 0),
        # What has expired does not wait.
        (9, 10, "new", 12, 13, 1),
        # Recreated, and nothing of it is read.
        (9, 10, "old", 0, 2, 2),
        (9, 10, "old", 0, 13, 13),
        (9, None, None, 1, 5, 4),
        # Recreated, and partly read: bronze holds higher offsets of before.
        (9, 2, "new", 0, 5, 3),
    ]:
        status = LakeStatus("lake", offsets={"a/0": offset})
        status.read_to = {} if read_to is None else {"a/0": read_to}
        status.topic_ids = {} if known_id is None else {"a": known_id}
        state = TopicState({"a": "new"}, {("a", 0): earliest}, {("a", 0): latest})
        status.note_lag(state)
        assert (status.lag_records, status.lag_by_topic) == (lag, {"a": lag})


def test_lag_is_unknown_where_nobody_asked_kafka() -> None:
    status = LakeStatus("lake", offsets={"a/0": 9})
    assert (status.lag_records, status.lag_by_topic) == (None, {})
    assert not any(line.startswith("lag") for line in status.lines())
