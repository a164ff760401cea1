"""What ``python -m ingest status`` says of a lake, without Spark."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.marks import MARK
from ingest.cli import main
from ingest.kafka import TopicState
from ingest.status import LakeStatus, lake_status


def test_table_that_is_being_created_holds_nothing(tmp_path: Path) -> None:
    timeline = tmp_path / "warehouse/bronze.db/rejected_events/.hoodie"
    timeline.mkdir(parents=True)
    (timeline / "hoodie.properties").write_text("hoodie.table.name=rejected_events\n")
    (timeline / "20260102030405000.commit.requested").touch()
    assert lake_status(str(tmp_path)).rejected == 0


COMMIT = json.dumps({"partitionToWriteStats": {}, "extraMetadata": {MARK: '{"batch": 1}'}})
DAMAGED = {
    "bronze, empty": ("warehouse/bronze.db/a/.hoodie/20260102030405000.commit", b""),
    "bronze, cut": (
        "warehouse/bronze.db/a/.hoodie/20260102030405000.commit",
        COMMIT[:-9].encode(),
    ),
    "bronze, its mark": (
        "warehouse/bronze.db/a/.hoodie/20260102030405000.commit",
        COMMIT.replace(r"{\"batch\": 1}", "{").encode(),
    ),
    "bronze, no JSON": ("warehouse/bronze.db/a/.hoodie/1.commit", b"Obj\x01\xff"),
    "silver, a list": ("warehouse/silver.db/a/.hoodie/20260102030405000.commit", b"[]"),
    "silver, no time": ("warehouse/silver.db/a/.hoodie/1x.commit", COMMIT.encode()),
    "gold, a null": (
        "warehouse/gold.db/a/.hoodie/20260102030405000.replacecommit",
        b'{"partitionToWriteStats": null}',
    ),
    "checkpoint, empty": ("checkpoints/kafka/a/offsets/3", b""),
    "checkpoint, cut": ("checkpoints/kafka/a/offsets/3", b'v1\n{}\n{"a":{"0":'),
}


@pytest.mark.parametrize("place", DAMAGED)
def test_damaged_file_is_named(place: str, tmp_path: Path) -> None:
    """As a power cut leaves it: one line says which, and no trace."""
    name, content = DAMAGED[place]
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    if place.startswith("checkpoint"):
        (tmp_path / "checkpoints/kafka/a/commits").mkdir()
        (tmp_path / "checkpoints/kafka/a/commits/3").touch()
    with pytest.raises(UserError, match=f"^{re.escape(str(file))} is damaged .*: restore"):
        lake_status(str(tmp_path))


def test_endpoint_that_is_no_url_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKE_ROOT", "s3a://bucket/lake")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "localhost:9000")
    assert main(["status"]) == 1
    said = "Invalid endpoint: localhost:9000: AWS_ENDPOINT_URL_S3 is a URL"
    assert capsys.readouterr().err.startswith(f"ingest: {said}")


@pytest.mark.parametrize("text", ["", "[]", '{"results": null}', '{"results": [{}]}'])
def test_unfinished_results_of_dbt_are_left_out(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "target").mkdir()
    (tmp_path / "target/run_results.json").write_text(text)
    (tmp_path / "lake/warehouse").mkdir(parents=True)
    assert lake_status(str(tmp_path / "lake")).last_build is None


def test_build_of_another_lake_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As dbt keeps them by project, and a project may build several."""
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
    for name in ("one", "other"):
        (tmp_path / name / "warehouse").mkdir(parents=True)
    (tmp_path / "target").mkdir()
    (tmp_path / "target/run_results.json").write_text(json.dumps(results))
    assert (lake_status("one").last_build or {})["command"] == "build"
    assert lake_status("other").last_build is None


def test_missing_lake_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKE_ROOT", str(tmp_path / "none"))
    assert main(["status"]) == 1
    assert "ingest: there is no lake at" in capsys.readouterr().err


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


@dataclass
class Partition:
    """What bronze and Kafka have of one partition."""

    offset: int
    read_to: int | None
    known_id: str | None
    earliest: int
    latest: int
    lag: int


@pytest.mark.parametrize(
    "case",
    [
        Partition(offset=9, read_to=None, known_id=None, earliest=0, latest=13, lag=3),
        Partition(offset=9, read_to=10, known_id="new", earliest=0, latest=13, lag=3),
        # Skipped records, and the markers of transactions, are in no table.
        Partition(offset=9, read_to=13, known_id="new", earliest=0, latest=13, lag=0),
        # What has expired does not wait.
        Partition(offset=9, read_to=10, known_id="new", earliest=12, latest=13, lag=1),
        # Recreated, and nothing of it is read.
        Partition(offset=9, read_to=10, known_id="old", earliest=0, latest=2, lag=2),
        Partition(offset=9, read_to=10, known_id="old", earliest=0, latest=13, lag=13),
        Partition(offset=9, read_to=None, known_id=None, earliest=1, latest=5, lag=4),
        # Recreated, and partly read: bronze holds higher offsets of before.
        Partition(offset=9, read_to=2, known_id="new", earliest=0, latest=5, lag=3),
    ],
    ids=str,
)
def test_lag_is_what_kafka_has_and_bronze_lacks(case: Partition) -> None:
    status = LakeStatus(
        "lake",
        offsets={"a/0": case.offset},
        read_to={} if case.read_to is None else {"a/0": case.read_to},
        topic_ids={} if case.known_id is None else {"a": case.known_id},
    )
    state = TopicState({"a": "new"}, {("a", 0): case.earliest}, {("a", 0): case.latest})
    status.note_lag(state)
    assert (status.lag_records, status.lag_by_topic) == (case.lag, {"a": case.lag})


def test_lag_is_unknown_where_nobody_asked_kafka() -> None:
    status = LakeStatus("lake", offsets={"a/0": 9})
    assert (status.lag_records, status.lag_by_topic) == (None, {})
    assert not any(line.startswith("lag") for line in status.lines())
