"""The command line: ``python -m ingest files PATH…`` and ``python -m ingest kafka …``."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from ingest import stream
from ingest.batches import Batches, Tally
from ingest.bronze import Bronze
from ingest.build import Build
from ingest.kafka import next_offsets, read_options, topic_state
from ingest.sources import file_records, kafka_records
from ingest.topics import TOPICS_FILE, Topics, read_topics
from lake.errors import UserError
from lake.lock import only_one
from lake.place import lake_root
from lake.session import spark_session

DONE, FAILED, TOO_MANY_REJECTED = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Returns:
        0 where everything readable is committed, 1 where something stopped it, 2 where
        it is committed but a batch held more rejected records than allowed.
    """
    options = _parser().parse_args(arguments)
    try:
        tally, built = ingest(options)
    except UserError as error:
        print(f"ingest: {error}", file=sys.stderr)
        return FAILED
    code = _report(tally, options.max_rejected_share)
    return code if built else FAILED


def ingest(options: argparse.Namespace) -> tuple[Tally, bool]:
    """Bring what a command line names into bronze, and build where it asks for that.

    Returns:
        What was done with the records, and whether the last build succeeded (or none
        was asked for).

    Raises:
        UserError: something the user can mend stopped it; the message says what.
    """
    topics = read_topics(options.topics)
    if options.continuous:
        # A process that stays has the time that the optimising compiler takes.
        os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    lake = lake_root()
    with only_one(lake, "ingest"):
        # By itself it needs no metastore, so that it runs while another process builds.
        spark = spark_session(has_catalogue=options.then_build is not None)
        bronze = Bronze(spark, f"{lake}/warehouse")
        batches = Batches(bronze, topics)
        batches.create_missing()
        if options.source == "kafka":
            properties = read_options(spark, options.options) if options.options else {}
            checkpoint, starts = _kafka_start(spark, bronze, topics, options, properties)
            records = kafka_records(spark, options.bootstrap_servers, starts, properties)
        else:
            checkpoint = f"{lake}/checkpoints/files"
            records = file_records(spark, options.paths, options.topic)
        seconds = _trigger_seconds(options) if options.continuous else None
        follow_up = _FollowUp(batches, options.then_build, continuous=options.continuous)
        query = stream.start(records, batches, checkpoint, seconds)
        stream.wait(query, batches, follow_up.look)
        follow_up.look()
        return batches.tally, follow_up.succeeded


def _trigger_seconds(options: argparse.Namespace) -> float:
    """How often it looks for more; a store in a network charges for each list."""
    if options.source == "kafka":
        return 0.2
    return 10 if any("://" in path for path in options.paths) else 1


class _FollowUp:
    """What is done between batches: say what came, and build where that is asked for."""

    def __init__(self, batches: Batches, command: str | None, *, continuous: bool) -> None:
        self.batches = batches
        self.build = Build(command, retries=continuous) if command is not None else None
        self.continuous = continuous
        self.succeeded = True
        self._tables: set[str] = set()
        # A run that was cut short may have left events in bronze that no build has seen.
        self._is_due = True

    def look(self) -> None:
        """Build if a batch that ended since the last look brought something."""
        for outcome in self.batches.ended():
            if self.continuous:
                print(f"wrote {outcome.written} events", flush=True)
            self._tables |= outcome.tables
            self._is_due = self._is_due or outcome.written > 0
        if self._is_due and self.build is not None:
            self._is_due = False
            tables, self._tables = self._tables, set()
            self.succeeded = self.build.run(tables)


def _kafka_start(
    spark: SparkSession,
    bronze: Bronze,
    topics: Topics,
    options: argparse.Namespace,
    properties: dict[str, str],
) -> tuple[str, dict[str, dict[int, int]]]:
    """The query's checkpoint, and where to start if it is not there.

    A checkpoint is of one set of topics: with another set, or without it, reading goes
    on at the offsets that bronze itself has in its commits. Both say nothing about a
    topic that was made anew since: it is read from its start.
    """
    unknown = sorted(set(options.topic) - topics.tables.keys())
    if unknown:
        raise UserError(f"{options.topics} does not list the topic '{unknown[0]}'")
    digest = hashlib.sha256("\n".join(sorted(options.topic)).encode()).hexdigest()[:12]
    folder = f"{lake_root()}/checkpoints/kafka"
    state = topic_state(spark, options.bootstrap_servers, options.topic, properties)
    bronze.topic_ids = state.ids
    marks = {topic: bronze.mark(topics.tables[topic]) for topic in options.topic}
    made_anew = set().union(*(mark.made_anew(state.ids) for mark in marks.values()))
    known = [] if options.from_earliest or made_anew else [digest]
    has_checkpoint = stream.keep_only(spark, folder, known)
    read_to: dict[str, int] = {}
    if not has_checkpoint and not options.from_earliest:
        for topic in marks.keys() - made_anew:
            read_to |= {
                place: offset
                for place, offset in marks[topic].read_to.items()
                if place.rpartition("/")[0] == topic
            }
    return f"{folder}/{digest}", next_offsets(state, read_to)


def _report(tally: Tally, max_rejected_share: float) -> int:
    for reason, count in sorted(tally.reasons.items()):
        print(f"ingest: rejected {count}: {reason}", file=sys.stderr)
    print(
        f"read {tally.read} records, wrote {tally.written} events, "
        f"rejected {tally.rejected}, skipped {tally.skipped}",
        flush=True,
    )
    if tally.worst_share > max_rejected_share:
        print(
            f"ingest: {tally.worst_share:.0%} of a batch was rejected, more than the"
            f" {max_rejected_share:.0%} allowed; the good records are committed, the"
            " others are in bronze.rejected_events",
            file=sys.stderr,
        )
        return TOO_MANY_REJECTED
    return DONE


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("a share lies between 0 and 1")
    return share


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ingest",
        description="Bring Debezium change events into the bronze tables.",
    )
    sources = parser.add_subparsers(dest="source", required=True)
    files = sources.add_parser(
        "files", help="JSON-lines files, plain or gzip, as an S3 sink writes them"
    )
    files.add_argument(
        "paths", nargs="+", metavar="PATH", help="a file, a folder or a glob; any URL"
    )
    files.add_argument("--topic", help="the topic of records that do not name theirs")
    kafka = sources.add_parser("kafka", help="Kafka topics, straight")
    kafka.add_argument(
        "--bootstrap-servers", required=True, metavar="HOST:PORT", help="comma-separated"
    )
    kafka.add_argument(
        "--topic", required=True, nargs="+", action="extend", help="the topics to read"
    )
    kafka.add_argument(
        "--options",
        type=Path,
        metavar="FILE",
        help="Kafka client properties, one `name=value` a line: TLS, SASL, IAM",
    )
    kafka.add_argument(
        "--from-earliest",
        action="store_true",
        help="start with what Kafka has, wherever bronze is: after offsets vanished",
    )
    for parser_of_source in (files, kafka):
        _add_common(parser_of_source)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--once", action="store_true", help="read what is there, then stop (default)"
    )
    mode.add_argument(
        "--continuous",
        action="store_true",
        help="look for more until stopped (Ctrl-C, SIGTERM): five times a second at"
        " Kafka, every second at a path, every 10 s at a URL",
    )
    parser.add_argument(
        "--then-build",
        nargs="?",
        const="build",
        metavar="COMMAND",
        help="run dbt in this process after each batch that brought something: `build`,"
        " or the command given here",
    )
    parser.add_argument(
        "--topics",
        type=Path,
        default=TOPICS_FILE,
        metavar="FILE",
        help="which topic goes to which table (default ingest/topics.toml)",
    )
    parser.add_argument(
        "--max-rejected-share",
        type=_share,
        default=0.5,
        metavar="SHARE",
        help="end with exit code 2 if more than this share of a batch is no change"
        " event (default 0.5)",
    )
