"""When a continuous ingest of files looks for more, what is there, what cannot be read."""

import itertools
import logging
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import pytest
from pyspark.errors import PySparkException

import ingest.files
import ingest.landing
from cdc_lakehouse.command import StopRequest
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage.marks import Mark
from ingest.bronze import MOST_IDS_BROADCAST, Bronze, Slice
from ingest.files import FileReader, occasions
from ingest.landing import File
from ingest.local import files_at, matches


def seconds_to_an_occasion(folder: Path, cause: Callable[[StopRequest], object]) -> float:
    """From 0.3 s before a cause, of which no look may come later than in a minute."""
    stop = StopRequest()
    looks = occasions([str(folder)], 60, stop)
    threading.Timer(0.3, cause, [stop]).start()
    start = time.monotonic()
    next(looks)
    return time.monotonic() - start


def test_change_or_a_stop_request_is_an_occasion_at_once(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    new = tmp_path / "day" / "new.json"
    assert 0.3 < seconds_to_an_occasion(tmp_path, lambda stop: new.touch()) < 30
    assert 0.3 < seconds_to_an_occasion(tmp_path, lambda stop: stop.note(15, None)) < 30


def test_seconds_that_pass_are_an_occasion(tmp_path: Path) -> None:
    """Where nothing changes, and where a path is no local folder."""
    for path in (str(tmp_path), "s3://bucket/landing", str(tmp_path / "*.json")):
        looks = occasions([path], 0.2, StopRequest())
        for _ in range(2):
            next(looks)


def read(
    files: list[File], bad: set[str], monkeypatch: pytest.MonkeyPatch, *, full: bool = False
) -> tuple[list[File], MagicMock]:
    """What the ledger has after a look at files, and their landing folder.

    Some cannot be read, and the error does not name them.
    """
    landing = MagicMock(unreadable={}, waiting=set(), jobs=0)
    landing.new_files.return_value = files
    landing.batches.side_effect = lambda files: [files]
    landing.readable.side_effect = lambda files: files
    landing.set_aside.side_effect = lambda files, error: files

    def records(files: list[File], topic: str | None) -> Any:
        def save() -> None:
            landing.jobs += 1
            if bad & {file.path for file in files}:
                raise PySparkException("Caused by: java.lang.Error: no name\n")

        frame = MagicMock()
        frame.write.format.return_value.mode.return_value.save.side_effect = save
        return frame

    def write(records: Any) -> frozenset[str]:
        records.write.format("").mode("").save()
        if full:
            raise PySparkException("No space left on device")
        return frozenset()

    landing.records.side_effect = records
    batches = MagicMock(tables=[], log=logging.getLogger("test"))
    batches.write.side_effect = write
    batches.classifier.classified.side_effect = lambda records: records
    done: list[File] = []
    ledger = MagicMock()
    ledger.add.side_effect = done.extend
    monkeypatch.setattr(ingest.files, "Ledger", lambda *_: ledger)
    monkeypatch.setattr(ingest.files, "Landing", lambda *_: landing)
    FileReader(batches, [], None, 1).read_new(StopRequest(), lambda: None)
    return done, landing


@pytest.mark.parametrize("bad", [set(), {"7"}, {"0", "99"}, {f"{n}" for n in range(50)}])
def test_files_that_an_error_does_not_name_are_found(
    bad: set[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = [File(f"{number}", 0, 1) for number in range(100)]
    done, landing = read(files, bad, monkeypatch)
    assert {file.path for file in done} == {f"{n}" for n in range(100)} - bad
    assert {file.path for file in landing.unreadable} == bad
    assert landing.jobs <= 3 + 2 * 7 * len(bad)
    for path in bad:
        assert f"cannot read {path}: no name (Error); bronze has none of it" in caplog.text


def test_error_of_another_kind_is_no_file_s(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="No space left on device"):
        read([File("a", 0, 1), File("b", 0, 1)], set(), monkeypatch, full=True)


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
    """A compressed file is taken for ten times its length, a large one is a batch."""
    landing = ingest.landing.Landing.__new__(ingest.landing.Landing)
    landing._max_bytes = 100
    lengths = {"a.json": 60, "b.json": 40, "c.json.gz": 5, "d.json.zst": 5, "e.json.gz": 30}
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
