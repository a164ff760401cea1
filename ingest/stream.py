"""The streaming query that fills bronze: its start, its checkpoint, its end."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ingest.batches import Batches, StoppedError
from ingest.kafka import vanished
from lake.errors import UserError

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
SECONDS_BETWEEN_LOOKS = 0.2

# Shows the trace of whatever a batch raises, which the query raises again.
logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)


def start(
    records: DataFrame, batches: Batches, checkpoint: str, seconds: float | None
) -> StreamingQuery:
    """Start to write records to bronze.

    Args:
        records: the columns of ``RECORD``.
        batches: what is done with a micro-batch.
        checkpoint: the folder or URL of the query's progress.
        seconds: between batches, or None to end when all that is there is written.
    """
    writer = (
        records.writeStream.foreachBatch(batches)
        .option("checkpointLocation", checkpoint)
        .queryName("bronze")
    )
    if seconds is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{int(seconds * 1000)} milliseconds").start()


def keep_only(spark: SparkSession, folder: str, known: list[str]) -> bool:
    """Remove the checkpoints below a folder that are not known.

    Returns:
        Whether one is left.
    """
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(folder)
    file_system = path.getFileSystem(spark._jsc.hadoopConfiguration())
    if not file_system.exists(path):
        return False
    left = False
    for status in file_system.listStatus(path):
        if status.getPath().getName() in known:
            left = True
        else:
            file_system.delete(status.getPath(), True)
    return left


def wait(query: StreamingQuery, batches: Batches, between: Callable[[], None]) -> None:
    """Wait for the query's end; Ctrl-C and SIGTERM end it after the batch under way.

    Args:
        query: the query.
        batches: what it does.
        between: called again and again meanwhile.

    Raises:
        UserError: the query failed; the message says why.
    """

    def stop(signal_number: int, frame: FrameType | None) -> None:
        batches.is_stopping = True

    previous = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
    try:
        # PySpark takes parts of a second, and declares whole ones.
        while not query.awaitTermination(SECONDS_BETWEEN_LOOKS):  # type: ignore[arg-type]
            if batches.is_stopping:
                if not query.status["isTriggerActive"]:
                    query.stop()
            elif query.lastProgress is not None:
                between()
    except PySparkException as error:
        # Under steady input one batch follows the other, and the next one ends the query.
        if StoppedError.__name__ not in str(error):
            raise UserError(_sentence(error)) from error
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


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
    moved = re.search(r"(\S+)-(\d+)'s offset was changed from (\d+) to (\d+)", text)
    if moved:
        return vanished(moved[1], int(moved[2]), int(moved[3]), int(moved[4]))
    gone = re.search(r"fetch offset (\d+) \(.*?TopicPartition: (\S+)-(\d+)\)", text)
    if gone:
        return vanished(gone[2], int(gone[3]), int(gone[1]), None)
    trace, _, _ = text.partition("\n\tat ")
    lines = [line for line in trace.splitlines() if line.strip()]
    return f"the ingest stopped: {lines[-1] if lines else type(error).__name__}"
