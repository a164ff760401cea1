"""How far a lake has come, read from its commits; it starts no Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyarrow import fs

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.storage import timeline
from cdc_lakehouse.storage.files import file_system
from cdc_lakehouse.storage.marks import REJECTED_TABLE, batch_time
from cdc_lakehouse.storage.tables import open_table, read_columns
from ingest.kafka import TopicState


@dataclass
class LakeStatus:
    """How far a lake has come.

    Attributes:
        lake: where it is.
        offsets: the highest offset that bronze holds or has rejected, by
            ``topic/partition``.
        newest_batch: the newest ``ingest_batch`` of bronze, 0 without one.
        seconds_since: from it to now.
        newest_change: when the newest change that bronze holds was made at the source.
        seconds_to_bronze: from that change to its batch.
        read_to: the offset that reading from Kafka goes on at, by ``topic/partition``.
        topic_ids: Kafka's ids of the topics that were read from it.
        lag_records: what Kafka has and bronze lacks; None where nobody asked Kafka.
        lag_by_topic: the same of each topic, None of those that Kafka does not have.
        rejected: the rows of ``bronze.rejected_events``.
        commits: of each table of silver and gold, when it was written last.
        rows_changed: of each, the rows that this wrote; of gold, all rows.
        last_build: dbt's last command on it from this folder: ``command``, ``at``,
            ``succeeded``, ``seconds``, ``failed`` (names).
    """

    lake: str
    offsets: dict[str, int] = field(default_factory=dict)
    newest_batch: int = 0
    seconds_since: float | None = None
    newest_change: str | None = None
    seconds_to_bronze: float | None = None
    read_to: dict[str, int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    lag_records: int | None = None
    lag_by_topic: dict[str, int | None] = field(default_factory=dict)
    rejected: int = 0
    commits: dict[str, str] = field(default_factory=dict)
    rows_changed: dict[str, int] = field(default_factory=dict)
    last_build: dict[str, Any] | None = None

    @property
    def topics(self) -> list[str]:
        """Those that bronze has records of."""
        return sorted({place.rpartition("/")[0] for place in self.offsets})

    def note_lag(self, state: TopicState) -> None:
        """Compare with what Kafka has of the topics."""
        self.lag_by_topic = dict.fromkeys(self.topics)
        for (topic, partition), end in state.latest.items():
            place, first = f"{topic}/{partition}", state.earliest[topic, partition]
            if topic not in self.topic_ids:
                done = self.offsets.get(place, -1) + 1
            elif self.topic_ids[topic] == state.ids[topic]:
                done = self.read_to.get(place, first)
            else:
                done = first
            # A topic that ends before it was recreated.
            lag = end - (first if done > end else max(done, first))
            self.lag_by_topic[topic] = (self.lag_by_topic[topic] or 0) + lag
        self.lag_records = sum(lag or 0 for lag in self.lag_by_topic.values())

    def as_json(self) -> str:
        """All of it as a JSON object."""
        return json.dumps(asdict(self))

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"lake: {self.lake}"
        at = batch_time(self.newest_batch) if self.newest_batch else None
        since = "" if self.seconds_since is None else f", {self.seconds_since:,.0f} s ago"
        yield f"newest commit of bronze: {_text(at)}{since}"
        if self.newest_change is not None:
            at = datetime.fromisoformat(self.newest_change)
            yield (
                f"newest change at the source: {_text(at)},"
                f" in bronze {self.seconds_to_bronze:,.1f} s later"
            )
        for place, offset in sorted(self.offsets.items()):
            yield f"  {place} up to offset {offset:,}"
        if self.lag_records is not None:
            yield f"lag: {self.lag_records:,} records"
        for topic, lag in self.lag_by_topic.items():
            yield f"  {topic} {'not in Kafka' if lag is None else f'{lag:,}'}"
        yield f"rejected records: {self.rejected:,}"
        for table, written in sorted(self.commits.items()):
            at = datetime.fromisoformat(written)
            kind = "rows" if table.startswith("gold.") else "rows changed"
            yield f"  {table} written {_text(at)}, {self.rows_changed[table]:,} {kind}"
        if self.last_build is not None:
            build = self.last_build
            failed = ", ".join(build["failed"])
            yield (
                f"last dbt command from this folder: {build['command']},"
                f" {_text(datetime.fromisoformat(build['at']))}, {build['seconds']:.1f} s,"
                f" {f'failed: {failed}' if failed else 'succeeded'}"
            )


def lake_status(root: str) -> LakeStatus:
    """Read the commits of a lake's tables.

    Args:
        root: its folder or URL.

    Raises:
        UserError: there is no lake.
    """
    files, place = file_system(root)
    if not files.get_file_info(fs.FileSelector(place, allow_not_found=True)):
        raise UserError(f"there is no lake at {root} (LAKE_ROOT): ingest first")
    status = LakeStatus(root)
    newest_change = 0.0
    marks: list[dict[str, Any]] = []
    for name in timeline.tables(files, f"{place}/warehouse/bronze.db"):
        table = f"{place}/warehouse/bronze.db/{name}"
        commits = timeline.bronze_commits(files, table)
        marks_there = (timeline.mark_of(files, path) for path in commits)
        mark = next((each for each in marks_there if each is not None), {})
        if mark.get("batch", 0) >= status.newest_batch:
            status.newest_batch = mark.get("batch", 0)
        newest_change = max(newest_change, mark.get("newest_change") or 0)
        # A topic's last record may be in its table or, rejected, among the others'.
        for topic, offset in mark.get("offsets", {}).items():
            status.offsets[topic] = max(offset, status.offsets.get(topic, -1))
        marks.append(mark)
        if name != REJECTED_TABLE:
            status.topic_ids |= mark.get("topic_ids", {})
        # Before its first commit ends, a table that is being created cannot be read.
        if name == REJECTED_TABLE and commits:
            url = re.sub("^s3[an]://", "s3://", root) if "://" in root else place
            found = open_table(f"{url}/warehouse/bronze.db/{name}")
            status.rejected = read_columns(found, ["event_id"]).num_rows
    # It is also past what no table has: skipped records, and the markers of transactions.
    status.read_to = _checkpoint(files, f"{place}/checkpoints/kafka")
    for mark in marks:
        for where, offset in mark.get("read_to", {}).items():
            topic = where.rpartition("/")[0]
            # Rejected records may all be of an older generation.
            if mark.get("topic_ids", {}).get(topic) == status.topic_ids.get(topic):
                status.read_to[where] = max(offset, status.read_to.get(where, 0))
    at = batch_time(status.newest_batch) if status.newest_batch else None
    if at is not None:
        status.seconds_since = (datetime.now(UTC) - at).total_seconds()
    if at is not None and newest_change:
        status.newest_change = datetime.fromtimestamp(newest_change, UTC).isoformat()
        status.seconds_to_bronze = at.timestamp() - newest_change
    for layer in ("silver", "gold"):
        for name in timeline.tables(files, f"{place}/warehouse/{layer}.db"):
            table = f"{place}/warehouse/{layer}.db/{name}"
            if newest := timeline.newest_commit(files, table):
                written, status.rows_changed[f"{layer}.{name}"] = newest
                status.commits[f"{layer}.{name}"] = written.isoformat()
    status.last_build = _last_build(root)
    return status


def _checkpoint(files: fs.FileSystem, folder: str) -> dict[str, int]:
    """The next offsets after the last micro-batch that ended, by ``topic/partition``."""
    found: dict[str, int] = {}
    for info in files.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        commits = fs.FileSelector(f"{info.path}/commits", allow_not_found=True)
        names = [each.base_name for each in files.get_file_info(commits)]
        last = max((int(name) for name in names if name.isdigit()), default=None)
        if last is None:
            continue
        with timeline.content(files, f"{info.path}/offsets/{last}") as content:
            for topic, partitions in json.loads(content.splitlines()[-1]).items():
                for partition, offset in partitions.items():
                    found[f"{topic}/{partition}"] = offset
    return found


def _last_build(root: str) -> dict[str, Any] | None:
    """What dbt says of its last command in this folder, if that was of this lake."""
    file = Path("target/run_results.json")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        # The plugin says which; on a cluster it does not.
        lake = content["metadata"]["env"].get("LAKE_ROOT")
        if lake not in (None, str(Path(root).absolute())):
            return None
        failed = [
            result["unique_id"].split(".")[2]
            for result in content["results"]
            if result["status"] in ("error", "fail", "runtime error")
        ]
        return {
            "command": content["args"].get("which"),
            "at": content["metadata"]["generated_at"].replace("Z", "+00:00"),
            "succeeded": not failed,
            "seconds": content["elapsed_time"],
            "failed": failed,
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None  # there is none, or dbt is writing it


def _text(at: datetime | None) -> str:
    return "nothing yet" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
