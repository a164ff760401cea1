"""What the user sets, and what the ingest decides and says; no Spark runs."""

import fcntl
import itertools
import json
import logging
import os
import re
import threading
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import MagicMock, patch

import pytest
import yaml
from pyspark.errors import PySparkException
from syrupy.assertion import SnapshotAssertion

import ingest.files
import ingest.landing
from cdc_lakehouse.command import StopRequest
from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.spark.lock import exclusive_lock
from cdc_lakehouse.spark.settings import embedded_settings
from cdc_lakehouse.storage.clock import Commit, require_later
from cdc_lakehouse.storage.marks import MARK, REJECTED_TABLE, Mark, batch_time, next_batch
from cdc_lakehouse.storage.place import lake_root
from ingest.batches import _read_to
from ingest.bronze import MOST_IDS_BROADCAST, Bronze, Slice
from ingest.build import Build
from ingest.cli import _is_first_load
from ingest.events import SKIPPED
from ingest.files import LEDGER, FileReader, occasions
from ingest.generations import numbers
from ingest.kafka import TopicState
from ingest.landing import File
from ingest.local import files_at, matches
from ingest.status import LakeStatus, lake_status
from ingest.topics import read_topics
from tests.support.records import TOPIC

CASES = yaml.safe_load(Path(__file__).with_name("ingest.yml").read_text())

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
    """And is refused where it is far behind; also one that is set back meanwhile."""
    start, until = clock[-1], "2026-09-21 15:13:20 UTC"
    require_later(Commit(start - 1, "silver.orders"))
    assert clock == [start]
    for back, newest in ((0, Commit(start + 2, "silver.orders")), (2, Commit(0.0, ""))):
        clock.append(clock[-1] - back)
        require_later(newest)
        assert start + 2 < clock[-1] < start + 2.1
    clock.append(start)
    with pytest.raises(TransientError, match=f"3,600 s .* silver.orders, .* {until} "):
        require_later(Commit(start + 3_600, "silver.orders"))
    clock.append(start - 3_600)
    with pytest.raises(TransientError, match=r"3,602 s .* this process, .* 14:13:22 UTC "):
        require_later(Commit(0.0, ""))
    assert clock[-1] == start - 3_600


# Where Kafka is read on


def test_reading_goes_on_at_the_first_event_that_is_not_written() -> None:
    """What was rejected is committed first; the process may end before the events are."""

    def part(destination: str, number: int, low: int, high: int) -> Slice:
        return Slice(destination, TOPIC, 0, number, high - low + 1, low, high, None, None)

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
    for text in (None, *CASES["wrong_topics"]):
        if text is not None:
            file.write_text(text)
        with pytest.raises(UserError) as error:
            read_topics(file)
        said[text] = str(error.value).replace(str(tmp_path), "")
    assert said == snapshot
    for encoding in ("utf-16", "latin-1", "utf-8-sig"):  # of other editors
        file.write_text('[topics]\n"a.ü" = "b"\n', encoding=encoding)
        if encoding != "utf-8-sig":
            with pytest.raises(UserError, match=f"cannot read {file}: save it as UTF-8"):
                read_topics(file)
    assert read_topics(file).tables == {"a.ü": "b"}


def test_number_of_a_generation() -> None:
    for times, held, newest, expected in CASES["generations"]:
        moments = [datetime.fromtimestamp(time / 1000, UTC) for time in times]
        assert numbers(moments, held, newest) == expected


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


# Files: when to look, what is there, what cannot be read


@pytest.mark.parametrize("is_stopped", [False, True])
def test_change_or_a_stop_request_is_an_occasion_at_once(
    is_stopped: bool, tmp_path: Path
) -> None:
    """As are seconds that pass, where nothing changes and where a path is no folder."""
    (tmp_path / "day").mkdir()
    stop = StopRequest()

    def change() -> None:
        stop.note(15, None) if is_stopped else (tmp_path / "day/new.json").touch()

    start = time.monotonic()
    threading.Timer(0.3, change).start()
    next(occasions([str(tmp_path)], 60, stop))
    assert 0.3 < time.monotonic() - start < 30
    for path in (str(tmp_path), "s3://bucket/landing", str(tmp_path / "*.json")):
        looks = occasions([path], 0.2, StopRequest())
        assert [next(looks), next(looks)] == [None, None]


@pytest.mark.parametrize(
    "bad", [set(), {"7"}, {"0", "99"}, {f"{n}" for n in range(50)}, {"the disk"}]
)
def test_files_that_an_error_does_not_name_are_found(
    bad: set[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error that comes though each can be read is no file's."""
    files = [File(f"{number}", 0, 1) for number in range(100)]
    jobs: list[list[File]] = []

    def decode(files: list[File], broken: set[str] = bad - {"the disk"}) -> frozenset[str]:
        jobs.append(files)
        if broken & {file.path for file in files} or "the disk" in broken:
            raise PySparkException("Caused by: java.lang.Error: no name\n")
        return frozenset()

    def classified(files: list[File]) -> MagicMock:
        save = "write.format.return_value.mode.return_value.save.side_effect"
        return MagicMock(**{save: lambda: decode(files)})

    landing = MagicMock(
        **{"unreadable": {}, "waiting": set(), "records": lambda files, topic: files},
        new_files=lambda: files,
        batches=lambda files: [files],
        readable=lambda files: files,
        set_aside=lambda files, error: files,
    )
    batches = MagicMock(tables=[], log=logging.getLogger("test"))
    batches.write = lambda files: decode(files, bad)
    batches.classifier.classified = classified
    done: list[File] = []
    monkeypatch.setattr(ingest.files, "Ledger", lambda *_: MagicMock(add=done.extend))
    monkeypatch.setattr(ingest.files, "Landing", lambda *_: landing)
    reader = FileReader(batches, [], None, 1)
    if "the disk" in bad:
        with pytest.raises(UserError, match="no name"):
            reader.read_new(StopRequest(), lambda: None)
        return
    reader.read_new(StopRequest(), lambda: None)
    assert {file.path for file in done} == {f"{n}" for n in range(100)} - bad
    assert {file.path for file in landing.unreadable} == bad
    assert len(jobs) <= 3 + 2 * 7 * len(bad)
    for path in bad:
        assert f"cannot read {path}: no name (Error); bronze has none of it" in caplog.text


@pytest.mark.parametrize(
    ("count", "way"), [(MOST_IDS_BROADCAST, "broadcast"), (MOST_IDS_BROADCAST + 1, "merge")]
)
def test_ids_of_a_large_file_are_not_broadcast(count: int, way: str) -> None:
    """A gzip file of 35 MB may hold 3 million records."""
    bronze = Bronze(MagicMock(), "/warehouse")
    bronze._marks["orders"] = Mark(offsets={"topic/0": count})
    part = Slice("orders", "topic", 0, 0, count, 0, count, None, None)
    rows = MagicMock()
    ids = rows.select.return_value.distinct.return_value
    ids.join.return_value.count.return_value = 0
    with patch.object(Bronze, "_rows_like") as held:
        assert bronze.append(rows, "orders", [part], 1, {}) == 0
    found = held.return_value.select.return_value.join.return_value
    assert (ids.hint.call_args.args, found.hint.call_args.args) == ((way,), (way,))


def test_batch_has_as_many_files_as_it_may_decode() -> None:
    """A compressed file, and Parquet, counts ten times its length; a large one is alone."""
    landing = ingest.landing.Landing.__new__(ingest.landing.Landing)
    landing._max_bytes = 100
    lengths = {"a.json": 60, "b.json": 40, "c.json.gz": 5, "d.parquet": 5, "e.json.gz": 30}
    files = [File(path, 0, length) for path, length in lengths.items()]
    batches = [[file.path[0] for file in batch] for batch in landing.batches(files)]
    assert batches == [["a", "b"], ["c", "d"], ["e"]]


def test_local_paths_have_what_spark_finds_there(tmp_path: Path) -> None:
    """Hidden names are left out, links are followed, and none in a circle or twice."""
    for name in ("a/1.json", "a/_b/2.json", "a/_b=1/3.json", "a/.4.json", "c/_5.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a/linked.json").symlink_to(tmp_path / "c/_5.json")
    (tmp_path / "c/up").symlink_to(tmp_path)
    # Folders with links to one another: 20 of them have a path for each of their orders.
    (tmp_path / "d").mkdir()
    for number, other in itertools.permutations(range(20), 2):
        (tmp_path / f"d/{number}").mkdir(exist_ok=True)
        (tmp_path / f"d/{number}/{number}.json").touch()
        (tmp_path / f"d/{number}/to {other}").symlink_to(tmp_path / f"d/{other}")

    def found(*names: str) -> set[str]:
        root: list[re.Pattern[str] | str] = [*str(tmp_path).strip("/").split("/")]
        below = [re.compile(name) if "*" in name else name for name in names]
        return {
            path.removeprefix(f"{tmp_path}/")
            for path, _, problem in files_at(map(Path, matches([*root, *below])))
            if problem is None
        }

    of_a = {"a/1.json", "a/_b=1/3.json", "a/linked.json"}
    of_d = {f"d/{number}/{number}.json" for number in range(20)}
    assert found() == of_a | of_d
    assert found("d", ".*") == of_d
    assert found("a") == of_a
    assert found("a", ".*json") == {"a/1.json", "a/linked.json"}
    assert found(".*", "1.json") == {"a/1.json"}
    assert found("a", "_b") == {"a/_b/2.json"}
    assert found("nowhere") == found("a", "1.json", "x") == set()


def test_first_load_is_more_than_a_batch_in_a_new_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_ROOT", str(tmp_path / "lake"))
    (tmp_path / "landing/day").mkdir(parents=True)
    (tmp_path / "landing/day/a.json").write_bytes(bytes(11))
    paths = (str(tmp_path / "landing"), "s3://bucket/landing")
    assert [_is_first_load(paths, batch) for batch in (10, 11)] == [True, False]
    (tmp_path / "lake" / LEDGER).mkdir(parents=True)
    assert not _is_first_load(paths, 10)


# The status


def test_table_that_is_being_created_holds_nothing(tmp_path: Path) -> None:
    timeline = tmp_path / "warehouse/bronze.db/rejected_events/.hoodie"
    timeline.mkdir(parents=True)
    (timeline / "hoodie.properties").write_text("hoodie.table.name=rejected_events\n")
    (timeline / "20260102030405000.commit.requested").touch()
    assert lake_status(str(tmp_path)).rejected == 0


@pytest.mark.parametrize(("name", "content"), CASES["damaged"])
def test_damaged_file_is_named(name: str, content: str, tmp_path: Path) -> None:
    """One line says which, and no trace."""
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(content.replace("MARK", MARK), encoding="latin-1")
    if "checkpoints" in name:
        (tmp_path / "checkpoints/kafka/a/commits").mkdir()
        (tmp_path / "checkpoints/kafka/a/commits/3").touch()
    with pytest.raises(UserError, match=f"^{re.escape(str(file))} is damaged .*: restore"):
        lake_status(str(tmp_path))


def test_build_of_another_lake_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As dbt keeps them by project, and a project may build several; unfinished, too."""
    monkeypatch.chdir(tmp_path)
    env = {"LAKE_ROOT": str(tmp_path / "one")}
    results = {
        "metadata": {"generated_at": "2026-01-02T03:04:05Z", "env": env},
        "args": {"which": "build"},
        **{"results": [], "elapsed_time": 1.5},
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


def test_lag_is_what_kafka_has_and_bronze_lacks() -> None:
    """Unknown where nobody asked Kafka, and of topics that Kafka lacks."""
    status = LakeStatus("lake", offsets={"a/0": 9, "a/1": 4, "gone/0": 3})
    assert (status.lag_records, status.lag_by_topic) == (None, {})
    assert not any(line.startswith("lag") for line in status.lines())
    # A partition that bronze does not know.
    latest = {("a", 0): 13, ("a", 1): 5, ("a", 2): 1_000}
    status.note_lag(TopicState({"a": "1"}, dict.fromkeys(latest, 0), latest))
    assert json.loads(status.as_json())["lag_by_topic"] == {"a": 1_003, "gone": None}
    said = "\n".join(status.lines())
    assert "\nlag: 1,003 records\n  a 1,003\n  gone not in Kafka\n" in f"{said}\n"
    for offset, read_to, known_id, earliest, latest, lag in CASES["lag"]:
        status = LakeStatus("lake", offsets={"a/0": offset})
        status.read_to = {} if read_to is None else {"a/0": read_to}
        status.topic_ids = {} if known_id is None else {"a": known_id}
        state = TopicState({"a": "new"}, {("a", 0): earliest}, {("a", 0): latest})
        status.note_lag(state)
        assert (status.lag_records, status.lag_by_topic) == (lag, {"a": lag})
