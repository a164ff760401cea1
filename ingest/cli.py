"""The command line: ``python -m ingest files PATH…``."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from types import FrameType

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ingest.batches import Batches, Tally
from ingest.bronze import Bronze
from ingest.config import lake_root, read_topics
from ingest.errors import UserError
from ingest.lock import only_one
from ingest.session import spark_session
from ingest.sources import file_records

DONE, FAILED, TOO_MANY_REJECTED = 0, 1, 2
SECONDS_BETWEEN_BATCHES = 10


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Returns:
        0 where everything readable is committed, 1 where something stopped it, 2 where
        it is committed but a batch held more rejected records than allowed.
    """
    options = _parser().parse_args(arguments)
    try:
        tally = ingest_files(options)
    except UserError as error:
        print(f"ingest: {error}", file=sys.stderr)
        return FAILED
    return _report(tally, options.max_rejected_share)


def ingest_files(options: argparse.Namespace) -> Tally:
    """Bring the files of a command line into bronze.

    Raises:
        UserError: something the user can mend stopped it; the message says what.
    """
    topics = read_topics()
    lake = lake_root()
    with only_one(lake, "ingest"):
        spark = spark_session()
        bronze = Bronze(spark, f"{lake}/warehouse")
        batches = Batches(bronze, topics)
        bronze.create_missing(batches.tables)
        records = file_records(spark, options.paths, options.topic)
        query = _start(records, batches, f"{lake}/checkpoints/files", options.continuous)
        _wait(query)
        return batches.tally


def _start(
    records: DataFrame, batches: Batches, checkpoint: str, continuous: bool
) -> StreamingQuery:
    writer = (
        records.writeStream.foreachBatch(batches)
        .option("checkpointLocation", checkpoint)
        .queryName("bronze")
    )
    if continuous:
        return writer.trigger(processingTime=f"{SECONDS_BETWEEN_BATCHES} seconds").start()
    return writer.trigger(availableNow=True).start()


def _wait(query: StreamingQuery) -> None:
    """Wait for the end; Ctrl-C and SIGTERM end it after the batch under way."""
    stopping = False

    def stop(signal_number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    previous = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
    try:
        while not query.awaitTermination(1):
            if stopping and not query.status["isTriggerActive"]:
                query.stop()
    except PySparkException as error:
        raise UserError(_sentence(error)) from error
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _sentence(error: PySparkException) -> str:
    """What a failed query means to the user."""
    text = str(error)
    file = re.search(r"(?:while reading file|reading file:?) ([^\s]+)", text)
    if file:
        cause = re.findall(r"Caused by: [\w.$]*?(\w+): (.+)", text)
        detail = f" ({cause[-1][1].strip()})" if cause else ""
        return (
            f"cannot read {file[1].rstrip('.')}{detail}; nothing of its batch is"
            " committed: mend or move the file and run this again"
        )
    trace, _, _ = text.partition("\n\tat ")
    lines = [line for line in trace.splitlines() if line.strip()]
    return f"the ingest stopped: {lines[-1] if lines else type(error).__name__}"


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
    mode = files.add_mutually_exclusive_group()
    mode.add_argument(
        "--once", action="store_true", help="read what is there, then stop (default)"
    )
    mode.add_argument(
        "--continuous",
        action="store_true",
        help=f"look for new files every {SECONDS_BETWEEN_BATCHES} seconds until stopped",
    )
    files.add_argument(
        "--max-rejected-share",
        type=_share,
        default=0.5,
        metavar="SHARE",
        help="end with exit code 2 if more than this share of a batch is no change"
        " event (default 0.5)",
    )
    return parser
