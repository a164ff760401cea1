"""What the user sets, and what the ingest decides without Spark."""

import fcntl
import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.spark.settings import embedded_settings
from cdc_lakehouse.storage.clock import Commit, require_later
from cdc_lakehouse.storage.marks import REJECTED_TABLE, batch_time, next_batch
from cdc_lakehouse.storage.place import lake_root
from ingest.batches import _read_to
from ingest.bronze import Slice
from ingest.build import Build
from ingest.events import SKIPPED
from ingest.generations import numbers
from ingest.topics import read_topics
from tests.support.records import TOPIC

# The number of a batch


def test_next_batch_is_a_later_time_when_the_clock_is_behind() -> None:
    """In UTC."""
    now = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
    for zone in (UTC, timezone(timedelta(hours=5))):
        assert next_batch(0, now.astimezone(zone)) == 20260304050607089
    for last, expected in {
        20260304050607000: 20260304050607001,
        20260304050609999: 20260304050610000,
        20260304050659999: 20260304050700000,
        20261231235959999: 20270101000000000,
    }.items():
        assert next_batch(last, datetime(2020, 1, 1, tzinfo=UTC)) == expected > last
        assert next_batch(0, batch_time(expected)) == expected
        assert batch_time(last) < batch_time(expected)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock says, which sleeping moves on."""
    times = [1_790_000_000.0]
    monkeypatch.setattr("cdc_lakehouse.storage.clock._shown", Commit(0.0, "this process"))
    monkeypatch.setattr("cdc_lakehouse.storage.clock.time.time", lambda: times[-1])
    monkeypatch.setattr(
        "cdc_lakehouse.storage.clock.time.sleep",
        lambda seconds: times.append(times[-1] + seconds),
    )
    return times


def test_write_waits_for_a_clock_that_is_a_little_behind(clock: list[float]) -> None:
    start = clock[-1]
    require_later(Commit(start - 1, "silver.orders"))
    assert clock == [start]
    require_later(Commit(start + 2, "silver.orders"))
    assert start + 2 < clock[-1] < start + 2.1
    # Set back while the process runs.
    clock.append(start)
    require_later(Commit(0.0, ""))
    assert start + 2 < clock[-1] < start + 2.1


def test_write_is_refused_where_the_clock_is_far_behind(clock: list[float]) -> None:
    start = clock[-1]
    until = "2026-09-21 15:13:20 UTC"
    with pytest.raises(TransientError, match=f"3,600 s .* silver.orders, .* {until} "):
        require_later(Commit(start + 3_600, "silver.orders"))
    assert clock == [start]
    clock.append(start - 3_600)
    with pytest.raises(TransientError, match=r"3,600 s .* this process, .* 14:13:20 UTC "):
        require_later(Commit(0.0, ""))


# Where Kafka is read on


def test_reading_goes_on_at_the_first_event_that_is_not_written() -> None:
    """What was rejected is committed first; the process may end before the events are."""

    def part(destination: str, partition: int, low: int, high: int) -> Slice:
        return Slice(
            destination, TOPIC, 0, partition, high - low + 1, low, high, None, None
        )

    slices = [
        *(part("cdc_events", 0, 5, 9), part(REJECTED_TABLE, 0, 7, 10)),
        *(part(SKIPPED, 0, 11, 11), part(REJECTED_TABLE, 1, 3, 3)),
    ]
    assert _read_to(slices, REJECTED_TABLE) == {f"{TOPIC}/0": 5, f"{TOPIC}/1": 4}
    assert _read_to(slices, "cdc_events") == {f"{TOPIC}/0": 12, f"{TOPIC}/1": 4}


def test_topics_file_that_is_wrong(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Or is not there."""
    file = tmp_path / "topics.toml"
    said = {}
    for text in (
        None,
        *yaml.safe_load(Path(__file__).with_name("wrong_topics.yml").read_text()),
    ):
        if text is not None:
            file.write_text(text)
        with pytest.raises(UserError) as error:
            read_topics(file)
        said[text] = str(error.value).replace(str(tmp_path), "")
    assert said == snapshot


GENERATIONS: list[tuple[list[int], dict[int, int], int, list[int]]] = [
    ([], {}, 0, [0]),
    ([], {0: 50, 1: 70}, 1, [1]),
    ([], {}, 2, [2]),
    ([100], {}, 0, [0, 1]),
    ([100], {0: 50}, 0, [0, 1]),
    ([100], {0: 50, 1: 150}, 1, [0, 1]),
    ([100, 200], {0: 50, 1: 150}, 1, [0, 1, 2]),
    # What came before the topic was recreated arrived later.
    ([100], {0: 150}, 0, [-1, 0]),
    ([100], {-1: 50, 0: 150}, 0, [-1, 0]),
    # Kafka's ids told two generations before; files tell of the third only.
    ([100], {0: 20, 1: 50, 2: 150}, 2, [1, 2]),
    ([100], {}, 2, [1, 2]),
    # The time was said too late at first.
    ([100, 200], {0: 50, 1: 250}, 1, [0, 1, 1]),
]


def test_number_of_a_generation() -> None:
    for times, held, newest, expected in GENERATIONS:
        moments = [datetime.fromtimestamp(time / 1000, UTC) for time in times]
        assert numbers(moments, held, newest) == expected


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_topics_file_that_another_editor_wrote(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text('[topics]\n"a.ü" = "b"\n', encoding=encoding)
    if encoding == "utf-8-sig":
        assert read_topics(file).tables == {"a.ü": "b"}
    else:
        with pytest.raises(UserError, match=f"cannot read {file}: save it as UTF-8"):
            read_topics(file)


def test_lake_root_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set to nothing is not set, as in make and the profile."""
    monkeypatch.delenv("LAKE_METASTORE", raising=False)
    monkeypatch.delenv("LAKE_ROOT", raising=False)
    assert lake_root() == ".lake"
    for value, root in (("", ".lake"), ("/data/x/", "/data/x")):
        monkeypatch.setenv("LAKE_ROOT", value)
        assert lake_root() == root
        settings = embedded_settings()
        assert settings["spark.sql.warehouse.dir"] == f"{root}/warehouse"
        derby = settings["spark.hadoop.javax.jdo.option.ConnectionURL"]
        assert derby == f"jdbc:derby:;databaseName={root}/metastore;create=true"


def test_command_that_selects_nodes_itself_is_recognised() -> None:
    for command in ("build", "run --threads 2", "run --vars '{a: s}'"):
        assert not Build(command, retries=False).selects
    for option in ("-s orders+", "-sorders", "--select=orders+", "--exclude orders"):
        assert Build(f"build {option}", retries=False).selects
    with pytest.raises(UserError, match="No closing quotation"):
        Build("run --vars '{a: 1}", retries=False)


# The lock of a lake


@pytest.mark.parametrize("pid", [99_999_999, os.getppid()])
def test_lock_of_a_dead_process_is_free(pid: int, tmp_path: Path) -> None:
    """Also where another process has its number now."""
    (tmp_path / "ingest.lock").write_text(str(pid))
    with exclusive_lock(str(tmp_path), "ingest"):
        assert (tmp_path / "ingest.lock").read_text() == str(os.getpid())
        with (tmp_path / "ingest.lock").open("a") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
